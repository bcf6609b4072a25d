/* Threads that come and go, and free each other's blocks. */
#include "run.h"

static const char *const modes[] = {"thousand",        "at_once",   "specific", "no_key_left",
                                    "end_while_freed", "exit_amid", NULL};

static void contents_survive_replacement(void **state)
{
    (void)state;
    fl_run_modes("victim_threads", FL_ARGV("replace"), NULL);
    fl_run_modes("victim_threads", FL_ARGV("replace"),
                 FL_ENV("FAULTLESS_STEPS=off", "FAULTLESS_DECAY_MS=4"));
}

/* Its reports are written by the thread that ends the process. */
static void a_thread_with_a_small_stack_ends_the_process(void **state)
{
    static const char *const kinds[] = {"summary", "table", "stats.json", "stats.prom"};
    char stats[64], timeline[64], profile[64];

    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *folder = fl_folder();
        bool file = strchr(kinds[i], '.') != NULL;
        (void)snprintf(timeline, sizeof timeline, "FAULTLESS_TIMELINE=%s/trace.json", folder);
        (void)snprintf(profile, sizeof profile, "FAULTLESS_PROFILE=%s/heap", folder);
        (void)snprintf(stats, sizeof stats, "FAULTLESS_STATS=%s%s%s", file ? folder : "",
                       file ? "/" : "", kinds[i]);
        const struct fl_run *r =
            fl_preload_run(FL_ARGV("victim_small_stack", "blocks"),
                           FL_ENV(stats, timeline, profile, "FAULTLESS_PROFILE_EVERY=1"));
        assert_int_equal(r->exit_status, 0);
        (void)fl_text_of(folder, "heap");
        (void)fl_text_of(folder, file ? kinds[i] : "trace.json");
    }
}

/* It needs most of such a stack in glibc alone. */
static void malloc_stats_needs_no_more_stack_than_glibc_s(void **state)
{
    (void)state;
    assert_int_equal(fl_plain_run(FL_ARGV("victim_small_stack", "stats"))->exit_status, 0);
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_small_stack", "stats"), NULL);
    assert_int_equal(r->exit_status, 0);
    assert_non_null(strstr(r->err, "populated_bytes"));
}

/* Coroutines have stacks of a few KiB. */
static void no_call_takes_much_of_a_stack(void **state)
{
    static const struct {
        const char *option, *calls;
    } row[] = {
        {"FAULTLESS_LOG=none", "calls"},       {"FAULTLESS_LOG=none", "loans"},
        {"FAULTLESS_LIMIT=64M", "calls"},      {"FAULTLESS_LIMIT=200M", "loans"},
        {"FAULTLESS_STEPS=off", "calls"},      {"FAULTLESS_DISABLE=cache", "calls"},
        {"FAULTLESS_DISABLE=worker", "calls"}, {"FAULTLESS_GUARD=1", "calls"},
    };
#ifdef __OPTIMIZE__
    static const char bar[] = "1024"; /* 992 by gcc 12 */
#else
    static const char bar[] = "12288";
#endif

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const struct fl_run *r =
            fl_preload_run(FL_ARGV("victim_stack_depth", bar, row[i].calls), FL_ENV(row[i].option));
        if (r->exit_status != 0) {
            (void)fprintf(stderr, "%s:\n%s%s", row[i].option, r->out, r->err);
        }
        assert_int_equal(r->exit_status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FL_MODES(threads_come_go_and_share, "victim_threads", modes, NULL),
        FL_MODES(threads_without_caches_and_worker, "victim_threads", modes,
                 FL_ENV("FAULTLESS_DISABLE=cache,worker")),
        FL_MODES(contents_survive_churn, "victim_threads", FL_ARGV("churn"), NULL),
        cmocka_unit_test(contents_survive_replacement),
        FL_MODES(contents_survive_churn_when_populated_by_touch, "victim_threads", FL_ARGV("churn"),
                 FL_ENV("FAULTLESS_DISABLE=populate", "FAULTLESS_DECAY_MS=4")),
        FL_MODES(contents_survive_churn_with_decay_at_its_quickest, "victim_threads",
                 FL_ARGV("churn"), FL_ENV("FAULTLESS_DECAY_MS=1", "FAULTLESS_THRESHOLD=16K")),
        cmocka_unit_test(a_thread_with_a_small_stack_ends_the_process),
        cmocka_unit_test(no_call_takes_much_of_a_stack),
        cmocka_unit_test(malloc_stats_needs_no_more_stack_than_glibc_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
