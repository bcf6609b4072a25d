/* Pinned host memory: huge pages that are populated first and registered with the driver then. The
 * room's header.
 *
 * From the region as PINNED extents (region/special/pin.h), or, when the process is not served, a
 * map of its own. Never malloc's: a program frees such a block when its copy call has returned,
 * which is too soon once the block is registered. State: none of its own but what the caller holds
 * in struct fl_pinned; and how many forks this process is away from its first. */
#ifndef FL_GPU_HOST_HOST_H
#define FL_GPU_HOST_HOST_H

#include "gpu/driver/driver.h"

struct fl_pinned {
    struct fl_range range;    /* whole huge pages; len 0: there is none */
    struct fl_extent *extent; /* NULL: a map of its own */
    struct fl_vspace map;     /* then */
    size_t chunk;             /* bytes of one registration; 0: it is not registered */
    bool borrowed;            /* the registration alone is ours */
    uint32_t forks;           /* fl_pinned_forks when it was taken */
};

/* Bytes of one registration at most, whole huge pages: 64 GiB, but in tests. */
extern FL_HIDDEN size_t fl_pinned_chunk;

/* `len` bytes at least, prepared as `how` says; how->node -1: the device's.
 *   gpu    whose context is current (fl_gpu_enter); NULL: it is not registered.
 * No copy may cross from one registration into the next.
 * Returns 0; -ENOMEM: neither addresses nor memory, or more than half of what the node has left. A
 * refusal of the driver's is its status, and nothing is held; with `bare_too` it is 0 all the same,
 * and p->chunk is 0.
 * Threads: any; no lock that an allocation takes may be held.  Cost: 50 ms a GiB to populate, 5 to
 * register. */
int fl_pinned_take(struct fl_pinned *p, const struct fl_gpu *gpu, size_t len,
                   const struct fl_pin *how, bool bare_too);
/* The same of memory that its owner keeps where it is, populated: it is registered, or refused
 * with p->range as it is; len 0: refused in part, and what is registered stays so. */
int fl_pinned_borrow(struct fl_pinned *p, struct fl_range range, const struct fl_gpu *gpu);
/* Nothing that was submitted uses it any more; the context is current when it is registered. 0, or
 * the driver's status: then its pages are pinned still and it is lost for good; in a fork's child
 * -ECHILD, and nothing is done. */
int fl_pinned_give(struct fl_pinned *p);

static inline enum fl_pin_fork fl_pinned_fork(enum fl_gpu_fork fork)
{
    return fork == FL_GPU_FORK_COPY   ? FL_PIN_COPIED
           : fork == FL_GPU_FORK_WIPE ? FL_PIN_WIPED
                                      : FL_PIN_APART;
}

/* What was made with another value is a parent's. */
extern FL_HIDDEN _Atomic uint32_t fl_pinned_forks; /* relaxed: changes while there is one thread */
void fl_pinned_fork_child(void);

static inline bool fl_pinned_is_parents(const struct fl_pinned *p)
{
    return p->forks != atomic_load_explicit(&fl_pinned_forks, memory_order_relaxed);
}

#endif
