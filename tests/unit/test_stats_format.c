/* The two printed forms. */
#include "stats/stats.h"
#include "unit/cmocka_all.h"

#include <string.h>

static void json_is_one_line_with_the_program_escaped(void **state)
{
    struct fl_stats_values v = {.active = 1, .lazy_bytes = UINT64_MAX};
    char buf[8192];
    struct fl_text t = fl_text_on(buf, sizeof buf);
    (void)state;
    fl_stats_format_json(&v, NULL, 42, "a\"b\\c\nd\x01", &t);
    const char *start =
        "{\"pid\": 42, \"program\": \"a\\\"b\\\\cd\", \"active\": 1, \"requests\": 0, ";
    assert_int_equal(strncmp(buf, start, strlen(start)), 0);
    const char *end = ", \"lazy_bytes\": 18446744073709551615}\n";
    assert_string_equal(buf + t.len - strlen(end), end);
    assert_ptr_equal(strchr(buf, '\n'), buf + t.len - 1);
}

static void table_has_a_line_a_field(void **state)
{
    struct fl_stats_values v = {.requests = 12};
    char buf[8192];
    size_t lines = 0;
    struct fl_text t = fl_text_on(buf, sizeof buf);
    (void)state;
    fl_stats_format_table(&v, &t);
    for (const char *p = buf; (p = strchr(p, '\n')) != NULL; p++) {
        lines++;
    }
    assert_int_equal(lines, sizeof v / sizeof(uint64_t));
    assert_non_null(strstr(buf, "faultless: requests 12 (large requests served, by plans too)\n"));
}

static void nodes_are_told_where_there_are_several(void **state)
{
    struct fl_stats_values v = {.active = 1};
    struct fl_stats_nodes n = {.n = 2,
                               .node = {{.id = 0, .extents = 30, .free = 10, .stock = 5},
                                        {.id = 2, .extents = 40, .free = 0, .stock = 7}},
                               .several = 3};
    char buf[8192];
    struct fl_text t = fl_text_on(buf, sizeof buf);
    (void)state;
    fl_stats_format_nodes(&n, &t);
    assert_string_equal(buf,
                        "faultless: node 0: 30 bytes populated, 10 of these free; stock 5 bytes\n"
                        "faultless: node 2: 40 bytes populated, 0 of these free; stock 7 bytes\n"
                        "faultless: several nodes: 3 bytes populated\n");
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_json(&v, &n, 1, "a", &t);
    const char *end = ", \"lazy_bytes\": 0, \"nodes\": ["
                      "{\"node\": 0, \"extent_bytes\": 30, \"free_bytes\": 10, "
                      "\"node_stock_bytes\": 5}, "
                      "{\"node\": 2, \"extent_bytes\": 40, \"free_bytes\": 0, "
                      "\"node_stock_bytes\": 7}], \"several_nodes_bytes\": 3}\n";
    assert_string_equal(buf + t.len - strlen(end), end);
    n.n = 0;
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_nodes(&n, &t);
    assert_int_equal(t.len, 0);
}

static void residency_has_a_line_for_each_use(void **state)
{
    struct fl_residency_values v = {.live_bytes = 8,
                                    .live_resident_bytes = 7,
                                    .free_bytes = 6,
                                    .free_resident_bytes = 5,
                                    .stock_bytes = 4,
                                    .stock_resident_bytes = 3,
                                    .table_bytes = 2,
                                    .table_resident_bytes = 1};
    char buf[1024];
    struct fl_text t = fl_text_on(buf, sizeof buf);
    (void)state;
    fl_stats_format_residency(&v, &t);
    assert_string_equal(buf, "faultless: live: 8 bytes, 7 of these in memory\n"
                             "faultless: free: 6 bytes, 5 of these in memory\n"
                             "faultless: stock: 4 bytes, 3 of these in memory\n"
                             "faultless: tables: 2 bytes, 1 of these in memory\n");
    v.unknown_bytes = 9;
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_residency(&v, &t);
    assert_non_null(strstr(buf, "faultless: not known whether in memory: 9 bytes\n"));
}

static void largest_report_fits_its_buffer(void **state)
{
    struct fl_stats_values v;
    static struct fl_stats_nodes n;
    char buf[16384];
    (void)state;
    memset(&v, 0xff, sizeof v);
    memset(&n, 0xff, sizeof n);
    n.n = FL_STATS_NODES;
    struct fl_text t = fl_text_on(buf, sizeof buf); /* REPORT_BYTES of runtime/report.c */
    fl_stats_format_table(&v, &t);
    fl_stats_format_nodes(&n, &t);
    assert_true(t.len < sizeof buf - 1);
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_json(&v, &n, 1 << 22, "sixteen letters!", &t);
    assert_true(t.len < sizeof buf - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_one_line_with_the_program_escaped),
        cmocka_unit_test(table_has_a_line_a_field),
        cmocka_unit_test(nodes_are_told_where_there_are_several),
        cmocka_unit_test(residency_has_a_line_for_each_use),
        cmocka_unit_test(largest_report_fits_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
