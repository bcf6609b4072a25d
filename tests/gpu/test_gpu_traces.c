/* What three models asked for while they were trained (traces/record.py), asked of the pools and of
 * PyTorch's algorithm: the pools hold no more. */
#include "gpu/pool_fixture.h"

#include <stdio.h>

enum { EVENTS_MOST = 1 << 15, BLOCKS_MOST = 1 << 16, STEPS_MOST = 16 };

/* One line a step, the first for what is there before; see record.py. */
struct trace {
    int64_t event[EVENTS_MOST]; /* above 0: so many bytes; below: the block of so long ago */
    size_t from[STEPS_MOST + 1], steps;
};

static struct trace trace;

static void read_trace(const char *name)
{
    char path[512];
    size_t n = 0;
    long event;
    int c;

    (void)snprintf(path, sizeof path, "%s/%s", FL_TRACES, name);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    trace.steps = 0;
    trace.from[0] = 0;
    while (fscanf(f, "%ld", &event) == 1) {
        assert_true(n < EVENTS_MOST && event != 0);
        trace.event[n++] = event;
        if ((c = fgetc(f)) == '\n') {
            assert_true(trace.steps < STEPS_MOST);
            trace.from[++trace.steps] = n;
        }
    }
    assert_int_equal(fclose(f), 0);
    assert_true(trace.steps > 3 && n > 2000);
}

/* ---- PyTorch's algorithm ----
 *
 * Source: c10/cuda/CUDACachingAllocator.cpp. Sizes are multiples of 512 bytes; up to 1 MiB they
 * come from segments of 2 MiB, below 10 MiB from such of 20 MiB, above that from one of their own
 * in whole 2 MiB. The smallest block that is large enough is split, in the large segments only if
 * more than 1 MiB is left. */
struct peer_block {
    size_t segment, offset, len;
    bool is_small;
};

struct peer {
    struct peer_block free[BLOCKS_MOST], used[BLOCKS_MOST];
    size_t nfree, segments, held;
};

static struct peer peer;

static bool comes_before(const struct peer_block *a, const struct peer_block *b)
{
    if (a->len != b->len) {
        return a->len < b->len;
    }
    return a->segment != b->segment ? a->segment < b->segment : a->offset < b->offset;
}

static struct peer_block peer_find(size_t len, bool is_small)
{
    const struct peer_block *best = NULL;

    for (size_t i = 0; i < peer.nfree; i++) {
        const struct peer_block *b = &peer.free[i];
        if (b->is_small == is_small && b->len >= len && (best == NULL || comes_before(b, best))) {
            best = b;
        }
    }
    if (best != NULL) {
        struct peer_block found = *best;
        peer.free[best - peer.free] = peer.free[--peer.nfree];
        return found;
    }
    size_t segment = is_small        ? MIB(2)
                     : len < MIB(10) ? MIB(20)
                                     : (len + MIB(2) - 1) / MIB(2) * MIB(2);
    peer.held += segment;
    return (struct peer_block){peer.segments++, 0, segment, is_small};
}

static void peer_alloc(size_t id, size_t size)
{
    size_t len = (size + 511) / 512 * 512;
    bool is_small = len <= MIB(1);
    struct peer_block b = peer_find(len, is_small);
    size_t rest = b.len - len;

    if (is_small ? rest >= 512 : rest > MIB(1)) {
        assert_true(peer.nfree < BLOCKS_MOST);
        peer.free[peer.nfree++] = (struct peer_block){b.segment, b.offset + len, rest, is_small};
        b.len = len;
    }
    peer.used[id] = b;
}

static void peer_free(size_t id)
{
    struct peer_block b = peer.used[id];

    for (size_t i = 0; i < peer.nfree;) {
        struct peer_block *o = &peer.free[i];
        bool below = o->offset + o->len == b.offset, above = b.offset + b.len == o->offset;
        if (o->segment == b.segment && (below || above)) {
            b.offset = below ? o->offset : b.offset;
            b.len += o->len;
            *o = peer.free[--peer.nfree];
        } else {
            i++;
        }
    }
    peer.free[peer.nfree++] = b;
}

/* ---- both ---- */

