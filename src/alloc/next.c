/* The next allocator: it is asked for what the region does not have, and told of the memory. */
#include "alloc/internal.h"

#include <errno.h>

FL_COLD void *fl_no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* Refused where the next allocator may not have it either. */
static bool is_bound(void)
{
    return fl_route.region->zones.placing.nodes != 0 && fl_region_is_bound();
}

/* What glibc's memalign(3) calls too much for an alignment. */
static bool is_no_alignment(size_t align)
{
    return align > SIZE_MAX / 2 + 1;
}

void *fl_next_aligned(void *(*next)(size_t align, size_t n), size_t align, size_t n)
{
    int saved = errno;

    errno = 0;
    void *p = next != NULL ? next(align, n) : NULL;
    if (p != NULL) {
        errno = saved;
    } else if (is_no_alignment(align) || (errno != ENOMEM && !fl_is_pow2(align))) {
        errno = EINVAL;
    } else if (errno != EINVAL) {
        errno = ENOMEM;
    }
    return p;
}

FL_COLD void *fl_from_next(size_t n, size_t align, enum fl_request_kind kind)
{
    if (is_bound()) {
        return fl_no_memory();
    }
    if (kind == FL_REQUEST_ALIGNED) {
        return fl_next_aligned(fl_route.next.memalign, align, n);
    }
    void *p = kind == FL_REQUEST_CALLOC ? fl_route.next.calloc(1, n) : fl_route.next.malloc(n);
    return p != NULL ? p : fl_no_memory();
}

void fl_tell_next(void)
{
    struct fl_region *r = fl_route.region;

    if (FL_UNLIKELY(atomic_load_explicit(&r->refits, memory_order_relaxed)) &&
        atomic_exchange(&r->refits, false) && fl_route.tune_next != NULL) {
        fl_route.tune_next(r->pressure.fits);
    }
    if (FL_UNLIKELY(atomic_load_explicit(&r->starved, memory_order_relaxed)) &&
        atomic_exchange(&r->starved, false) && fl_route.next.trim != NULL) {
        (void)fl_route.next.trim(0);
    }
}
