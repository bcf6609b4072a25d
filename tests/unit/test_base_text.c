/* Text that is cut and never overrun; ranges and rounding. */
#include "base/base.h"
#include "cases.h"

CASE(text_is_cut_at_its_end_and_stays_terminated)
{
    char buf[8];
    memset(buf, '#', sizeof buf);
    struct fl_text t = fl_text_on(buf, 6);
    assert_string_equal(buf, "");
    fl_text_str(&t, "abc");
    fl_text_str(&t, "defgh");
    assert_string_equal(buf, "abcde");
    assert_int_equal(t.len, 5);
    fl_text_u64(&t, 1);
    assert_string_equal(buf, "abcde");
    assert_int_equal(buf[6], '#');
    assert_int_equal(buf[7], '#');
}

CASE(text_of_one_byte_holds_nothing)
{
    char buf[2] = {'x', '#'};
    struct fl_text t = fl_text_on(buf, 1);
    fl_text_str(&t, "abc");
    fl_text_hex(&t, 255);
    fl_text_size(&t, 4096);
    assert_int_equal(t.len, 0);
    assert_int_equal(buf[0], '\0');
    assert_int_equal(buf[1], '#');
}

static void assert_text(void (*append)(struct fl_text *, uint64_t), uint64_t v, const char *want)
{
    char buf[64];
    struct fl_text t = fl_text_on(buf, sizeof buf);

    append(&t, v);
    assert_string_equal(buf, want);
    assert_int_equal(t.len, strlen(want));
}

CASE(numbers_are_written_in_full)
{
    assert_text(fl_text_u64, 0, "0");
    assert_text(fl_text_u64, 10, "10");
    assert_text(fl_text_u64, UINT64_MAX, "18446744073709551615");
    assert_text(fl_text_hex, 0, "0x0");
    assert_text(fl_text_hex, 0xdeadbeef, "0xdeadbeef");
    assert_text(fl_text_hex, UINT64_MAX, "0xffffffffffffffff");
}

CASE(sizes_take_the_largest_unit_that_divides)
{
    assert_text(fl_text_size, 0, "0");
    assert_text(fl_text_size, 1, "1");
    assert_text(fl_text_size, 1023, "1023");
    assert_text(fl_text_size, 65536, "64K");
    assert_text(fl_text_size, 4097, "4097");
    assert_text(fl_text_size, 3 << 20, "3M");
    assert_text(fl_text_size, (5ull << 30) + 1024, "5242881K");
    assert_text(fl_text_size, 1ull << 40, "1T");
    assert_text(fl_text_size, 1ull << 60, "1048576T");
}

CASE(millionths_have_no_zeros_behind)
{
    static const struct {
        uint64_t v;
        const char *text;
    } table[] = {{0, "0"},
                 {1, "0.000001"},
                 {920000, "0.92"},
                 {1000000, "1"},
                 {1500000, "1.5"},
                 {1000010, "1.00001"},
                 {UINT64_MAX, "18446744073709.551615"}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char text[32];
        struct fl_text t = fl_text_on(text, sizeof text);
        fl_text_millionths(&t, table[i].v);
        assert_string_equal(text, table[i].text);
    }
}

CASE(sizes_read_back_what_was_written)
{
    static const uint64_t values[] = {0,          1,          4096,       65537,
                                      1ull << 31, 3ull << 40, 1ull << 46, UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        char buf[32];
        uint64_t back = 1;
        struct fl_text t = fl_text_on(buf, sizeof buf);
        fl_text_size(&t, values[i]);
        assert_int_equal(fl_parse_size(buf, &back), 0);
        assert_true(back == values[i]);
    }
}

CASE(rounding_moves_to_the_nearest_multiple)
{
    assert_true(fl_is_pow2(1) && fl_is_pow2(4096) && fl_is_pow2((size_t)1 << 63));
    assert_false(fl_is_pow2(0) || fl_is_pow2(3) || fl_is_pow2(SIZE_MAX));
    assert_int_equal(fl_align_down(4095, 4096), 0);
    assert_int_equal(fl_align_down(4096, 4096), 4096);
    assert_int_equal(fl_align_up(1, 4096), 4096);
    assert_int_equal(fl_align_up(4096, 4096), 4096);
    assert_int_equal(fl_align_up(0, 4096), 0);
}

CASE(inner_range_is_the_whole_units_or_nothing)
{
    static const struct {
        struct fl_range r;
        uintptr_t base;
        size_t len;
    } table[] = {
        {{0x1000, 0x3000}, 0x2000, 0x2000}, {{0x2000, 0x2000}, 0x2000, 0x2000},
        {{0x1000, 0x1000}, 0, 0},           {{0x1fff, 0x2001}, 0x2000, 0x2000},
        {{0x1fff, 0x2000}, 0, 0},           {{0x2000, 0}, 0, 0},
        {{0x1000, 0x2fff}, 0, 0},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct fl_range in = fl_range_inner(table[i].r, 0x2000);
        assert_int_equal(in.len, table[i].len);
        if (table[i].len != 0) {
            assert_int_equal(in.base, table[i].base);
        }
    }
}

CASES_MAIN()
