/* Rule S9: no call of a pool breaks a capture, whichever stream is captured in whichever mode and
 * by whom; and what a graph may use is not handed out. */
#include "gpu/pool_fixture.h"

#include <pthread.h>

enum { GLOBAL = 0, THREAD_LOCAL = 1, MODES = 3 };

static void *a, *b, *d, *own; /* own: of whichever thread names it */
static fl_CUstream blocking;

static void begin(void)
{
    a = gpu_stream();
    b = gpu_stream();
    d = gpu_stream();
    own = (void *)(uintptr_t)FL_STREAM_PER_THREAD; /* NOLINT(performance-no-int-to-ptr) */
    assert_int_equal(fl_cuda.cuStreamCreate(&blocking, 0), 0);
}

enum { FREED = 4 };

/* The call that is made now, for reports; and what was freed, 0: nothing. */
static const char *at;
static uint64_t freed[FREED];

static void look(struct fl_gpu_pool *p, uint64_t address)
{
    struct fl_gpu_pool_stats stats = {.size = sizeof stats};
    struct fl_gpu_device_stats device = {.size = sizeof device};
    struct fl_gpu_block block = {.size = sizeof block};

    at = "find, owner, stats";
    assert_int_equal(fl_gpu_pool_find(p, address, &block), 0);
    assert_ptr_equal(fl_gpu_owner(address, &block), p);
    assert_int_equal(fl_gpu_pool_stats(p, &stats), 0);
    assert_int_equal(fl_gpu_device_stats(0, &device), 0);
}

/* Pools begin and end while others' streams are captured, with memory that was never used. */
static void another_pool(const struct fl_gpu_pool *p)
{
    struct fl_gpu_pool_options o = p->o;
    struct fl_gpu_pool *q = NULL;

    at = "create";
    o.limit = MIB(64);
    if (fl_gpu_pool_create(gpu, &o, &q) == 0) {
        at = "destroy";
        (void)fl_gpu_pool_destroy(q);
    }
}

/* Everything that a pool is asked for, on `s`, with a past on other streams. */
static void all_calls(struct fl_gpu_pool *p, void *s)
{
    size_t released;
    uint64_t more = 0;

    at = "alloc";
    for (unsigned i = 0; i < FREED; i++) {
        freed[i] = 0;
        (void)fl_gpu_pool_alloc(p, MIB(1) << (i % 3), s, &freed[i]);
    }
    if (freed[0] != 0) {
        at = "record_stream";
        (void)fl_gpu_pool_record_stream(p, freed[0], d);
        at = "inplace";
        (void)fl_gpu_pool_inplace(p, freed[0], 256);
        look(p, freed[0]);
    }
    at = "free";
    for (unsigned i = 0; i < FREED; i++) {
        if (freed[i] != 0) { /* one by the host */
            bool by_host = i == 3;
            assert_int_equal(fl_gpu_pool_free(p, freed[i], by_host ? FL_GPU_HOST : s), 0);
        }
    }
    freed[3] = 0;
    at = "alloc of more than there may be"; /* all that a request tries */
    (void)fl_gpu_pool_alloc(p, MIB(64), s, &more);
    at = "collect";
    (void)fl_gpu_pool_collect(p);
    at = "trim";
    (void)fl_gpu_pool_trim(p, 0, &released);
    at = "stream_lasts";
    (void)fl_gpu_pool_stream_lasts(p, d);
    at = "stream_retire";
    (void)fl_gpu_pool_stream_retire(p, d);
    another_pool(p);
}

struct elsewhere {
    struct fl_gpu_pool *pool;
    void *stream;
};

static void *calls_of_another_thread(void *arg)
{
    const struct elsewhere *e = arg;

    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    all_calls(e->pool, e->stream);
    return NULL;
}

/* What the captured stream freed, a graph may use: no request gets it, then or later. */
static void not_had_again(struct fl_gpu_pool *p)
{
    uint64_t x[2 * FREED] = {0};
    unsigned n = 0;

    for (unsigned i = 0; i < 2 * FREED; i++) {
        void *s = i < FREED ? a : b;
        if (fl_gpu_pool_alloc(p, MIB(1) << (i % 3), s, &x[n]) != 0) {
            continue;
        }
        for (unsigned k = 0; k < FREED; k++) {
            assert_int_not_equal(x[n], freed[k]);
        }
        n++;
    }
    while (n-- > 0) {
        pool_give(p, x[n], FL_GPU_HOST);
    }
}

