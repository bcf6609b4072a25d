/* Random programs against models that are too plain to be wrong: one stream, where every address is
 * foretold; and several streams, where the fake driver watches who is at whose bytes.
 * FL_TEST_SEED=n replays one. */
#include "gpu/pool_fixture.h"
#include "prop/seed.h"

enum { OPS = 600, LIVE = 64, SEGMENTS = 4096, STREAMS = 3 };

static uint64_t random_state;

static uint64_t pick(uint64_t n)
{
    return seed_next(&random_state) % n;
}

static size_t some_size(void)
{
    static const size_t some[] = {1, 256, 4096, 100000, 1048576, 3000000};

    return pick(3) == 0 ? some[pick(6)] : 1 + pick(1 << (8 + pick(13)));
}

static size_t sink_bytes; /* of the device, the test's own */

/* What is held is what the driver has given: small chunks in units of 512 bytes, others of 2
 * MiB. */
static void assert_held(struct fl_gpu_pool *p)
{
    struct fl_gpu_pool_stats s = pool_stats(p);
    size_t held = s.occupied_bytes + s.free_bytes, chunks = s.driver_allocs - s.driver_frees;

    if (fake != NULL && !p->is_pinned) {
        assert_in_range(fake->used(0) - sink_bytes, held, held + chunks * (MIB(2) - 1));
    }
}

/* ---- one stream: every address ---- */

struct segment {
    uint64_t at;
    size_t len;
    unsigned chunk;
    bool used;
};

static struct segment segment[SEGMENTS];
static size_t segments;
static unsigned taken_chunks;

static void insert(size_t i, struct segment s)
{
    assert_true(segments < SEGMENTS);
    memmove(&segment[i + 1], &segment[i], (segments - i) * sizeof *segment);
    segment[i] = s;
    segments++;
}

static void drop(size_t i)
{
    segments--;
    memmove(&segment[i], &segment[i + 1], (segments - i) * sizeof *segment);
}

static size_t best_fit(size_t len)
{
    size_t best = SEGMENTS;

    for (size_t i = 0; i < segments; i++) {
        if (!segment[i].used && segment[i].len >= len &&
            (best == SEGMENTS || segment[i].len < segment[best].len ||
             (segment[i].len == segment[best].len && segment[i].at < segment[best].at))) {
            best = i;
        }
    }
    return best;
}

static size_t lowest_exact(size_t len)
{
    size_t best = best_fit(len);

    return best == SEGMENTS || segment[best].len == len ? best : SEGMENTS;
}

struct kind {
    enum fl_gpu_strategy strategy;
    bool exact, tail;
    size_t chunk;
};

/* Where the model says it is; 0: the pool grows. */
static uint64_t model_take(const struct kind *k, size_t len)
{
    size_t i = k->exact ? lowest_exact(len) : best_fit(len);

    if (i == SEGMENTS) {
        return 0;
    }
    struct segment whole = segment[i];
    segment[i].used = true;
    if (whole.len == len) {
        return whole.at;
    }
    if (k->tail) {
        segment[i] = (struct segment){whole.at, whole.len - len, whole.chunk, false};
        insert(i + 1, (struct segment){whole.at + whole.len - len, len, whole.chunk, true});
        return whole.at + whole.len - len;
    }
    segment[i].len = len;
    insert(i + 1, (struct segment){whole.at + len, whole.len - len, whole.chunk, false});
    return whole.at;
}

static void model_grow(const struct kind *k, uint64_t at, size_t len)
{
    size_t all = k->chunk > len ? k->chunk : len;

    if (k->strategy == FL_GPU_AUTO_GROWTH && all >= MIB(1)) {
        all = (all + MIB(2) - 1) / MIB(2) * MIB(2);
    }
    uint64_t base = k->tail ? at + len - all : at;
    size_t i = 0;

    while (i < segments && segment[i].at < base) {
        i++;
    }
    taken_chunks++;
    insert(i, (struct segment){at, len, taken_chunks, true});
    if (all != len) {
        struct segment rest = {k->tail ? base : at + len, all - len, taken_chunks, false};
        insert(k->tail ? i : i + 1, rest);
    }
}

static void model_give(const struct kind *k, uint64_t at)
{
    size_t i = 0;

    while (segment[i].at != at) {
        i++;
    }
    segment[i].used = false;
    if (k->exact) {
        return;
    }
    if (i + 1 < segments && !segment[i + 1].used && segment[i + 1].chunk == segment[i].chunk) {
        segment[i].len += segment[i + 1].len;
        drop(i + 1);
    }
    if (i > 0 && !segment[i - 1].used && segment[i - 1].chunk == segment[i].chunk) {
        segment[i - 1].len += segment[i].len;
        drop(i);
    }
}

