/* The two printed forms. */
#include "stats/stats.h"
#include "unit/cmocka_all.h"

#include <string.h>

static void json_is_one_line_with_the_program_escaped(void **state)
{
    struct fl_stats_values v = {.active = 1, .plan_bytes = UINT64_MAX};
    char buf[8192];
    struct fl_text t = fl_text_on(buf, sizeof buf);
    (void)state;
    fl_stats_format_json(&v, 42, "a\"b\\c\nd\x01", &t);
    const char *start =
        "{\"pid\": 42, \"program\": \"a\\\"b\\\\cd\", \"active\": 1, \"requests\": 0, ";
    assert_int_equal(strncmp(buf, start, strlen(start)), 0);
    const char *end = ", \"plan_bytes\": 18446744073709551615}\n";
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
    assert_non_null(strstr(buf, "faultless: requests 12 (large requests served)\n"));
}

static void largest_report_fits_its_buffer(void **state)
{
    struct fl_stats_values v;
    char buf[8192];
    (void)state;
    memset(&v, 0xff, sizeof v);
    struct fl_text t = fl_text_on(buf, sizeof buf); /* REPORT_BYTES of runtime/report.c */
    fl_stats_format_table(&v, &t);
    assert_true(t.len < sizeof buf - 1);
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_json(&v, 1 << 22, "sixteen letters!", &t);
    assert_true(t.len < sizeof buf - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_is_one_line_with_the_program_escaped),
        cmocka_unit_test(table_has_a_line_a_field),
        cmocka_unit_test(largest_report_fits_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
