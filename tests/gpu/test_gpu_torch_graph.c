/* PyTorch as its C++ calls: graphs' private pools, out of memory, which context, streams that are
 * gone. */
#include "gpu/pool_script.h"
#include "gpu/torch_caller.h"

#include <pthread.h>

static char what[256];

static void *take(size_t len, void *stream)
{
    void *p = torch_alloc((ssize_t)len, 0, stream, what, sizeof what);

    if (p == NULL) {
        fail_msg("no memory: %s", what);
    }
    return p;
}

static void give(void *p, void *stream)
{
    fl_gpu_torch_free(p, 0, 0, stream);
}

/* The pools stay for the process's life: one fake serves all of these. */
static void *s;       /* the test's stream */
static size_t before; /* bytes of the device, with what other tests' graphs keep */

static void each_begin(void)
{
    s = gpu_stream();
    before = fake->used(0);
}

static void each_end(void)
{
    gpu_wait_all();
    fl_gpu_torch_empty_cache();
    gpu_stream_end(s);
    gpu_nothing_reported();
}

static void all_is_given_back(void)
{
    fl_gpu_torch_empty_cache();
    assert_int_equal(fake->used(0), before);
}

static unsigned chosen;

static void choose_beside(void *unused)
{
    (void)unused;
    chosen += fl_gpu_torch_use(FL_GPU_AUTO) != -EBUSY;
}

/* PyTorch's context is the primary one, whichever is current when it asks first. */
CASE(the_context_is_the_primary_one)
{
    void *brief = fake->context_new(1);
    fake->amid(NULL, choose_beside, NULL); /* no lock is held while the pool is made */
    void *p = torch_alloc(MIB(1), 1, NULL, what, sizeof what);
    fake->amid(NULL, NULL, NULL);
    assert_int_equal(chosen, 0);
    assert_non_null(p);
    fl_gpu_torch_free(p, MIB(1), 1, NULL);
    fake->context_end(brief);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    p = torch_alloc(MIB(64), 1, NULL, what, sizeof what);
    assert_non_null(p);
    fl_gpu_torch_free(p, MIB(1), 1, NULL);
    assert_int_equal(fake->retained(1), 1);
}

static void ask_beside(void *unused)
{
    (void)unused;
    (void)fl_gpu_torch_pool(2);
}

/* Of two pools that are made at once one stays. */
CASE(two_ask_first)
{
    struct fl_gpu_device_stats d = {.size = sizeof d};
    struct fl_gpu *third;

    fake->set(FAKE_CUDA_DEVICES, 3);
    assert_int_equal(fl_gpu_open_primary(2, &third), 0);
    fake->amid("cuThreadExchangeStreamCaptureMode", ask_beside, NULL);
    assert_non_null(fl_gpu_torch_pool(2));
    fake->amid(NULL, NULL, NULL);
    assert_int_equal(fl_gpu_device_stats(2, &d), 0);
    assert_int_equal(d.pools, 1);
    assert_int_equal(fl_gpu_close(third), 0);
}

CASE(out_of_memory_is_an_exception)
{
    assert_null(torch_alloc((ssize_t)1 << 40, 0, NULL, what, sizeof what));
    assert_non_null(strstr(what, "CUDA out of memory. Tried to allocate 1099511627776 bytes"));
    assert_non_null(strstr(what, ". GPU 0: "));
    assert_true(torch_caught_memory()); /* as PyTorch's own allocator */
    assert_int_equal(torch_errors(), 0);
    assert_null(torch_alloc(-1, 0, NULL, what, sizeof what));
    assert_string_equal(what, "faultless: CUDA memory: a negative size");
    assert_false(torch_caught_memory());
    assert_null(torch_alloc(4096, 64, NULL, what, sizeof what));
    assert_null(torch_alloc(4096, -1, NULL, what, sizeof what));
    assert_null(torch_alloc(4096, 63, NULL, what, sizeof what));
    assert_non_null(strstr(what, "no device of that number"));
    assert_null(strstr(what, "out of memory")); /* what programs answer by asking for less */
    give(take(MIB(1), NULL), NULL);
}

CASE(out_of_memory_takes_nothing_from_a_graph)
{
    torch_begin(0, 9, 1, s);
    give(take(MIB(400), s), s);
    assert_null(torch_alloc((ssize_t)MIB(900), 0, s, what, sizeof what));
    assert_true(fake->used(0) >= MIB(400));
    torch_end(0, 9, 1);
    torch_release(0, 9, 1);
    all_is_given_back();
}

