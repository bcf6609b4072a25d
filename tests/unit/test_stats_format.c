/* What is printed: as JSON, as tables, as a line, for Prometheus. */
#include "stats/stats.h"
#include "cases.h"

static char buf[FL_PROMETHEUS_BYTES]; /* REPORT_BYTES of runtime/exit.c */
static struct fl_text t;

static void begin(void)
{
    t = fl_text_on(buf, sizeof buf);
}

CASE(json_is_one_line_with_the_program_escaped)
{
    struct fl_stats_values v = {.active = 1, .lazy_bytes = UINT64_MAX};
    fl_stats_format_json(&v, NULL, NULL, 42, "a\"b\\c\nd\x01", &t);
    const char *start =
        "{\"pid\": 42, \"program\": \"a\\\"b\\\\cd\", \"active\": 1, \"requests\": 0, ";
    assert_int_equal(strncmp(buf, start, strlen(start)), 0);
    assert_says(buf, ", \"lazy_bytes\": 18446744073709551615, ");
    assert_string_equal(buf + t.len - strlen("0}\n"), "0}\n");
    assert_ptr_equal(strchr(buf, '\n'), buf + t.len - 1);
}

CASE(table_has_a_line_a_field)
{
    struct fl_stats_values v = {.requests = 12};
    fl_stats_format_table(&v, 0, &t);
    assert_int_equal(count_of(buf, "\n"), sizeof v / sizeof(uint64_t));
    assert_says(buf, "faultless: requests 12 (large requests served, by plans too)\n");
}

CASE(nodes_are_told_where_there_are_several)
{
    struct fl_stats_values v = {.active = 1};
    struct fl_stats_nodes n = {.n = 2,
                               .node = {{.id = 0, .extents = 30, .free = 10, .stock = 5},
                                        {.id = 2, .extents = 40, .free = 0, .stock = 7}},
                               .several = 3};
    fl_stats_format_nodes(&n, 0, &t);
    assert_string_equal(buf,
                        "faultless: node 0: 30 bytes populated, 10 of these free; stock 5 bytes\n"
                        "faultless: node 2: 40 bytes populated, 0 of these free; stock 7 bytes\n"
                        "faultless: several nodes: 3 bytes populated\n");
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_json(&v, &n, NULL, 1, "a", &t);
    const char *end = ": 0, \"nodes\": ["
                      "{\"node\": 0, \"extent_bytes\": 30, \"free_bytes\": 10, "
                      "\"node_stock_bytes\": 5}, "
                      "{\"node\": 2, \"extent_bytes\": 40, \"free_bytes\": 0, "
                      "\"node_stock_bytes\": 7}], \"several_nodes_bytes\": 3}\n";
    assert_string_equal(buf + t.len - strlen(end), end);
    n.n = 0;
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_nodes(&n, 0, &t);
    assert_int_equal(t.len, 0);
}

CASE(gpus_are_told_where_they_were_used)
{
    struct fl_stats_values v = {.active = 1};
    static struct fl_stats_gpus g = {
        .n = 2, .gpu = {{.id = 0, .held_bytes = 30, .stalls = 7}, {.id = 3, .pools = 2}}};
    fl_stats_format_gpus(&g, 0, &t);
    assert_int_equal(strncmp(buf, "faultless: GPU0 held_bytes 30\n", 30), 0);
    assert_says(buf, "faultless: GPU0 stalls 7\n");
    assert_says(buf, "faultless: GPU3 pools 2\n");
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_json(&v, NULL, &g, 1, "a", &t);
    assert_says(buf, ", \"gpus\": [{\"gpu\": 0, \"held_bytes\": 30, ");
    assert_says(buf, ", \"stalls\": 7}, {\"gpu\": 3, \"held_bytes\": 0, ");
    assert_string_equal(buf + t.len - 17, ", \"stalls\": 0}]}\n");
    g.gpu[0].allocs = 4000;
    g.gpu[0].hits = 3000;
    g.gpu[0].held_peak_bytes = 3 << 20;
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_gpu_summary(&g, 7, &t);
    assert_string_equal(
        buf, "faultless[7]: GPU0: 4000 requests (75 % from its pools), at most 3.0 MiB held\n"
             "faultless[7]: GPU3: 0 requests, at most 0 B held\n");
    g.n = 0;
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_gpus(&g, 0, &t);
    assert_int_equal(t.len, 0);
    fl_stats_format_json(&v, NULL, &g, 1, "a", &t);
    assert_null(strstr(buf, "gpus"));
}

