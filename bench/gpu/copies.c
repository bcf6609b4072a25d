/* Copies to the device: from a mirror and from other memory; a step's inputs at once and one by
 * one; memory outside any mirror. */
#include "gpu/bench.h"

#include <stdio.h>
#include <stdlib.h>

struct copy {
    struct fl_gpu_mirror *mirror; /* or NULL: from `from` to `to` by the driver */
    const char *from;
    fl_CUdeviceptr to;
    size_t len, n; /* n copies of len, next to each other */
    fl_CUstream stream;
    double enqueue_ns;
};

static double copied(void *arg)
{
    struct copy *c = arg;
    double start = now_ns();

    for (size_t i = 0; i < c->n; i++) {
        if (c->mirror != NULL) {
            fl_ok(fl_gpu_mirror_push_range(c->mirror, c->from, c->len, c->stream),
                  "fl_gpu_mirror_push_range");
        } else {
            cu_ok(cu.cuMemcpyHtoDAsync(c->to, c->from, c->len, c->stream), "cuMemcpyHtoDAsync");
        }
    }
    cu_ok(cu.cuStreamSynchronize(c->stream), "cuStreamSynchronize");
    return now_ns() - start;
}

static double speed(struct copy *c) /* GB/s */
{
    return (double)(c->len * c->n) / median_of(copied, c);
}

static struct fl_gpu_mirror *mirror_of(struct fl_gpu_slot *slot, size_t n)
{
    struct fl_gpu_mirror_options o;
    struct fl_gpu_mirror *m;

    fl_gpu_mirror_defaults(&o);
    o.slot = slot;
    o.count = n;
    fl_ok(fl_gpu_mirror_create(gpu, &o, &m), "fl_gpu_mirror_create");
    return m;
}

/* B1. */
static void by_size(size_t len)
{
    struct fl_gpu_slot slot = {.size = len};
    struct copy c = {.len = len,
                     .n = smoke || len > MIB(64) ? 1
                          : len < KIB(256)       ? 256
                                                 : MIB(64) / len};
    struct fl_gpu_mirror *m = mirror_of(&slot, 1);
    const struct fl_gpu_mirror_map *map = fl_gpu_mirror_map(m);
    char what[64];
    void *p;

    c.stream = cu_stream();
    c.mirror = m;
    c.from = (const char *)map->host + slot.offset; /* NOLINT(performance-no-int-to-ptr) */
    double ours = speed(&c);
    c.mirror = NULL;
    c.to = fl_gpu_twin(map, c.from);
    cu_ok(cu.cuMemHostAlloc(&p, len, 0), "cuMemHostAlloc");
    c.from = p;
    double pinned = speed(&c);
    cu_ok(cu.cuMemFreeHost(p), "cuMemFreeHost");
    c.from = p = host_pages(len, false);
    double pageable = speed(&c);
    cu_ok(cu.cuMemHostRegister(p, len, 0), "cuMemHostRegister");
    double registered = speed(&c);
    cu_ok(cu.cuMemHostUnregister(p), "cuMemHostUnregister");
    host_end(p, len);
    (void)snprintf(what, sizeof what, "mirror to device, %zu KiB", len >> 10);
    row("B1", what, ours, "cuMemHostAlloc", pinned, "GB/s");
    if (len >= MIB(64)) {
        bar("ratio", ours / pinned, AT_LEAST, 0.99);
    }
    row("B1", what, ours, "pageable, base pages", pageable, "GB/s");
    if (len >= MIB(64)) {
        bar("ratio", ours / pageable, AT_LEAST, 2.5);
    }
    row("B1", what, ours, "registered, base pages", registered, "GB/s");
    cu_ok(cu.cuStreamDestroy(c.stream), "cuStreamDestroy");
    fl_ok(fl_gpu_mirror_destroy(m), "fl_gpu_mirror_destroy");
}

static double pushed(void *arg)
{
    struct copy *c = arg;
    void *base;

    fl_ok(fl_gpu_mirror_begin(c->mirror, &base), "fl_gpu_mirror_begin");
    double start = now_ns();
    fl_ok(fl_gpu_mirror_push(c->mirror, c->stream), "fl_gpu_mirror_push");
    c->enqueue_ns = now_ns() - start;
    cu_ok(cu.cuStreamSynchronize(c->stream), "cuStreamSynchronize");
    return now_ns() - start;
}

static double one_by_one(void *arg)
{
    const struct copy *c = arg;
    double start = now_ns();

    for (size_t i = 0; i < c->n; i++) {
        cu_ok(cu.cuMemcpyHtoDAsync(c->to + i * c->len, c->from + i * c->len, c->len, c->stream),
              "cuMemcpyHtoDAsync");
    }
    cu_ok(cu.cuStreamSynchronize(c->stream), "cuStreamSynchronize");
    return now_ns() - start;
}

static double pushed_enqueue(void *arg)
{
    (void)pushed(arg);
    return ((const struct copy *)arg)->enqueue_ns;
}

/* B5. */
static void inputs(size_t n, size_t len, double limit)
{
    struct fl_gpu_slot *slot = calloc(n, sizeof *slot);
    struct copy c = {.len = len, .n = n};
    char what[64];
    void *p;

    for (size_t i = 0; slot != NULL && i < n; i++) {
        slot[i] = (struct fl_gpu_slot){.size = len, .input = true};
    }
    c.stream = cu_stream();
    c.mirror = mirror_of(slot, n);
    double ours = median_of(pushed, &c) / 1e3, enqueue = median_of(pushed_enqueue, &c) / 1e3;
    cu_ok(cu.cuMemHostAlloc(&p, n * len, 0), "cuMemHostAlloc");
    cu_ok(cu.cuMemAlloc(&c.to, n * len), "cuMemAlloc");
    c.from = p;
    double theirs = median_of(one_by_one, &c) / 1e3;
    cu_ok(cu.cuMemFree(c.to), "cuMemFree");
    cu_ok(cu.cuMemFreeHost(p), "cuMemFreeHost");
    (void)snprintf(what, sizeof what, "%zu inputs of %zu KiB, one push", n, len >> 10);
    row("B5", what, ours, "cuMemcpyHtoDAsync each", theirs, "us");
    bar("ratio", theirs / ours, AT_LEAST, limit);
    row("B5", "the call of it", enqueue, NULL, 0, "us");
    bar("us", enqueue, AT_MOST, 5);
    cu_ok(cu.cuStreamDestroy(c.stream), "cuStreamDestroy");
    fl_ok(fl_gpu_mirror_destroy(c.mirror), "fl_gpu_mirror_destroy");
    free(slot);
}

void bench_inputs(void)
{
    inputs(1000, KIB(16), 5);
    if (!smoke) {
        inputs(256, KIB(256), 1.5);
        inputs(32, MIB(8), 1.0);
    }
}

void bench_copies(void)
{
    static const size_t sizes[] = {KIB(4), KIB(64), MIB(1), MIB(16), MIB(64), MIB(256)};

    for (size_t i = 0; i < (smoke ? 1 : sizeof sizes / sizeof sizes[0]); i++) {
        by_size(sizes[i]);
    }
}
