/* 100 GiB, or three quarters of the machine's memory where that is less, of which one byte is
 * touched: the process stays small, before, during and after. */
#include "may_lock.h"
#include "victim.h"

static size_t much(void)
{
    size_t machine = KIB * 3 / 4 * (size_t)proc_number("/proc/meminfo", "MemTotal:");

    return machine < 100 * GIB ? machine : 100 * GIB;
}

static size_t rss_mib(void)
{
    return proc_number("/proc/self/status", "VmRSS:") / 1024;
}

static void check_small(char *p)
{
    CHECK(p != NULL);
    p[much() / 2] = 1;
    CHECK(rss_mib() < 64);
    free(p);
    CHECK(rss_mib() < 64);
}

static void by_malloc(void)
{
    check_small(malloc(much()));
    check_small(malloc(much()));
}
static void by_calloc(void)
{
    check_small(calloc(much() / KIB, KIB));
}
static void by_memalign(void)
{
    check_small(memalign(MIB, much()));
}
static void grown(void)
{
    char *p = malloc(100);
    for (size_t n = MIB; n <= much(); n *= 4) {
        p = realloc(p, n);
        CHECK(p != NULL);
        p[n - 1] = 1;
    }
    CHECK(rss_mib() < 6000); /* glibc: 20; a machine with less memory has a smaller eager_max */
    free(p);
}
/* Blocks above eager_max get their pages by touch; a full one may be kept, a hollow one goes
 * back. */
static void above_eager_max(void)
{
    char *p = malloc(64 * MIB);
    CHECK(rss_mib() < 64);
    memset(p, 1, 64 * MIB);
    CHECK(rss_mib() >= 64);
    free(p);
    p = malloc(64 * MIB);
    memset(p, 2, MIB);
    free(p);
    p = calloc(1, 64 * MIB);
    for (size_t i = 0; i < 64 * MIB; i += 4096) {
        CHECK(p[i] == 0);
    }
    free(p);
}
/* FAULTLESS_LIMIT=64M: more than that is served too, but never held populated. */
static void above_limit(void)
{
    char *p[16];
    for (size_t i = 0; i < 16; i++) {
        p[i] = malloc(16 * MIB);
        CHECK(p[i] != NULL);
    }
    CHECK(rss_mib() < 96);
    for (size_t i = 0; i < 16; i++) {
        stamp(p[i], 16 * MIB, i);
    }
    for (size_t i = 0; i < 16; i++) {
        CHECK(is_stamped(p[i], 16 * MIB, i));
        free(p[i]);
    }
}

/* Everything is locked, and what comes later too: only what is asked for may come into memory. */
#include <sys/mman.h>
static void locked(void)
{
    puts(fl_may_lock((size_t)1 << 40) ? "a window" : "no window");
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    char *p = malloc(3 * MIB);
    stamp(p, 3 * MIB, 1);
    CHECK(rss_mib() < 128);
    free(p);
    malloc_trim(0);
    p = calloc(3, MIB);
    CHECK(p[0] == 0 && p[3 * MIB - 1] == 0 && memcmp(p, p + 1, 3 * MIB - 1) == 0);
    free(p);
}

MAIN(MODE(by_malloc), MODE(by_calloc), MODE(by_memalign), MODE(grown), MODE(above_eager_max),
     MODE(above_limit), MODE(locked))
