/* A loop that gives its memory back at the end of each step, and one that does not.
 *
 *   trims [--mib N] [--steps N] [--how N] [--wait_ms N]
 *
 * A step takes --mib of blocks of 1 to 16 MiB, writes all bytes and frees the blocks. Then, with
 * --how 1, malloc_trim(0); 2, malloc_trim of --mib; 3, fl_release(0); 4, fl_release of --mib; 0,
 * nothing. What fl_release is, the library that is preloaded says; without one the call is left
 * out. The last line is `SUMMARY {json}`: step_ms, the median of the later half; step_faults, a
 * step's of that half; end_mib and later_mib, what is in memory after the last step, and --wait_ms
 * after that. */
#include "common.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BLOCKS = 1024, MOST_STEPS = 1000 };

static long mib = 256, steps = 60, how = 0, wait_ms = 0;
static int64_t (*release)(size_t keep);

static void give_back(void)
{
    size_t keep = (size_t)mib << 20;

    if (how == 1 || how == 2) {
        malloc_trim(how == 2 ? keep : 0);
    } else if (how != 0 && release != NULL) {
        release(how == 4 ? keep : 0);
    }
}

static void step(void)
{
    static char *block[MOST_BLOCKS];
    size_t n = 0;

    for (size_t sum = 0; sum < (size_t)mib << 20; n++) {
        size_t len = (n * 5 % 16 + 1) << 20;
        block[n] = fl_bench_need(n < MOST_BLOCKS ? malloc(len) : NULL);
        memset(block[n], 1, len);
        sum += len;
    }
    while (n > 0) {
        free(block[--n]);
    }
    give_back();
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {{"--mib", &mib},
                                              {"--steps", &steps},
                                              {"--how", &how},
                                              {"--wait_ms", &wait_ms},
                                              {NULL, NULL}};
    static double took[MOST_STEPS];
    fl_bench_options(argc, argv, option);
    size_t n = steps < 2 || steps > MOST_STEPS ? 2 : (size_t)steps, warm = n / 2;
    long before = 0;

    release = (int64_t(*)(size_t))dlsym(RTLD_DEFAULT, "fl_release");
    for (size_t i = 0; i < n; i++) {
        before = i == warm ? fl_bench_faults() : before;
        double start = fl_bench_ms();
        step();
        took[i] = fl_bench_ms() - start;
    }
    long faults = fl_bench_faults() - before;
    fl_bench_sort(took + warm, n - warm);
    double end_mib = (double)fl_bench_rss() / (1 << 20);
    fl_bench_sleep_ms(wait_ms);
    printf("SUMMARY {\"step_ms\": %.2f, \"step_faults\": %.1f, \"end_mib\": %.1f, "
           "\"later_mib\": %.1f}\n",
           took[warm + (n - warm) / 2], (double)faults / (double)(n - warm), end_mib,
           (double)fl_bench_rss() / (1 << 20));
    return 0;
}
