/* Microseconds that the first access to each 2 MiB of a block takes: of one that malloc made, and,
 * in the same run, of a mapping that the kernel fills with huge pages.
 *
 *   serve [--mib N] [--whole 0|1] [--in-order 0|1] [--warm-mib N] [--nap-ms N]
 *
 * An access is a write of one byte, or with --whole 1 of all 2 MiB. They come in random order, so
 * that none can be ahead of them, or with --in-order 1 front to back. Before, --warm-mib are
 * written and freed in blocks of 32 MiB, and the program sleeps. The last line is `SUMMARY {json}`:
 * medians; taken: faults of malloc's block, of `accesses`. */
#include "common.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { MOST = 8192 };

static long mib = 256, is_whole = 0, is_in_order = 0, warm_mib = 320, nap_ms = 1500;
static double us[MOST];

/* The order of the accesses: 0, 1, 2, ... or shuffled, the same in each run. */
static void make_order(size_t order[], size_t count)
{
    uint64_t random = UINT64_C(88172645463325252);
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (size_t i = count; is_in_order == 0 && i > 1; i--) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t j = random % i;
        size_t swapped = order[j];
        order[j] = order[i - 1];
        order[i - 1] = swapped;
    }
}

/* Fill `us`, sorted. */
static void access_all(char *base, size_t count)
{
    static size_t order[MOST];
    make_order(order, count);
    for (size_t i = 0; i < count; i++) {
        char *at = base + order[i] * FL_HUGE_PAGE;
        double start = fl_bench_ms();
        if (is_whole != 0) {
            memset(at, 1, FL_HUGE_PAGE);
        } else {
            *(volatile char *)at = 1;
        }
        us[i] = (fl_bench_ms() - start) * 1e3;
    }
    fl_bench_sort(us, count);
}

static char *map(size_t len)
{
    char *base =
        mmap(NULL, len + FL_HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) {
        return fl_bench_need(NULL);
    }
    base += (FL_HUGE_PAGE - (uintptr_t)base % FL_HUGE_PAGE) % FL_HUGE_PAGE;
    (void)madvise(base, len, MADV_HUGEPAGE);
    return base;
}

/* Whole huge pages of a block of `len` + one, whatever its alignment. */
static char *allocate(size_t len)
{
    char *base = fl_bench_need(malloc(len + FL_HUGE_PAGE));
    return base + (FL_HUGE_PAGE - (uintptr_t)base % FL_HUGE_PAGE) % FL_HUGE_PAGE;
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {
        {"--mib", &mib},           {"--whole", &is_whole}, {"--in-order", &is_in_order},
        {"--warm-mib", &warm_mib}, {"--nap-ms", &nap_ms},  {NULL, NULL}};
    fl_bench_options(argc, argv, option);
    size_t count = (size_t)mib / 2 < MOST ? (size_t)mib / 2 : MOST;
    size_t len = count * FL_HUGE_PAGE;

    char *mapped = map(len);
    access_all(mapped, count);
    double kernel_us = us[count / 2];
    munmap(mapped, len);

    fl_bench_warm((size_t)warm_mib << 20, (size_t)32 << 20);
    fl_bench_sleep_ms(nap_ms);
    char *base = allocate(len);
    long faults = fl_bench_faults();
    access_all(base, count);
    faults = fl_bench_faults() - faults;
    printf("SUMMARY {\"kernel_us\": %.2f, \"us\": %.2f, \"p99_us\": %.2f, "
           "\"taken\": %ld, \"accesses\": %zu, \"huge_pct\": %.1f}\n",
           kernel_us, us[count / 2], us[count * 99 / 100], faults, count,
           100.0 * (double)fl_bench_huge_bytes(base, len) / (double)len);
    return 0;
}
