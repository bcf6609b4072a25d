/* A library that wraps libc's functions, and allocates in each of them, stands before ours or
 * behind it. */
#include "run.h"

static const char *wrapper = FL_VICTIM_DIR "/victim_wrapper.so";

/* Before ours, and behind. */
static void run(const char *const argv[], const char *const env[])
{
    struct fl_how how = {.argv = argv, .env = env, .seconds = 240};

    how.preload = fl_in_order(wrapper, FL_LIB_PATH);
    fl_run_assert_clean(fl_run_how(&how));
    how.preload = fl_in_order(FL_LIB_PATH, wrapper);
    fl_run_assert_clean(fl_run_how(&how));
}

CASE(a_program_that_does_nothing_ends_well)
{
    run(FL_ARGV("/bin/true"), NULL);
    run(FL_ARGV("victim_true"), NULL);
    run(FL_ARGV("victim_true"), FL_ENV("LD_BIND_NOW=1"));
}

CASE(requests_before_main_and_after_it_are_served)
{
    static const char *const modes[] = {"before_main", "after_main", "loaders_blocks"};

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        run(FL_ARGV("victim_early", modes[i]), NULL);
    }
}

CASE(each_way_of_starting_is_as_good)
{
    static const char *const how[] = {"FAULTLESS_DISABLE=all",       "FAULTLESS_DISABLE=move",
                                      "FAULTLESS_DISABLE=move,uffd", "FAULTLESS_DISABLE=thp",
                                      "FAULTLESS_DISABLE=worker",    "FAULTLESS_THRESHOLD=4K",
                                      "FAULTLESS_STEPS=off",         "FAULTLESS_GUARD=1"};

    for (size_t i = 0; i < sizeof how / sizeof how[0]; i++) {
        run(FL_ARGV("victim_early", "before_main"), (const char *const[]){how[i], NULL});
    }
}

/* On the rungs without a worker these victims would wait for it for ever. */
static bool has_worker(void)
{
    return strstr(fl_rung(), "worker") == NULL;
}

CASE(threads_and_forks_are)
{
    if (has_worker()) {
        run(FL_ARGV("victim_worker", "blocks_all_signals"), FL_ENV("VICTIM_SHORT=1"));
    }
    run(FL_ARGV("victim_fork", "nested"), FL_ENV("VICTIM_SHORT=1"));
    run(FL_ARGV("victim_fork", "spawns"), FL_ENV("VICTIM_SHORT=1"));
}

CASE(signals_that_a_wrapper_blocks_for_a_while_stay_blocked_on_our_threads)
{
    const char *usual = wrapper;

    wrapper = FL_VICTIM_DIR "/victim_masker.so";
    if (has_worker()) {
        run(FL_ARGV("victim_worker", "gives_back"), FL_ENV("FAULTLESS_DECAY_MS=40"));
        run(FL_ARGV("victim_worker", "gives_back"),
            FL_ENV("FAULTLESS_DECAY_MS=40", "FAULTLESS_DISABLE=move,uffd"));
    }
    run(FL_ARGV("victim_fork", "nested"), FL_ENV("VICTIM_SHORT=1"));
    wrapper = usual;
}

CASES_MAIN()