static void every_address_is_foretold(const struct kind *k, struct fl_gpu_pool *p, void *stream)
{
    uint64_t live[LIVE];
    size_t n = 0;

    segments = 0;
    for (unsigned op = 0; op < OPS; op++) {
        struct fl_gpu_pool_stats before = pool_stats(p), after;
        if (n < LIVE && (n == 0 || pick(5) < 3)) {
            size_t size = some_size(), len = p->strategy->round(p, size);
            uint64_t want = model_take(k, len);
            uint64_t got = pool_take(p, size, stream);
            after = pool_stats(p);
            if (want == 0) {
                model_grow(k, got, len);
            } else {
                assert_int_equal(got, want);
            }
            assert_int_equal(after.driver_allocs - before.driver_allocs, want == 0);
            assert_int_equal(after.served_api_bytes - before.served_api_bytes, want == 0 ? len : 0);
            assert_int_equal(after.served_pool_bytes - before.served_pool_bytes,
                             want == 0 ? 0 : len);
            live[n++] = got;
        } else {
            size_t i = pick(n);
            pool_give(p, live[i], stream);
            model_give(k, live[i]);
            live[i] = live[--n];
            after = pool_stats(p);
        }
        assert_held(p);
    }
    while (n > 0) {
        pool_give(p, live[--n], stream);
    }
}

CASE(one_stream_goes_as_the_model_says)
{
    static const struct kind kind[] = {
        {FL_GPU_NAIVE, true, false, 0},
        {FL_GPU_ROUND, true, false, 0},
        {FL_GPU_NAIVE_BEST_FIT, false, false, MIB(8)},
        {FL_GPU_AUTO_GROWTH, false, true, 1},
        {FL_GPU_AUTO_GROWTH, false, true, MIB(4)},
    };

    for (size_t i = 0; i < sizeof kind / sizeof *kind; i++) {
        struct fl_gpu_pool *p =
            POOL(kind[i].strategy, o.initial = o.regrow = o.chunk = kind[i].chunk);
        void *stream = gpu_stream();
        every_address_is_foretold(&kind[i], p, stream);
        pool_end(p);
        gpu_stream_end(stream);
    }
}

/* ---- several streams: no two blocks share bytes ---- */

struct live {
    uint64_t at;
    size_t size, len;
    void *stream;
    unsigned char value;
};

static struct live live[LIVE];
static size_t lives;
static void *stream[STREAMS];
/* Where copies from pinned blocks go, each behind the one before: of the device. */
static fl_CUdeviceptr sink, sink_at;
enum { SINK = 32 << 20, COPY = 4 << 10 };

/* `s` uses the block: writes it, or, pinned, copies from it. */
static void use(const struct fl_gpu_pool *p, const struct live *l, void *s)
{
    if (!p->is_pinned) {
        gpu_fill(s, l->at, l->size, l->value);
    } else if (sink_at + COPY <= sink + SINK) {
        size_t len = l->size < COPY ? l->size : COPY;
        assert_int_equal(fl_cuda.cuMemcpyHtoDAsync(sink_at, (void *)(uintptr_t)l->at, len, s), 0);
        sink_at += COPY;
    }
}

static void take_one(struct fl_gpu_pool *p)
{
    struct live *l = &live[lives];
    struct fl_gpu_pool_stats before = pool_stats(p);

    *l = (struct live){.size = some_size(),
                       .stream = stream[pick(STREAMS)],
                       .value = (unsigned char)(1 + pick(255))};
    l->len = p->strategy->round(p, l->size);
    l->at = pool_take(p, l->size, l->stream);
    struct fl_gpu_pool_stats after = pool_stats(p);
    assert_int_equal(after.served_pool_bytes - before.served_pool_bytes + after.served_api_bytes -
                         before.served_api_bytes,
                     l->len);
    for (size_t i = 0; i < lives; i++) {
        assert_true(l->at + l->len <= live[i].at || live[i].at + live[i].len <= l->at);
    }
    lives++;
    if (p->is_pinned && fake != NULL) {
        fake->host_access((void *)(uintptr_t)l->at, l->size, true);
    }
    use(p, l, l->stream);
}

