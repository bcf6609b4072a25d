/* A handler that frees and allocates large blocks, whatever the main program is in the midst of. */
#include "victim.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/time.h>
#include <time.h>

enum { SLOTS = 16 };
static char *_Atomic slots[SLOTS];
static volatile sig_atomic_t fired;
static size_t block_len = 700 * KIB;

static size_t len_of(size_t i)
{
    return block_len + i * 100 * KIB;
}

static void swap_one(size_t i, int refill)
{
    char *p = atomic_exchange(&slots[i], NULL);
    if (p != NULL) {
        CHECK(is_stamped(p, len_of(i), i));
        free(p);
    }
    if (refill) {
        p = written(len_of(i), i);
        p = atomic_exchange(&slots[i], p);
        free(p);
    }
}

static void free_one(void)
{
    swap_one((size_t)fired++ % SLOTS, 0);
}

static void free_and_allocate(void)
{
    swap_one((size_t)fired++ % SLOTS, 1);
}

/* One shot, set again when the handler is done: the main program gets its turn however long that
 * takes. */
static void arm(void)
{
    const struct itimerval t = {{0, 0}, {0, 97}};
    setitimer(ITIMER_REAL, &t, NULL);
}

static void (*volatile handle)(void);
static void on_signal(int sig)
{
    (void)sig;
    int e = errno;
    if (handle != NULL) {
        handle();
        arm();
    }
    errno = e;
}

static long now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void storm(void (*handler)(void), void (*work)(size_t))
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    long end = now_ms() + at_most(2000);
    handle = handler;
    for (size_t i = 0; i < SLOTS; i++) {
        swap_one(i, 1);
    }
    CHECK(sigaction(SIGALRM, &a, NULL) == 0);
    arm();
    for (size_t i = 0; now_ms() < end || fired <= 100; i++) {
        work(i);
    }
    handle = NULL;
    for (size_t i = 0; i < SLOTS; i++) {
        swap_one(i, 0);
    }
}

static void large_work(size_t i)
{
    swap_one(i * 5 % SLOTS, 1);
    char *p = realloc(malloc(100 * KIB), 3 * MIB);
    free(realloc(p, 200 * KIB));
}

static void small_work(size_t i)
{
    char *p[32];
    for (size_t k = 0; k < 32; k++) {
        p[k] = malloc(1 + (i * 37 + k * 101) % 5000);
    }
    FREE_ALL(p, 32);
    if (i % 64 == 0) {
        swap_one(i / 64 % SLOTS, 1);
    }
}

MODE_IS(free_in_handler, storm(free_one, large_work))
MODE_IS(both_in_handler, storm(free_and_allocate, large_work))
/* Only frees: the main program may be inside the next allocator. */
MODE_IS(amid_small, storm(free_one, small_work))

/* Blocks above eager_max (32M in this test), freed by a handler, must not show up in calloc. */
static char *_Atomic giant;
static void free_giant(void)
{
    fired++;
    free(atomic_exchange(&giant, NULL));
}
static void giant_work(size_t i)
{
    char *p = malloc(40 * MIB), *q;
    memset(p, 0xff, 40 * MIB);
    free(atomic_exchange(&giant, p));
    for (size_t k = 0; k < 50; k++) { /* inside the region as much as can be */
        q = malloc(100 * KIB + k * 4096);
        free(realloc(q, 300 * KIB + (i + k) % 7 * 4096));
    }
    q = calloc(1, 40 * MIB);
    for (size_t k = 0; k < 40 * MIB; k += 512) {
        CHECK(q[k] == 0);
    }
    free(q);
}
MODE_IS(giants, storm(free_giant, giant_work))

static void *threads_loop(void *arg)
{
    for (size_t i = 0; i < 3000; i++) {
        free(malloc(100 * KIB + i % 50 * 8192));
    }
    return arg;
}
static void thread_work(size_t i)
{
    pthread_t t;
    CHECK(pthread_create(&t, NULL, threads_loop, NULL) == 0);
    large_work(i);
    CHECK(pthread_join(t, NULL) == 0);
}
MODE_IS(with_threads, storm(free_one, thread_work))

/* fork in a handler; the child exits, after a large block of its own. */
static void fork_one(void)
{
    if (fired++ % 16 == 0) {
        IN_CHILD
        {
            char *p = malloc(MIB);
            p[5] = 1;
            free(p);
        }
    }
}
MODE_IS(fork_in_handler, storm(fork_one, large_work))

/* The stack overflows; the handler on its own stack allocates and ends well. */
static char alt_stack[64 * KIB];
static void on_overflow(int sig)
{
    (void)sig;
    char *p = written(2 * MIB, 3);
    int fine = is_stamped(p, 2 * MIB, 3);
    free(p);
    exit(fine ? 0 : 1);
}
static int dig(volatile char *above)
{
    volatile char here[4096];
    here[0] = above != NULL ? above[0] : 1;
    return dig(here) + here[0];
}
MODE(overflow)
{
    stack_t s = {.ss_sp = alt_stack, .ss_size = sizeof alt_stack};
    struct sigaction a = {.sa_handler = on_overflow, .sa_flags = SA_ONSTACK};
    free(malloc(MIB));
    CHECK(sigaltstack(&s, NULL) == 0 && sigaction(SIGSEGV, &a, NULL) == 0);
    exit(dig(NULL) == 12345);
}

MAIN()