static void one_case(const struct fl_gpu_pool_options *o, void *captured, void *asks, int mode,
                     bool other_thread)
{
    struct fl_gpu_pool *p = pool_with(o);
    struct elsewhere e = {p, asks};
    pthread_t t;

    fake->schedule(FAKE_CUDA_LATE, 0);
    all_calls(p, a); /* what was before */
    uint64_t x = pool_take(p, MIB(1), NULL), y = pool_take(p, MIB(1), b);
    gpu_wait_all();
    pool_give(p, x, NULL);
    fake->capture_as(mode);
    fake->capture(captured, true);
    if (other_thread) {
        assert_int_equal(pthread_create(&t, NULL, calls_of_another_thread, &e), 0);
        assert_int_equal(pthread_join(t, NULL), 0);
    } else {
        all_calls(p, asks);
    }
    if (fake->report()[0] != '\0') {
        fail_msg("%s or before: strategy %d, pinned %d, %s captured, mode %d, thread %d: %s", at,
                 (int)o->strategy, (int)o->target, captured == asks ? "own" : "another", mode,
                 other_thread, fake->report());
    }
    fake->capture(captured, false);
    if (captured == asks && !(asks == own && other_thread)) { /* that is another stream */
        not_had_again(p);
    }
    pool_give(p, y, b);
    gpu_wait_all();
    pool_end(p);
}

CASE(no_call_breaks_a_capture)
{
    static const enum fl_gpu_strategy all[] = {FL_GPU_NAIVE, FL_GPU_UNPOOLED, FL_GPU_NAIVE_BEST_FIT,
                                               FL_GPU_AUTO_GROWTH};

    for (size_t i = 0; i < 2 * sizeof all / sizeof all[0]; i++) {
        struct fl_gpu_pool_options o = pool_options(all[i / 2]);
        o.target = i % 2 != 0 ? FL_GPU_PINNED : FL_GPU_DEVICE;
        o.initial = o.regrow = MIB(4);
        o.limit = MIB(24);
        for (int mode = 0; mode < MODES; mode++) {
            for (unsigned k = 0; k < 2; k++) {
                fake->reset(true);
                begin();
                one_case(&o, a, a, mode, k != 0);
                one_case(&o, a, b, mode, k != 0);
                one_case(&o, a, NULL, mode, k != 0);
                one_case(&o, blocking, b, mode, k != 0);
                one_case(&o, a, own, mode, k != 0);
                one_case(&o, own, own, mode, k != 0);
                one_case(&o, own, b, mode, k != 0);
            }
        }
    }
}

/* A program may capture one graph after the other, each on a stream of its own. */
CASE(what_captured_streams_had_is_forgotten)
{
    enum { GRAPHS = 200 };
    void *brief[GRAPHS];
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);

    for (unsigned i = 0; i < GRAPHS; i++) {
        brief[i] = gpu_stream();
        fake->capture(brief[i], true);
        uint64_t x = pool_take(p, MIB(1), brief[i]);
        pool_give(p, x, FL_GPU_HOST);
    }
    assert_true(pool_records(p) <= 2);
    uint64_t graphs = pool_take(p, MIB(1), brief[0]); /* but not what a graph may use */
    pool_give(p, graphs, brief[0]);
    for (unsigned i = 1; i < GRAPHS; i++) {
        uint64_t x = pool_take(p, MIB(1), brief[i]);
        assert_int_not_equal(x, graphs);
        pool_give(p, x, FL_GPU_HOST);
    }
    pool_end(p);
}

/* A request asks once whether its stream is captured, and is served amid a capture if it lasts. */
CASE(a_request_asks_once_about_a_capture)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_AUTO_GROWTH);

    begin();
    for (unsigned i = 0; i < 2; i++) {
        uint64_t before = fake->calls("cuStreamIsCapturing"), x = pool_take(p, MIB(1) << i, a);
        assert_int_equal(fake->calls("cuStreamIsCapturing"), before + 1);
        pool_give(p, x, FL_GPU_HOST);
        fake->capture(a, true);
    }
    fake->capture(a, false);
    pool_end(p);
}

GPU_MAIN("test_gpu_pool_capture")
