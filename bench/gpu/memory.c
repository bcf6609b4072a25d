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

static double mirrored(void *len)
{
    double start = now_ns();
    struct fl_gpu_mirror *m = mirror_of(*(const size_t *)len);
    double took = now_ns() - start;

    fl_ok(fl_gpu_mirror_destroy(m), "fl_gpu_mirror_destroy");
    return took;
}

static double host_allocated(void *len)
{
    void *p;
    double start = now_ns();

    cu_ok(cu.cuMemHostAlloc(&p, *(const size_t *)len, 0), "cuMemHostAlloc");
    double took = now_ns() - start;
    cu_ok(cu.cuMemFreeHost(p), "cuMemFreeHost");
    return took;
}

static fl_CUcontext context;

/* In a thread that has no context. */
static void *register_share(void *arg)
{
    const struct share *s = arg;

    cu_ok(cu.cuCtxPushCurrent(context), "cuCtxPushCurrent");
    cu_ok(cu.cuMemHostRegister(s->from, s->len, 0), "cuMemHostRegister");
    return NULL;
}

static void *unregister_share(void *arg)
{
    const struct share *s = arg;

    cu_ok(cu.cuCtxPushCurrent(context), "cuCtxPushCurrent");
    cu_ok(cu.cuMemHostUnregister(s->from), "cuMemHostUnregister");
    return NULL;
}

/* Registers what is populated: the driver's part alone. By one thread, or by SHARES. */
static double registered(void *range)
{
    const struct share *r = range;
    double start = now_ns();

    cu_ok(cu.cuMemHostRegister(r->from, r->len, 0), "cuMemHostRegister");
    double took = now_ns() - start;
    cu_ok(cu.cuMemHostUnregister(r->from), "cuMemHostUnregister");
    return took;
}

static double registered_by_threads(void *range)
{
    const struct share *r = range;
    double start = now_ns();

    in_shares(r->from, r->len, register_share);
    double took = now_ns() - start;
    in_shares(r->from, r->len, unregister_share);
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

static double others_wait(double (*fn)(void *len), size_t len)
{
    double worst = 0;
    pthread_t t;

    atomic_store(&stop, false);
    if (pthread_create(&t, NULL, map_and_unmap, &worst) != 0) {
        fl_ok(-1, "pthread_create");
    }
    (void)fn(&len);
    atomic_store(&stop, true);
    pthread_join(t, NULL);
    return worst;
}

/* In ms: by one thread and by SHARES. */
static void register_pages(size_t len, bool huge, double took[static 2])
{
    struct share r = {host_pages(len, huge), len};

    took[0] = median_of(registered, &r) / 1e6;
    took[1] = median_of(registered_by_threads, &r) / 1e6;
    host_end(r.from, len);
}

void bench_memory(void)
{
    size_t len = memory_room();
    double huge[2], base[2];
    char what[96];

    cu_ok(cu.cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    double ours = median_of(mirrored, &len) / 1e6, theirs = median_of(host_allocated, &len) / 1e6;
    (void)snprintf(what, sizeof what, "mirror of %zu MiB made: reserved, populated, registered",
                   len >> 20);
    row("B2", what, ours, "cuMemHostAlloc", theirs, "ms");
    bar("ratio", ours / theirs, AT_MOST, 0.25);
    register_pages(len, true, huge);
    register_pages(len, false, base);
    (void)snprintf(what, sizeof what, "cuMemHostRegister of %zu MiB, populated, huge pages",
                   len >> 20);
    row("B2", what, huge[0], "base pages", base[0], "ms");
    bar("ratio", huge[0] / base[0], AT_MOST, 0.5);
    row("B2", "the same by 8 threads", huge[1], "base pages", base[1], "ms");
    double by_ours = others_wait(mirrored, len) / 1e6,
           by_theirs = others_wait(host_allocated, len) / 1e6;
    (void)snprintf(what, sizeof what, "slowest mmap elsewhere while %zu MiB are made so",
                   len >> 20);
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
void bench_fork(void)
{
    size_t len = cpu ? GIB(1) : memory_room();
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
