/* What a program asks of faultless while it runs, by fl_release and fl_option_set; what came of it
 * is the kernel's to say. */
#include "api.h"
#include "worker.h"

#include <stdbool.h>

static size_t held(void)
{
    return proc_number("/proc/self/smaps_rollup", "Anonymous:") * KIB;
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

static void release_leaves_what_it_is_told(void)
{
    size_t before = held();

    CHECK(CALL(fl_release)(SIZE_MAX) == 0);
    for (int i = 0; i < 4; i++) { /* threads that rest have caches */
        pthread_t t;
        CHECK(pthread_create(&t, NULL, in_a_thread, NULL) == 0 && pthread_join(t, NULL) == 0);
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
    pid_t child = fork();
    if (child == 0) {
        take_all();
        free_all();
        CHECK(CALL(fl_release)(0) >= 0 && CALL(fl_option_set)("decay_ms", "100") == 0);
        _exit(0);
    }
    ends_well(child);
}

/* What is free in a plan's arena goes, too, and the next step is served as before. */
static void release_takes_from_plans(void)
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
static void steps_go_and_come(void)
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

static void wrong_names_and_values_are_refused(void)
{
    CHECK(CALL(fl_option_set)(NULL, "1") == -EINVAL && CALL(fl_option_set)("", "1") == -ENOENT &&
          CALL(fl_option_set)("decay", "1") == -ENOENT);
    CHECK(CALL(fl_option_set)("threshold", "1M") == -EPERM &&
          CALL(fl_option_set)("FAULTLESS_NUMA", "off") == -EPERM);
    CHECK(CALL(fl_option_set)("plan_max", "8") == -EPERM &&
          CALL(fl_option_set)("gpu_limit", "1G") == -EPERM);
    CHECK(CALL(fl_option_set)("decay_ms", "soon") == -EINVAL &&
          CALL(fl_option_set)("decay_ms", "-1") == -EINVAL);
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
static void memory_decays_sooner(void)
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

static void a_limit_counts_at_once(void)
{
    size_t before = held();

    take_all();
    free_all();
    CHECK(held() >= before + 100 * MIB);
    CHECK(CALL(fl_option_set)("limit", "32M") == 0);
    CHECK(held() <= before + 32 * MIB + slack);
    CHECK(CALL(fl_option_set)("limit", NULL) == 0);
}

static void blocks_come_populated(void)
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

static void statistics_go_where_it_says(void)
{
    free(malloc(MIB));
    for (int i = 0; i < 1000; i++) { /* what was said before takes no more room */
        CHECK(CALL(fl_option_set)("stats", "/tmp/not-this-one") == 0 &&
              CALL(fl_option_set)("stats", "table") == 0);
    }
    CHECK(CALL(fl_option_set)("stats", NULL) == 0 && CALL(fl_option_set)("stats", "json") == 0);
}

static void trims_give_nothing(void)
{
    take_all();
    free_all();
    size_t most = held();
    CHECK(CALL(fl_option_set)("trim", "ignore") == 0);
    CHECK(malloc_trim(0) == 0 && held() >= most - slack);
    CHECK(CALL(fl_option_set)("trim", "give") == 0);
    CHECK(malloc_trim(0) == 1 && held() <= most - 100 * MIB);
}

static void nothing_is_served(void)
{
    free(malloc(MIB));
    CHECK(CALL(fl_release)(0) == 0 && CALL(fl_option_set)("decay_ms", "100") == -ENOSYS);
    CHECK(CALL(fl_option_set)("decay", "100") == -ENOENT &&
          CALL(fl_option_set)("threshold", "1M") == -EPERM);
}

MAIN(MODE(release_leaves_what_it_is_told), MODE(release_takes_from_plans), MODE(steps_go_and_come),
     MODE(wrong_names_and_values_are_refused), MODE(memory_decays_sooner),
     MODE(a_limit_counts_at_once), MODE(blocks_come_populated), MODE(statistics_go_where_it_says),
     MODE(trims_give_nothing), MODE(nothing_is_served))
