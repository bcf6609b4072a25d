/* Milliseconds that a program's first use of its memory costs: malloc of blocks and one write a
 * base page.
 *
 *   first [--mib TOTAL] [--block-mib N]
 *
 * The memory is touched and given back once before by another process (warm first: bench/bars
 * does), so that a virtual machine's host has it. Prints one line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
    size_t total = 512, block = 16;
    struct rusage before, after;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--mib") == 0) {
            total = (size_t)atol(argv[i + 1]);
        } else if (strcmp(argv[i], "--block-mib") == 0) {
            block = (size_t)atol(argv[i + 1]);
        } else {
            fprintf(stderr, "first: bad argument %s\n", argv[i]);
            return 2;
        }
    }
    getrusage(RUSAGE_SELF, &before);
    double start = now_ms();
    for (size_t done = 0; done < total; done += block) {
        volatile char *p = malloc(block << 20);
        if (p == NULL) {
            return 1;
        }
        for (size_t i = 0; i < block << 20; i += 4096) {
            p[i] = 1;
        }
    }
    double ms = now_ms() - start;
    getrusage(RUSAGE_SELF, &after);
    printf("first %zu MiB in blocks of %zu MiB: %.2f ms, %ld faults\n", total, block, ms,
           after.ru_minflt - before.ru_minflt);
    return 0;
}
