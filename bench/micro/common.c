/* See common.h. */
#include "common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* PAGEMAP_SCAN of linux/fs.h, which build headers may lack. */
struct scan_arg {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

struct scan_region {
    uint64_t start, end, categories;
};

enum { SCAN_IS_HUGE = 1 << 6, REGIONS = 512 };

#define SCAN_IOCTL _IOWR('f', 16, struct scan_arg)

void fl_bench_options(int argc, char **argv, const struct fl_option option[])
{
    for (int i = 1; i < argc; i += 2) {
        const struct fl_option *o = option;
        while (o->name != NULL && strcmp(o->name, argv[i]) != 0) {
            o++;
        }
        if (o->name == NULL || i + 1 == argc) {
            fprintf(stderr, "%s: bad argument %s; the options, each with a number:",
                    program_invocation_short_name, argv[i]);
            for (o = option; o->name != NULL; o++) {
                fprintf(stderr, " %s (%ld)", o->name, *o->value);
            }
            fprintf(stderr, "\n");
            exit(2);
        }
        *o->value = atol(argv[i + 1]);
    }
}

double fl_bench_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

long fl_bench_faults(void)
{
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

void fl_bench_sort(double *value, size_t n)
{
    qsort(value, n, sizeof *value, by_size);
}

void fl_bench_sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0) {
    }
}

void *fl_bench_need(void *base)
{
    if (base == NULL) {
        fprintf(stderr, "%s: out of memory\n", program_invocation_short_name);
        exit(1);
    }
    return base;
}

void fl_bench_touch(void *base, size_t len, size_t stride)
{
    volatile char *byte = base;
    for (size_t i = 0; i < len; i += stride) {
        byte[i] = 1;
    }
}

void fl_bench_warm(size_t total, size_t block)
{
    enum { MOST = 4096 };
    static void *blocks[MOST];
    size_t count = 0;
    for (size_t done = 0; done < total && count < MOST; done += block) {
        blocks[count] = fl_bench_need(malloc(block));
        memset(blocks[count++], 0xa5, block);
    }
    while (count > 0) {
        free(blocks[--count]);
    }
}

static uint64_t word_at(size_t i)
{
    return (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

void fl_bench_pattern(void *base, size_t len)
{
    uint64_t *word = base;
    for (size_t i = 0; i < len / sizeof(*word); i++) {
        word[i] = word_at(i);
    }
}

void fl_bench_check_pattern(const void *base, size_t len)
{
    const uint64_t *word = base;
    for (size_t i = 0; i < len / sizeof(*word); i++) {
        if (word[i] != word_at(i)) {
            fprintf(stderr, "%s: the contents are lost at byte %zu\n",
                    program_invocation_short_name, i * sizeof(*word));
            exit(1);
        }
    }
}

long long fl_bench_huge_bytes(const void *base, size_t len)
{
    static struct scan_region region[REGIONS];
    const uint64_t page = FL_BASE_PAGE;
    uint64_t first = (uintptr_t)base;
    long long sum = 0;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    struct scan_arg arg = {
        .size = sizeof(arg),
        .start = first & ~(page - 1),
        .end = (first + len + page - 1) & ~(page - 1),
        .vec = (uintptr_t)region,
        .vec_len = REGIONS,
        .category_mask = SCAN_IS_HUGE,
        .return_mask = SCAN_IS_HUGE,
    };
    while (fd >= 0 && sum >= 0 && arg.start < arg.end) {
        int found = ioctl(fd, SCAN_IOCTL, &arg);
        for (int i = 0; i < found; i++) {
            sum += (long long)(region[i].end - region[i].start);
        }
        sum = found < 0 ? -1 : sum;
        arg.start = arg.walk_end;
    }
    close(fd);
    return fd >= 0 ? sum : -1;
}

size_t fl_bench_rss(void)
{
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f == NULL || fscanf(f, "%*s %ld", &pages) != 1) {
        fprintf(stderr, "bench: no /proc/self/statm\n");
        exit(1);
    }
    fclose(f);
    return (size_t)pages * FL_BASE_PAGE;
}
