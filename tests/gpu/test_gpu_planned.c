/* A step's plan on the device: what matches it has its place, what does not is served elsewhere,
 * and no two blocks share bytes. */
#include "gpu/plan/plan.h"
#include "gpu/pool_fixture.h"

#include <errno.h>
#include <pthread.h>

static void *s;

/* A step of five requests, two of which may share their bytes with others. */
static void one_step(struct fl_gpu_pool *p, uint64_t at[static 5], size_t first)
{
    static const size_t mib[5] = {4, 2, 2, 6, 1};

    assert_int_equal(fl_gpu_pool_step(p), 0);
    at[0] = pool_take(p, first != 0 ? first : MIB(mib[0]), s);
    at[1] = pool_take(p, MIB(mib[1]), s);
    gpu_fill(s, at[0], MIB(2), 1);
    gpu_fill(s, at[1], MIB(2), 2);
    pool_give(p, at[0], s);
    at[2] = pool_take(p, MIB(mib[2]), s);
    gpu_fill(s, at[2], MIB(2), 3);
    pool_give(p, at[1], s);
    at[3] = pool_take(p, MIB(mib[3]), s);
    gpu_fill(s, at[3], MIB(6), 4);
    at[4] = pool_take(p, MIB(mib[4]), s);
    gpu_fill(s, at[4], MIB(1), 5);
    pool_give(p, at[2], s);
    pool_give(p, at[4], s);
    pool_give(p, at[3], s);
}

static void a_step_is_learned_and_replayed(void)
{
    uint64_t at[3][5];

    s = gpu_stream();
    struct fl_gpu_pool *p = pool_lasting(FL_GPU_PLANNED, s);
    one_step(p, at[0], 0);
    one_step(p, at[0], 0); /* two that are alike */
    assert_int_equal(pool_stats(p).planned_hits, 0);
    for (unsigned i = 1; i < 3; i++) {
        one_step(p, at[i], 0);
        assert_int_equal(pool_stats(p).planned_hits, 5 * i);
    }
    assert_memory_equal(at[1], at[2], sizeof at[1]);
    uint64_t calls = gpu_driver_calls();
    assert_int_equal(fl_gpu_pool_step(p), 0);
    calls = gpu_driver_calls();
    for (unsigned i = 0; i < 2; i++) {
        at[0][i] = pool_take(p, MIB(4 - 2 * i), s);
    }
    pool_give(p, at[0][0], s);
    pool_give(p, at[0][1], s);
    assert_int_equal(gpu_driver_calls(), calls);
    pool_end(p);
    gpu_stream_end(s);
}

static void an_arena_holds_no_more_than_what_lives_at_once(void **state)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_PLANNED);
    uint64_t at[5];

    (void)state;
    s = gpu_stream();
    one_step(p, at, 0);
    one_step(p, at, 0);
    assert_true(pool_held(p) > MIB(9));
    one_step(p, at, 0);
    assert_int_equal(pool_held(p), MIB(9)); /* 2 + 6 + 1, in the place of the chunks */
    struct fl_gpu_pool_stats stats = pool_stats(p);
    assert_int_equal(stats.occupied_bytes, 0);
    assert_int_equal(stats.requested_bytes, 0);
    assert_int_equal(stats.allocs, 15);
    assert_int_equal(stats.frees, 15);
    pool_end(p);
    gpu_stream_end(s);
}

/* A request of another size, one more, one less: the rest has its places. */
static void what_does_not_match_is_served_elsewhere(void)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_PLANNED);
    uint64_t at[5], odd;

    s = gpu_stream();
    one_step(p, at, 0);
    one_step(p, at, 0);
    one_step(p, at, 0);
    one_step(p, at, MIB(5));
    assert_true(pool_stats(p).planned_hits >= 5 + 3);
    assert_int_equal(fl_gpu_pool_step(p), 0);
    at[0] = pool_take(p, MIB(4), s);
    odd = pool_take(p, MIB(3), s);
    at[1] = pool_take(p, MIB(2), s);
    gpu_fill(s, at[0], MIB(4), 1);
    gpu_fill(s, odd, MIB(3), 2);
    gpu_fill(s, at[1], MIB(2), 3);
    assert_true(gpu_holds(s, at[0], MIB(4), 1));
    assert_true(gpu_holds(s, odd, MIB(3), 2));
    uint64_t last = pool_take(p, MIB(1), s); /* those between are left out */
    gpu_fill(s, last, MIB(1), 4);
    assert_true(gpu_holds(s, at[0], MIB(4), 1));
    assert_true(gpu_holds(s, at[1], MIB(2), 3));
    pool_give(p, last, s);
    pool_give(p, at[1], s);
    pool_give(p, odd, s);
    pool_give(p, at[0], s);
    pool_end(p);
    gpu_stream_end(s);
}

