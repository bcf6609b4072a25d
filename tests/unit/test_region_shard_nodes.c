/* Several nodes: each node's free memory has a lock of its own, and a request at home takes no
 * other node's, and no other node's memory. */
#include "region/back/purge.h"
#include "region/serve/shard.h"
#include "region/state/lock.h"
#include "unit/zones_fixture.h"

#include "cases.h"

enum { BLOCKS = 16 };

static struct fl_cache *own;
static struct fl_extent *block[NODES][BLOCKS]; /* of 256 KiB, far from one another's node */
static uint64_t locks[NODES];                  /* takings of each node's, at `look` */

/* The thread's CPU is of that node. */
static void move_to(unsigned node)
{
    for (unsigned cpu = 0; cpu < FL_CPU_IDS; cpu++) {
        atomic_store(&fl_site[cpu], FL_SITE_FIRST + node);
    }
    ask_on(node);
}

static struct fl_extent *take_by(size_t len)
{
    return fl_region_take(&region, own, len, fl_page.base, false);
}

static void give_by(struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    fl_region_give(&region, e);
}

static int each(void **state)
{
    (void)state;
    begin_divided();
    region.clock.has_worker = true;
    move_to(0);
    own = fl_cache_acquire(&region);
    for (unsigned node = 0; node < NODES; node++) {
        move_to(node);
        for (unsigned i = 0; i < BLOCKS; i++) {
            block[node][i] = take_by(KIB(256));
            assert_lies(block[node][i], node);
        }
    }
    return 0;
}

/* At home on the node, which has some that is free. */
static void be_at_home(unsigned node)
{
    move_to(node);
    give_by(block[node][0]);
    block[node][0] = take_by(KIB(256));
    assert_true(fl_cache_is_home(own));
}

static void look(void)
{
    for (unsigned node = 0; node < NODES; node++) {
        locks[node] = region.shards.of[node].since.locks;
    }
}

/* Since then no thread has taken all locks, nor any of another node. */
static void assert_locked(unsigned node, unsigned times)
{
    for (unsigned i = 0; i < NODES; i++) {
        assert_int_equal(region.shards.of[i].since.locks - locks[i], i == node ? times : 0);
    }
}

CASE_AFTER(each, a_request_at_home_takes_the_lock_of_its_node)
{
    for (unsigned node = 0; node < NODES; node++) {
        be_at_home(node);
        look();
        for (unsigned i = 0; i < BLOCKS; i++) {
            give_by(block[node][i]);
        }
        for (unsigned i = 0; i < BLOCKS; i++) {
            block[node][i] = take_by(KIB(256));
            assert_int_equal(block[node][i]->zone, node);
        }
        assert_locked(node, 2 * BLOCKS);
    }
    assert_settled();
}

/* Where a thread's home is gets asked now and then: without a lock. */
CASE_AFTER(each, to_ask_where_home_is_takes_no_lock)
{
    enum { MANY = 256 };
    be_at_home(1);
    unsigned before = nasked;
    look();
    for (unsigned i = 0; i < MANY; i++) {
        give_by(block[1][i % BLOCKS]);
        block[1][i % BLOCKS] = take_by(KIB(256));
    }
    assert_in_range(nasked - before, 1, MANY / 16);
    assert_locked(1, 2 * MANY);
}

CASE_AFTER(each, who_has_moved_takes_from_the_new_node)
{
    be_at_home(0);
    give_by(block[0][1]);
    give_by(block[1][1]);
    move_to(1);
    block[1][1] = take_by(KIB(256));
    assert_lies(block[1][1], 1);
    block[0][1] = take_by(KIB(256)); /* though node 0 has one */
    assert_lies(block[0][1], 1);
    assert_settled();
}

/* A request grows in its node while another one has memory that is free. */
CASE_AFTER(each, no_request_crosses_nodes)
{
    be_at_home(0);
    for (unsigned i = 0; i < BLOCKS; i++) {
        give_by(block[1][i]);
    }
    for (unsigned i = 0; i < 2 * BLOCKS; i++) {
        assert_lies(take_by(KIB(256)), 0);
    }
    assert_settled();
}

/* Nor where its node's lock is busy. */
CASE_AFTER(each, a_busy_node_is_waited_for)
{
    be_at_home(0);
    give_by(block[1][2]);
    give_by(block[0][2]);
    atomic_store(&region.shards.of[0].lock.word, 1);
    give_by(block[0][3]); /* is left to its next holder */
    assert_ptr_equal(region.shards.of[0].left, block[0][3]);
    atomic_store(&region.shards.of[0].lock.word, 0);
    assert_lies(take_by(KIB(256)), 0);
    assert_null(region.shards.of[0].left);
    assert_settled();
}

/* What lies on several nodes is no shard's: it is freed under all locks. */
CASE_AFTER(each, memory_of_several_nodes_is_no_shards)
{
    next_zones = (struct fl_zonelist){.n = 1, .zone = {SPREAD}};
    struct fl_extent *e[4];
    for (unsigned i = 0; i < 4; i++) {
        e[i] = take(KIB(256));
        assert_lies(e[i], SPREAD);
    }
    uint64_t all = stats().region_locks;
    for (unsigned i = 0; i < 4; i++) {
        give(e[i]);
    }
    assert_true(stats().region_locks >= all + 4);
    assert_int_equal(region.zones.of[SPREAD].free.bytes, MIB(2));
    next_zones = (struct fl_zonelist){.n = 1, .zone = {SPREAD}};
    assert_lies(take(KIB(256)), SPREAD);
    assert_settled();
}

CASE_AFTER(each, all_of_it_goes_back)
{
    for (unsigned i = 0; i < NODES * BLOCKS; i++) {
        give_by(block[i / BLOCKS][i % BLOCKS]);
    }
    (void)fl_region_purge(&region, 0);
    assert_int_equal(stats().populated_bytes, 0);
    assert_int_equal(stats().in_use_bytes, 0);
    assert_settled();
}

CASES_MAIN()
