/* Milliseconds that realloc of a large block to twice its size takes, and the first use of the new
 * half.
 *
 *   regrow [--mib N] [--warm-mib N] [--blocked 0|1] [--nap-ms N]
 *
 * --warm-mib are written before the block is made, and freed after it, so that memory waits where
 * the block does not lie. --blocked 1: a small live block comes right after it, so an allocator
 * that hands out addresses in order cannot grow it in place. The old contents are checked
 * afterwards. The last line is `SUMMARY {json}`; moved: whether the address did; again_ms: the new
 * half's bytes once more, which no allocator can spare. */
#include "common.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 2 << 20 };

static long mib = 1024, warm_mib = 1280, is_blocked = 0, nap_ms = 1500;

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {{"--mib", &mib},
                                              {"--warm-mib", &warm_mib},
                                              {"--blocked", &is_blocked},
                                              {"--nap-ms", &nap_ms},
                                              {NULL, NULL}};
    fl_bench_options(argc, argv, option);
    size_t len = (size_t)mib << 20;
    char *warm = fl_bench_need(malloc((size_t)warm_mib << 20));
    memset(warm, 0xa5, (size_t)warm_mib << 20);
    char *base = fl_bench_need(malloc(len));
    fl_bench_pattern(base, len);
    char *behind = is_blocked != 0 ? fl_bench_need(malloc(SMALL)) : NULL;
    if (behind != NULL) {
        fl_bench_pattern(behind, SMALL);
    }
    free(warm);
    fl_bench_sleep_ms(nap_ms);

    uintptr_t before = (uintptr_t)base;
    long faults = fl_bench_faults();
    double start = fl_bench_ms();
    base = fl_bench_need(realloc(base, 2 * len));
    double got = fl_bench_ms();
    fl_bench_touch(base + len, len, FL_BASE_PAGE);
    double end = fl_bench_ms();
    faults = fl_bench_faults() - faults;

    fl_bench_check_pattern(base, len);
    if (behind != NULL) {
        fl_bench_check_pattern(behind, SMALL);
    }
    double again = fl_bench_ms();
    fl_bench_touch(base + len, len, FL_BASE_PAGE);
    printf("SUMMARY {\"call_ms\": %.4f, \"touch_ms\": %.4f, \"both_ms\": %.4f, \"again_ms\": %.4f, "
           "\"taken\": %ld, "
           "\"moved\": %d}\n",
           got - start, end - got, end - start, fl_bench_ms() - again, faults,
           before != (uintptr_t)base);
    return 0;
}