struct run {
    struct fl_gpu_pool *pool; /* NULL: the peer */
    uint64_t at[BLOCKS_MOST];
    size_t n;
    uint64_t calls[64]; /* of the driver for memory, up to the end of each step */
    size_t steps;
};

static struct run run;

static void one_event(int64_t event)
{
    size_t id = event > 0 ? run.n++ : run.n + (size_t)event;

    assert_true(id < BLOCKS_MOST);
    if (run.pool == NULL && event > 0) {
        peer_alloc(id, (size_t)event);
    } else if (run.pool == NULL) {
        peer_free(id);
    } else if (event > 0) {
        run.at[id] = pool_take(run.pool, (size_t)event, NULL);
    } else {
        pool_give(run.pool, run.at[id], NULL);
        run.at[id] = 0;
    }
}

static void one_step(size_t step)
{
    for (size_t i = trace.from[step]; i < trace.from[step + 1]; i++) {
        one_event(trace.event[i]);
    }
    if (run.pool != NULL) {
        struct fl_gpu_pool_stats s = pool_stats(run.pool);
        run.calls[run.steps++] = s.driver_allocs + s.driver_frees;
    }
}

/* All steps, and the last but one (the last is not whole) `more` times again. */
static void replay(struct fl_gpu_pool *p, size_t more)
{
    run = (struct run){.pool = p};
    peer = (struct peer){.nfree = 0};
    for (size_t i = 0; i + 1 < trace.steps; i++) {
        one_step(i);
    }
    for (size_t i = 0; i < more; i++) {
        one_step(trace.steps - 2);
    }
}

static void end(struct fl_gpu_pool *p)
{
    for (size_t i = 0; i < run.n; i++) {
        if (run.at[i] != 0) {
            pool_give(p, run.at[i], NULL);
        }
    }
    pool_end(p);
}

/* What the pool holds at most, in thousandths of what PyTorch's would hold. */
static unsigned of_peer(const char *name)
{
    enum { MORE = 6 };
    struct fl_gpu_pool_options o = pool_options(FL_GPU_AUTO_GROWTH);

    o.chunk = 0;
    read_trace(name);
    replay(NULL, MORE);
    size_t most = peer.held;
    struct fl_gpu_pool *p = pool_with(&o);
    replay(p, MORE);
    struct fl_gpu_pool_stats s = pool_stats(p);
    unsigned part = (unsigned)(1000 * s.held_peak_bytes / most);
    print_message("%s: %lu MiB, PyTorch's %zu\n", name, (unsigned long)(s.held_peak_bytes >> 20),
                  most >> 20);
    end(p);
    return part;
}

GPU_TEST(the_pool_holds_less_than_pytorch)
{
    assert_in_range(of_peer("transformer"), 1, 950);
    assert_int_equal(run.calls[3], run.calls[run.steps - 1]); /* no call after the third step */
    assert_in_range(of_peer("cnn"), 1, 950);
    assert_int_equal(run.calls[3], run.calls[run.steps - 1]);
    assert_in_range(of_peer("lengths"), 1, 950);
    assert_int_equal(run.calls[trace.steps - 2], run.calls[run.steps - 1]); /* all were seen */
}

/* Small blocks lie in slabs, others in chunks of their own. */
GPU_TEST(small_blocks_share_slabs)
{
    enum { SMALL = 2000 };
    static uint64_t at[SMALL];
    struct fl_gpu_pool_options o = pool_options(FL_GPU_AUTO_GROWTH);

    o.chunk = 0;
    struct fl_gpu_pool *p = pool_with(&o);
    for (unsigned i = 0; i < SMALL; i++) {
        at[i] = pool_take(p, 256, NULL);
    }
    assert_int_equal(pool_stats(p).driver_allocs, 1);
    assert_int_equal(pool_held(p), MIB(2));
    uint64_t large = pool_take(p, MIB(1), NULL);
    assert_int_equal(pool_stats(p).driver_allocs, 2);
    assert_int_equal(pool_held(p), MIB(10));
    for (unsigned i = 0; i < SMALL; i++) {
        pool_give(p, at[i], NULL);
    }
    pool_give(p, large, NULL);
    pool_end(p);
}

GPU_MAIN("gpu_traces")
