/* Measures pools, mirrors and copies on a device, within ten minutes.
 *
 *   gpu_table [--smoke | --cpu] [--json] [PART...]
 *
 * --smoke   each measure once and small, on whatever driver there is: it works, the figures mean
 *           nothing
 * --cpu     what needs no device: on the fake driver (FAULTLESS_GPU_DRIVER)
 * --json    a line of JSON a measure and a bar, as tools/device collects them
 * PART      pools, inputs, copies, fork or memory; without one: all */
#include "gpu/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool smoke, cpu;

static bool json;
static unsigned rows, bars, missed;
static struct {
    const char *number, *measure;
} last;

void row(const char *number, const char *measure, double ours, const char *against, double theirs,
         const char *unit)
{
    rows++;
    last.number = number;
    last.measure = measure;
    if (json) {
        printf("{\"kind\":\"measure\",\"section\":\"bench\",\"number\":\"%s\",\"measure\":\"%s\","
               "\"ours\":%.5g,\"unit\":\"%s\"",
               number, measure, ours, unit);
        if (against != NULL) {
            printf(",\"against\":\"%s\",\"theirs\":%.5g", against, theirs);
        }
        puts("}");
        return;
    }
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
    if (json) {
        printf("{\"kind\":\"bar\",\"section\":\"bench\",\"number\":\"%s\",\"measure\":\"%s\","
               "\"of\":\"%s\",\"value\":%.5g,\"%s\":%.5g,\"met\":%s}\n",
               last.number, last.measure, of, value, kind == AT_MOST ? "at_most" : "at_least",
               limit, met ? "true" : "false");
        return;
    }
    printf("| %s %.4g, %s %.4g: %s ", of, value, kind == AT_MOST ? "at most" : "at least", limit,
           met ? "met" : "MISSED");
}

static const struct {
    const char *name;
    void (*run)(void);
    bool needs_device;
} parts[] = {
    {"pools", bench_pools, false}, {"inputs", bench_inputs, true}, {"copies", bench_copies, true},
    {"fork", bench_fork, false},   {"memory", bench_memory, true},
};
enum { NPARTS = sizeof parts / sizeof parts[0] };

static int usage(const char *why)
{
    fprintf(stderr, "gpu_table: %s\nusage: gpu_table [--smoke | --cpu] [--json] [PART...]\n", why);
    return 2;
}

/* Marks what is asked for. False: an argument is none of ours. */
static bool read_arguments(int argc, char **argv, bool wanted[static NPARTS])
{
    bool any = false;

    for (int i = 1; i < argc; i++) {
        bool known = false;
        for (size_t p = 0; p < NPARTS; p++) {
            bool is = strcmp(argv[i], parts[p].name) == 0;
            wanted[p] = wanted[p] || is;
            known = known || is;
        }
        any = any || known;
        smoke = smoke || strcmp(argv[i], "--smoke") == 0;
        cpu = cpu || strcmp(argv[i], "--cpu") == 0;
        json = json || strcmp(argv[i], "--json") == 0;
        if (!known && strcmp(argv[i], "--smoke") != 0 && strcmp(argv[i], "--cpu") != 0 &&
            strcmp(argv[i], "--json") != 0) {
            return false;
        }
    }
    for (size_t p = 0; p < NPARTS && !any; p++) {
        wanted[p] = true;
    }
    return !(smoke && cpu);
}

int main(int argc, char **argv)
{
    bool wanted[NPARTS] = {false};

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (!read_arguments(argc, argv, wanted)) {
        return usage("an argument is not understood");
    }
    cu_start();
    if (cpu && fake == NULL) {
        return usage("--cpu counts calls of the fake driver: set FAULTLESS_GPU_DRIVER");
    }
    if (fake != NULL && !smoke && !cpu) {
        return usage("on the fake driver only --smoke and --cpu mean something");
    }
    if (!json) {
        printf("| # | measure | ours | against | bar |\n|---|---|---|---|---|\n");
    }
    for (size_t p = 0; p < NPARTS; p++) {
        if (wanted[p] && !(cpu && parts[p].needs_device)) {
            parts[p].run();
        }
    }
    if (!json) {
        printf("|\n\n%u rows, %u bars, %u missed%s\n", rows, bars, missed,
               smoke ? " (a smoke run: the figures mean nothing)" : "");
    }
    fl_ok(fl_gpu_close(gpu), "fl_gpu_close");
    return missed > 0 && !smoke && !json ? 1 : 0;
}
