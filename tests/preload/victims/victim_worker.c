/* What the worker thread does, seen from /proc. */
#include "api.h"
#include "worker.h"

#include <semaphore.h>
#include <stdbool.h>

MODE(gives_back)
{
    for (int i = 0; i < 3; i++) {
        use(100 * MIB);
        use(30 * MIB);
        wait_for_worker();
        wait_until_small(30);
    }
}

/* Freed by another thread, which has ended since; kept in its cache, and in this one's. */
static void *use_some(void *arg)
{
    use(60 * MIB);
    use(61 * MIB);
    return arg;
}
MODE(gives_back_from_caches)
{
    use(40 * MIB);
    in_thread(use_some, NULL);
    wait_until_small(30);
}

MODE(keeps_live)
{
    char *p = written(50 * MIB, 1);
    use(50 * MIB);
    wait_until_small(90);
    CHECK(is_stamped(p, 50 * MIB, 1));
    free(p);
}

MODE(blocks_all_signals)
{
    use(64 * MIB);
    wait_for_worker();
    char text[8192];
    const char *p = proc_text(text, worker_file("status"), "SigBlk:\t");
    /* all but KILL and STOP, which cannot be blocked, and libc's own 32 and 33 */
    uint64_t blocked = strtoull(p, NULL, 16),
             must = ~((1ull << 8) | (1ull << 18) | (1ull << 31) | (1ull << 32));
    CHECK((blocked & must) == must);
}

MODE(idles)
{
    use(64 * MIB);
    wait_until_small(30);
    wait_until_gone();
    use(64 * MIB);
    wait_until_small(30);
    wait_until_gone();
}

MODE(none_below_16_mib)
{
    for (int i = 0; i < 100; i++) {
        use(10 * MIB);
        nap(2);
    }
    CHECK(!find_worker());
    CHECK(proc_number("/proc/self/status", "Threads:") == 1);
}

MODE(keeps_until_trimmed)
{
    use(100 * MIB);
    nap(300);
    CHECK(rss_mib() >= 100);
    CHECK(malloc_trim(0) == 1 && rss_mib() < 30);
}

MODE(none_when_disabled)
{
    keeps_until_trimmed();
    CHECK(!find_worker());
}

/* Then requests give memory back; those that a cache serves do not come so far. */
static void ask_until_small(void)
{
    for (size_t i = 0; rss_mib() > 30; i++) {
        use(256 * KIB + i % 64 * 4 * KIB);
        fl_between_looks();
    }
    CHECK(!find_worker());
}
MODE(gives_back_when_asked)
{
    use(200 * MIB);
    use(40 * MIB);
    ask_until_small();
}

/* Declared steps that repeat, until they are known; then the thread waits for good. */
static void *steps_then_none(void *done)
{
    enum { STEPS = 30, BLOCKS = 40 };
    char *p[BLOCKS];

    for (int step = 0; step < STEPS; step++) {
        bool declared = CALL(fl_step_begin)(NULL) == 0; /* not where plans are off */
        for (size_t i = 0; i < BLOCKS; i++) {
            size_t n = (3 + i % 7) * MIB;
            p[i] = filled(n);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            free(p[i * 7 % BLOCKS]);
        }
        CHECK(!declared || CALL(fl_step_end)(NULL) == 0);
    }
    CHECK(sem_post(done) == 0);
    for (;;) {
        (void)pause();
    }
    return NULL;
}
MODE(gives_back_after_steps)
{
    enum { REPEATS = 100 };
    pthread_t t;
    sem_t done;

    CHECK(sem_init(&done, 0, 0) == 0 && pthread_create(&t, NULL, steps_then_none, &done) == 0);
    CHECK(sem_wait(&done) == 0);
    for (size_t i = 0; i < (size_t)64 * REPEATS; i++) {
        use(256 * KIB + i % 64 * 4 * KIB);
    }
    ask_until_small();
}

/* Thread-local storage counts against a thread's stack: the worker must not be refused for it. */
#ifdef VICTIM_TLS
static volatile __thread char much[VICTIM_TLS];
#else
static volatile __thread char much[1];
#endif
MODE(much_tls)
{
    much[0] = 1;
    use(64 * MIB);
    wait_until_small(30);
    wait_for_worker();
}

MODE(in_child)
{
    use(64 * MIB);
    IN_CHILD
    {
        use(64 * MIB);
        wait_until_small(30);
        wait_for_worker();
    }
    wait_until_small(30);
}

MAIN()