/* What lives longer than planned keeps its bytes. */
static void a_stream_that_stays_is_not_overwritten(void)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_PLANNED);
    uint64_t at[5];

    s = gpu_stream();
    one_step(p, at, 0);
    one_step(p, at, 0);
    one_step(p, at, 0);
    assert_int_equal(fl_gpu_pool_step(p), 0);
    uint64_t first = pool_take(p, MIB(4), s), second = pool_take(p, MIB(2), s);
    gpu_fill(s, first, MIB(4), 7);
    gpu_fill(s, second, MIB(2), 8);
    uint64_t third = pool_take(p, MIB(2), s), fourth = pool_take(p, MIB(6), s);
    gpu_fill(s, third, MIB(2), 9);
    gpu_fill(s, fourth, MIB(6), 10);
    assert_int_equal(fl_gpu_pool_step(p), 0);
    uint64_t again = pool_take(p, MIB(4), s);
    gpu_fill(s, again, MIB(4), 11);
    assert_true(gpu_holds(s, first, MIB(4), 7));
    assert_true(gpu_holds(s, second, MIB(2), 8));
    assert_true(gpu_holds(s, third, MIB(2), 9));
    assert_true(gpu_holds(s, fourth, MIB(6), 10));
    assert_int_equal(fl_gpu_pool_destroy(p), -EBUSY);
    pool_give(p, first, s);
    pool_give(p, second, s);
    pool_give(p, third, s);
    pool_give(p, fourth, s);
    pool_give(p, again, s);
    assert_int_equal(fl_gpu_pool_free(p, again, s), -ENOENT);
    pool_end(p);
    gpu_stream_end(s);
}

/* Two streams, and one's block is used by the other: a place is had only where the order is
 * known. */
static void streams_do_not_meet(void)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_PLANNED);
    void *t = gpu_stream();

    s = gpu_stream();
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(fl_gpu_pool_step(p), 0);
        uint64_t x = pool_take(p, MIB(1), s), y = pool_take(p, MIB(1), t);
        gpu_fill(s, x, MIB(1), 1);
        gpu_fill(t, y, MIB(1), 2);
        pool_give(p, x, s);
        uint64_t z = pool_take(p, MIB(1), i % 2 == 0 ? s : t);
        gpu_fill(i % 2 == 0 ? s : t, z, MIB(1), 3);
        uint64_t w = pool_take(p, MIB(1), s);
        gpu_fill(s, w, MIB(1), 4);
        gpu_wait(s);
        assert_int_equal(fl_gpu_pool_record_stream(p, w, t), 0);
        gpu_fill(t, w, MIB(1), 5);
        pool_give(p, w, s);
        pool_give(p, y, t);
        pool_give(p, z, i % 2 == 0 ? s : t);
    }
    assert_true(pool_stats(p).planned_hits >= 8);
    pool_end(p);
    gpu_stream_end(s);
    gpu_stream_end(t);
}

/* Steps that are others by now are learned anew. */
static void a_program_that_changes_is_learned_again(void **state)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_PLANNED);
    uint64_t at[5];

    (void)state;
    s = gpu_stream();
    one_step(p, at, 0);
    one_step(p, at, 0);
    one_step(p, at, 0);
    for (unsigned i = 0; i < 8; i++) {
        assert_int_equal(fl_gpu_pool_step(p), 0);
        for (unsigned k = 0; k < 4; k++) {
            at[k] = pool_take(p, KIB(300) * (k + 1), s);
        }
        for (unsigned k = 0; k < 4; k++) {
            pool_give(p, at[k], s);
        }
    }
    assert_true(pool_stats(p).planned_hits >= 5 + 4);
    pool_end(p);
    gpu_stream_end(s);
}

/* What stays is made in the first step, among what goes: no plan is learned from that step, and one
 * that would hold more than there is now is not made. */
static void a_plan_holds_no_more_than_without(void **state)
{
    enum { BLOCKS = 100 };
    struct fl_gpu_pool *p = pool_of(FL_GPU_PLANNED), *q = pool_of(FL_GPU_PLANNED);
    uint64_t at[BLOCKS], stays[BLOCKS];

    (void)state;
    s = gpu_stream();
    for (unsigned step = 0; step < 6; step++) {
        assert_int_equal(fl_gpu_pool_step(p), 0);
        for (unsigned i = 0; i < BLOCKS; i++) {
            at[i] = pool_take(p, MIB(2), s);
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            pool_give(p, at[i], s);
        }
    }
    assert_true(pool_stats(p).planned_hits >= 3 * BLOCKS);
    assert_int_equal(pool_stats(p).held_peak_bytes, MIB(2) * BLOCKS);
    pool_end(p);
    for (unsigned step = 0; step < 12; step++) {
        assert_int_equal(fl_gpu_pool_step(q), 0);
        uint64_t calls = pool_stats(q).driver_allocs + pool_stats(q).driver_frees;
        for (unsigned i = 0; i < BLOCKS; i++) {
            at[i] = pool_take(q, MIB(2), s);
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            pool_give(q, at[i], s);
            if (step == 0) { /* in a half of each chunk */
                stays[i] = pool_take(q, MIB(1), s);
            }
        }
        struct fl_gpu_pool_stats stats = pool_stats(q);
        assert_true(step < 3 || stats.driver_allocs + stats.driver_frees == calls);
        assert_true(stats.held_peak_bytes <= MIB(3) * BLOCKS);
    }
    for (unsigned i = 0; i < BLOCKS; i++) {
        pool_give(q, stays[i], s);
    }
    pool_end(q);
    gpu_stream_end(s);
}

