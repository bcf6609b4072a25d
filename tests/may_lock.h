/* Locked memory, mlock(2), as far as the process may have it. */
#ifndef FL_TESTS_MAY_LOCK_H
#define FL_TESTS_MAY_LOCK_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>

/* Does RLIMIT_MEMLOCK allow `bytes` bytes more? Addresses alone are locked, no memory. */
static inline bool fl_may_lock(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_LOCKED,
                   -1, 0);

    return p != MAP_FAILED && munmap(p, bytes) == 0;
}

#endif
