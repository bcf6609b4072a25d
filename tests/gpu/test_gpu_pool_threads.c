/* Several threads at one pool or two, each on a stream of its own and at times on another's, below
 * one limit; and what the driver does amid a pool's calls. */
#include "gpu/pool_fixture.h"
#include "prop/seed.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 4, ROUNDS = 300, OWN = 8, BOX = THREADS * ROUNDS, LIMIT = 64 << 20 };

static struct fl_gpu_pool *pool, *pools[THREADS]; /* each thread's */
static void *stream[THREADS];

/* Blocks on their way from one thread to another, with what orders them: an event after the giver's
 * work. */
static struct {
    pthread_mutex_t lock;
    uint64_t at[BOX];
    struct fl_gpu_pool *of[BOX];
    fl_CUevent event[BOX];
    unsigned n;
} box = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void post(struct fl_gpu_pool *of, uint64_t at, void *on)
{
    fl_CUevent e = NULL;

    if (fl_cuda.cuEventCreate(&e, FL_CU_EVENT_DISABLE_TIMING) != 0 ||
        fl_cuda.cuEventRecord(e, on) != 0) {
        fail();
    }
    (void)pthread_mutex_lock(&box.lock);
    assert_true(box.n < BOX);
    box.at[box.n] = at;
    box.of[box.n] = of;
    box.event[box.n++] = e;
    (void)pthread_mutex_unlock(&box.lock);
}

static void fetch(void *on)
{
    uint64_t at = 0;
    struct fl_gpu_pool *of = NULL;
    fl_CUevent e = NULL;

    (void)pthread_mutex_lock(&box.lock);
    if (box.n > 0) {
        at = box.at[--box.n];
        of = box.of[box.n];
        e = box.event[box.n];
    }
    (void)pthread_mutex_unlock(&box.lock);
    if (at == 0) {
        return;
    }
    if (fl_cuda.cuStreamWaitEvent(on, e, 0) != 0) {
        fail();
    }
    (void)fl_cuda.cuEventDestroy(e);
    gpu_fill(on, at, 256, 9);
    pool_give(of, at, on);
}

static void *work(void *arg)
{
    size_t me = (size_t)(uintptr_t)arg;
    struct fl_gpu_pool *mine = pools[me];
    uint64_t state = me + 1, own[OWN];
    unsigned n = 0;

    if (gpu_calls.cuCtxSetCurrent(gpu->context) != 0) {
        fail();
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t r = seed_next(&state);
        if (n < OWN && r % 3 != 0) {
            int rc = fl_gpu_pool_alloc(mine, 256 + (r >> 8) % MIB(6), stream[me], &own[n]);
            assert_true(rc == 0 || rc == -ENOMEM);
            assert_true(fake == NULL || fake->used(0) <= LIMIT);
            if (rc == 0) {
                gpu_fill(stream[me], own[n++], 256, (unsigned char)me);
            }
        } else if (n > 0 && r % 7 == 0) {
            post(mine, own[--n], stream[me]);
        } else if (n > 0) {
            pool_give(mine, own[--n], stream[me]);
        }
        if (r % 5 == 0) {
            fetch(stream[me]);
        }
        if (r % 61 == 0) {
            (void)fl_gpu_pool_trim(mine, MIB(1), NULL);
        }
    }
    while (n > 0) {
        pool_give(mine, own[--n], stream[me]);
    }
    return NULL;
}

static const struct fl_gpu_pool_options *chosen;
static size_t npools;

static void threads(void)
{
    pthread_t t[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        pools[i] = i < npools ? pool_with(chosen) : pools[i % npools];
        stream[i] = gpu_stream();
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, work, (void *)(uintptr_t)i), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(t[i], NULL), 0);
    }
    while (box.n > 0) {
        fetch(stream[0]);
    }
    for (size_t i = 0; i < npools; i++) {
        struct fl_gpu_pool_stats s = pool_stats(pools[i]);
        assert_int_equal(s.occupied_bytes, 0);
        assert_int_equal(s.allocs, s.frees);
        pool_end(pools[i]);
    }
    for (size_t i = 0; i < THREADS; i++) {
        gpu_stream_end(stream[i]);
    }
}

CASE(threads_do_not_meet)
{
    for (int k = FL_GPU_NAIVE; k <= FL_GPU_AUTO_GROWTH; k++) {
        struct fl_gpu_pool_options o = pool_options((enum fl_gpu_strategy)k);
        o.limit = LIMIT;
        o.initial = o.regrow = o.chunk = MIB(4);
        chosen = &o;
        for (npools = 1; npools <= 2; npools++) {
            gpu_schedules(threads);
        }
    }
}

static void amid(void *arg)
{
    struct fl_gpu_pool_stats s = {.size = sizeof s};

    (void)fl_gpu_pool_stats(arg, &s);
}

