/* What the programs of this folder share: clock, options, memory that is touched and checked. */
#ifndef FAULTLESS_BENCH_COMMON_H
#define FAULTLESS_BENCH_COMMON_H

#include <stddef.h>

enum {
    FL_BASE_PAGE = 4096,
    FL_HUGE_PAGE = 2 << 20
}; /* strides of touching, not facts of the machine */

/* An option with a whole number: --name N. */
struct fl_option {
    const char *name;
    long *value;
};

/* Read the options; a wrong one ends the program with status 2.
 *   option   ends with a name of NULL. */
void fl_bench_options(int argc, char **argv, const struct fl_option option[]);

double fl_bench_ms(void);

/* Minor faults of the calling thread so far. */
long fl_bench_faults(void);

void fl_bench_sleep_ms(long ms);

/* The least first. */
void fl_bench_sort(double *value, size_t n);

/* Bytes of the process that are in memory; without /proc the end, with status 1. */
size_t fl_bench_rss(void);

/* The end, with status 1, when `base` is NULL; else `base`. */
void *fl_bench_need(void *base);

/* Write one byte, never 0, in each stride of `stride` bytes. */
void fl_bench_touch(void *base, size_t len, size_t stride);

/* malloc blocks of `block` bytes, `total` in all, write every byte, free them. */
void fl_bench_warm(size_t total, size_t block);

/* Fill with what fl_bench_check_pattern knows again. */
void fl_bench_pattern(void *base, size_t len);

/* Ends the program with status 1 when one of the words is not as fl_bench_pattern left it. */
void fl_bench_check_pattern(const void *base, size_t len);

/* How many bytes of [base, base + len) huge pages map; -1 before Linux 6.7. */
long long fl_bench_huge_bytes(const void *base, size_t len);

#endif
