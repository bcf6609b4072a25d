/* Threads, forks and signals, steps of all kinds at random: no byte of a block becomes another's.
 * The long run is tests/soak/test_soak_oracle; that a broken planner is noticed,
 * test_soak_oracle_catches shows. FL_TEST_SEED=N replays one. */
#include "run.h"

static const char *operations(void)
{
    return fl_rung()[0] == '\0' ? "1500000" : "300000";
}

static void run(const char *seed, const char *env)
{
    const char *replayed = getenv("FL_TEST_SEED");
    const struct fl_run *r =
        FL_ACTIVE(FL_ARGV("victim_oracle", operations(), replayed != NULL ? replayed : seed),
                  .env = FL_ENV(env), .seconds = 240);
    assert_true(fl_run_said(r, "operations ") >= atol(operations()));
    assert_true(fl_run_said(r, "forks ") > 0);
    assert_true(fl_run_said(r, "signals ") > 0);
    /* Each child that exits adds its line; what it was forked with is in it, too. */
    assert_true(fl_run_stat(r, "plan_hits") > 0);
}

CASE_IS(no_block_has_anothers_bytes, run("1", "FAULTLESS_STRICT=1"))
CASE_IS(nor_while_idle_memory_goes_back_at_once, run("2", "FAULTLESS_DECAY_MS=4"))

CASES_MAIN()
