/* Random reads of a large table, as of embeddings: what a row costs.
 *
 *   gather [--mib N] [--row N] [--rows N] [--rounds N]
 *
 * One block of --mib MiB is written once. Then, in each of --rounds rounds, --rows rows of --row
 * bytes are added up, each at a place that an independent random number says. The last line is
 * `SUMMARY {json}`: row_ns, the median of the rounds; malloc_ms; huge_pct, how much of the block
 * huge pages of any kind map, -1 before Linux 6.7. */
#include "common.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS_MOST = 99 };
static long mib = 1024, row = 128, rows = 2000000, rounds = 5;

static uint64_t next(uint64_t *dice)
{
    *dice ^= *dice << 13;
    *dice ^= *dice >> 7;
    *dice ^= *dice << 17;
    return *dice;
}

static double gather(const char *table, size_t count, uint64_t *sum)
{
    uint64_t dice = 88172645463325252u;
    double start = fl_bench_ms();

    for (long i = 0; i < rows; i++) {
        const char *at = table + next(&dice) % count * (size_t)row;
        for (long j = 0; j < row; j += 8) {
            uint64_t word;
            memcpy(&word, at + j, sizeof word);
            *sum += word;
        }
    }
    return (fl_bench_ms() - start) * 1e6 / (double)rows;
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {
        {"--mib", &mib}, {"--row", &row}, {"--rows", &rows}, {"--rounds", &rounds}, {NULL, NULL}};
    double ns[ROUNDS_MOST] = {0};
    uint64_t sum = 0;

    fl_bench_options(argc, argv, option);
    size_t len = (size_t)mib << 20, n = rounds < ROUNDS_MOST ? (size_t)rounds : ROUNDS_MOST;
    double start = fl_bench_ms();
    char *table = fl_bench_need(malloc(len));
    double malloc_ms = fl_bench_ms() - start;
    memset(table, 1, len);
    for (size_t i = 0; i < n; i++) {
        ns[i] = gather(table, len / (size_t)row, &sum);
    }
    if (sum != (uint64_t)rows * (uint64_t)(row / 8) * n * 0x0101010101010101u) {
        fprintf(stderr, "gather: the contents are lost\n");
        return 1;
    }
    fl_bench_sort(ns, n);
    long long huge = fl_bench_huge_bytes(table, len);
    printf("SUMMARY {\"row_ns\": %.2f, \"malloc_ms\": %.1f, \"huge_pct\": %.1f}\n", ns[n / 2],
           malloc_ms, huge < 0 ? -1.0 : 100 * (double)huge / (double)len);
    free(table);
    return 0;
}
