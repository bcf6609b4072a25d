/* Milliseconds that calloc of a large block takes, and its first use, in a program that has freed
 * as much before.
 *
 *   zeroed [--mib N] [--warm-mib N] [--warm-block-mib N] [--nap-ms N]
 *
 * The warm-up writes and frees --warm-mib, then the program sleeps for --nap-ms: an allocator with
 * spare time may use it. Then calloc, one byte written in each base page, and every byte checked.
 * The last line is `SUMMARY {json}`; again_ms: the same bytes once more, which no allocator can
 * spare. */
#include "common.h"

#include <stdio.h>
#include <stdlib.h>

static long mib = 1024, warm_mib = 1280, warm_block_mib = 256, nap_ms = 1500;

/* All are 0 but the first of each page, which is 1. */
static void check(const char *base, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (base[i] != (i % FL_BASE_PAGE == 0)) {
            fprintf(stderr, "zeroed: byte %zu is %d\n", i, base[i]);
            exit(1);
        }
    }
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {{"--mib", &mib},
                                              {"--warm-mib", &warm_mib},
                                              {"--warm-block-mib", &warm_block_mib},
                                              {"--nap-ms", &nap_ms},
                                              {NULL, NULL}};
    fl_bench_options(argc, argv, option);
    size_t len = (size_t)mib << 20;
    fl_bench_warm((size_t)warm_mib << 20, (size_t)warm_block_mib << 20);
    fl_bench_sleep_ms(nap_ms);

    long faults = fl_bench_faults();
    double start = fl_bench_ms();
    char *base = fl_bench_need(calloc(1, len));
    double got = fl_bench_ms();
    fl_bench_touch(base, len, FL_BASE_PAGE);
    double end = fl_bench_ms();
    faults = fl_bench_faults() - faults;

    check(base, len);
    double again = fl_bench_ms();
    fl_bench_touch(base, len, FL_BASE_PAGE);
    printf("SUMMARY {\"call_ms\": %.4f, \"touch_ms\": %.4f, \"both_ms\": %.4f, \"again_ms\": %.4f, "
           "\"taken\": %ld}\n",
           got - start, end - got, end - start, fl_bench_ms() - again, faults);
    return 0;
}
