/* Shards: when another is opened, and what it gets; blocks of two never merge, figures add up, and
 * all of it goes back. */
#include "region/back/purge.h"
#include "region/serve/shard.h"
#include "unit/region_case.h"
#include "unit/shards_fixture.h"

/* All locks, which learn what shards did since. */
static void lock_all(void)
{
    fl_region_lock(&region);
    fl_region_unlock(&region);
}

static void shards_find_busy(int times)
{
    for (int i = 0; i < times; i++) {
        fl_shards_note_busy(&region);
    }
}

TEST_FROM(shards_begin_one, where_requests_hold_each_other_up_another_one_is_opened)
{
    shards_find_busy(BUSY - 1);
    assert_int_equal(shards_opened(), 1);
    shards_find_busy(1);
    assert_int_equal(shards_opened(), 2);
    shards_find_busy(8 * BUSY);
    assert_int_equal(shards_opened(), 5); /* one more for each 32 MiB in use, here */
}

TEST_FROM(shards_begin_one, where_the_lock_is_seldom_busy_none_is_opened)
{
    shards_find_busy(BUSY - 1);
    for (int i = 0; i < 4096; i++) {
        lock_all();
    }
    shards_find_busy(1);
    assert_int_equal(shards_opened(), 1);
}

TEST_FROM(shards_begin_one, where_little_is_in_use_none_is_opened)
{
    shards_give();
    shards_find_busy(4 * BUSY);
    assert_int_equal(shards_opened(), 1);
}

/* Then each free may have a tick to do, under all locks. */
TEST_FROM(shards_begin_one, without_a_worker_none_is_opened)
{
    region.config.tick_ns = 1000000000;
    shards_find_busy(4 * BUSY);
    assert_int_equal(shards_opened(), 1);
}

TEST_FROM(shards_begin, a_worker_that_has_gone_leaves_all_to_all_locks)
{
    region.config.tick_ns = 1000000000;
    fl_region_set_worker(&region, false);
    assert_false(region.shards.ordinary);
    uint64_t locks = region.shards.of[1].since.locks;
    shards_give();
    assert_int_equal(region.shards.of[1].since.locks, locks);
    assert_int_equal(stats().in_use_bytes, 0);
    fl_region_set_worker(&region, true);
    assert_true(region.shards.ordinary);
}

/* More extents than one walk goes through: the rest follows. */
TEST_FROM(shards_begin_one, its_part_comes_to_a_new_one_bit_by_bit)
{
    enum { SMALL = 2048 };
    static struct fl_extent *small[SMALL];
    int in[2] = {0, 0};
    shards_begin_with(0);
    for (int i = 0; i < SMALL; i++) {
        small[i] = take(KIB(64));
    }
    shards_open_one();
    uintptr_t at = region.shards.cursor;
    assert_int_not_equal(at, 0);
    for (int i = 0; i < SMALL; i++) {
        if (small[i]->base + MIB(1) > at && small[i]->base < at + MIB(1)) {
            give(small[i]); /* nothing begins any more where the walk ended */
            small[i] = NULL;
        }
    }
    region.config.shard_from = MIB(1024); /* no other one */
    shards_find_busy(16 * BUSY);
    assert_int_equal(region.shards.cursor, 0);
    fl_region_lock(&region);
    fl_shards_share_out(&region); /* by who saw, before, that some was left */
    fl_region_unlock(&region);
    assert_int_equal(region.shards.cursor, 0);
    for (int i = 0; i < SMALL; i++) {
        if (small[i] != NULL) {
            in[small[i]->zone]++;
            assert_int_equal(small[i]->zone, small[i]->base / region.shards.stripe % 2);
            give(small[i]);
        }
    }
    assert_true(in[0] >= SMALL / 4 && in[1] >= SMALL / 4);
}

TEST_FROM(shards_begin_one, no_more_than_cpus_that_ask)
{
    static const unsigned cpu[] = {3, 70, 3}, opened[] = {1, 2, 2};
    shards_be_somewhere();
    for (int i = 0; i < 3; i++) {
        shards_cpu = cpu[i];
        shards_find_busy(8 * BUSY);
        assert_int_equal(shards_opened(), opened[i]);
    }
}