/* An external stream goes before the tensors that were made on it. */
CASE(a_tensor_outlives_its_stream)
{
    for (unsigned i = 0; i < 8; i++) {
        void *brief = gpu_stream();
        void *p = take(MIB(1), brief), *q = take(MIB(1), brief);
        gpu_fill(brief, (uintptr_t)p, MIB(1), 1);
        gpu_fill(brief, (uintptr_t)q, MIB(1), 1);
        give(q, brief);
        gpu_stream_end(brief);
        void *next = i % 2 == 0 ? gpu_stream() : NULL; /* with its handle */
        give(p, brief);
        void *r = take(MIB(1), next);
        gpu_fill(next, (uintptr_t)r, MIB(1), 2);
        give(r, next);
        if (next != NULL) {
            gpu_stream_end(next);
        }
    }
}

static void private_pool(char does, unsigned long long id, void *stream)
{
    if (does == '(') {
        torch_begin(0, 1, id, stream);
    } else if (does == ')') {
        torch_end(0, 1, id);
    } else {
        torch_release(0, 1, id);
    }
}

ROWS(memory_of_graphs,
     {"what a graph drops is its own, and its own alone, until it is released", "T", NULL, ONCE,
      "x=a4M -xa (1a [a x=a4M -xa y=a4M y~x z=a2M -ya v=b4M v#y ]a )1 s=a4M t=b4M s#y t#y "
      "T used>6M @zb -sa -tb -vb {1 used>6M -za T used=0"},
     {"an end is its own pool's", "T", NULL, ONCE,
      "(1a (2b )2 x=a4M -xa T used>4M )1 {1 {2 used=0"},
     {"none goes while another is begun", "T", NULL, ONCE,
      "(1a x=a4M -xa )1 (2b {1 used>4M )2 {2 used=0"},
     {"graphs that share a pool run one after the other; what is not there is not released", "T",
      NULL, ONCE, "(2 [a x=a4M -xa ]a )2 (2 [a y=a4M y~x -ya ]a )2 {2 used>4M {2 used=0 {2 )9"},
     {"what it drops later is its own still", "T", NULL, ONCE,
      "(6 [a x=a8M ]a [b y=b1M ]b -xa [a z=a8M z~x ]a )6 {6"},
     {"two threads' own streams are not one", "T", NULL, ONCE,
      "(5 [O x=O4M -xO 1[O 1y=O4M y#x 1]O ]O 1-yO )5 {5"},
     {"without the hooks memory is lost to graphs, and nothing is overwritten", "T", NULL, ONCE,
      "x=a4M -xa [a y=a4M -ya ]a z=a4M z#y"},
     {"though it is freed after the capture", "T", NULL, ONCE,
      "x=a4M -xa [a y=a4M ]a -ya z=a4M z#y [a u=a4M u#y ]a"},
     {"what is idle makes room for a graph, amid its capture", "T", NULL, ONCE,
      "x=L900M -xL (4a [a y=a600M ]a )4 -ya {4"},
     {"what was released within its begin makes room before that", "T", NULL, ONCE,
      "(3a x=a600M {3 )3 -xa used<599M y=a900M"}, )

static void *work_eagerly(void *stream)
{
    char said[256];

    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    for (unsigned i = 0; i < 300; i++) {
        size_t len = MIB(1) << (i % 3);
        void *p = torch_alloc((ssize_t)len, 0, stream, said, sizeof said);
        assert_non_null(p);
        gpu_fill(stream, (uintptr_t)p, 256, 1);
        if (i % 7 == 0) {
            fl_gpu_torch_record_stream(p, NULL);
        }
        give(p, stream);
    }
    return NULL;
}

/* PyTorch's filter asks the driver, and throws when that refuses (906: the legacy stream beside a
 * capture). The exception is the request's; later ones are served. */
CASE(a_filter_that_throws_harms_nothing_else)
{
    void *t = gpu_stream();

    torch_begin(0, 6, 6, s);
    torch_refuse(t);
    assert_null(torch_alloc(MIB(1), 0, t, what, sizeof what));
    assert_string_equal(what, "the filter cannot ask");
    torch_refuse(NULL);
    (void)alarm(20); /* a lock that was left behind would be waited for */
    void *x = take(MIB(1), s), *y = take(MIB(1), t);
    (void)alarm(0);
    give(y, t);
    torch_end(0, 6, 6);
    give(x, s);
    torch_release(0, 6, 6);
    all_is_given_back();
    gpu_stream_end(t);
}

static int filters_then;

static void end_within(void)
{
    torch_when_asked(NULL);
    torch_end(0, 6, 7);
    filters_then = torch_filters();
}

