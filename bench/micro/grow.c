/* Milliseconds that a program needs to grow by --mib: malloc of blocks of --block-mib, each
 * touched, one byte in each base page, as soon as it is there. Beside it, in the same run, what one
 * thread needs without an allocator: mmap, MADV_HUGEPAGE, MADV_POPULATE_WRITE and the same touch,
 * in a child that ends before.
 *
 *   grow [--mib N] [--block-mib N]
 *
 * The last line is `SUMMARY {json}`; taken: faults of the main thread. */
#include "common.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static long mib = 8192, block_mib = 512;

static double populate_ms(size_t len)
{
    double start = fl_bench_ms();
    char *base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || madvise(base, len, MADV_HUGEPAGE) != 0 ||
        madvise(base, len, MADV_POPULATE_WRITE) != 0) {
        perror("grow: populate");
        _exit(1);
    }
    fl_bench_touch(base, len, FL_BASE_PAGE);
    return fl_bench_ms() - start;
}

/* In a child: its memory is free again, and warm, before the parent allocates. */
static double reference_ms(size_t len)
{
    int end[2];
    int status;
    double ms = 0;
    if (pipe(end) != 0) {
        exit(1);
    }
    pid_t pid = fork();
    if (pid == 0) {
        ms = populate_ms(len);
        _exit(write(end[1], &ms, sizeof(ms)) != (ssize_t)sizeof(ms));
    }
    close(end[1]);
    bool is_read = read(end[0], &ms, sizeof(ms)) == (ssize_t)sizeof(ms);
    if (waitpid(pid, &status, 0) != pid || status != 0 || !is_read) {
        fprintf(stderr, "grow: the child failed\n");
        exit(1);
    }
    return ms;
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {
        {"--mib", &mib}, {"--block-mib", &block_mib}, {NULL, NULL}};
    fl_bench_options(argc, argv, option);
    size_t block = (size_t)block_mib << 20;
    double reference = reference_ms((size_t)mib << 20);

    long faults = fl_bench_faults();
    double start = fl_bench_ms();
    for (size_t done = 0; done < (size_t)mib << 20; done += block) {
        char *base = fl_bench_need(malloc(block));
        fl_bench_touch(base, block, FL_BASE_PAGE);
    }
    double ms = fl_bench_ms() - start;
    faults = fl_bench_faults() - faults;

    printf("SUMMARY {\"grow_ms\": %.3f, \"populate_ms\": %.3f, \"taken\": %ld}\n", ms, reference,
           faults);
    return 0;
}
