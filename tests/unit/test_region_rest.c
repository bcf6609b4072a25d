/* What many threads freed goes back to the kernel once no request comes; what few did is kept. */
#include "region/back/purge.h"
#include "unit/region_case.h"

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
    cpus = 2;
    region_begin(&(struct fl_region_config){.huge = true, .crowd_goes = true});
    fl_nodes.cpus = drawn_cpus;
    for (int i = 0; i < MANY; i++) {
        cache[i] = fl_cache_acquire(&region);
    }
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
        (void)cache_put(cache[i], e[i]);
    }
    give(beside);
}

/* All that so many threads freed is still there; or nothing is. */
static bool is_kept(int n)
{
    return region.held.populated >= MIB(BESIDE_MIB + n * EACH_MIB);
}

static bool is_gone(void)
{
    return region.held.populated == 0;
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

TEST_FROM(each, what_many_threads_freed_goes_back)
{
    work(MANY);
    assert_true(is_kept(MANY));
    (void)look_after(40);
    assert_true(look_after(20) < UINT64_MAX);
    assert_true(is_kept(MANY));
    assert_true(look_after(20) == UINT64_MAX);
    assert_true(is_gone());
    assert_true(region.wants_worker); /* the next free calls */
}

/* Of many threads what they freed goes, unless there is a CPU for each, as in a parallel loop; or
 * the program, or the user, has asked that it stay. */
TEST_FROM(each, what_is_no_crowds_is_kept)
{
    static const struct {
        int threads;
        unsigned cpus; /* 0: unknown */
        size_t kept;
        bool crowd_stays, goes;
    } row[] = {
        {FEW, 2, 0, false, false},         {MANY, MANY, 0, false, false}, {MANY, 0, 0, false, true},
        {MANY, 2, SIZE_MAX, false, false}, {MANY, 2, 0, true, false},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        (void)each(state);
        cpus = row[i].cpus;
        fl_region_note_kept(&region, row[i].kept);
        region.config.crowd_goes = !row[i].crowd_stays;
        work(row[i].threads);
        (void)rests(100);
        assert_true(row[i].goes ? is_gone() : is_kept(row[i].threads));
        assert_settled();
    }
}

/* A thread that works beside many that sleep keeps what it frees. */
TEST_FROM(each, who_did_nothing_lately_does_not_count)
{
    work(MANY);
    (void)rests(100);
    assert_true(is_gone());
    region.epoch += 4;
    work(1);
    (void)rests(100);
    assert_true(is_kept(1));
}

/* They come one after the other, with a rest between. */
TEST_FROM(each, threads_that_come_in_turn_count)
{
    for (int i = 0; i < MANY; i++) {
        struct fl_extent *e = take(MIB(EACH_MIB));
        (void)cache_put(cache[i], e);
        (void)rests(100);
    }
    assert_true(is_gone());
}

/* Bursts with a pause as long as memory has to rest: soon none goes back any more. */
TEST_FROM(each, what_is_wanted_again_rests_longer_the_next_time)
{
    unsigned took[4] = {0};
    for (int i = 0; i < 4; i++) {
        work(MANY);
        took[i] = rests(20);
    }
    for (int i = 1; i < 4; i++) {
        assert_true(took[i] >= 2 * took[i - 1]);
    }
}

TEST_FROM(each, busy_ones_are_looked_at_seldom)
{
    uint64_t next = 0;
    for (int i = 0; i < 20; i++) {
        work(MANY);
        next = look_after(40);
    }
    assert_int_equal(next, 160 * ms);
    assert_true(is_kept(MANY));
}

/* However little they hold: of 200 it is 200 times as much. */
TEST_FROM(each, many_threads_are_worth_a_worker)
{
    region.wants_worker = false;
    assert_non_null(take(KIB(64)));
    assert_true(region.wants_worker);
    fl_region_set_worker(&region, true);
    fl_region_set_worker(&region, false);
    assert_true(region.wants_worker);
    region_begin(NULL);
    give(take(KIB(64)));
    assert_false(region.wants_worker);
}
