/* Random programs whose loops are learned and served from plans, right or wrong: no two blocks
 * overlap, no byte of any is lost, and in the end all of it can be freed. Four threads, twice, so
 * that contexts and arenas change hands; beside them one that does the worker's jobs and takes
 * arenas back at the worst of times. The fake kernel is quiet: it adds no order of its own. */
#include "alloc/alloc.h"
#include "prop/plan_program.h"
#include "prop/quiet_fake.h"
#include "prop/seed.h"
#include "unit/cmocka_all.h"
#include "unit/fake_sys.h"
#include "unit/next_libc.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

/* Hands: the walk to a block's beginning reads descriptors that others are changing, and says
 * so. */
#if defined(__SANITIZE_THREAD__)
enum { STEPS = 60, HANDS = 0 };
#else
enum { STEPS = 200, HANDS = 1 };
#endif
enum { THREADS = 4, ROUNDS = 2 };

static struct fl_region region;
static uint64_t seed;
static _Atomic bool over;

static void nothing(void)
{
}

static void note_nothing(struct fl_cache *c)
{
    (void)c;
}

struct fl_route fl_route = {
    .threshold = 64 * FL_KIB,
    .next = NEXT_LIBC,
    .region = &region,
    .booted = FL_BOOT_DONE,
    .boot = nothing,
    .thread_ends = note_nothing,
    .first_large = nothing,
};

static void check(void)
{
    const char *broken = fl_region_check(&region);

    if (broken != NULL) {
        fprintf(stderr, "invariant %s of region.h does not hold\n", broken);
        abort();
    }
}

static void one_job(uint64_t r)
{
    struct fl_plan_stats stats;

    switch (r % 64) {
    case 0:
        fl_plan_release();
        break;
    case 1:
        (void)fl_region_tick(&region, 4);
        break;
    case 2:
        check();
        break;
    case 3:
        fl_lock_acquire(fl_plan_fork_word());
        fl_region_fork_lock(&region);
        fl_lock_hold_for_fork(fl_plan_fork_word());
        fl_region_fork_parent(&region);
        fl_lock_release_in_parent(fl_plan_fork_word());
        break;
    case 4:
    case 5:
    case 6:
        (void)fl_plan_age(&region);
        break;
    case 7:
        fl_plan_stats_read(&stats);
        break;
    case 8:
        (void)fl_trim(0);
        break;
    default:
        (void)fl_plan_work(&region);
        sched_yield();
    }
}

static void *work(void *arg)
{
    uint64_t random = seed ^ 0x77;
    (void)arg;
    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        one_job(seed_next(&random) >> 16);
    }
    return NULL;
}

static struct fl_step_context *shared;

static void *run(void *arg)
{
    uintptr_t i = (uintptr_t)arg;
    struct program_how how = {
        .seed = seed + i * 0x1000193,
        .steps = STEPS,
        .steady = i % THREADS == 0 || i % THREADS == 1,
        .declares = i % THREADS != 3,
        .hands = HANDS != 0 && i % THREADS >= 2,
        .shared = shared,
    };

    program_run(&how);
    return NULL;
}

static void start(void)
{
    struct fl_region_config config = {.huge = true,
                                      .limit = seed / 2 % 4 == 0 ? (size_t)96 * FL_MIB : 0};
    struct fl_plan_config plan = {
        .on = true, .background = seed % 4 != 1, .tick_ns = 1, .max = 4, .watch_thread = nothing};

    install_quiet_fake();
    fake.reserve_max = (size_t)8 << 30;
    fl_sys.now_ns = fl_sys_linux.now_ns;
    assert_int_equal(fl_region_start(&region, &config), 0);
    fl_route.window_base = region.space.window.all.base;
    fl_route.window_len = region.space.window.all.len;
    fl_route.caches = seed / 8 % 4 != 0;
    region.hooks.release_more = fl_plan_release;
    fl_plan_start(&region, &plan);
}

static void all_is_free_again(void)
{
    struct fl_plan_stats plan;
    struct fl_stats_values v = {.active = 1};

    program_empty_boxes();
    fl_plan_release();
    (void)fl_region_purge(&region, 0);
    check();
    fl_plan_stats_read(&plan);
    fl_region_stats_read(&region, &v);
    print_message("  hits %" PRIu64 " misses %" PRIu64 " steps %" PRIu64 " layouts %" PRIu64
                  " drops %" PRIu64 ", %" PRIu64 " MiB moved, rung %" PRIu64 "\n",
                  plan.hits, plan.misses, plan.steps, plan.layouts, plan.drops, v.move_bytes >> 20,
                  v.rung);
    assert_int_equal(plan.arena_bytes, 0);
    assert_int_equal(v.live_extents, 0);
    assert_int_equal(v.in_use_bytes, 0);
    assert_int_equal(v.populated_bytes, 0);
    assert_true(plan.hits > 0);
}

static void whatever_repeats_or_not_no_byte_is_lost(void **state)
{
    pthread_t t[THREADS], worker;
    (void)state;
    start();
    assert_int_equal(fl_plan_context_new(&shared), 0);
    assert_int_equal(pthread_create(&worker, NULL, work, NULL), 0);
    for (uintptr_t round = 0; round < ROUNDS; round++) {
        for (uintptr_t i = 0; i < THREADS; i++) {
            void *arg = (void *)(round * THREADS + i);
            assert_int_equal(pthread_create(&t[i], NULL, run, arg), 0);
        }
        for (int i = 0; i < THREADS; i++) {
            pthread_join(t[i], NULL);
        }
    }
    atomic_store(&over, true);
    pthread_join(worker, NULL);
    assert_int_equal(fl_plan_context_free(shared), 0);
    all_is_free_again();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_repeats_or_not_no_byte_is_lost),
    };
    seed = seed_read();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
