/* Threads that come and go, and free each other's blocks. */
#include "run.h"

static const char *const modes[] = {"thousand",        "at_once",   "specific", "no_key_left",
                                    "end_while_freed", "exit_amid", NULL};

CASE(contents_survive_replacement)
{
    FL_ACTIVE(FL_ARGV("victim_threads", "replace"));
    FL_ACTIVE(FL_ARGV("victim_threads", "replace"),
              FL_ENV("FAULTLESS_STEPS=off", "FAULTLESS_DECAY_MS=4"));
}

/* Its reports are written by the thread that ends the process. */
CASE(a_thread_with_a_small_stack_ends_the_process)
{
    static const char *const kinds[] = {"summary", "table", "stats.json", "stats.prom"};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *folder = fl_folder();
        bool file = strchr(kinds[i], '.') != NULL;
        const char *timeline = text_as("FAULTLESS_TIMELINE=%s/trace.json", folder);
        const char *profile = text_as("FAULTLESS_PROFILE=%s/heap", folder);
        const char *stats =
            text_as("FAULTLESS_STATS=%s%s%s", file ? folder : "", file ? "/" : "", kinds[i]);
        const struct fl_run *r =
            FL_RUN(FL_ARGV("victim_small_stack", "blocks"),
                   FL_ENV(stats, timeline, profile, "FAULTLESS_PROFILE_EVERY=1"));
        assert_int_equal(r->exit_status, 0);
        (void)fl_text_of(folder, "heap");
        (void)fl_text_of(folder, file ? kinds[i] : "trace.json");
    }
}

/* It needs most of such a stack in glibc alone. */
CASE(malloc_stats_needs_no_more_stack_than_glibc_s)
{
    assert_int_equal(fl_plain_run(FL_ARGV("victim_small_stack", "stats"))->exit_status, 0);
    const struct fl_run *r = FL_RUN(FL_ARGV("victim_small_stack", "stats"));
    assert_int_equal(r->exit_status, 0);
    assert_says(r->err, "populated_bytes");
}

/* Coroutines have stacks of a few KiB. */
CASE(no_call_takes_much_of_a_stack)
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

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const struct fl_run *r =
            FL_RUN(FL_ARGV("victim_stack_depth", bar, row[i].calls), FL_ENV(row[i].option));
        if (r->exit_status != 0) {
            (void)fprintf(stderr, "%s:\n%s%s", row[i].option, r->out, r->err);
        }
        assert_int_equal(r->exit_status, 0);
    }
}

CASE_IS(threads_come_go_and_share, fl_run_modes("victim_threads", modes, NULL))
CASE_IS(threads_without_caches_and_worker,
        fl_run_modes("victim_threads", modes, FL_ENV("FAULTLESS_DISABLE=cache,worker")))
CASE_IS(contents_survive_churn, FL_ACTIVE(FL_ARGV("victim_threads", "churn")))
CASE_IS(contents_survive_churn_when_populated_by_touch,
        FL_ACTIVE(FL_ARGV("victim_threads", "churn"),
                  FL_ENV("FAULTLESS_DISABLE=populate", "FAULTLESS_DECAY_MS=4")))
CASE_IS(contents_survive_churn_with_decay_at_its_quickest,
        FL_ACTIVE(FL_ARGV("victim_threads", "churn"),
                  FL_ENV("FAULTLESS_DECAY_MS=1", "FAULTLESS_THRESHOLD=16K")))

CASES_MAIN()
