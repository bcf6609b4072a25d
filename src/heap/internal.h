/* Shared by the files of heap/ alone. */
#ifndef FL_HEAP_INTERNAL_H
#define FL_HEAP_INTERNAL_H

#include "heap/heap.h"

/* The lock of all heaps, which also makes the caller's thread busy for signal handlers. 0; -ECHILD:
 * the tables are those of threads that are not in this process. */
int fl_heap_lock(void);
void fl_heap_unlock(void);

/* Extents of a heap of so many bytes that can be free at once: no two of them touch. */
static inline size_t fl_heap_most_free(size_t bytes)
{
    return bytes / FL_HEAP_UNIT / 2 + 1;
}
/* Descriptors for `n` free extents, mapped. 0; -ENOMEM. */
int fl_heap_make_descriptors(struct fl_heap *h, size_t n);

#endif
