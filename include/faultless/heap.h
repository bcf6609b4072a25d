/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps: explicit regions of memory with a node, a kind and a name.
 *
 * A heap is one range of addresses, made once, from which a program takes blocks by hand. All of it
 * is on one NUMA node, in huge pages, and bears its name in /proc/PID/smaps, so that what a data
 * structure costs can be seen from outside. malloc never gives out memory of a heap, and a heap's
 * blocks are no business of free(3). In C++: heap.hpp.
 *
 * Status is 0 or -errno:
 *   -EINVAL  a bad argument
 *   -ENOMEM  the heap is full; or, of create, neither addresses nor memory
 *   -EBUSY   blocks are allocated
 *   -E2BIG   options of a newer header that this library does not know
 *   -EPERM, -ENOSYS  create with a node: a sandbox, or a kernel without NUMA, refuses mbind(2)
 *   -ECHILD  a fork's child whose parent's threads were at work on heaps
 *
 * Threads: any. All heaps share one lock, held for some 100 ns. Signals: not safe.
 * Fork: a child has a copy of each heap and goes on with it. */
#ifndef FAULTLESS_HEAP_H
#define FAULTLESS_HEAP_H

#include "faultless.h"

#ifdef __cplusplus
extern "C" {
#endif

struct fl_heap;

enum fl_heap_kind {
    FL_HEAP_TOUCH,      /* huge pages; each comes with its first touch */
    FL_HEAP_PREFAULTED, /* huge pages; all are in memory when fl_heap_create returns */
    FL_HEAP_BASE,       /* base pages; each comes with its first touch: for what is sparse */
};

/* Fill it by fl_heap_defaults. A program that was built with fewer members has the defaults for the
 * others. */
struct fl_heap_options {
    size_t size;  /* sizeof(struct fl_heap_options), set by the defaults */
    size_t bytes; /* what its blocks may have together; rounded up to whole huge pages */
    enum fl_heap_kind kind;
    int node;         /* by the kernel's number; full, it gives others' pages. -1: any */
    const char *name; /* smaps has "faultless:heap:NAME". 1 to 64 printable characters, none of
                       * \ $ ` [ ]. NULL: "heap". Copied */
};

/* Of the caller's own size: so an old program's structure is not written past its end. */
static inline void fl_heap_defaults(struct fl_heap_options *o)
{
    static const struct fl_heap_options all = {sizeof(struct fl_heap_options), 0, FL_HEAP_TOUCH, -1,
                                               NULL};

    *o = all;
}

/* Takes twice `bytes` of addresses. A prefaulted heap is refused where it is more than the machine,
 * and the process's memory cgroup, have available.
 * Cost: 30 us; prefaulted 50 ms a GiB and more, the kernel's clearing. */
FL_API int fl_heap_create(const struct fl_heap_options *o, struct fl_heap **out);
/* -EBUSY: blocks are allocated. */
FL_API int fl_heap_destroy(struct fl_heap *heap);

/* A block of `len` bytes (0 is served as 1) at a multiple of `align`, a power of two; 0, and what
 * is below 64, is 64. Its bytes are anything.
 * Cost: O(log n) of n free pieces; O(n) where `align` is above 64 and none of them has
 * `len` + `align` - 64 bytes. */
FL_API int fl_heap_alloc(struct fl_heap *heap, size_t len, size_t align, void **out);
/* `len` as it was asked for: another length makes the figures wrong. NULL: 0. -EINVAL: it is not
 * the heap's, a part of it is free, or no block is allocated. Its pages stay with the heap. */
FL_API int fl_heap_free(struct fl_heap *heap, void *block, size_t len);

struct fl_heap_stats {
    uint64_t size;       /* set by the caller to sizeof(struct fl_heap_stats) */
    uint64_t bytes;      /* that its blocks may have together */
    uint64_t used_bytes; /* of blocks, now; rounded up to 64 */
    uint64_t used_peak_bytes;
    uint64_t blocks;                 /* now */
    uint64_t longest_bytes;          /* of the longest free part: a longer request is refused */
    uint64_t allocs, frees, refused; /* so far */
    uint64_t resident_bytes; /* in memory now, by the kernel's account; UINT64_MAX: unknown */
};
/* As many fields as out->size covers; what a newer header asks for is 0. -EINVAL: size is not
 * set. */
FL_API int fl_heap_stats_read(struct fl_heap *heap, struct fl_heap_stats *out);

#ifdef __cplusplus
}
#endif
#endif
