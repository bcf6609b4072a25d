/* Where maps are counted (RLIMIT_AS, RLIMIT_DATA, overcommit_memory=2), the next allocator may be
 * refused what lies free here: whole huge pages that wait for their age, and holes between blocks,
 * which glibc, whose heap they would be in, gives to requests of any size. So what it refuses is
 * asked for again when all that is free here has gone back, addresses too.
 *
 * Its functions are wrapped for that once a look at the memory has found such a limit, or a map was
 * refused, and for good: without one nothing is in the way. State: as below. */
#include "runtime/runtime.h"

#include <errno.h>
#include <malloc.h>

static const uint64_t wait_most = 100000000; /* ns, for others */

static struct fl_next plain;   /* as it was */
static _Atomic uint32_t made;  /* times that there was room to make, plus one; 0: no `plain` yet */
static _Atomic uint32_t at_it; /* threads that make room */

static void await_others(uint32_t seen)
{
    uint64_t until = fl_sys.now_ns() + wait_most;

    while (atomic_load(&at_it) != 0 && atomic_load(&made) == seen && fl_sys.now_ns() < until) {
        (void)fl_call(SYS_sched_yield);
    }
}

/* In a child that a handler has made amid this the thread is not counted any more. */
static void leave(void)
{
    uint32_t n = atomic_load(&at_it);

    while (n != 0 && !atomic_compare_exchange_weak(&at_it, &n, n - 1)) {
    }
}

/* How often there was, before a request that may be refused. The pointer that led here was written
 * after `plain` and `made`, but may have been read before them. */
static uint32_t begin(void)
{
    uint32_t seen;

    while ((seen = atomic_load(&made)) == 0) {
        fl_cpu_relax();
    }
    return seen;
}

/* `n` bytes were refused. True: by now they may be had. */
static bool is_worth_another(size_t n, uint32_t *seen)
{
    size_t fits = fl_runtime.region.pressure.fits;

    if (fits != 0 && n > fits) {
        return false;
    }
    size_t given;
    atomic_fetch_add(&at_it, 1);
    bool may = fl_host_make_room(&given);
    atomic_fetch_add(&made, given != 0);
    leave();
    if (may && given == 0) { /* what was free is on its way by another thread */
        await_others(*seen);
    }
    bool again = atomic_load(&made) != *seen;
    *seen = atomic_load(&made);
    return again;
}

static void *again_malloc(size_t n)
{
    int saved = errno;
    uint32_t seen = begin();
    void *p;

    while ((p = plain.malloc(n)) == NULL && is_worth_another(n, &seen)) {
        errno = saved;
    }
    return p;
}

static void *again_calloc(size_t count, size_t size)
{
    int saved = errno;
    uint32_t seen = begin();
    void *p;

    /* The caller knows that the product is a number. */
    while ((p = plain.calloc(count, size)) == NULL && is_worth_another(count * size, &seen)) {
        errno = saved;
    }
    return p;
}

static void *again_realloc(void *old, size_t n)
{
    int saved = errno;
    uint32_t seen = begin();
    void *p;

    /* Of no bytes: `old` is freed. */
    while ((p = plain.realloc(old, n)) == NULL && n != 0 && is_worth_another(n, &seen)) {
        errno = saved;
    }
    return p;
}

static void *aligned(void *(*next)(size_t align, size_t n), size_t align, size_t n)
{
    int saved = errno;
    uint32_t seen = begin();
    void *p;

    while ((p = next(align, n)) == NULL && errno != EINVAL && is_worth_another(n, &seen)) {
        errno = saved;
    }
    return p;
}

static void *again_memalign(size_t align, size_t n)
{
    return aligned(plain.memalign, align, n);
}

static void *again_aligned_alloc(size_t align, size_t n)
{
    return aligned(plain.aligned_alloc, align, n);
}

static int again_posix_memalign(void **out, size_t align, size_t n)
{
    int saved = errno;
    uint32_t seen = begin();
    int rc;

    while ((rc = plain.posix_memalign(out, align, n)) == ENOMEM && is_worth_another(n, &seen)) {
        errno = saved;
    }
    return rc;
}

void fl_again_fork_child(void)
{
    atomic_store(&at_it, 0);
}

/* Other threads may be reading what is written: both are right. */
#define WRAP(name)                                                                                 \
    if (fl_route.next.name != NULL) {                                                              \
        __atomic_store_n(&fl_route.next.name, again_##name, __ATOMIC_RELEASE);                     \
    }

void fl_again_begin(void)
{
    if (fl_route.next.malloc == again_malloc) {
        return;
    }
    plain = fl_route.next;
    atomic_store(&made, 1);
    WRAP(malloc)
    WRAP(calloc)
    WRAP(realloc)
    WRAP(memalign)
    WRAP(aligned_alloc)
    WRAP(posix_memalign)
}