/* Long ones are seldom asked for, and want room. */
TEST_FROM(shards_begin_one, none_for_few_blocks)
{
    shards_begin_with(0);
    for (int i = 0; i < 8; i++) {
        assert_non_null(take(MIB(15)));
    }
    shards_find_busy(8 * BUSY);
    assert_int_equal(shards_opened(), 1);
}

TEST_FROM(shards_begin_one, where_little_is_in_use_each_has_a_part)
{
    enum { FEW = 320 };
    struct fl_extent *e[FEW];
    unsigned in[2] = {0, 0};
    shards_begin_with(0);
    for (int i = 0; i < FEW; i++) {
        e[i] = take(KIB(64));
    }
    shards_open_one();
    region.config.shard_from = MIB(1024); /* no other one */
    shards_find_busy(16 * BUSY);
    for (int i = 0; i < FEW; i++) {
        in[e[i]->zone]++;
    }
    assert_true(in[0] >= FEW / 4 && in[1] >= FEW / 4);
}

TEST_FROM(shards_begin, blocks_of_both_shards_do_not_merge)
{
    int in[2] = {0, 0};
    for (int i = 0; i < BLOCKS; i++) {
        in[shards_block[i]->zone]++;
        give(shards_block[i]);
    }
    assert_true(in[0] >= BLOCKS / 4 && in[1] >= BLOCKS / 4);
    assert_int_equal(stats().in_use_bytes, 0);
    assert_int_equal(stats().live_extents, 0);
    assert_settled();
    for (unsigned zone = 0; zone < 2; zone++) {
        struct fl_extent *e = fl_tree_lowest(&region.zones.of[zone].populated);
        for (; e != NULL; e = fl_tree_higher(e)) {
            assert_int_equal(e->zone, zone);
            assert_in_range(e->len, KIB(4), MIB(32) + KIB(256));
        }
    }
}

TEST_FROM(shards_begin, a_request_is_served_by_whichever_has_memory)
{
    shards_give();
    size_t populated = stats().populated_bytes;
    shards_take();
    assert_int_equal(stats().in_use_bytes, BLOCKS * KIB(256));
    assert_int_equal(stats().populated_bytes, populated); /* none grows while the other has some */
}

/* All locks would be waited for longer. */
TEST_FROM(shards_begin, one_busy_shard_is_waited_for_sooner_than_all)
{
    shards_be_somewhere();
    shards_cpu = 0;
    while (fl_tree_longest(&region.zones.of[0].populated) >= KIB(256)) {
        assert_non_null(take(KIB(256)));
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (shards_block[i]->zone == 1) {
            give(shards_block[i]);
        }
    }
    shards_hold(1);
    uint64_t takes = region.shards.of[1].since.takes;
    struct fl_extent *e = take(KIB(256));
    shards_held();
    assert_int_equal(e->zone, 1);
    assert_int_equal(region.shards.of[1].since.takes, takes + 1);
}

/* Nothing is more than it was: the others need not know. */
TEST_FROM(shards_begin, what_came_back_may_be_taken_again_by_one_lock)
{
    enum { SOME = 16 }; /* 4 MiB */
    struct fl_extent *e[SOME];
    unsigned n = 0;
    shards_be_somewhere();
    shards_cpu = 1;
    for (unsigned i = 0; n < SOME; i++) {
        if (shards_block[i]->zone == 1) {
            e[n++] = shards_block[i];
        }
    }
    lock_all();
    assert_true(region.shards.slack < MIB(2));
    for (unsigned i = 0; i < SOME; i++) {
        give(e[i]);
    }
    for (unsigned i = 0; i < SOME; i++) {
        assert_non_null(take(KIB(256)));
    }
    assert_int_equal(region.shards.of[1].since.takes, SOME);
}

TEST_FROM(shards_begin, below_the_peak_each_may_take_its_part)
{
    for (unsigned i = 0; i < BLOCKS / 2; i++) {
        give(shards_block[i]);
    }
    lock_all();
    assert_int_equal(region.shards.slack, BLOCKS / 4 * KIB(256));
    assert_non_null(take(MIB(20))); /* under all locks */
    assert_int_equal(region.shards.slack, BLOCKS / 4 * KIB(256) - MIB(10));
}

