/* Pinned memory: what it costs to have, what it does to others meanwhile, and to fork. */
#include "gpu/bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

struct range {
    size_t len;
    bool huge;
};

static struct fl_gpu_mirror *mirror_of(size_t len)
{
    struct fl_gpu_slot slot = {.size = len};
    struct fl_gpu_mirror_options o;
    struct fl_gpu_mirror *m;

    fl_gpu_mirror_defaults(&o);
    o.slot = &slot;
    o.count = 1;
    fl_ok(fl_gpu_mirror_create(gpu, &o, &m), "fl_gpu_mirror_create");
    return m;
}

static double mirrored(void *arg)
{
    const struct range *r = arg;
    double start = now_ns();
    struct fl_gpu_mirror *m = mirror_of(r->len);
    double took = now_ns() - start;

    fl_ok(fl_gpu_mirror_destroy(m), "fl_gpu_mirror_destroy");
    return took;
}

static double host_allocated(void *arg)
{
    const struct range *r = arg;
    void *p;
    double start = now_ns();

    cu_ok(cu.cuMemHostAlloc(&p, r->len, 0), "cuMemHostAlloc");
    double took = now_ns() - start;
    cu_ok(cu.cuMemFreeHost(p), "cuMemFreeHost");
    return took;
}

/* The driver's part alone: the pages are there. */
static double registered(void *arg)
{
    const struct range *r = arg;
    void *p = host_pages(r->len, r->huge);
    double start = now_ns();

    cu_ok(cu.cuMemHostRegister(p, r->len, 0), "cuMemHostRegister");
    double took = now_ns() - start;
    cu_ok(cu.cuMemHostUnregister(p), "cuMemHostUnregister");
    host_end(p, r->len);
    return took;
}

static atomic_bool stop;

/* The longest that a mmap(2) and munmap(2) of a page take, in ns. */
static void *map_and_unmap(void *worst)
{
    while (!atomic_load(&stop)) {
        double start = now_ns();
        void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED) {
            munmap(p, 4096);
        }
        double took = now_ns() - start;
        *(double *)worst = took > *(double *)worst ? took : *(double *)worst;
    }
    return NULL;
}

static double others_wait(double (*fn)(void *arg), struct range *r)
{
    double worst = 0;
    pthread_t t;

    atomic_store(&stop, false);
    if (pthread_create(&t, NULL, map_and_unmap, &worst) != 0) {
        fl_ok(-1, "pthread_create");
    }
    (void)fn(r);
    atomic_store(&stop, true);
    pthread_join(t, NULL);
    return worst;
}

void bench_memory(void)
{
    struct range r = {.len = smoke ? MIB(16) : GIB(8)};
    const char *size = smoke ? "16 MiB" : "8 GiB";
    char what[96];
    double ours = few_median_of(mirrored, &r) / 1e6,
           theirs = few_median_of(host_allocated, &r) / 1e6;

    (void)snprintf(what, sizeof what, "mirror of %s made: reserved, populated, registered", size);
    row("B2", what, ours, "cuMemHostAlloc", theirs, "ms");
    bar("ratio", ours / theirs, AT_MOST, 0.25);
    r.huge = true;
    double huge = few_median_of(registered, &r) / 1e6;
    r.huge = false;
    double base = few_median_of(registered, &r) / 1e6;
    (void)snprintf(what, sizeof what, "cuMemHostRegister of %s, populated, huge pages", size);
    row("B2", what, huge, "base pages", base, "ms");
    bar("ratio", huge / base, AT_MOST, 0.5);
    double by_ours = others_wait(mirrored, &r) / 1e6,
           by_theirs = others_wait(host_allocated, &r) / 1e6;
    (void)snprintf(what, sizeof what, "slowest mmap elsewhere while %s are made so", size);
    row("B9", what, by_ours, "cuMemHostAlloc", by_theirs, "ms");
    bar("ms", by_ours, AT_MOST, 100);
}

/* Of the whole process, in MiB. */
static double huge_mib(void)
{
    char line[256];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/self/smaps_rollup", "r");

    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        (void)sscanf(line, "AnonHugePages: %lu kB", &kib);
    }
    if (f != NULL) {
        fclose(f);
    }
    return (double)kib / 1024;
}

static double forked(void *unused)
{
    (void)unused;
    double start = now_ns();
    pid_t child = fork();
    if (child == 0) {
        _exit(0);
    }
    double took = now_ns() - start;
    waitpid(child, NULL, 0);
    return took;
}

/* B8. */
void bench_fork(size_t len)
{
    struct fl_gpu_mirror *m = mirror_of(len);
    const struct fl_gpu_mirror_map *map = fl_gpu_mirror_map(m);
    void *p = host_pages(len, true);
    char what[64];

    madvise(p, len, MADV_DONTFORK);
    double before = huge_mib(), ours = median_of(forked, NULL) / 1e6;
    /* Written again, as a step does. NOLINTNEXTLINE(performance-no-int-to-ptr) */
    memset((void *)map->host, 1, map->len);
    double after = huge_mib();
    (void)snprintf(what, sizeof what, "fork with a mirror of %zu MiB", len >> 20);
    madvise(p, len, MADV_DOFORK);
    cu_ok(cu.cuMemHostRegister(p, len, 0), "cuMemHostRegister");
    double theirs = forked(NULL) / 1e6;
    row("B8", what, ours, "as much registered otherwise, first fork", theirs, "ms");
    bar("ms", ours, AT_MOST, 5);
    row("B8", "huge pages of the process after it", after, "before", before, "MiB");
    bar("ratio", after / (before > 0 ? before : 1), AT_LEAST, before > 0 ? 1 : 0);
    cu_ok(cu.cuMemHostUnregister(p), "cuMemHostUnregister");
    host_end(p, len);
    fl_ok(fl_gpu_mirror_destroy(m), "fl_gpu_mirror_destroy");
}
