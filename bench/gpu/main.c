/* Measures pools, mirrors and copies on a device and prints the table of docs/benchmarks.md. Under ten minutes.
 *
 *   gpu_table           on the machine's device
 *   gpu_table --smoke   each measure once and small, on whatever driver there is: it works, the figures mean nothing
 *   gpu_table --cpu     what needs no device: on the fake driver (FAULTLESS_GPU_DRIVER) */
#include "gpu/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool smoke;

static unsigned rows, bars, missed;

void row(const char *number, const char *measure, double ours, const char *against, double theirs,
         const char *unit)
{
    rows++;
    printf("%s| %s | %s | %.4g %s | ", rows > 1 ? "| |\n" : "", number, measure, ours, unit);
    if (against != NULL) {
        printf("%s %.4g %s ", against, theirs, unit);
    }
}

void bar(const char *of, double value, enum bar kind, double limit)
{
    bool met = kind == AT_MOST ? value <= limit : value >= limit;

    bars++;
    missed += !met;
    printf("| %s %.4g, %s %.4g: %s ", of, value, kind == AT_MOST ? "at most" : "at least", limit,
           met ? "met" : "MISSED");
}

int main(int argc, char **argv)
{
    bool cpu = argc == 2 && strcmp(argv[1], "--cpu") == 0;

    smoke = argc == 2 && strcmp(argv[1], "--smoke") == 0;
    if (argc > 1 && !cpu && !smoke) {
        fprintf(stderr, "usage: gpu_table [--smoke | --cpu]\n");
        return 2;
    }
    cu_start();
    if (cpu && fake == NULL) {
        fprintf(stderr,
                "gpu_table --cpu counts calls of the fake driver: set FAULTLESS_GPU_DRIVER\n");
        return 2;
    }
    if (fake != NULL && !smoke && !cpu) {
        fprintf(stderr, "gpu_table: on the fake driver only --smoke and --cpu mean something\n");
        return 2;
    }
    printf("| # | measure | ours | against | bar |\n|---|---|---|---|---|\n");
    if (cpu) {
        bench_pools_cpu();
        bench_fork(GIB(1));
    } else {
        bench_copies();
        bench_memory();
        bench_pools();
        bench_fork(smoke ? MIB(16) : GIB(8));
    }
    printf("|\n\n%u rows, %u bars, %u missed%s\n", rows, bars, missed,
           smoke ? " (a smoke run: the figures mean nothing)" : "");
    fl_ok(fl_gpu_close(gpu), "fl_gpu_close");
    return smoke || missed == 0 ? 0 : 1;
}