/* Work of another stream on it, in order after its own so far. */
static void use_elsewhere(struct fl_gpu_pool *p, const struct live *l)
{
    void *other = stream[pick(STREAMS)];
    fl_CUevent e = NULL;

    assert_int_equal(fl_gpu_pool_record_stream(p, l->at, other), 0);
    assert_int_equal(fl_cuda.cuEventCreate(&e, FL_CU_EVENT_DISABLE_TIMING), 0);
    assert_int_equal(fl_cuda.cuEventRecord(e, l->stream), 0);
    assert_int_equal(fl_cuda.cuStreamWaitEvent(other, e, 0), 0);
    assert_int_equal(fl_cuda.cuEventDestroy(e), 0);
    use(p, l, other);
}

static void give_one(struct fl_gpu_pool *p)
{
    size_t i = pick(lives);
    struct live l = live[i];

    if (pick(8) == 0) {
        use_elsewhere(p, &l);
    }
    if (fake != NULL && !p->is_pinned && pick(4) == 0) {
        assert_true(fake->holds(l.at, l.size, l.value));
    }
    if (pick(5) == 0) { /* what others use is recorded */
        gpu_wait(l.stream);
        pool_give(p, l.at, FL_GPU_HOST);
    } else {
        pool_give(p, l.at, l.stream);
    }
    assert_int_equal(fl_gpu_pool_free(p, l.at, l.stream), -ENOENT);
    live[i] = live[--lives];
}

static void something_else(struct fl_gpu_pool *p)
{
    void **s = &stream[pick(STREAMS)];

    switch (pick(5)) {
    case 0:
        assert_int_equal(fl_gpu_pool_trim(p, pick(2) == 0 ? 0 : MIB(2), NULL), 0);
        break;
    case 1:
        assert_int_equal(fl_gpu_pool_collect(p), 0);
        break;
    case 2:
        gpu_wait(*s);
        break;
    case 3:
        if (lives > 0) {
            int rc = fl_gpu_pool_inplace(p, live[0].at, live[0].size);
            assert_true(rc == 0 || rc == -EBUSY);
        }
        break;
    default: /* it goes, another comes: what it was given is waited for, and is another's */
        for (size_t i = 0; i < lives; i++) {
            if (live[i].stream == *s) {
                return;
            }
        }
        bool lasts = fl_stream_lasting(p, fl_stream_named(p, *s)) != NULL;
        if (lasts || pick(2) == 0) { /* else it goes without a word */
            assert_int_equal(fl_gpu_pool_stream_retire(p, *s), 0);
        }
        gpu_stream_end(*s);
        *s = gpu_stream();
    }
}

static const struct fl_gpu_pool_options *chosen;

static void several_streams(void)
{
    assert_int_equal(fl_cuda.cuMemAlloc(&sink, SINK), 0);
    sink_at = sink;
    sink_bytes = SINK;
    struct fl_gpu_pool *p = pool_with(chosen);
    lives = 0;
    for (unsigned i = 0; i < STREAMS; i++) {
        stream[i] = gpu_stream();
    }
    for (unsigned op = 0; op < OPS; op++) {
        uint64_t what = pick(20);
        if (what == 0) {
            something_else(p);
        } else if (lives < LIVE && (lives == 0 || what < 11)) {
            take_one(p);
        } else {
            give_one(p);
        }
        if (fake != NULL && fake->report()[0] != '\0') {
            fail_msg("op %u: %s", op, fake->report());
        }
        assert_held(p);
    }
    while (lives > 0) {
        give_one(p);
    }
    pool_end(p);
    for (unsigned i = 0; i < STREAMS; i++) {
        gpu_stream_end(stream[i]);
    }
    assert_int_equal(fl_cuda.cuMemFree(sink), 0);
    sink_bytes = 0;
    if (fake != NULL) {
        assert_int_equal(fake->used(0), 0);
    }
}

CASE(several_streams_never_meet)
{
    static const enum fl_gpu_strategy all[] = {FL_GPU_NAIVE, FL_GPU_ROUND, FL_GPU_UNPOOLED,
                                               FL_GPU_NAIVE_BEST_FIT, FL_GPU_AUTO_GROWTH};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (unsigned variant = 0; variant < 3; variant++) {
            struct fl_gpu_pool_options o = pool_options(all[i]);
            o.initial = o.regrow = MIB(8);
            o.chunk = variant == 0 ? 1 : variant == 1 ? 0 : MIB(4);
            o.gc_gb = pick(3) == 0 ? 0.004 : 0;
            o.gc_fraction = pick(2) == 0 ? 1 : 0.5;
            o.gc_fast = pick(2) == 0;
            if (variant == 2) {
                o.target = FL_GPU_PINNED;
            }
            chosen = &o;
            gpu_schedules(several_streams);
        }
    }
}

int main(void)
{
    random_state = seed_read();
    gpu_main("test_prop_gpu_pool", NULL);
    return RUN_CASES(GPU_CASES);
}
