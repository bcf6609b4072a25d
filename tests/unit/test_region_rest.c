/* What many threads freed goes back to the kernel once no request comes; what few did is kept. */
#include "region/back/purge.h"
#include "unit/cmocka_all.h"
#include "unit/region_fixture.h"

#include <errno.h>
#include <string.h>

enum { MANY = 40, FEW = 8, EACH_MIB = 1, BESIDE_MIB = 16 };
static const uint64_t ms = 1000000;
static struct fl_cache *cache[MANY];
static unsigned cpus;

static int drawn_cpus(struct fl_cpu_ids *out)
{
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < cpus; i++) {
        out->word[i / 64] |= (uint64_t)1 << i % 64;
    }
    return cpus != 0 ? 0 : -EPERM;
}

static int each(void **state)
{
    (void)state;
    cpus = 2;
    region_begin(&(struct fl_region_config){.huge = true, .crowd_goes = true});
    fl_nodes.cpus = drawn_cpus;
    for (int i = 0; i < MANY; i++) {
        cache[i] = fl_cache_acquire(&region);
    }
    return 0;
}

static int after(void **state)
{
    (void)state;
    fl_nodes = fl_nodes_linux;
    return 0;
}

static uint64_t look_after(uint64_t ms_later)
{
    fake.now_ns += ms_later * ms;
    return fl_region_rest(&region);
}

/* `n` threads free a block each, and one of them a long one that no cache has. */
static void work(int n)
{
    struct fl_extent *e[MANY], *beside = take(MIB(BESIDE_MIB));

    for (int i = 0; i < n; i++) {
        e[i] = take(MIB(EACH_MIB));
        fill(e[i], 1);
    }
    for (int i = 0; i < n; i++) {
        assert_true(fl_extent_claim(e[i], region.epoch));
        assert_null(fl_cache_put(&region, cache[i], e[i]));
    }
    give(beside);
}

static size_t held(void)
{
    return region.held.populated;
}

/* Until it says that it wants no look more. Returns the ms that took. */
static unsigned rests(unsigned at_a_time)
{
    unsigned n = 0;

    (void)look_after(at_a_time); /* requests came */
    while (look_after(at_a_time) != UINT64_MAX) {
        n++;
    }
    return n * at_a_time;
}

static void what_many_threads_freed_goes_back(void **state)
{
    (void)state;
    work(MANY);
    assert_true(held() >= MIB(BESIDE_MIB + MANY * EACH_MIB));
    (void)look_after(40);
    assert_true(look_after(20) < UINT64_MAX);
    assert_true(held() >= MIB(BESIDE_MIB + MANY * EACH_MIB));
    assert_true(look_after(20) == UINT64_MAX);
    assert_int_equal(held(), 0);
    assert_true(region.wants_worker); /* the next free calls */
    assert_settled();
}

static void what_few_threads_freed_is_kept(void **state)
{
    (void)state;
    work(FEW);
    (void)rests(100);
    assert_true(held() >= MIB(BESIDE_MIB + FEW * EACH_MIB));
    assert_settled();
}

/* Nor is a thread for each CPU, of a parallel loop say. */
static void on_many_cpus_they_are_no_crowd(void **state)
{
    (void)state;
    cpus = MANY;
    work(MANY);
    (void)rests(100);
    assert_true(held() >= MIB(BESIDE_MIB + MANY * EACH_MIB));
    cpus = 0; /* unknown */
    work(MANY);
    (void)rests(100);
    assert_int_equal(held(), 0);
    assert_settled();
}

/* A thread that works beside many that sleep keeps what it frees. */
static void who_did_nothing_lately_does_not_count(void **state)
{
    (void)state;
    work(MANY);
    (void)rests(100);
    assert_int_equal(held(), 0);
    region.epoch += 4;
    work(1);
    (void)rests(100);
    assert_true(held() >= MIB(BESIDE_MIB));
    assert_settled();
}

/* They come one after the other, with a rest between. */
static void threads_that_come_in_turn_count(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++) {
        struct fl_extent *e = take(MIB(EACH_MIB));
        assert_true(fl_extent_claim(e, region.epoch));
        assert_null(fl_cache_put(&region, cache[i], e));
        (void)rests(100);
    }
    assert_int_equal(held(), 0);
    assert_settled();
}

/* Bursts with a pause as long as memory has to rest: soon none goes back any more. */
static void what_is_wanted_again_rests_longer_the_next_time(void **state)
{
    unsigned took[4] = {0};
    (void)state;
    for (int i = 0; i < 4; i++) {
        work(MANY);
        took[i] = rests(20);
    }
    for (int i = 1; i < 4; i++) {
        assert_true(took[i] >= 2 * took[i - 1]);
    }
    assert_settled();
}

static void busy_ones_are_looked_at_seldom(void **state)
{
    uint64_t next = 0;
    (void)state;
    for (int i = 0; i < 20; i++) {
        work(MANY);
        next = look_after(40);
    }
    assert_int_equal(next, 160 * ms);
    assert_true(held() >= MIB(BESIDE_MIB + MANY * EACH_MIB));
    assert_settled();
}

/* The program has asked for that, or the user has. */
static void what_is_to_stay_stays(void **state)
{
    (void)state;
    fl_region_note_kept(&region, SIZE_MAX);
    work(MANY);
    (void)rests(100);
    assert_true(held() >= MIB(BESIDE_MIB + MANY * EACH_MIB));
    fl_region_note_kept(&region, 0);
    region.config.crowd_goes = false;
    work(MANY);
    (void)rests(100);
    assert_true(held() >= MIB(BESIDE_MIB + MANY * EACH_MIB));
    assert_settled();
}

/* However little they hold: of 200 it is 200 times as much. */
static void many_threads_are_worth_a_worker(void **state)
{
    (void)state;
    region.wants_worker = false;
    struct fl_extent *e = take(KIB(64));
    assert_true(region.wants_worker);
    fl_region_set_worker(&region, true);
    fl_region_set_worker(&region, false);
    assert_true(region.wants_worker);
    give(e);
    region_begin(NULL);
    give(take(KIB(64)));
    assert_false(region.wants_worker);
    assert_settled();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_many_threads_freed_goes_back, each, after),
        cmocka_unit_test_setup_teardown(what_few_threads_freed_is_kept, each, after),
        cmocka_unit_test_setup_teardown(on_many_cpus_they_are_no_crowd, each, after),
        cmocka_unit_test_setup_teardown(who_did_nothing_lately_does_not_count, each, after),
        cmocka_unit_test_setup_teardown(threads_that_come_in_turn_count, each, after),
        cmocka_unit_test_setup_teardown(what_is_wanted_again_rests_longer_the_next_time, each,
                                        after),
        cmocka_unit_test_setup_teardown(busy_ones_are_looked_at_seldom, each, after),
        cmocka_unit_test_setup_teardown(what_is_to_stay_stays, each, after),
        cmocka_unit_test_setup_teardown(many_threads_are_worth_a_worker, each, after),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
