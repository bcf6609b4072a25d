/* Memory that no page is under yet, for victims that take faults in known numbers. */
#ifndef FAULTLESS_TESTS_TOOLS_FRESH_H
#define FAULTLESS_TESTS_TOOLS_FRESH_H

#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

/* `advice`: MADV_NOHUGEPAGE, so that no huge or middle-sized page may back it, or MADV_HUGEPAGE. */
static inline volatile char *fresh(size_t len, int advice)
{
    void *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (base == MAP_FAILED) {
        _exit(3);
    }
    (void)madvise(base, len, advice);
    return base;
}

#endif