TEST_FROM(shards_begin, a_purge_empties_all)
{
    shards_give();
    (void)fl_region_purge(&region, 0);
    assert_int_equal(stats().populated_bytes, 0);
    assert_int_equal(stats().free_held_bytes, 0);
}

/* The lock of the shard where it lies is another thread's: its next holder takes it. */
static void leave(struct fl_extent *e)
{
    atomic_store(&region.shards.of[e->zone].lock.word, 1);
    give(e);
    assert_int_equal(e->state, FL_EXTENT_CACHED);
    assert_ptr_equal(region.shards.of[e->zone].left, e);
    atomic_store(&region.shards.of[e->zone].lock.word, 0);
}

TEST_FROM(shards_begin, what_finds_a_lock_busy_is_left_to_it)
{
    size_t in_use = stats().in_use_bytes;
    leave(shards_block[0]);
    assert_int_equal(stats().in_use_bytes, in_use - KIB(256));
}

/* No thread comes by: the worker has to. */
TEST_FROM(shards_begin, what_is_left_is_seen_and_taken_by_the_worker)
{
    leave(shards_block[0]);
    assert_true(fl_shards_have_some(&region.shards));
    (void)fl_region_tick(&region, 1);
    assert_false(fl_shards_have_some(&region.shards));
}

/* What a signal handler frees that interrupted the lock's holder. */
TEST_FROM(shards_begin, a_handlers_free_is_taken_over)
{
    fl_region_defer(&region, shards_block[0]);
    give(shards_block[1]);
    assert_null(region.caches.deferred);
    assert_int_equal(stats().in_use_bytes, (BLOCKS - 2) * KIB(256));
}

/* A window of 256 MiB at most. */
static void begin_small(unsigned shards)
{
    struct fl_region_config config = {.huge = true, .shards = shards};
    region_clear();
    fake.no_quiet_addresses = true;
    fake.reserve_max = MIB(256);
    assert_int_equal(fl_region_start(&region, &config), 0);
    fake.pretend_populate = true;
    shards_be_somewhere();
}

/* What all shards together have as addresses serves one long request. */
TEST_FROM(NULL, addresses_come_back_to_where_they_are_wanted)
{
    static struct fl_extent *e[4096];
    size_t n = 0;
    begin_small(8);
    while (n < 4096 && (e[n] = take(MIB(1))) != NULL) {
        shards_cpu = (unsigned)(++n % 8);
    }
    assert_in_range(n, 64, 256);
    size_t most = n * MIB(1);
    while (n > 0) {
        give(e[--n]);
    }
    (void)fl_region_purge(&region, 0);
    assert_non_null(take(most / 2));
}

/* Blocks of 2 MiB that there are addresses for. */
static size_t count_blocks(unsigned shards)
{
    size_t n = 0;

    begin_small(shards);
    for (shards_cpu = 0; shards_cpu < 8; shards_cpu++) {
        n += take(MIB(2)) != NULL; /* each shard has addresses of its own then */
    }
    for (shards_cpu = 0; take(MIB(2)) != NULL; n++) {
    }
    assert_settled();
    return n;
}

TEST_FROM(NULL, addresses_that_a_shard_does_not_need_are_anothers)
{
    size_t n = count_blocks(1);
    assert_in_range(n, 32, 128);
    assert_int_equal(count_blocks(8), n);
}

/* A planner's arena: what it lends is looked for in the first shard. */
TEST_FROM(NULL, divided_blocks_stay_where_they_are)
{
    static struct fl_inner inner = {.shift = 16};
    shards_begin_with(0);
    assert_true(take(MIB(16)) != NULL && take(MIB(16)) != NULL);
    assert_int_equal(fl_inner_open(&region, &inner, MIB(16)), 0);
    struct fl_extent *outer = inner.outer;
    assert_true(fl_inner_fill(&region, &inner, fl_extent_range(outer)));
    for (int i = 0; i < 7; i++) {
        shards_open_one();
        assert_int_equal(outer->zone, 0);
    }
    fl_inner_close(&region, &inner);
}

