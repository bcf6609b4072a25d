/* Threads that come, go, and free each other's blocks. */
#include "await.h"
#include "victim.h"

#include <stdatomic.h>
#include <time.h>

static void start(pthread_t *t, void *(*f)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 * KIB);
    CHECK(pthread_create(t, &attr, f, arg) == 0);
    pthread_attr_destroy(&attr);
}

/* Each of 1000 threads leaves a block behind; the main thread checks and frees them all. */
static void *leave_block(void *arg)
{
    size_t i = (size_t)arg;
    size_t n = 64 * KIB + i * 64;
    free(malloc(200 * KIB)); /* something in the cache when the thread ends */
    char *p = written(n, i);
    return p;
}

static void thousand_by(size_t at_once)
{
    static pthread_t t[1000];
    static char *left[1000];

    for (size_t i = 0; i < 1000; i += at_once) {
        for (size_t k = i; k < i + at_once; k++) {
            start(&t[k], leave_block, (void *)k);
        }
        for (size_t k = i; k < i + at_once; k++) {
            CHECK(pthread_join(t[k], (void **)&left[k]) == 0);
        }
    }
    for (size_t i = 0; i < 1000; i++) {
        CHECK(is_stamped(left[i], 64 * KIB + i * 64, i));
        free(left[i]);
    }
}

MODE_IS(thousand, thousand_by(50))
MODE_IS(at_once, thousand_by(1000))

/* Four threads swap blocks through shared slots: who takes one out checks and frees it. */
enum { SLOTS = 64, HEADER = 2 };
static _Atomic(uint64_t *) slots[SLOTS];
static atomic_bool stop;

static void check_and_free(uint64_t *p)
{
    if (p != NULL) {
        uint64_t n = p[0], seed = p[1];
        CHECK(is_stamped(p + HEADER, n, seed));
        free(p);
    }
}

static uint64_t *make_block(uint64_t *seed)
{
    uint64_t n = 20 * KIB + next_random(seed) % (next_random(seed) % 4 == 0 ? 3 * MIB : 300 * KIB);
    uint64_t *p;
    void *q = NULL;
    switch (next_random(seed) % 4) {
    case 0:
        p = calloc(1, n + 16);
        for (size_t i = 0; i < n / 8; i += 61) {
            CHECK(p[i] == 0);
        }
        break;
    case 1:
        CHECK(posix_memalign(&q, (size_t)64 << next_random(seed) % 12, n + 16) == 0);
        p = q;
        break;
    case 2:
        p = realloc(malloc(n / 2 + 16), n + 16);
        break;
    default:
        p = malloc(n + 16);
    }
    CHECK(p != NULL);
    p[0] = n;
    p[1] = next_random(seed);
    stamp(p + HEADER, n, p[1]);
    return p;
}

static void *churn_thread(void *arg)
{
    uint64_t seed = 0x9e3779b97f4a7c15u * ((uintptr_t)arg + 1);
    while (!stop) {
        check_and_free(atomic_exchange(&slots[next_random(&seed) % SLOTS], make_block(&seed)));
    }
    return NULL;
}

static void run_a_while(pthread_t t[], size_t n, void *(*f)(void *))
{
    const long ms = at_most(2000);
    const struct timespec a_while = {ms / 1000, ms % 1000 * 1000000};

    for (size_t i = 0; i < n; i++) {
        start(&t[i], f, (void *)i);
    }
    nanosleep(&a_while, NULL);
    stop = 1;
    join_threads(t, n);
}

MODE(churn)
{
    pthread_t t[4];

    run_a_while(t, 4, churn_thread);
    for (size_t i = 0; i < SLOTS; i++) {
        check_and_free(slots[i]);
    }
}

/* Blocks of many lengths, replaced at random so fast that no thread's cache serves them. */
enum { REPLACERS = 16, REPLACED = 64 };

static void end_block(uint64_t *p)
{
    if (p != NULL) {
        CHECK(p[0] == (uintptr_t)p && p[p[1] - 1] == ~(uintptr_t)p);
        free(p);
    }
}

