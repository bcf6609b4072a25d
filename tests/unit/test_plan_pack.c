/* The packer: what it answers to odd input, what it promises about its layouts, and what the
 * checker of these refuses. */
#include "pack/pack.h"
#include "unit/cmocka_all.h"
#include "unit/packed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 512 };

static struct fl_pack_buffer buffer[MOST];
static _Alignas(4096) char scratch[8 << 20];
static const size_t scratch_len = sizeof scratch;

static struct fl_pack_buffer of(uint64_t birth, uint64_t death, uint64_t size)
{
    return (struct fl_pack_buffer){.birth = birth, .death = death, .size = size};
}

static struct fl_pack_result pack(size_t n)
{
    struct fl_pack_result out;

    memset(scratch, 0xa5, scratch_len);
    assert_int_equal(fl_pack(buffer, n, scratch, scratch_len, &out), 0);
    assert_true(packed_well(buffer, n, out.height));
    assert_true(out.height >= out.bound);
    return out;
}

/* Few buffers, and what they come to. */
static void heights_of_few(void **state)
{
    static const struct {
        const char *what;
        struct fl_pack_buffer b[3];
        uint64_t height;
    } row[] = {
        {"nothing", {{0}}, 0},
        {"one lies at the bottom", {{.birth = 5, .death = 6, .size = 77}}, 77},
        {"no size takes no room", {{.death = 10}, {.death = 10, .size = 8}}, 8},
        {"nor has no life", {{.birth = 3, .death = 3, .size = 1000}, {.death = 9, .size = 8}}, 8},
        {"neither", {{.birth = 3, .death = 3, .size = 1000}, {.death = 10}}, 0},
        {"a death at another's birth is no conflict",
         {{.death = 5, .size = 100}, {.birth = 5, .death = 9, .size = 100}},
         100},
        {"one after it is",
         {{.death = 5, .size = 100}, {.birth = 4, .death = 9, .size = 100}},
         200},
        {"times may be anything",
         {{.death = UINT64_MAX, .size = 3},
          {.birth = UINT64_MAX - 1, .death = UINT64_MAX, .size = 4},
          {.birth = 1, .death = UINT64_MAX - 1, .size = 4}},
         7},
    };
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        memcpy(buffer, row[i].b, sizeof row[i].b);
        if (pack(3).height != row[i].height) {
            fail_msg("%s", row[i].what);
        }
    }
    assert_int_equal(pack(0).height, 0);
}

static void equal_times_conflict_all(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        buffer[i] = of(7, 8, i + 1);
    }
    assert_int_equal(pack(40).height, 40 * 41 / 2);
}

static void sizes_may_be_near_the_end_of_addresses(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 8; i++) {
        buffer[i] = of(i, i + 3, ((uint64_t)1 << 47) - 1 - i);
    }
    /* The first three live together, and they are the largest. */
    assert_int_equal(pack(8).bound, 3 * ((uint64_t)1 << 47) - 6);
}

static void malformed_input_is_refused(void **state)
{
    static const struct fl_pack_buffer row[] = {
        {.birth = 3, .death = 2, .size = 64},
        {.death = 2, .size = (uint64_t)1 << 47},
        {.death = 2, .size = 64, .align = 3},
        {.death = 2, .size = 64, .align = (uint64_t)1 << 48},
    };
    struct fl_pack_result out;
    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        buffer[0] = buffer[2] = of(0, 2, 64);
        buffer[1] = row[i];
        assert_int_equal(fl_pack(buffer, 3, scratch, scratch_len, &out), -EINVAL);
    }
}

static void sizes_whose_sum_overflows_are_refused(void **state)
{
    (void)state;
    size_t n = (size_t)1 << 16;
    struct fl_pack_buffer *many = calloc(n, sizeof *many);
    size_t len = fl_pack_scratch(n);
    void *room = malloc(len);
    struct fl_pack_result out;

    assert_non_null(many);
    assert_non_null(room);
    for (size_t i = 0; i < n; i++) {
        many[i] = of(0, 1, ((uint64_t)1 << 47) - 1);
    }
    assert_int_equal(fl_pack(many, n, room, len, &out), -EINVAL);
    free(room);
    free(many);
}

/* What fl_pack_scratch() asks for is enough whatever the buffers are like; less is refused. */
static void the_least_scratch_is_enough(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 4; kind++) {
        for (unsigned i = 0; i < MOST; i++) {
            uint64_t birth = kind == 0 ? 0 : 2 * i, life = kind == 1 ? 1 : kind == 2 ? MOST : 3;
            buffer[i] = of(birth, birth + life, 1 + i);
            buffer[i].align = (uint64_t)1 << i % 5;
        }
        struct fl_pack_result out;
        size_t len = fl_pack_scratch(MOST);
        assert_int_equal(fl_pack(buffer, MOST, scratch, len - 1, &out), -ENOMEM);
        assert_int_equal(fl_pack(buffer, MOST, scratch, len, &out), 0);
        assert_true(packed_well(buffer, MOST, out.height));
    }
}

/* With one alignment for all, heights are multiples of it: there is no layout between. */
static void the_bound_counts_whole_units(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        buffer[i] = of(0, 1, 65537);
        buffer[i].align = 65536;
    }
    struct fl_pack_result out = pack(10);
    assert_int_equal(out.bound, 10 * 131072);
    assert_int_equal(out.height, out.bound);
}

/* ---- the checker ---- */

static void the_checker_sees_what_is_wrong(void **state)
{
    static const struct {
        uint64_t size_of_16, offset_of_17, height;
        bool well;
    } row[] = {
        {64, 128, 192, true},
        {64, 128, 191, false},                        /* above the height */
        {64, 64, 192, false},                         /* where the one before lies */
        {64, 128 + 32, 1000, false},                  /* not aligned */
        {64, UINT64_MAX - 63, UINT64_MAX - 1, false}, /* its end overflows */
        {65, 128, 1000, false},                       /* into the next one */
        {0, 128, 192, true},
    };
    (void)state;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        for (unsigned i = 0; i < 30; i++) {
            buffer[i] = of(i, i + 3, 64);
            buffer[i].align = 64;
            buffer[i].offset = 64 * (i % 3);
        }
        buffer[16].size = row[r].size_of_16;
        buffer[17].offset = row[r].offset_of_17;
        if (packed_well(buffer, 30, row[r].height) != row[r].well) {
            fail_msg("row %zu", r);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heights_of_few),
        cmocka_unit_test(equal_times_conflict_all),
        cmocka_unit_test(sizes_may_be_near_the_end_of_addresses),
        cmocka_unit_test(malformed_input_is_refused),
        cmocka_unit_test(sizes_whose_sum_overflows_are_refused),
        cmocka_unit_test(the_least_scratch_is_enough),
        cmocka_unit_test(the_bound_counts_whole_units),
        cmocka_unit_test(the_checker_sees_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