/* S11: whatever the pool asks the driver, another thread may use the pool meanwhile. */
CASE(no_lock_is_held_over_a_driver_call)
{
    for (int k = FL_GPU_NAIVE; fake != NULL && k <= FL_GPU_AUTO_GROWTH; k++) {
        struct fl_gpu_pool_options o = pool_options((enum fl_gpu_strategy)k);
        o.initial = o.regrow = o.chunk = MIB(4);
        o.gc_gb = 0.001;
        o.gc_fast = false;
        pool = pool_with(&o);
        void *s = gpu_stream(), *t = gpu_stream();
        fake->amid(NULL, amid, pool);
        for (unsigned i = 0; i < 4; i++) {
            uint64_t x = pool_take(pool, MIB(1), s), y = pool_take(pool, MIB(3), t);
            gpu_fill(s, x, MIB(1), 1);
            gpu_fill(t, y, MIB(1), 1);
            assert_int_equal(fl_gpu_pool_record_stream(pool, x, t), 0);
            pool_give(pool, x, s);
            pool_give(pool, y, t);
        }
        assert_int_equal(fl_gpu_pool_collect(pool), 0);
        assert_int_equal(fl_gpu_pool_trim(pool, 0, NULL), 0);
        assert_int_equal(fl_gpu_pool_stream_retire(pool, t), 0);
        fake->amid(NULL, NULL, NULL);
        pool_end(pool);
        gpu_stream_end(s);
        gpu_stream_end(t);
    }
}

/* ---- two that run out at once ---- */

static struct {
    pthread_t thread;
    bool begun;
    _Atomic bool ended;
    int rc;
    uint64_t at;
} other;
static uint64_t held;

static void takes(void *on)
{
    other.rc = fl_gpu_pool_alloc(pool, MIB(2), on, &other.at);
    other.ended = true;
}

static void *takes_in_thread(void *on)
{
    takes(on);
    return NULL;
}

static bool one_waits(void)
{
    fl_lock_acquire(&pool->lock);
    bool waits = pool->wait.waiting != 0;
    fl_lock_release(&pool->lock);
    return waits;
}

/* Amid the first thread's call the other one runs out, too; what is held is freed then, without a
 * call, and ends its wait. */
static void runs_out_too(void *on)
{
    if (other.begun) {
        return;
    }
    other.begun = true;
    other.ended = false;
    if (pthread_create(&other.thread, NULL, takes_in_thread, on) != 0) {
        abort();
    }
    while (!other.ended && !one_waits()) {
        (void)sched_yield();
    }
    if (held != 0) {
        pool_give(pool, held, FL_GPU_HOST);
    }
    while (held != 0 && !other.ended) {
        (void)sched_yield();
    }
}

static _Atomic unsigned waits;
static void *mine; /* a stream; the other thread has no context to make one in */

/* It is woken, not late; and not by calls that give nothing back, which end no wait. */
static int wait_for_ever(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    (void)timeout_ns;
    if (waits++ < 5) {
        if (fl_gpu_pool_record_stream(pool, 1, mine) != -ENOENT) {
            abort(); /* the other thread may be here */
        }
        return 0;
    }
    return fl_sys_linux.wait(word, expected, 0);
}

/* There is memory for both, which the first has in its hands: a chunk on its way to the driver; or
 * the event without which no one knows that a pinned block is the host's again. Or a third frees
 * what the other asks for. */
GPU_FAKE_TEST(what_another_has_in_hand_is_waited_for)
{
    static const struct {
        enum fl_gpu_target target;
        enum fl_gpu_strategy strategy; /* NAIVE does not split what is idle */
        const char *call;
        size_t held;
    } row[] = {{FL_GPU_DEVICE, FL_GPU_NAIVE, "cuMemFree", 0},
               {FL_GPU_PINNED, FL_GPU_AUTO_GROWTH, "cuEventQuery", 0},
               {FL_GPU_DEVICE, FL_GPU_NAIVE, "cuMemFree", MIB(2)}};

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        void *s = gpu_stream(), *t = gpu_stream();
        pool = POOL(row[i].strategy, o.target = row[i].target, o.limit = MIB(4) + row[i].held);
        held = row[i].held != 0 ? pool_take(pool, row[i].held, s) : 0;
        pool_give(pool, pool_take(pool, MIB(4), s), s);
        other.begun = false;
        waits = 0;
        mine = s;
        fl_sys.wait = wait_for_ever;
        fake->amid(row[i].call, runs_out_too, t);
        uint64_t x = pool_take(pool, MIB(2), s);
        fake->amid(NULL, NULL, NULL);
        assert_true(other.begun);
        assert_int_equal(pthread_join(other.thread, NULL), 0);
        fl_sys.wait = fl_sys_linux.wait;
        assert_int_equal(other.rc, 0);
        assert_true(held == 0 || other.at == held);
        assert_int_equal(pool->wait.waiting + pool->wait.driver_calls, 0);
        pool_give(pool, x, s);
        pool_give(pool, other.at, t);
        pool_end(pool);
        gpu_stream_end(s);
        gpu_stream_end(t);
    }
}

static uint64_t a_second_each(void)
{
    static uint64_t now;

    return now += 1000000000;
}