CASE(residency_has_a_line_for_each_use)
{
    struct fl_residency_values v = {.live_bytes = 8,
                                    .live_resident_bytes = 7,
                                    .free_bytes = 6,
                                    .free_resident_bytes = 5,
                                    .stock_bytes = 4,
                                    .stock_resident_bytes = 3,
                                    .table_bytes = 2,
                                    .table_resident_bytes = 1};
    fl_stats_format_residency(&v, &t);
    assert_string_equal(buf, "faultless: live: 8 bytes, 7 of these in memory\n"
                             "faultless: free: 6 bytes, 5 of these in memory\n"
                             "faultless: stock: 4 bytes, 3 of these in memory\n"
                             "faultless: tables: 2 bytes, 1 of these in memory\n");
    v.unknown_bytes = 9;
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_residency(&v, &t);
    assert_says(buf, "faultless: not known whether in memory: 9 bytes\n");
}

CASE(largest_report_fits_its_buffer)
{
    struct fl_stats_values v;
    static struct fl_stats_nodes n;
    static struct fl_stats_gpus g;
    memset(&v, 0xff, sizeof v);
    memset(&n, 0xff, sizeof n);
    n.n = FL_STATS_NODES;
    memset(&g, 0xff, sizeof g);
    g.n = FL_STATS_GPUS;
    fl_stats_format_table(&v, 1 << 22, &t);
    fl_stats_format_nodes(&n, 1 << 22, &t);
    fl_stats_format_gpus(&g, 1 << 22, &t);
    assert_true(t.len < sizeof buf - 1);
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_json(&v, &n, &g, 1 << 22, "sixteen letters!", &t);
    assert_true(t.len < sizeof buf - 1);
    for (unsigned i = 0; i < g.n; i++) {
        g.gpu[i].id = 10 + i; /* of two digits */
    }
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_prometheus(&v, &g, 1 << 22, "sixteen letters!", &t);
    assert_true(t.len < sizeof buf - 1);
}

CASE(lines_name_their_process_where_it_is_told)
{
    struct fl_stats_values v = {.requests = 12};
    struct fl_stats_nodes n = {.n = 1};
    fl_stats_format_table(&v, 42, &t);
    fl_stats_format_nodes(&n, 42, &t);
    assert_says(buf, "\nfaultless[42]: requests 12 (");
    assert_says(buf, "\nfaultless[42]: node 0: ");
    assert_says(buf, "\nfaultless[42]: several nodes: ");
    assert_null(strstr(buf, "faultless: "));
}

