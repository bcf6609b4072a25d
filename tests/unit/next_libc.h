/* The next allocator of a route: the C library's own. */
#ifndef FL_TESTS_UNIT_NEXT_LIBC_H
#define FL_TESTS_UNIT_NEXT_LIBC_H

#include "alloc/alloc.h"

#include <malloc.h>
#include <stdlib.h>

#define NEXT_LIBC                                                                                  \
    {                                                                                              \
        .malloc = malloc, .free = free, .calloc = calloc, .realloc = realloc,                      \
        .memalign = memalign, .usable_size = malloc_usable_size                                    \
    }

#endif