/* A filter is there while it is asked; what it lets through then is no private pool's any more. */
CASE(a_begin_may_end_while_its_filter_is_asked)
{
    int filters = torch_filters();

    torch_begin(0, 6, 7, s);
    torch_when_asked(end_within);
    void *x = take(MIB(1), s);
    assert_int_equal(filters_then, filters + 1);
    assert_int_equal(torch_filters(), filters);
    assert_ptr_equal(fl_gpu_owner((uintptr_t)x, NULL), fl_gpu_torch_pool(0));
    give(x, s);
    torch_release(0, 6, 7);
    all_is_given_back();
}

struct beside {
    void *stream, *kept;
    unsigned calls;
};

/* What another thread's tensors need of the shim, amid a call of the driver. */
static void serve_beside(void *arg)
{
    struct beside *b = arg;
    char told[256];
    void *p = torch_alloc(MIB(1), 0, b->stream, told, sizeof told);

    fl_gpu_torch_free(p, MIB(1), 0, b->stream);
    fl_gpu_torch_record_stream(b->kept, b->stream);
    b->calls++;
}

/* Private pools are made, freed to and ended without a lock. */
CASE(no_lock_is_held_over_the_driver)
{
    struct beside b = {.stream = gpu_stream()};

    give(take(MIB(1), b.stream), b.stream); /* the device's pool is there */
    torch_begin(0, 8, 1, s);
    b.kept = take(MIB(1), s);
    fake->amid(NULL, serve_beside, &b);
    torch_begin(0, 8, 2, s);
    torch_end(0, 8, 1);
    void *x = take(MIB(2), s), *y = take(MIB(2), s);
    fl_gpu_torch_record_stream(x, b.stream);
    give(x, s);
    torch_end(0, 8, 2);
    torch_release(0, 8, 2);
    give(y, s); /* the last: the pool ends */
    fake->amid(NULL, NULL, NULL);
    assert_true(b.calls > 3);
    give(b.kept, s);
    torch_release(0, 8, 1);
    all_is_given_back();
    gpu_stream_end(b.stream);
}

static unsigned times;

static void begin_beside(void *unused)
{
    (void)unused;
    if (times++ == 0) {
        torch_begin(0, 8, 3, s);
    }
}

/* Of a pool that two threads make at once one is kept, and both have begun it. */
CASE(two_begin_the_same)
{
    int filters = torch_filters(); /* an exception has left one */

    times = 0;
    fake->amid("cuThreadExchangeStreamCaptureMode", begin_beside, NULL);
    torch_begin(0, 8, 3, s);
    fake->amid(NULL, NULL, NULL);
    assert_int_equal(torch_filters(), filters + 2);
    void *x = take(MIB(2), s);
    give(x, s);
    torch_end(0, 8, 3);
    assert_ptr_equal(take(MIB(2), s), x); /* the other's begin goes on */
    give(x, s);
    torch_end(0, 8, 3);
    assert_int_equal(torch_filters(), filters);
    torch_release(0, 8, 3);
    assert_int_equal(fake->used(0), before + MIB(8));
    torch_release(0, 8, 3);
    assert_int_equal(fake->used(0), before);
}

static void end_beside(void *unused)
{
    (void)unused;
    if (times++ == 0) {
        torch_end(0, 8, 4);
        torch_release(0, 8, 4);
    }
}

/* A request that has been routed to a private pool has it, though another thread releases it. */
CASE(a_private_pool_stays_for_a_request)
{
    torch_begin(0, 8, 4, s);
    times = 0;
    fake->amid("cuMemAlloc", end_beside, NULL);
    (void)alarm(20); /* without its pool the request has no lock to take */
    void *x = take(MIB(2), s);
    (void)alarm(0);
    fake->amid(NULL, NULL, NULL);
    assert_true(times > 0);
    assert_non_null(fl_gpu_owner((uintptr_t)x, NULL));
    give(x, s); /* the last: it ends */
    assert_int_equal(fake->used(0), before);
}

/* Other threads' tensors come and go while graphs are captured and released. */
CASE(threads_go_on_beside_captures)
{
    void *stream[3];
    pthread_t t[3];

    for (size_t i = 0; i < 3; i++) {
        stream[i] = gpu_stream();
        assert_int_equal(pthread_create(&t[i], NULL, work_eagerly, stream[i]), 0);
    }
    for (unsigned long long i = 0; i < 20; i++) {
        torch_begin(0, 5, i, s);
        fake->capture(s, true);
        void *x = take(MIB(1), s), *y = take(MIB(2), s);
        give(x, s);
        fake->capture(s, false);
        torch_end(0, 5, i);
        give(y, s);
        torch_release(0, 5, i);
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(t[i], NULL), 0);
        gpu_stream_end(stream[i]);
    }
}

int main(void)
{
    gpu_main("test_gpu_torch_graph", NULL);
    script_more = private_pool;
    return RUN_CASES(.group_setup = gpu_all_late, .setup = each_begin, .teardown = each_end);
}
