/* Looks at the memory delay no thread: the region is unlocked meanwhile, and what was granted then
 * counts. */
#include "region/supply/fill_plan.h"
#include "region/supply/supply.h"
#include "unit/cmocka_all.h"
#include "unit/region_fixture.h"

#include <errno.h>
#include <pthread.h>

enum { THREADS = 4 };

static unsigned looks; /* files that were read */
static bool was_locked;
static size_t others_take; /* bytes */

static void look_is_made(void)
{
    looks++;
    was_locked |= atomic_load(&region.shards.of[0].lock.word) != 0;
    atomic_fetch_add(&region.budget.granted, others_take);
    others_take = 0;
}

static int each(void **state)
{
    (void)state;
    region_begin(NULL);
    fake.pretend_populate = true;
    fake.on_read_file = look_is_made;
    looks = 0;
    was_locked = false;
    others_take = 0;
    return 0;
}

static void assert_looked(void)
{
    assert_true(looks != 0);
    assert_false(was_locked);
    assert_settled();
    looks = 0;
    region.budget.left = 0; /* so that the next one looks, too */
}

static void requests_look_without_the_lock(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(8));
    assert_looked();
    assert_true(fl_region_resize(&region, e, MIB(16))); /* by growth where it is */
    assert_looked();
    struct fl_extent *guard = take(MIB(2));
    assert_looked();
    assert_true(fl_region_move(&region, e, MIB(64)) != NULL || is_reserved());
    assert_true(looks != 0 || is_reserved());
    assert_false(was_locked);
    assert_non_null(guard);
    assert_settled();
}

static void lazy_requests_look_without_the_lock(void **state)
{
    (void)state;
    region.config.eager_max = MIB(1);
    assert_int_equal(take(MIB(32))->content, FL_CONTENT_LAZY);
    assert_looked();
}

static void reuse_and_frees_look_without_the_lock(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(64)), *other = take(MIB(64));
    looks = 0;
    region.pressure.look_after = MIB(16);
    give(e);
    assert_looked();
    region.tight = true;
    e = take(MIB(64));
    assert_non_null(e);
    assert_looked();
    give(other);
    assert_settled();
}

static void divided_extents_and_questions_look_without_the_lock(void **state)
{
    (void)state;
    struct fl_inner in = {.shift = 16};
    assert_int_equal(fl_inner_open(&region, &in, MIB(16)), 0);
    region.budget.left = 0;
    assert_true(fl_inner_fill(&region, &in, (struct fl_range){in.outer->base, MIB(4)}));
    assert_looked();
    assert_false(fl_region_counts_maps(&region));
    assert_looked();
}

/* 2 GiB, of which half stays: what others were granted while we looked is not there any more. */
static void what_others_were_granted_meanwhile_is_taken_off(void **state)
{
    (void)state;
    fake_file("/proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 2097152 kB\n");
    others_take = MIB(512);
    fl_region_lock(&region);
    assert_true(fl_look_unlocking(&region));
    fl_region_unlock(&region);
    assert_int_equal(region.look.noted.headroom, MIB(1536));
    assert_int_equal(region.look.noted.eager, MIB(512));
    others_take = (size_t)-MIB(512); /* given up again: nothing more is there for that */
    fl_region_lock(&region);
    assert_true(fl_look_unlocking(&region));
    fl_region_unlock(&region);
    assert_int_equal(region.look.noted.headroom, MIB(2048));
    assert_settled();
}

/* What comes after the look may be served without a plan. */
static void a_plan_that_waits_for_a_look_leaves_nothing(void **state)
{
    (void)state;
    struct fl_fill_plan g = {.to_stay = true};
    give(take(MIB(8)));
    assert_int_equal(region.zones.of[0].free.huge, MIB(8));
    region.budget.left = 0;
    fl_region_lock(&region);
    enum fl_refusal refusal = fl_supply_plan(&region, &g, MIB(64), MIB(64), 0);
    fl_region_unlock(&region);
    assert_int_equal(refusal, FL_REFUSED_LOOK);
    assert_int_equal(g.from_free, 0);
    assert_int_equal(g.from_reserve, 0);
    assert_int_equal(g.budgeted, 0);
}

static void *grow_and_give(void *arg)
{
    for (int i = 0; i < 200; i++) {
        struct fl_extent *e =
            fl_region_take(&region, NULL, MIB(2) + KIB(4) * (size_t)i, fl_page.base, false);
        if (e != NULL && fl_extent_claim(e, region.epoch)) {
            fl_region_give(&region, e);
        }
        if (i % 16 == 0) {
            (void)fl_region_purge(&region, 0);
        }
    }
    return arg;
}

static void many_threads_look_at_once(void **state)
{
    pthread_t t[THREADS];
    (void)state;
    fake.on_read_file = NULL;
    fake.limit_as = MIB(1) << 20; /* a bound: each growth looks */
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, grow_and_give, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }
    assert_settled();
}

static int child_looks(void)
{
    if (!fl_region_fork_child(&region, NULL)) {
        return 1;
    }
    fl_region_lock(&region);
    bool looked = fl_look_unlocking(&region);
    fl_region_unlock(&region);
    return looked ? 0 : 2;
}

static void a_child_looks_too(void **state)
{
    (void)state;
    assert_non_null(take(MIB(4)));
    assert_int_equal(fork_with(child_looks), 0);
    assert_settled();
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, each)
    const struct CMUnitTest tests[] = {
        T(requests_look_without_the_lock),
        T(lazy_requests_look_without_the_lock),
        T(reuse_and_frees_look_without_the_lock),
        T(divided_extents_and_questions_look_without_the_lock),
        T(what_others_were_granted_meanwhile_is_taken_off),
        T(a_plan_that_waits_for_a_look_leaves_nothing),
        T(many_threads_look_at_once),
        T(a_child_looks_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
