/* What mprotect and madvise of single pages of a block cost.
 *
 *   hands [--mib N] [--calls N] [--how 0|1|2]
 *
 * --how: 0 mprotect to read-only and back from the block's end downwards, 1 the same at random, 2
 * MADV_DONTDUMP at random. The last line is `SUMMARY {json}`: call_us. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum how { DOWN, RANDOM, DUMP };
static long mib = 512, calls = 512, how = DOWN;

static int change(char *page)
{
    if (how == DUMP) {
        return madvise(page, FL_BASE_PAGE, MADV_DONTDUMP);
    }
    return mprotect(page, FL_BASE_PAGE, PROT_READ) != 0
               ? -1
               : mprotect(page, FL_BASE_PAGE, PROT_READ | PROT_WRITE);
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {
        {"--mib", &mib}, {"--calls", &calls}, {"--how", &how}, {NULL, NULL}};
    unsigned random = 1;
    void *block;

    fl_bench_options(argc, argv, option);
    size_t len = (size_t)mib << 20, pages = len / FL_BASE_PAGE;
    if (posix_memalign(&block, FL_BASE_PAGE, len) != 0) {
        return 1;
    }
    double start = fl_bench_ms();
    for (long i = 0; i < calls; i++) {
        random = random * 1664525u + 1013904223u;
        size_t page = how == DOWN ? pages - 1 - (size_t)i : (size_t)random * pages >> 32;
        if (change((char *)block + page * FL_BASE_PAGE) != 0) {
            perror("hands");
            return 1;
        }
    }
    printf("SUMMARY {\"call_us\": %.2f}\n", (fl_bench_ms() - start) * 1e3 / (double)calls);
    return 0;
}
