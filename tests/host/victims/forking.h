/* What the victims that fork share: how many times, who reads how far they got, what a child
 * does. */
#ifndef FAULTLESS_TESTS_HOST_FORKING_H
#define FAULTLESS_TESTS_HOST_FORKING_H

#include "worker.h"

#include <stdatomic.h>

static long wanted; /* forks in all */
static atomic_long forks;
static atomic_bool stop;

/* At the start of stdout, a file: a test that ends a victim which hangs sees how far it got. */
static inline void count_fork(void)
{
    char text[32];
    int n = snprintf(text, sizeof text, "forks %10ld\n", atomic_fetch_add(&forks, 1) + 1);

    CHECK(pwrite(1, text, (size_t)n, 0) == n);
}

static inline void reap(pid_t pid)
{
    int status;
    pid_t got;

    while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
    }
    CHECK(pid > 0 && got == pid);
    if (status != 0) {
        dprintf(2, "child after %ld forks: status %x\n", (long)forks, (unsigned)status);
        _exit(1);
    }
    count_fork();
}

/* Blocks of all kinds that parent and children have. */
enum { INHERITED = 8 };
static char *inherited[INHERITED];

static inline size_t inherited_size(size_t i)
{
    return i < INHERITED / 2 ? 90 * KIB * (i + 1) : i < INHERITED - 1 ? 900 * i : 1 * MIB;
}

static inline void make_inherited(void)
{
    for (size_t i = 0; i < INHERITED; i++) {
        inherited[i] = written(inherited_size(i), i);
    }
}

static inline void check_inherited(void)
{
    for (size_t i = 0; i < INHERITED; i++) {
        CHECK(is_stamped(inherited[i], inherited_size(i), i));
    }
}

static inline void work(size_t n, uint64_t seed)
{
    char *p = written(n, seed);
    p = realloc(p, n + n / 2);
    CHECK(p != NULL && is_stamped_part(p, n, n, seed));
    free(p);
}

/* In a child: what it inherited is whole, and can be grown and freed; so can what it asks for. */
static inline void live_as_child(void)
{
    check_inherited();
    for (size_t i = 0; i < INHERITED; i++) {
        size_t n = inherited_size(i);
        inherited[i] = realloc(inherited[i], 2 * n);
        CHECK(inherited[i] != NULL && is_stamped_part(inherited[i], n, n, i));
        stamp(inherited[i], 2 * n, i + 1);
        work(n, i);
    }
    for (size_t i = 0; i < INHERITED; i++) {
        CHECK(is_stamped(inherited[i], 2 * inherited_size(i), i + 1));
        free(inherited[i]);
    }
    work(100, 1);
    work(2 * MIB, 2);
}

static inline void *churn(void *arg)
{
    uint64_t seed = (uintptr_t)arg + 1;

    while (!stop) {
        size_t n = next_random(&seed) % (seed % 16 == 0 ? 2 * MIB : 150 * KIB) + 1;
        work(n, seed);
        if (seed % 8 == 0) {
            usleep(100); /* so that those who fork have their turn */
        }
    }
    return NULL;
}

static inline void start(pthread_t *t, void *(*run)(void *), size_t i)
{
    CHECK(pthread_create(t, NULL, run, (void *)i) == 0);
}

#endif
