/* What a program asks of faultless while it runs, by fl_release and fl_option_set; what came of it
 * is the kernel's to say. */
#include "api.h"
#include "worker.h"

#include <stdbool.h>

static size_t held(void)
{
    return rollup_kib("\nAnonymous:") * KIB;
}

enum { BLOCKS = 64 };
static const size_t slack = 6 * MIB; /* tables, and what is not malloc's */
static char *block[BLOCKS];

/* Of 100 KiB to 6 MiB, 200 MiB in all. */
static void take_all(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        size_t n = 100 * KIB + (size_t)i * 100 * KIB;
        block[i] = filled(n);
    }
}

static void free_all(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        free(block[(i * 7) % BLOCKS]);
        block[(i * 7) % BLOCKS] = NULL;
    }
}

static void *in_a_thread(void *arg)
{
    (void)arg;
    take_all();
    free_all();
    return NULL;
}

MODE(release_leaves_what_it_is_told)
{
    size_t before = held();

    CHECK(CALL(fl_release)(SIZE_MAX) == 0);
    for (int i = 0; i < 4; i++) { /* threads that rest have caches */
        in_thread(in_a_thread, NULL);
    }
    take_all();
    size_t most = held();
    free_all();
    CHECK(CALL(fl_release)(GIB) == 0);
    CHECK(CALL(fl_release)(64 * MIB) > (int64_t)(100 * MIB));
    CHECK(held() <= before + 64 * MIB + slack && held() >= before + 56 * MIB);
    CHECK(most - held() >= 100 * MIB);
    CHECK(CALL(fl_release)(0) >= (int64_t)(56 * MIB));
    CHECK(held() <= before + slack);
    CHECK(CALL(fl_release)(0) == 0);
    take_all();                                  /* all as before */
    CHECK(held() >= before + 200 * MIB - slack); /* `most` has what waited, too */
    free_all();
    IN_CHILD
    {
        take_all();
        free_all();
        CHECK(CALL(fl_release)(0) >= 0 && CALL(fl_option_set)("decay_ms", "100") == 0);
    }
}

/* What is free in a plan's arena goes, too, and the next step is served as before. */
MODE(release_takes_from_plans)
{
    size_t before = held();

    for (int i = 0; i < 12; i++) {
        CHECK(CALL(fl_step_begin)(NULL) == 0);
        take_all();
        free_all();
        CHECK(CALL(fl_step_end)(NULL) == 0);
        if (i == 8) {
            CHECK(CALL(fl_release)(GIB) == 0);
            CHECK(held() >= before + 100 * MIB);
            CHECK(CALL(fl_release)(0) >= (int64_t)(100 * MIB));
            CHECK(held() <= before + 2 * slack);
        }
    }
}

static void declared_step(int begins)
{
    CHECK(CALL(fl_step_begin)(NULL) == begins);
    take_all();
    free_all();
    CHECK(CALL(fl_step_end)(NULL) == begins);
}

/* A step that has begun when they are switched off ends as it would have. */
MODE(steps_go_and_come)
{
    struct fl_step_context *context;

    CHECK(CALL(fl_option_set)("steps", "off") == 0);
    declared_step(-ENOSYS);
    CHECK(CALL(fl_step_new)(&context) == -ENOSYS);
    CHECK(CALL(fl_option_set)("steps", NULL) == 0 && CALL(fl_step_new)(&context) == 0);
    for (int i = 0; i < 12; i++) {
        declared_step(0);
    }
    CHECK(CALL(fl_step_begin)(context) == 0 && CALL(fl_option_set)("steps", "off") == 0);
    CHECK(CALL(fl_step_begin)(NULL) == -ENOSYS && CALL(fl_step_end)(context) == 0 &&
          CALL(fl_step_end)(context) == -ENOSYS && CALL(fl_step_free)(context) == 0);
    for (int i = 0; i < 12; i++) {
        declared_step(-ENOSYS);
    }
    CHECK(CALL(fl_option_set)("steps", "declared") == 0);
    declared_step(0);
}