static void *replace_thread(void *arg)
{
    static _Atomic(uint64_t *) any[REPLACED];
    uint64_t seed = 0x9e3779b97f4a7c15u * ((uintptr_t)arg + 1), *own[REPLACED] = {NULL};

    while (!stop) {
        for (int i = 0; i < 1000; i++) {
            uint64_t n = (64 * KIB + next_random(&seed) % (340 * KIB)) / 8, r = next_random(&seed);
            uint64_t *p = taken(n * 8);
            p[0] = (uintptr_t)p;
            p[1] = n;
            p[n - 1] = ~(uintptr_t)p;
            uint64_t **mine = &own[r % REPLACED];
            end_block(r >> 32 & 3 ? *mine : atomic_exchange(&any[r % REPLACED], *mine));
            *mine = p;
        }
        if ((uintptr_t)arg == 0) {
            pid_t pid = fork();
            CHECK(pid >= 0);
            if (pid == 0) {
                for (int i = 0; i < REPLACED; i++) {
                    end_block(own[i]);
                    free(malloc(100 * KIB));
                }
                _exit(0);
            }
            CHECK(waitpid(pid, NULL, 0) == pid);
        }
    }
    for (int i = 0; i < REPLACED; i++) {
        end_block(own[i]);
        end_block(atomic_exchange(&any[i], NULL));
    }
    return NULL;
}

MODE(replace)
{
    pthread_t t[REPLACERS];

    run_a_while(t, REPLACERS, replace_thread);
    /* The worker may be about to give some back itself, and be without a processor. */
    do {
        fl_between_looks();
        (void)malloc_trim(0);
    } while (rss_kib() >= 128 * KIB); /* KiB */
}

/* Destructors of thread-specific data allocate and free, several rounds of them; before and after
 * ours. */
static pthread_key_t first_key, keys[40];
static atomic_int destroyed;

static void destroy(void *p)
{
    destroyed++;
    CHECK(is_stamped(p, 300 * KIB, 7));
    free(p);
    char *q = written(MIB, 8);
    free(realloc(q, 2 * MIB));
    if (destroyed % 3 != 0) {
        p = written(300 * KIB, 7);
        pthread_setspecific(first_key, p); /* once more around */
    }
}

static void *with_specific(void *arg)
{
    for (size_t i = 0; i < 40; i++) {
        char *p = written(300 * KIB, 7);
        pthread_setspecific(i == 0 ? first_key : keys[i], p);
    }
    return arg;
}

MODE(specific)
{
    pthread_t t;
    CHECK(pthread_key_create(&first_key, destroy) == 0);
    free(malloc(MIB));
    for (size_t i = 0; i < 40; i++) {
        CHECK(pthread_key_create(&keys[i], destroy) == 0);
    }
    for (int i = 0; i < 20; i++) {
        start(&t, with_specific, NULL);
        pthread_join(t, NULL);
    }
    CHECK(destroyed >= 20 * 40);
}

/* All 1024 keys are the program's. */
MODE(no_key_left)
{
    pthread_key_t k;
    pthread_t t;
    int n = 0;
    void *p;
    while (pthread_key_create(&k, NULL) == 0) {
        n++;
    }
    CHECK(n > 1000);
    start(&t, leave_block, (void *)5);
    CHECK(pthread_join(t, &p) == 0 && is_stamped(p, 64 * KIB + 5 * 64, 5));
    free(p);
}

/* A thread that only frees what others made while those end. */
static void *free_slots(void *arg)
{
    while (!stop) {
        for (size_t i = 0; i < SLOTS; i++) {
            check_and_free(atomic_exchange(&slots[i], NULL));
        }
    }
    return arg;
}

static void *fill_and_end(void *arg)
{
    uint64_t seed = (uintptr_t)arg + 77;
    for (size_t i = 0; i < 8; i++) {
        check_and_free(atomic_exchange(&slots[next_random(&seed) % SLOTS], make_block(&seed)));
    }
    return NULL;
}

MODE(end_while_freed)
{
    pthread_t freer, t[4];
    start(&freer, free_slots, NULL);
    for (size_t i = 0; i < 200; i++) {
        for (size_t k = 0; k < 4; k++) {
            start(&t[k], fill_and_end, (void *)(i * 4 + k));
        }
        for (size_t k = 0; k < 4; k++) {
            pthread_join(t[k], NULL);
        }
    }
    stop = 1;
    pthread_join(freer, NULL);
}

/* exit() while others are in the midst of it. */
MODE(exit_amid)
{
    pthread_t t;
    for (size_t i = 0; i < 3; i++) {
        start(&t, churn_thread, (void *)i);
    }
    const struct timespec a_while = {0, 50000000};
    nanosleep(&a_while, NULL);
    exit(0);
}

MAIN()
