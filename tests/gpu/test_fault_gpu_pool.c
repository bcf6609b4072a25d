/* Each call of the driver refused, for every n: the answer is one that is documented, nothing is
 * lost, the invariants hold, and afterwards the pool serves as before. And the fallbacks when
 * memory is out. */
#include "gpu/pool_fixture.h"

enum { SLOTS = 6 };

#if defined(__SANITIZE_THREAD__)
enum { EACH = 5 }; /* the program has one thread: there is little to see */
#else
enum { EACH = 1 };
#endif

static void *a, *b;
static uint64_t held[SLOTS];
static unsigned refused;

static bool is_answer(int rc)
{
    return rc == 0 || rc == -ENOMEM || rc == -EIO || rc == -EINVAL || rc == -ENOTSUP ||
           rc == -EINPROGRESS || rc == -ESHUTDOWN;
}

static void saw(int rc)
{
    if (!is_answer(rc)) {
        fail_msg("%d is no answer: %s", rc, fl_gpu_error());
    }
    refused += rc != 0;
}

static void try_take(struct fl_gpu_pool *p, unsigned i, size_t size, void *stream)
{
    uint64_t at = 0;

    if (held[i] == 0) {
        int rc = fl_gpu_pool_alloc(p, size, stream, &at);
        saw(rc);
        held[i] = rc == 0 ? at : 0;
    }
}

static void try_give(struct fl_gpu_pool *p, unsigned i, void *stream)
{
    if (held[i] != 0) {
        int rc = fl_gpu_pool_free(p, held[i], stream);
        saw(rc);
        held[i] = rc == 0 ? 0 : held[i]; /* who is refused has it still */
    }
}

/* Everything a pool does, once. */
static void program(struct fl_gpu_pool *p)
{
    for (unsigned i = 0; i < 4; i++) {
        try_take(p, i, MIB(1) * (i + 1), i % 2 == 0 ? a : b);
    }
    if (held[1] != 0) {
        saw(fl_gpu_pool_record_stream(p, held[1], a));
    }
    try_give(p, 0, a);
    try_give(p, 1, b);
    try_take(p, 4, MIB(1), b);
    try_take(p, 5, MIB(2), a);
    try_give(p, 4, b);
    saw(fl_gpu_pool_collect(p));
    saw(fl_gpu_pool_stream_retire(p, b));
    try_give(p, 2, a);
    saw(fl_gpu_pool_trim(p, 0, NULL));
}

/* Refuses the nth call. True: there was one. */
static bool run(const struct fl_gpu_pool_options *o, unsigned n, int code, bool for_ever)
{
    struct fl_gpu_pool *p = NULL;

    fake->reset(true);
    a = gpu_stream();
    b = gpu_stream();
    unsigned live = fake->live();
    fake->refuse(NULL, n, code, for_ever);
    int rc = fl_gpu_pool_create(gpu, o, &p);
    saw(rc);
    if (rc == 0) {
        program(p);
        assert_true(pool_check(p));
    }
    bool fired = fake->refused();
    fake->refuse(NULL, 0, 0, false);
    if (rc != 0) { /* what is begun is undone, where the driver lets it */
        assert_true(for_ever || code == FL_CUDA_ERROR_CONTEXT_IS_DESTROYED || fake->live() == live);
        return fired;
    }
    for (unsigned i = 0; i < SLOTS; i++) {
        if (held[i] != 0 && !fl_pool_is_shut(p)) {
            pool_give(p, held[i], a);
        }
        held[i] = 0;
    }
    if (fl_pool_is_shut(p)) { /* whatever is there is left to those who ended the driver */
        assert_int_equal(fl_gpu_pool_destroy(p), 0);
        return fired;
    }
    uint64_t x = pool_take(p, MIB(3), a); /* it serves as before */
    pool_give(p, x, a);
    pool_end(p);
    assert_int_equal(fake->used(0), 0);
    assert_int_equal(fake->live(), live);
    return fired;
}

static void sweep(const struct fl_gpu_pool_options *o)
{
    static const int codes[] = {FL_CUDA_ERROR_OUT_OF_MEMORY, FL_CUDA_ERROR_UNKNOWN,
                                FL_CUDA_ERROR_INVALID_VALUE, FL_CUDA_ERROR_CONTEXT_IS_DESTROYED};

    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        for (unsigned for_ever = 0; for_ever < 2; for_ever++) {
            unsigned n = 1;
            refused = 0;
            while (run(o, n, codes[i], for_ever != 0)) {
                n += EACH;
                assert_true(n < 2000);
            }
            assert_true(n > 10);
            assert_true(refused != 0);
        }
    }
    fake->reset(true);
}

CASE(every_call_may_fail)
{
    for (int k = FL_GPU_NAIVE; k <= FL_GPU_AUTO_GROWTH; k++) {
        struct fl_gpu_pool_options o = pool_options((enum fl_gpu_strategy)k);
        o.initial = o.regrow = MIB(4);
        o.chunk = MIB(4);
        sweep(&o);
        o.gc_gb = 0.001;
        o.gc_fast = false;
        o.chunk = 0; /* small blocks from slabs */
        sweep(&o);
        o.target = FL_GPU_PINNED;
        sweep(&o);
    }
}

GPU_MAIN("test_fault_gpu_pool")
