/* Numbers, sizes, words and edit distance: tables, the overflows among them. */
#include "base/base.h"
#include "cases.h"

struct number {
    const char *text;
    int rc;
    uint64_t value;
};

static void check_table(int (*parse)(const char *, uint64_t *), const struct number *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t v = 0;
        int rc = parse(row[i].text, &v);
        if (rc != row[i].rc || (rc == 0 && v != row[i].value)) {
            fail_msg("'%s': rc %d value %llu", row[i].text, rc, (unsigned long long)v);
        }
    }
}

CASE(plain_numbers_are_decimal_and_whole)
{
    static const struct number table[] = {
        {"0", 0, 0},
        {"007", 0, 7},
        {"18446744073709551615", 0, UINT64_MAX},
        {"18446744073709551616", -ERANGE, 0},
        {"18446744073709551620", -ERANGE, 0},
        {"99999999999999999999999", -ERANGE, 0},
        {"", -EINVAL, 0},
        {" 1", -EINVAL, 0},
        {"1 ", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"+1", -EINVAL, 0},
        {"0x10", -EINVAL, 0},
        {"1e3", -EINVAL, 0},
        {"1K", -EINVAL, 0},
    };
    check_table(fl_parse_u64, table, sizeof table / sizeof table[0]);
}

CASE(sizes_take_one_binary_unit)
{
    static const struct number table[] = {
        {"4096", 0, 4096},
        {"1k", 0, 1 << 10},
        {"64K", 0, 64 << 10},
        {"3m", 0, 3 << 20},
        {"2G", 0, 2ull << 30},
        {"1T", 0, 1ull << 40},
        {"0T", 0, 0},
        {"16777215T", 0, 16777215ull << 40},
        {"16777216T", -ERANGE, 0},
        {"18014398509481983K", 0, 18014398509481983ull << 10},
        {"18014398509481984K", -ERANGE, 0},
        {"99999999999999999999K", -ERANGE, 0},
        {"1KB", 0, 1024},
        {"1KiB", 0, 1024},
        {"8gb", 0, 8ull << 30},
        {"1Ki", -EINVAL, 0},
        {"1KBs", -EINVAL, 0},
        {"1BB", -EINVAL, 0},
        {"1B", -EINVAL, 0},
        {"1 K", -EINVAL, 0},
        {"K", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"1P", -EINVAL, 0},
        {"1.5G", -EINVAL, 0},
        {"-1K", -EINVAL, 0},
    };
    check_table(fl_parse_size, table, sizeof table / sizeof table[0]);
}

CASE(booleans_are_a_closed_list_of_words)
{
    static const char *const yes[] = {"1", "on", "yes", "true"};
    static const char *const no[] = {"0", "off", "no", "false", ""};
    static const char *const neither[] = {"2", "ON", "yes ", "y", "tru", "-1"};
    for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++) {
        assert_int_equal(fl_parse_bool(yes[i]), 1);
    }
    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++) {
        assert_int_equal(fl_parse_bool(no[i]), 0);
    }
    for (size_t i = 0; i < sizeof neither / sizeof neither[0]; i++) {
        assert_int_equal(fl_parse_bool(neither[i]), -EINVAL);
    }
}

CASE(number_after_a_key_is_found_or_absent)
{
    const char *text =
        "MemTotal:       100 kB\nMemAvailable:\t 42 kB\nEmpty:\nHugePages_Total:    x\n";
    uint64_t v = 7;
    assert_true(fl_parse_after(text, "MemAvailable:", &v));
    assert_int_equal(v, 42);
    assert_true(fl_parse_after("2097152\n", "", &v));
    assert_int_equal(v, 2097152);
    assert_false(fl_parse_after(text, "Missing:", &v));
    assert_false(fl_parse_after(text, "Empty:", &v));
    assert_false(fl_parse_after(text, "HugePages_Total:", &v));
    assert_false(fl_parse_after("max\n", "", &v));
    assert_false(fl_parse_after("", "", &v));
    assert_false(fl_parse_after("k 18446744073709551616", "k", &v));
}

CASE(edit_distance_counts_single_letters)
{
    static const struct {
        const char *a, *b;
        unsigned edits;
    } table[] = {
        {"", "", 0},
        {"", "abc", 3},
        {"abc", "", 3},
        {"limit", "limit", 0},
        {"limt", "limit", 1},
        {"limits", "limit", 1},
        {"limet", "limit", 1},
        {"kitten", "sitting", 3},
        {"treshold", "threshold", 1},
        {"decay", "decay_ms", 3},
        {"ab", "ba", 2},
    };
    char longer[200], other[200];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_int_equal(fl_edit_distance(table[i].a, table[i].b), table[i].edits);
        assert_int_equal(fl_edit_distance(table[i].b, table[i].a), table[i].edits);
    }
    memset(longer, 'x', sizeof longer - 1);
    memset(other, 'y', sizeof other - 1);
    longer[sizeof longer - 1] = other[sizeof other - 1] = '\0';
    assert_int_equal(fl_edit_distance(longer, longer), 0);
    assert_int_equal(fl_edit_distance(longer, other), 64); /* no more letters are looked at */
    assert_int_equal(fl_edit_distance(longer, ""), 64);
}

/* "0-3,8" -> "0-3 8-8"; the text ends with "!" where the list does. */
static const char *spans(const char *list)
{
    static char text[256];
    struct fl_text t = fl_text_on(text, sizeof text);
    uint64_t first, last;
    int rc;

    while ((rc = fl_parse_span(&list, &first, &last)) == 0) {
        fl_text_u64(&t, first);
        fl_text_str(&t, "-");
        fl_text_u64(&t, last);
        fl_text_str(&t, " ");
    }
    fl_text_str(&t, rc == -ENOENT ? "." : "!");
    return text;
}

CASE(lists_are_spans_between_commas)
{
    static const char *const table[][2] = {
        {"", "."},
        {"\n", "."},
        {"0\n", "0-0 ."},
        {"0-3,8", "0-3 8-8 ."},
        {"0,2,5-6\nmore", "0-0 2-2 5-6 ."},
        {"7-7", "7-7 ."},
        {"3-1", "!"},
        {"1-", "!"},
        {"-1", "!"},
        {",1", "!"},
        {"1,", "!"},
        {"1,,2", "!"},
        {"1 2", "!"},
        {"1,2x", "1-1 !"},
        {"all", "!"},
        {"99999999999999999999", "!"},
        {"0-99999999999999999999", "!"},
    };
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        assert_string_equal(spans(table[i][0]), table[i][1]);
    }
}

CASE(decimals_are_millionths)
{
    static const struct number table[] = {
        {"0", 0, 0},
        {"1", 0, 1000000},
        {"0.92", 0, 920000},
        {".5", 0, 500000},
        {"5.", 0, 5000000},
        {"0.000001", 0, 1},
        {"1.0000009", 0, 1000000},
        {"0.00000001", 0, 1}, /* more than nothing */
        {"0.0000000", 0, 0},
        {"18446744073708.999999", 0, 18446744073708999999ull},
        {"18446744073709", -ERANGE, 0},
        {"99999999999999999999", -ERANGE, 0},
        {"", -EINVAL, 0},
        {".", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {"1e3", -EINVAL, 0},
        {"1.5.", -EINVAL, 0},
        {"1,5", -EINVAL, 0},
        {" 1", -EINVAL, 0},
    };
    check_table(fl_parse_millionths, table, sizeof table / sizeof table[0]);
}

CASES_MAIN()
