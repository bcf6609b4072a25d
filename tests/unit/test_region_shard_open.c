/* When another shard is opened, and what it gets. */
#include "unit/region_case.h"
#include "unit/shards_fixture.h"

#include "region/serve/shard.h"

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
        fl_region_lock(&region);
        fl_region_unlock(&region);
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
