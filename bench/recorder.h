/* What the libraries that record a program's requests share: glibc's names, and the calls that are
 * memalign by another name. One file of a library includes this. */
#ifndef FAULTLESS_BENCH_RECORDER_H
#define FAULTLESS_BENCH_RECORDER_H

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);
extern void __libc_free(void *p);

void *aligned_alloc(size_t align, size_t n)
{
    return memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
    if (align < sizeof(void *) || (align & (align - 1)) != 0) {
        return EINVAL;
    }
    int saved = errno;
    void *p = memalign(align, n);
    errno = saved;
    if (p == NULL) {
        return ENOMEM;
    }
    *out = p;
    return 0;
}

#endif
