/* What fork costs a program with large blocks, and whether its huge pages come back.
 *
 *   forked [--live-mib N] [--free-mib N] [--block-mib N] [--rewrite 0|1] [--limit-ms N]
 *
 * Blocks that stay live and blocks that are freed again are made in turn, and written.
 * FORKED_FREE_MIB in the environment goes over --free-mib. Then fork; the child sleeps. With
 * --rewrite 1 the parent writes all live blocks, the child ends a second later, and every 100 ms
 * the parent asks the kernel how much of them huge pages map. The last line is `SUMMARY {json}`:
 * fork_ms; back_s, seconds from the child's end until 95 % are mapped so again, -1: not within
 * --limit-ms. */
#include "common.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 4096 };

static long live_mib = 4096, free_mib = 4096, block_mib = 64, is_rewritten = 1, limit_ms = 4000;
static char *live[MOST], *unused[MOST];
static size_t live_count, block;

static char *make(void)
{
    char *base = fl_bench_need(malloc(block));
    memset(base, 1, block);
    return base;
}

static void make_all(void)
{
    size_t free_count = 0;
    size_t live_wanted = (size_t)(live_mib / block_mib),
           free_wanted = (size_t)(free_mib / block_mib);
    while (live_count < live_wanted || free_count < free_wanted) {
        if (live_count < live_wanted && live_count < MOST) {
            live[live_count++] = make();
        }
        if (free_count < free_wanted && free_count < MOST) {
            unused[free_count++] = make();
        }
    }
    while (free_count > 0) {
        free(unused[--free_count]);
    }
}

static double huge_pct(void)
{
    double sum = 0;
    for (size_t i = 0; i < live_count; i++) {
        sum += (double)fl_bench_huge_bytes(live[i], block);
    }
    return 100 * sum / (double)(live_count * block);
}

/* Every byte of every live block is `wanted`. */
static bool is_all(char wanted)
{
    for (size_t i = 0; i < live_count; i++) {
        const char *at = live[i];
        if (at[0] != wanted || memcmp(at, at + 1, block - 1) != 0) {
            fprintf(stderr, "forked: the contents are lost in block %zu\n", i);
            return false;
        }
    }
    return true;
}

/* A child that ends when `end` is closed, well when its memory is as it was. Returns the
 * milliseconds that fork took here. */
static double fork_child(pid_t *child, int *end)
{
    int link[2];
    char unused_byte;
    if (pipe(link) != 0) {
        exit(1);
    }
    double start = fl_bench_ms();
    *child = fork();
    if (*child == 0) {
        close(link[1]);
        _exit(read(link[0], &unused_byte, 1) != 0 || !is_all(1));
    }
    double ms = fl_bench_ms() - start;
    if (*child < 0) {
        perror("forked: fork");
        exit(1);
    }
    close(link[0]);
    *end = link[1];
    return ms;
}

static bool end_child(pid_t child, int end)
{
    int status;
    close(end);
    return waitpid(child, &status, 0) == child && status == 0;
}

/* Seconds until the huge pages are back; -1. */
static double wait_for_huge_pages(double *pct)
{
    double start = fl_bench_ms();
    while (true) {
        *pct = huge_pct();
        double now = fl_bench_ms();
        if (*pct >= 95) {
            return (now - start) / 1e3;
        }
        if (now - start >= (double)limit_ms) {
            return -1;
        }
        fl_bench_sleep_ms(100);
    }
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {
        {"--live-mib", &live_mib},    {"--free-mib", &free_mib}, {"--block-mib", &block_mib},
        {"--rewrite", &is_rewritten}, {"--limit-ms", &limit_ms}, {NULL, NULL}};
    pid_t child;
    int end;
    fl_bench_options(argc, argv, option);
    const char *text = getenv("FORKED_FREE_MIB");
    free_mib = text != NULL ? atol(text) : free_mib;
    block = (size_t)block_mib << 20;
    make_all();
    double before = huge_pct();
    double fork_ms = fork_child(&child, &end);
    if (is_rewritten == 0) {
        bool is_well = end_child(child, end);
        printf("SUMMARY {\"fork_ms\": %.3f, \"huge_before_pct\": %.1f}\n", fork_ms, before);
        return is_well ? 0 : 1;
    }
    double start = fl_bench_ms();
    for (size_t i = 0; i < live_count; i++) {
        memset(live[i], 2, block);
    }
    double rewrite_ms = fl_bench_ms() - start;
    double rewritten = huge_pct();
    fl_bench_sleep_ms(1000);
    bool is_well = end_child(child, end);
    double pct;
    double back_s = wait_for_huge_pages(&pct);
    printf("SUMMARY {\"fork_ms\": %.3f, \"rewrite_ms\": %.1f, \"huge_before_pct\": %.1f, "
           "\"huge_rewritten_pct\": %.1f, \"back_s\": %.2f, \"huge_end_pct\": %.1f}\n",
           fork_ms, rewrite_ms, before, rewritten, back_s, pct);
    return is_well && is_all(2) ? 0 : 1;
}
