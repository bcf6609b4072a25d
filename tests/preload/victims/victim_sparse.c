/* 100 GiB, or three quarters of the machine's memory where that is less, of which one byte is
 * touched: the process stays small, before, during and after. */
#include "may_lock.h"
#include "victim.h"

static size_t much(void)
{
    size_t machine = KIB * 3 / 4 * (size_t)proc_number("/proc/meminfo", "MemTotal:");

    return machine < 100 * GIB ? machine : 100 * GIB;
}

static void check_small(char *p)
{
    CHECK(p != NULL);
    p[much() / 2] = 1;
    CHECK(rss_kib() / KIB < 64);
    free(p);
    CHECK(rss_kib() / KIB < 64);
}

MODE(by_malloc)
{
    check_small(malloc(much()));
    check_small(malloc(much()));
}
MODE_IS(by_calloc, check_small(calloc(much() / KIB, KIB)))
MODE_IS(by_memalign, check_small(memalign(MIB, much())))
/* realloc of blocks that are too large to be populated: what was never touched must not become
 * memory, nor be copied. */
static void check_resized(char *p)
{
    CHECK(is_stamped_part(p, 100 * MIB - 1, 100 * MIB, 7));
    CHECK(rss_kib() / KIB < 400);
    free(p);
    CHECK(rss_kib() / KIB < 200);
}

static char *giant(void)
{
    char *p = taken(6 * GIB);
    stamp(p, 100 * MIB, 7);
    return p;
}

MODE(shrunk)
{
    char *p = realloc(giant(), 2 * GIB + 12345);
    CHECK(p != NULL && malloc_usable_size(p) < 3 * GIB);
    check_resized(p);
}

MODE(moved)
{
    char *p = giant(), *behind = taken(6 * GIB); /* so that the first cannot grow where it is */
    p = realloc(p, 7 * GIB);
    CHECK(p != NULL && malloc_usable_size(p) >= 7 * GIB);
    p[7 * GIB - 1] = 1;
    free(behind);
    check_resized(p);
}

/* Blocks above eager_max get their pages by touch; a full one may be kept, a hollow one goes
 * back. */
MODE(above_eager_max)
{
    char *p = malloc(64 * MIB);
    CHECK(rss_kib() / KIB < 64);
    memset(p, 1, 64 * MIB);
    CHECK(rss_kib() / KIB >= 64);
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
MODE(above_limit)
{
    char *p[16];
    for (size_t i = 0; i < 16; i++) {
        p[i] = taken(16 * MIB);
    }
    CHECK(rss_kib() / KIB < 96);
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
MODE(locked)
{
    puts(fl_may_lock((size_t)1 << 40) ? "a window" : "no window");
    CHECK(mlockall(MCL_CURRENT | MCL_FUTURE) == 0);
    char *p = written(3 * MIB, 1);
    CHECK(rss_kib() / KIB < 128);
    free(p);
    malloc_trim(0);
    p = calloc(3, MIB);
    CHECK(is_all(p, 3 * MIB, 0));
    free(p);
}

MAIN()
