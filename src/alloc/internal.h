/* Shared by the files of alloc/ alone. */
#ifndef FL_ALLOC_INTERNAL_H
#define FL_ALLOC_INTERNAL_H

#include "alloc/alloc.h"

static inline void *fl_block(const struct fl_extent *e)
{
    return (void *)e->base; /* NOLINT(performance-no-int-to-ptr): an extent is memory */
}

/* True when requests may take the usual way; false in the midst of this thread's own boot: then
 * the next allocator has them. */
static inline bool fl_route_ready(void)
{
    if (FL_LIKELY(atomic_load_explicit(&fl_route.booted, memory_order_acquire) == FL_BOOT_DONE)) {
        return true;
    }
    fl_route.boot();
    return atomic_load_explicit(&fl_route.booted, memory_order_acquire) == FL_BOOT_DONE;
}

/* Page-rounded length; 0: more than any object may have, or not for us. */
static inline size_t fl_extent_len(size_t n)
{
    return n > PTRDIFF_MAX || n < fl_route.threshold ? 0 : fl_spread(fl_align_up(n, fl_page.base));
}

/* NULL with errno ENOMEM. */
void *fl_no_memory(void);
/* What the region does not have: the next allocator's; else NULL with errno ENOMEM or EINVAL. */
void *fl_from_next(size_t n, size_t align, enum fl_request_kind kind);
/* After a request of the region's. What there is for the process may be known only now, or have
 * changed. Or memory is short, and the next allocator may hold some that is free: it cannot serve
 * large requests any more. */
void fl_tell_next(void);
/* LIVE, of at least `len` bytes, at a multiple of `align` and of the base page; NULL: the region
 * has none. errno is kept. */
struct fl_extent *fl_from_region(size_t len, size_t align, enum fl_request_kind kind);
/* The place that the thread's plan has for such a request, LIVE; NULL: none. errno is kept. */
struct fl_extent *fl_from_plan(size_t len);
/* To the plan and the profile: the request was served with `e`; NULL: it was not. */
void fl_tell(struct fl_extent *e, size_t align);
/* The same: a block that had these is free, or elsewhere, by now. */
void fl_tell_end(uint32_t life, uint32_t watcher, uint32_t sample);
/* A line about `p`, which is no live block, and abort. */
_Noreturn void fl_die(const char *call, const void *p);

#endif