/* What is on its way to a pool counts against its limit. */
GPU_FAKE_TEST(two_that_grow_stay_below_the_limit)
{
    pool = POOL(FL_GPU_AUTO_GROWTH, o.target = FL_GPU_PINNED, o.limit = MIB(4));
    fl_sys.now_ns = a_second_each; /* the other waits in vain, not for long */
    fake->amid("cuMemHostRegister", takes, NULL);
    uint64_t x = pool_take(pool, MIB(4), NULL);
    fake->amid(NULL, NULL, NULL);
    fl_sys.now_ns = fl_sys_linux.now_ns;
    assert_int_equal(other.rc, -ENOMEM);
    pool_give(pool, x, FL_GPU_HOST);
    pool_end(pool);
}

/* Nor is a stream's record another's meanwhile, though nothing names it yet. */
GPU_FAKE_TEST(what_a_call_is_about_stays)
{
    void *s = gpu_stream(), *t = gpu_stream();

    pool = pool_of(FL_GPU_AUTO_GROWTH);
    fake->capture(s, true);
    fake->capture(t, true);
    fake->amid("cuMemAlloc", takes, t);
    uint64_t x = pool_take(pool, MIB(2), s);
    fake->amid(NULL, NULL, NULL);
    assert_int_equal(other.rc, 0);
    assert_true(fl_table_find(&pool->table, x)->by != fl_table_find(&pool->table, other.at)->by);
    pool_give(pool, x, FL_GPU_HOST);
    pool_give(pool, other.at, FL_GPU_HOST);
    pool_end(pool);
}

/* The second time: when there is nothing left to try. */
static void frees(void *at)
{
    static unsigned calls;

    if (++calls == 2 && fl_gpu_pool_free(pool, *(uint64_t *)at, NULL) != 0) {
        abort();
    }
}

GPU_FAKE_TEST(what_another_frees_meanwhile_is_found)
{
    fake->set(FAKE_CUDA_CAPACITY, MIB(4));
    pool = pool_of(FL_GPU_AUTO_GROWTH);
    void *s = gpu_stream();
    uint64_t x = pool_take(pool, MIB(4), NULL);
    fake->amid("cuMemAlloc", frees, &x);
    assert_int_equal(pool_take(pool, MIB(4), s), x);
    fake->amid(NULL, NULL, NULL);
    pool_give(pool, x, s);
    pool_end(pool);
}

/* ---- two that wait for one stream ---- */

/* 1: the other thread has its events recorded; 2: so has this one; 3: the other waits by an event
 * of this one's, in its hands; 4: this one is done, or the other has waited long enough. */
static _Atomic int phase;
static void *shared_by, *freed_on;
static _Thread_local bool is_other;
static fl_CUresult (*plain_record)(fl_CUevent e, fl_CUstream s);
static fl_CUresult (*plain_synchronize)(fl_CUevent e);

static void until(int least)
{
    while (phase < least) {
        (void)sched_yield();
    }
}

static fl_CUresult record_by_turns(fl_CUevent e, fl_CUstream s)
{
    fl_CUresult code = plain_record(e, s);

    if (s == freed_on && phase < 3) {
        phase = is_other ? 1 : 2;
        until(is_other ? 2 : 3);
    }
    return code;
}

static fl_CUresult synchronize_slowly(fl_CUevent e)
{
    if (is_other && phase == 2) {
        phase = 3;
        for (unsigned i = 0; i < 10000 && phase < 4; i++) {
            (void)sched_yield();
        }
    }
    return plain_synchronize(e);
}

static void *frees_its_own(void *at)
{
    is_other = true;
    if (gpu_calls.cuCtxSetCurrent(gpu->context) == 0) {
        other.rc = fl_gpu_pool_free(pool, *(uint64_t *)at, freed_on);
    }
    return NULL;
}

GPU_FAKE_TEST(an_event_in_another_threads_hands_is_waited_for)
{
    uint64_t x[2];

    pool = POOL(FL_GPU_UNPOOLED, o.target = FL_GPU_PINNED);
    shared_by = gpu_stream();
    freed_on = gpu_stream();
    for (unsigned i = 0; i < 2; i++) {
        x[i] = pool_take(pool, 4096, NULL);
        assert_int_equal(fl_gpu_pool_record_stream(pool, x[i], shared_by), 0);
    }
    plain_record = fl_cuda.cuEventRecord;
    plain_synchronize = fl_cuda.cuEventSynchronize;
    fl_cuda.cuEventRecord = record_by_turns;
    fl_cuda.cuEventSynchronize = synchronize_slowly;
    phase = 0;
    other.rc = -1;
    assert_int_equal(pthread_create(&other.thread, NULL, frees_its_own, &x[0]), 0);
    until(1);
    int rc = fl_gpu_pool_free(pool, x[1], freed_on);
    phase = 4;
    assert_int_equal(pthread_join(other.thread, NULL), 0);
    fl_cuda.cuEventRecord = plain_record;
    fl_cuda.cuEventSynchronize = plain_synchronize;
    assert_int_equal(rc, 0);
    assert_int_equal(other.rc, 0);
    pool_end(pool);
    gpu_stream_end(shared_by);
    gpu_stream_end(freed_on);
}

GPU_MAIN("test_gpu_pool_threads")