struct job {
    struct fl_gpu_pool *p;
    uint64_t address[64];
    int rc[64];
};

static void *free_all(void *arg)
{
    struct job *j = arg;

    for (unsigned i = 0; i < 64; i++) {
        j->rc[i] = fl_gpu_pool_free(j->p, j->address[i], s);
    }
    return NULL;
}

/* Others may free; of two who free the same, one is told. */
static void others_free_and_one_of_them_does(void **state)
{
    struct fl_gpu_pool *p = pool_of(FL_GPU_PLANNED);
    struct job job[2] = {{.p = p}, {.p = p}};
    pthread_t t[2];

    (void)state;
    s = gpu_stream();
    for (unsigned step = 0; step < 4; step++) {
        assert_int_equal(fl_gpu_pool_step(p), 0);
        for (unsigned i = 0; i < 64; i++) {
            job[0].address[i] = job[1].address[i] = pool_take(p, KIB(64), s);
        }
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(pthread_create(&t[i], NULL, free_all, &job[i]), 0);
        }
        for (unsigned i = 0; i < 2; i++) {
            assert_int_equal(pthread_join(t[i], NULL), 0);
        }
        for (unsigned i = 0; i < 64; i++) {
            assert_int_equal(job[0].rc[i] + job[1].rc[i], -ENOENT);
        }
    }
    struct fl_gpu_pool_stats stats = pool_stats(p);
    assert_int_equal(stats.occupied_bytes, 0);
    assert_int_equal(stats.planned_hits, 2 * 64);
    assert_int_equal(stats.frees, 4 * 64);
    pool_end(p);
    gpu_stream_end(s);
}

static void *take_and_give(void *arg)
{
    struct fl_gpu_pool *p = arg;

    for (unsigned i = 0; i < 200; i++) {
        uint64_t x[4];
        for (unsigned k = 0; k < 4; k++) {
            x[k] = pool_take(p, KIB(64) << k, NULL);
        }
        for (unsigned k = 0; k < 4; k++) {
            pool_give(p, x[k], NULL);
        }
        if (i % 10 == 0 && fl_gpu_pool_step(p) != 0) {
            return p;
        }
    }
    return NULL;
}

/* A joint plan: two at the same time cost hits, never a byte that is given out twice. */
static void joint_steps_of_threads_at_once(void **state)
{
    struct fl_gpu_pool_options o = pool_options(FL_GPU_PLANNED);
    pthread_t t[3];

    (void)state;
    o.all_threads = true;
    struct fl_gpu_pool *p = pool_with(&o);
    assert_int_equal(fl_gpu_pool_step(p), 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, take_and_give, p), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        void *failed = NULL;
        assert_int_equal(pthread_join(t[i], &failed), 0);
        assert_null(failed);
    }
    struct fl_gpu_pool_stats stats = pool_stats(p);
    assert_int_equal(stats.occupied_bytes, 0);
    assert_int_equal(stats.requested_bytes, 0);
    assert_int_equal(stats.allocs, 3 * 200 * 4);
    assert_int_equal(stats.frees, 3 * 200 * 4);
    pool_end(p);
}

GPU_SCHEDULED(a_step_is_learned_and_replayed)
GPU_SCHEDULED(what_does_not_match_is_served_elsewhere)
GPU_SCHEDULED(a_stream_that_stays_is_not_overwritten)
GPU_SCHEDULED(streams_do_not_meet)

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, gpu_each, gpu_end)
    const struct CMUnitTest tests[] = {
        TEST(a_step_is_learned_and_replayed_in_each_schedule),
        TEST(an_arena_holds_no_more_than_what_lives_at_once),
        TEST(what_does_not_match_is_served_elsewhere_in_each_schedule),
        TEST(a_stream_that_stays_is_not_overwritten_in_each_schedule),
        TEST(streams_do_not_meet_in_each_schedule),
        TEST(a_program_that_changes_is_learned_again),
        TEST(a_plan_holds_no_more_than_without),
        TEST(others_free_and_one_of_them_does),
        TEST(joint_steps_of_threads_at_once),
    };

    gpu_main("test_gpu_planned", NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
