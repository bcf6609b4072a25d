/* What the allocator itself holds for a program with very much live memory, and what a fork costs.
 *
 *   large [--blocks N] [--kib N] [--free-every N] [--forks N]
 *
 * --blocks blocks of --kib KiB are live, none of them touched, so that a TiB fits into any machine;
 * of so many each --free-every is freed again, 0: none. Then --forks forks, of which the child ends
 * at once. LARGE_MEMORY_GIB in the environment: so much memory the machine says it has to who calls
 * sysinfo(3), as the library does when it sizes its window.
 * The last line is `SUMMARY {json}`: live_mib; held_mib, what RSS has grown by; held_pct, the same
 * of what is live; tables_mib, the kernel's page tables; malloc_ms, of all blocks; fork_ms, the
 * median; -1: the kernel refused it. */
#include "common.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS_MOST = 101 };
static long nblocks = 1024, kib = 1 << 20, free_every = 0, forks = 0;
static void **block;

/* The program's own comes before the C library's. */
int sysinfo(struct sysinfo *info)
{
    const char *gib = getenv("LARGE_MEMORY_GIB");
    int rc = (int)syscall(SYS_sysinfo, info);

    if (rc == 0 && gib != NULL) {
        info->totalram = ((unsigned long)atol(gib) << 30) / info->mem_unit;
    }
    return rc;
}

/* A figure of /proc/self/status, in KiB. */
static long status_kib(const char *key)
{
    char line[256];
    long kib_there = -1;
    FILE *f = fopen("/proc/self/status", "r");

    while (f != NULL && kib_there < 0 && fgets(line, sizeof line, f) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib_there = strtol(line + strlen(key), NULL, 10);
        }
    }
    if (kib_there < 0) {
        fprintf(stderr, "large: /proc/self/status has no %s\n", key);
        exit(1);
    }
    fclose(f);
    return kib_there;
}

static double make_all(void)
{
    double start = fl_bench_ms();

    for (long i = 0; i < nblocks; i++) {
        block[i] = fl_bench_need(malloc((size_t)kib << 10));
    }
    double ms = fl_bench_ms() - start;
    for (long i = 0; free_every != 0 && i < nblocks; i += free_every) {
        free(block[i]);
    }
    return ms;
}

/* Milliseconds; -1: refused. */
static double fork_once(void)
{
    int status;
    double start = fl_bench_ms();
    pid_t child = fork();

    if (child == 0) {
        _exit(0);
    }
    double ms = fl_bench_ms() - start;
    if (child < 0) {
        return -1;
    }
    if (waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "large: a child ended badly\n");
        exit(1);
    }
    return ms;
}

static double fork_all(void)
{
    double ms[FORKS_MOST] = {-1};
    long n = forks < FORKS_MOST ? forks : FORKS_MOST;

    for (long i = 0; i < n; i++) {
        ms[i] = fork_once();
    }
    fl_bench_sort(ms, (size_t)n);
    return ms[n / 2];
}

int main(int argc, char **argv)
{
    static const struct fl_option option[] = {{"--blocks", &nblocks},
                                              {"--kib", &kib},
                                              {"--free-every", &free_every},
                                              {"--forks", &forks},
                                              {NULL, NULL}};
    fl_bench_options(argc, argv, option);
    size_t list = ((size_t)nblocks + 1) * sizeof *block;
    block =
        mmap(NULL, list, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (block == MAP_FAILED) {
        perror("large: mmap");
        return 1;
    }
    long before = status_kib("VmRSS:");
    double malloc_ms = make_all(), fork_ms = fork_all();
    double live = (double)nblocks * (double)kib, held = (double)(status_kib("VmRSS:") - before);
    printf("SUMMARY {\"live_mib\": %.0f, \"held_mib\": %.1f, \"held_pct\": %.4f, "
           "\"tables_mib\": %.1f, \"malloc_ms\": %.1f, \"fork_ms\": %.2f}\n",
           live / 1024, held / 1024, live > 0 ? 100 * held / live : 0,
           (double)status_kib("VmPTE:") / 1024, malloc_ms, fork_ms);
    return 0;
}
