/* What a program asks of faultless while it runs, by fl_release and fl_option_set; what came of it
 * is the kernel's to say. */
#include "worker.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>

static int64_t (*release)(size_t keep);
static int (*set)(const char *name, const char *value);
static int (*begin)(void *context), (*end)(void *context);

static void find_calls(void)
{
    *(void **)&release = dlsym(RTLD_DEFAULT, "fl_release");
    *(void **)&set = dlsym(RTLD_DEFAULT, "fl_option_set");
    *(void **)&begin = dlsym(RTLD_DEFAULT, "fl_step_begin");
    *(void **)&end = dlsym(RTLD_DEFAULT, "fl_step_end");
    CHECK(release != NULL && set != NULL && begin != NULL && end != NULL);
}

static size_t held(void)
{
    return proc_number("/proc/self/smaps_rollup", "Anonymous:") * KIB;
}

static long faults(void)
{
    struct rusage u;

    CHECK(getrusage(RUSAGE_SELF, &u) == 0);
    return u.ru_minflt;
}

enum { BLOCKS = 64 };
static const size_t slack = 6 * MIB; /* tables, and what is not malloc's */
static char *block[BLOCKS];

/* Of 100 KiB to 6 MiB, 200 MiB in all. */
static void take_all(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        size_t n = 100 * KIB + (size_t)i * 100 * KIB;
        block[i] = malloc(n);
        CHECK(block[i] != NULL);
        memset(block[i], 1, n);
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

    CHECK(release(SIZE_MAX) == 0);
    for (int i = 0; i < 4; i++) { /* threads that rest have caches */
        pthread_t t;
        CHECK(pthread_create(&t, NULL, in_a_thread, NULL) == 0 && pthread_join(t, NULL) == 0);
    }
    take_all();
    size_t most = held();
    free_all();
    CHECK(release(GIB) == 0);
    CHECK(release(64 * MIB) > (int64_t)(100 * MIB));
    CHECK(held() <= before + 64 * MIB + slack && held() >= before + 56 * MIB);
    CHECK(most - held() >= 100 * MIB);
    CHECK(release(0) >= (int64_t)(56 * MIB));
    CHECK(held() <= before + slack);
    CHECK(release(0) == 0);
    take_all();                                  /* all as before */
    CHECK(held() >= before + 200 * MIB - slack); /* `most` has what waited, too */
    free_all();
    pid_t child = fork();
    if (child == 0) {
        take_all();
        free_all();
        CHECK(release(0) >= 0 && set("decay_ms", "100") == 0);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* What is free in a plan's arena goes, too, and the next step is served as before. */
static void release_takes_from_plans(void)
{
    size_t before = held();

    for (int i = 0; i < 12; i++) {
        CHECK(begin(NULL) == 0);
        take_all();
        free_all();
        CHECK(end(NULL) == 0);
        if (i == 8) {
            CHECK(release(GIB) == 0);
            CHECK(held() >= before + 100 * MIB);
            CHECK(release(0) >= (int64_t)(100 * MIB));
            CHECK(held() <= before + 2 * slack);
        }
    }
}

static void wrong_names_and_values_are_refused(void)
{
    CHECK(set(NULL, "1") == -EINVAL && set("", "1") == -ENOENT && set("decay", "1") == -ENOENT);
    CHECK(set("threshold", "1M") == -EPERM && set("FAULTLESS_NUMA", "off") == -EPERM);
    CHECK(set("steps", "off") == -EPERM && set("gpu_limit", "1G") == -EPERM);
    CHECK(set("decay_ms", "soon") == -EINVAL && set("decay_ms", "-1") == -EINVAL);
    CHECK(set("decay_ms", "3600001") == -ERANGE && set("limit", "8X") == -EINVAL);
    CHECK(set("trim", "never") == -EINVAL && set("stats", "jsno") == -EINVAL);
    CHECK(set("FAULTLESS_DECAY_MS", "20000") == 0 && set("decay-ms", "20000") == 0);
    CHECK(set("eager_max", NULL) == 0);
    free(malloc(MIB));
}

/* It was to stay for an hour. */
static void memory_decays_sooner(void)
{
    size_t before = held();

    take_all();
    free_all();
    CHECK(held() >= before + 100 * MIB);
    CHECK(set("decay_ms", "40") == 0);
    for (int i = 0; held() > before + slack; i++) { /* without a worker it is requests that do it */
        CHECK(i < 3000);
        nap(10);
        free(malloc(64 * KIB));
    }
    CHECK(set("decay_ms", "0") == 0);
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
    CHECK(set("limit", "32M") == 0);
    CHECK(held() <= before + 32 * MIB + slack);
    CHECK(set("limit", NULL) == 0);
}

static void blocks_come_populated(void)
{
    enum { LEN = 24 * MIB };
    char *wait = malloc(LEN); /* freed later: its memory must not serve */

    CHECK(wait != NULL);
    CHECK(set("eager_max", "64M") == 0);
    char *p = malloc(LEN + MIB);
    CHECK(p != NULL);
    long from = faults();
    memset(p, 1, LEN + MIB);
    printf("faults %ld\n", faults() - from);
    free(p);
    free(wait);
}

static void statistics_go_where_it_says(void)
{
    free(malloc(MIB));
    for (int i = 0; i < 1000; i++) { /* what was said before takes no more room */
        CHECK(set("stats", "/tmp/not-this-one") == 0 && set("stats", "table") == 0);
    }
    CHECK(set("stats", NULL) == 0 && set("stats", "json") == 0);
}

static void trims_give_nothing(void)
{
    take_all();
    free_all();
    size_t most = held();
    CHECK(set("trim", "ignore") == 0);
    CHECK(malloc_trim(0) == 0 && held() >= most - slack);
    CHECK(set("trim", "give") == 0);
    CHECK(malloc_trim(0) == 1 && held() <= most - 100 * MIB);
}

static void nothing_is_served(void)
{
    free(malloc(MIB));
    CHECK(release(0) == 0 && set("decay_ms", "100") == -ENOSYS);
    CHECK(set("decay", "100") == -ENOENT && set("threshold", "1M") == -EPERM);
}

int main(int argc, char **argv)
{
    static const struct mode modes[] = {MODE(release_leaves_what_it_is_told),
                                        MODE(release_takes_from_plans),
                                        MODE(wrong_names_and_values_are_refused),
                                        MODE(memory_decays_sooner),
                                        MODE(a_limit_counts_at_once),
                                        MODE(blocks_come_populated),
                                        MODE(statistics_go_where_it_says),
                                        MODE(trims_give_nothing),
                                        MODE(nothing_is_served)};

    find_calls();
    return run_mode(modes, sizeof modes / sizeof modes[0], argc > 1 ? argv[1] : NULL);
}