TEST_FROM(shards_begin, all_know_of_what_came_back_in_time)
{
    size_t every = region.pressure.look_after = MIB(16), most = 0;
    for (int i = 0; i < BLOCKS; i++) {
        give(shards_block[i]);
        size_t unknown = region.shards.of[0].since.came_back + region.shards.of[1].since.came_back;
        most = fl_max(most, region.pressure.since_look + unknown);
        region.pressure.look_after = every;
    }
    assert_true(most <= every + every / 4);
}

static int child_goes_on(void)
{
    return fl_region_fork_child(&region, NULL) && shards_opened() == 2 && take(KIB(256)) != NULL &&
                   take(MIB(20)) != NULL && fl_region_check(&region) == NULL
               ? 0
               : 1;
}

TEST_FROM(shards_begin, a_child_goes_on_with_all_of_them)
{
    for (int i = 0; i < BLOCKS; i += 2) {
        give(shards_block[i]);
    }
    assert_int_equal(fork_with(child_goes_on), 0);
}

/* All that is free is memory, or is mapped anew. */
static int child_uses_all(void)
{
    if (!fl_region_fork_child(&region, NULL)) {
        return 1;
    }
    for (struct fl_extent *e; region.held.in_use < MIB(160) && (e = take(MIB(4))) != NULL;) {
        fill(e, 1);
    }
    for (uintptr_t at = region.space.first; at < fl_range_end(region.space.window.all);) {
        const struct fl_extent *e = fl_extent_at(&region.space, at);
        if (e == NULL || e->state == FL_EXTENT_FOREIGN) {
            return 2;
        }
        at = e->base + e->len;
    }
    return region.held.in_use >= MIB(160) ? 0 : 3;
}

/* Beside what is kept from the child, by a thread that found the fork's locks. */
static void *give_every_second(void *of)
{
    struct fl_extent **e = of;
    for (int i = 1; i < 8; i += 2) {
        give(e[i]);
    }
    return NULL;
}

TEST_FROM(NULL, a_free_during_a_fork_is_no_hole_in_the_child)
{
    shards_begin_with(0);
    fake.pretend_populate = false;
    struct fl_extent *e[8];
    for (int i = 0; i < 8; i++) {
        e[i] = take(MIB(6));
        fill(e[i], 2);
    }
    shards_open_one();
    for (int i = 0; i < 8; i += 2) {
        give(e[i]);
    }
    fl_region_fork_lock(&region);
    run_beside(give_every_second, e);
    assert_true(fl_shards_have_some(&region.shards));
    int status = fake_child(child_uses_all);
    fl_region_fork_parent(&region);
    assert_int_equal(status, 0);
}

static int child_of_a_broken_one(void)
{
    return fl_region_fork_child(&region, NULL) ? 1 : 0;
}

/* Another thread has taken a lock over, and is amid a change. */
TEST_FROM(shards_begin, a_child_gives_up_where_one_lock_was_taken_over)
{
    fl_region_fork_lock(&region);
    atomic_store(&region.shards.of[1].lock.word, 1);
    assert_int_equal(fake_child(child_of_a_broken_one), 0);
    atomic_store(&region.shards.of[1].lock.word, 0);
    fl_region_fork_parent(&region);
}

/* Descriptors: as many as come from a zone's own go back to all. */
TEST_FROM(shards_begin, what_a_zone_has_too_many_of_goes_back)
{
    struct fl_stash *of = &region.space.descriptors.of_zone[1];
    shards_give();
    for (int i = 0; i < 8; i++) { /* each lock gives back some */
        lock_all();
    }
    assert_in_range(of->n, 1, 64);
    struct fl_extent *e;
    SLIST_FOREACH(e, &of->spare, spare)
    {
        assert_int_equal(e->zone, 1);
        assert_int_equal(e->state, FL_EXTENT_UNUSED);
    }
}

TEST_FROM(NULL, all_may_be_there_from_the_beginning)
{
    shards_begin_with(FL_SHARDS);
    shards_take();
    assert_int_equal(shards_opened(), FL_SHARDS);
    shards_give();
    assert_int_equal(stats().in_use_bytes, 0);
}
