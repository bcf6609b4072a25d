/* The next allocator of a route: the C library's own. */
#ifndef FL_TESTS_UNIT_NEXT_LIBC_H
#define FL_TESTS_UNIT_NEXT_LIBC_H

#include "alloc/alloc.h"

#include <malloc.h>
#include <stdlib.h>

static void *next_malloc(size_t n)
{
    return malloc(n);
}

static void next_free(void *p)
{
    free(p);
}

static void *next_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}

static void *next_realloc(void *p, size_t n)
{
    return realloc(p, n);
}

static void *next_memalign(size_t align, size_t n)
{
    return memalign(align, n);
}

#define NEXT_LIBC                                                                                  \
    {                                                                                              \
        .malloc = next_malloc, .free = next_free, .calloc = next_calloc, .realloc = next_realloc,  \
        .memalign = next_memalign, .usable_size = malloc_usable_size                               \
    }

#endif