MODE(wrong_names_and_values_are_refused)
{
    CHECK(CALL(fl_option_set)(NULL, "1") == -EINVAL && CALL(fl_option_set)("", "1") == -ENOENT &&
          CALL(fl_option_set)("decay", "1") == -ENOENT);
    CHECK(CALL(fl_option_set)("threshold", "1M") == -EPERM &&
          CALL(fl_option_set)("FAULTLESS_NUMA", "off") == -EPERM);
    CHECK(CALL(fl_option_set)("plan_max", "8") == -EPERM &&
          CALL(fl_option_set)("gpu_limit", "1G") == -EPERM);
    CHECK(CALL(fl_option_set)("decay_ms", "soon") == -EINVAL &&
          CALL(fl_option_set)("decay_ms", "-2") == -EINVAL);
    CHECK(CALL(fl_option_set)("decay_ms", "3600001") == -ERANGE &&
          CALL(fl_option_set)("limit", "8X") == -EINVAL);
    CHECK(CALL(fl_option_set)("trim", "never") == -EINVAL &&
          CALL(fl_option_set)("stats", "jsno") == -EINVAL);
    CHECK(CALL(fl_option_set)("FAULTLESS_DECAY_MS", "20000") == 0 &&
          CALL(fl_option_set)("decay-ms", "20000") == 0);
    CHECK(CALL(fl_option_set)("eager_max", NULL) == 0);
    free(malloc(MIB));
}

/* It was to stay for an hour. */
MODE(memory_decays_sooner)
{
    size_t before = held();

    take_all();
    free_all();
    CHECK(held() >= before + 100 * MIB);
    CHECK(CALL(fl_option_set)("decay_ms", "40") == 0);
    for (int i = 0; held() > before + slack; i++) { /* without a worker it is requests that do it */
        CHECK(i < 3000);
        nap(10);
        free(malloc(64 * KIB));
    }
    CHECK(CALL(fl_option_set)("decay_ms", "0") == 0);
    take_all();
    free_all();
    size_t most = held();
    nap(200); /* some of its old ages */
    free(malloc(64 * KIB));
    CHECK(held() >= before + 200 * MIB - slack); /* `most` has what waited, too */
}

MODE(a_limit_counts_at_once)
{
    size_t before = held();

    take_all();
    free_all();
    CHECK(held() >= before + 100 * MIB);
    CHECK(CALL(fl_option_set)("limit", "32M") == 0);
    CHECK(held() <= before + 32 * MIB + slack);
    CHECK(CALL(fl_option_set)("limit", NULL) == 0);
}

MODE(blocks_come_populated)
{
    enum { LEN = 24 * MIB };
    char *wait = malloc(LEN); /* freed later: its memory must not serve */

    CHECK(wait != NULL);
    CHECK(CALL(fl_option_set)("eager_max", "64M") == 0);
    char *p = taken(LEN + MIB);
    long from = faults_of(RUSAGE_SELF);
    memset(p, 1, LEN + MIB);
    printf("faults %ld\n", faults_of(RUSAGE_SELF) - from);
    free(p);
    free(wait);
}

MODE(statistics_go_where_it_says)
{
    free(malloc(MIB));
    for (int i = 0; i < 1000; i++) { /* what was said before takes no more room */
        CHECK(CALL(fl_option_set)("stats", "/tmp/not-this-one") == 0 &&
              CALL(fl_option_set)("stats", "table") == 0);
    }
    CHECK(CALL(fl_option_set)("stats", NULL) == 0 && CALL(fl_option_set)("stats", "json") == 0);
}

MODE(trims_give_nothing)
{
    take_all();
    free_all();
    size_t most = held();
    CHECK(CALL(fl_option_set)("trim", "ignore") == 0);
    CHECK(malloc_trim(0) == 0 && held() >= most - slack);
    CHECK(CALL(fl_option_set)("trim", "give") == 0);
    CHECK(malloc_trim(0) == 1 && held() <= most - 100 * MIB);
}

MODE(nothing_is_served)
{
    free(malloc(MIB));
    CHECK(CALL(fl_release)(0) == 0 && CALL(fl_option_set)("decay_ms", "100") == -ENOSYS);
    CHECK(CALL(fl_option_set)("decay", "100") == -ENOENT &&
          CALL(fl_option_set)("threshold", "1M") == -EPERM);
}

MAIN()