CASE(a_summary_is_one_line)
{
    struct fl_stats_values v = {.active = 1,
                                .requests = 120394,
                                .served_bytes = 20ull << 30,
                                .lazy_bytes = 1ull << 30,
                                .populate_bytes = 3ull << 30,
                                .populated_peak_bytes = 1288490189,
                                .rung = 1};
    struct fl_summary s = {.values = &v,
                           .pid = 42,
                           .program = "a\nb",
                           .threshold = 65536,
                           .sample_bytes = 1 << 20,
                           .sample_faults = 256,
                           .sample_ns = 140000};
    fl_stats_format_summary(&s, &t); /* 16 GiB: 16384 times the sample */
    assert_string_equal(
        buf,
        "faultless[42] a?b: 120k large requests, 4.2M page faults and 2.3 s "
        "less than if each were mapped anew (estimated), pages move by mremap, peak 1.2 GiB\n");
    s.sample_bytes = 0;
    s.resident_peak = 3ull << 30;
    v.rung = 0;
    v.plan_steps = 990;
    v.plan_hits = 99;
    v.plan_misses = 1;
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_summary(&s, &t);
    assert_string_equal(buf, "faultless[42] a?b: 120k large requests, pages move by userfaultfd, "
                             "990 steps planned (99 % hits), peak 1.2 GiB of the process's "
                             "3.0 GiB\n");
    s.resident_peak = 1 << 20; /* ours are hugetlb pages, which it does not count */
    s.thp_refused = true;
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_summary(&s, &t);
    assert_says(buf, ", no huge pages (PR_SET_THP_DISABLE, by the program or what "
                     "started it), 990 steps");
    assert_says(buf, ", peak 1.2 GiB\n");
    v.requests = 0;
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_summary(&s, &t);
    assert_string_equal(buf,
                        "faultless[42] a?b: nothing done: no request of 64K or more came here\n");
    s.shadowed_by = "/lib/libx.so";
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_summary(&s, &t);
    assert_string_equal(buf, "faultless[42] a?b: not served: the program's malloc is that of "
                             "/lib/libx.so, which comes first\n");
    s.shadowed_by = NULL;
    v.active = 0;
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_summary(&s, &t);
    assert_string_equal(
        buf, "faultless[42] a?b: not active: every request went to the next allocator\n");
}

/* More was brought in than was asked for: ahead of requests that never came. */
CASE(nothing_is_avoided_below_zero)
{
    struct fl_stats_values v = {
        .active = 1, .requests = 1, .served_bytes = 4096, .populate_bytes = 8192};
    struct fl_summary s = {.values = &v, .sample_bytes = 1, .sample_faults = 1, .sample_ns = 1};
    fl_stats_format_summary(&s, &t);
    assert_string_equal(
        buf, "faultless: 1 large request, 0 page faults and 0 ns less than "
             "if each were mapped anew (estimated), pages move by userfaultfd, peak 0 B\n");
}

CASE(prometheus_has_help_type_and_value)
{
    struct fl_stats_values v = {.requests = 12, .in_use_bytes = 34};
    fl_stats_format_prometheus(&v, &(struct fl_stats_gpus){0}, 7, "a\"b", &t);
    assert_says(buf, "# HELP faultless_requests_total large requests served, by plans too\n"
                     "# TYPE faultless_requests_total counter\n"
                     "faultless_requests_total{pid=\"7\",program=\"a\\\"b\"} 12\n");
    assert_says(buf, "# TYPE faultless_in_use_bytes gauge\n"
                     "faultless_in_use_bytes{pid=\"7\",program=\"a\\\"b\"} 34\n");
    assert_int_equal(count_of(buf, "\n"), 3 * sizeof v / sizeof(uint64_t));
}

CASE(prometheus_has_each_gpu_that_was_used)
{
    static struct fl_stats_gpus g = {
        .n = 2, .gpu = {{.id = 0, .held_bytes = 30, .copies = 7}, {.id = 3, .held_bytes = 40}}};
    struct fl_stats_values v = {.requests = 12};
    fl_stats_format_prometheus(&v, &g, 7, "a", &t);
    assert_says(buf, "# TYPE faultless_gpu_held_bytes gauge\n"
                     "faultless_gpu_held_bytes{pid=\"7\",program=\"a\",gpu=\"0\"} 30\n"
                     "faultless_gpu_held_bytes{pid=\"7\",program=\"a\",gpu=\"3\"} 40\n"
                     "# HELP ");
    assert_says(buf, "# TYPE faultless_gpu_copies_total counter\n"
                     "faultless_gpu_copies_total{pid=\"7\",program=\"a\",gpu=\"0\"} 7\n");
    g.n = 0;
    t = fl_text_on(buf, sizeof buf);
    fl_stats_format_prometheus(&v, &g, 7, "a", &t);
    assert_null(strstr(buf, "gpu"));
}

CASES_MAIN(.setup = begin)
