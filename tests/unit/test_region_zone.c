/* Zones: what lies on one node is not handed out for another, on whatever way it comes back. */
#include "unit/region_case.h"
#include "unit/zones_fixture.h"

TEST_FROM(divided_begin, what_one_node_freed_the_other_does_not_get)
{
    struct fl_extent *e = take_on(1, MIB(6));
    uintptr_t base = e->base;
    assert_lies(e, 1);
    give(e);
    assert_lies(take_on(0, MIB(6)), 0);
    e = take_on(1, MIB(4));
    assert_int_equal(e->base, base); /* which need not be populated */
    assert_lies(e, 1);
}

TEST_FROM(divided_begin, small_blocks_of_two_nodes_share_no_huge_page)
{
    uintptr_t last[NODES] = {0, 0};

    for (unsigned i = 0; i < 32; i++) {
        const struct fl_extent *e = take_on(i % 2, KIB(256));
        assert_lies(e, i % 2);
        last[i % 2] = e->base / fl_page.huge;
        assert_true(last[0] != last[1]);
    }
}

TEST_FROM(divided_begin, pages_move_from_the_same_node_alone)
{
    struct fl_extent *e[NODES];

    for (unsigned node = 0; node < NODES; node++) {
        e[node] = take_on(node, MIB(8));
        fill(e[node], (unsigned char)(1 + node));
    }
    for (unsigned node = 0; node < NODES; node++) {
        assert_non_null(take_on(node, KIB(4))); /* so that it does not grow in place */
        give(e[node]);
    }
    struct fl_extent *big = take_on(1, MIB(12));
    assert_lies(big, 1);
    for (size_t at = 0; at < big->len; at += fl_page.huge) {
        assert_int_not_equal(bytes(big)[at], 1); /* what node 0 wrote stays there */
    }
}

TEST_FROM(NULL, the_stock_has_each_nodes_own)
{
    if (!stock_begin(&(struct fl_region_config){.huge = true, .stock = MIB(16)})) {
        return;
    }
    divide();
    assert_non_null(take_on(1, MIB(16))); /* so much is wanted there */
    while (fl_region_refill(&region) == 0) {
    }
    size_t stock = region.pages.reserve.ready_of[1];
    assert_true(stock >= MIB(8));
    assert_int_equal(region.pages.reserve.ready_of[0], 0);
    assert_int_equal(mapped_for((uintptr_t)stock_chunk(0)), 1);
    assert_int_equal(filling, NODES);
    assert_lies(take_on(0, MIB(4)), 0);
    assert_int_equal(region.pages.reserve.ready_of[1], stock);
    assert_lies(take_on(1, MIB(4)), 1);
    assert_int_equal(region.pages.reserve.ready_of[1], stock - MIB(4));
}

/* A block of 32 MiB that threads of node 1 asked for and touched, on that node, is freed; NODES: on
 * several. Returns where it lay. */
static uintptr_t touched_and_freed(unsigned on)
{
    ask_touched(1);
    struct fl_extent *e = take(MIB(32));
    uintptr_t base = e->base;

    assert_lies(e, TOUCH);
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    fill(e, 1);
    lies_on = on;
    give(e);
    return base;
}

TEST_FROM(divided_begin, what_a_program_touched_is_for_its_node)
{
    uintptr_t base = touched_and_freed(1);
    ask_touched(0);
    struct fl_extent *e = take(MIB(32));
    assert_int_not_equal(e->base, base);
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    ask_touched(1);
    e = take(MIB(32));
    assert_int_equal(e->base, base);
    assert_int_equal(e->content, FL_CONTENT_POPULATED);
}

TEST_FROM(divided_begin, what_several_nodes_touched_is_for_a_block_of_its_length)
{
    uintptr_t base = touched_and_freed(NODES);
    assert_int_not_equal(take(MIB(16))->base, base);
    assert_int_equal(take(MIB(32))->base, base);
}

/* What was touched, and is given back, belongs to no node any more. */
TEST_FROM(divided_begin, emptied_addresses_are_for_any_touch)
{
    uintptr_t base = touched_and_freed(1);
    assert_int_equal(fl_region_purge(&region, 0), MIB(32));
    ask_touched(0);
    struct fl_extent *e = take(MIB(32));
    assert_int_equal(e->base, base);
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    assert_lies(e, TOUCH);
}

TEST_FROM(divided_begin, blocks_grow_within_their_zone)
{
    struct fl_extent *e = take_on(1, MIB(4));
    assert_true(fl_region_resize(&region, e, MIB(8)));
    assert_lies(e, 1);
    struct fl_extent *moved = fl_region_move(&region, e, MIB(64));
    if (moved != NULL) {
        assert_lies(moved, 1);
    }
}

/* Rather than that both are held; but what was freed just now may be wanted again at once. */
TEST_FROM(divided_begin, what_is_idle_on_one_node_goes_before_another_grows)
{
    give(take_on(1, MIB(64)));
    give(take_on(0, MIB(32)));
    assert_int_equal(region.held.populated, MIB(96)); /* neither is idle */
    region.epoch++;                                   /* the worker's clock */
    size_t purged = stats().purge_bytes;
    assert_lies(take_on(0, MIB(48)), 0);
    assert_true(region.held.populated <= MIB(64) + 2 * fl_page.huge);
    assert_true(stats().purge_bytes > purged);
    assert_int_equal(region.zones.of[1].free.huge + MIB(48), region.held.populated);
}

TEST_FROM(divided_begin, what_a_node_has_free_itself_is_used_first)
{
    struct fl_extent *low = take_on(0, MIB(32)), *high = take_on(0, MIB(32)),
                     *other = take_on(1, MIB(16));
    give(low);
    give(high);
    give(other);
    region.epoch++; /* the worker's clock */
    size_t purged = stats().purge_bytes;
    assert_lies(take_on(0, MIB(64)), 0);
    assert_int_equal(stats().purge_bytes, purged);
    assert_int_equal(region.zones.of[1].free.huge, MIB(16));
}

TEST_FROM(NULL, a_waiting_thread_gets_a_page_of_its_node)
{
    if (!stock_begin(&(struct fl_region_config){.huge = true, .first_touch = true})) {
        return;
    }
    divide();
    assert_non_null(take_on(0, MIB(4)));
    assert_true(fl_region_fill_now(&region, fl_page.huge, 1));
    assert_int_equal(region.pages.reserve.ready_of[1], fl_page.huge);
    assert_int_equal(mapped_for((uintptr_t)stock_chunk(0)), 1);
    assert_false(fl_region_fill_now(&region, fl_page.huge, 1)); /* there is some */
    full[0] = true;
    assert_false(fl_region_fill_now(&region, fl_page.huge, 0));
    full[0] = false;
    region.config.limit = region.held.populated;
    assert_false(fl_region_fill_now(&region, fl_page.huge, 0));
    assert_int_equal(region.pages.reserve.ready_of[0], 0);
}

TEST_FROM(divided_begin, what_lies_on_each_node_can_be_told)
{
    struct fl_stats_nodes n;

    fl_region_nodes_read(&region, &n);
    assert_int_equal(n.n, NODES);
    assert_int_equal(n.node[0].extents + n.node[1].extents + n.several, 0);
    struct fl_extent *e = take_on(1, MIB(6));
    assert_non_null(take_on(0, MIB(4)));
    give(take_on(1, MIB(8)));
    ask_touched(0);
    struct fl_extent *touched = take(MIB(32));
    fl_region_nodes_read(&region, &n);
    assert_int_equal(n.node[0].extents, MIB(4));
    assert_int_equal(n.node[0].free, 0);
    assert_int_equal(n.node[1].extents, MIB(14));
    assert_int_equal(n.node[1].free, MIB(8));
    assert_int_equal(n.several, 0); /* untouched */
    fill(touched, 1);
    lies_on = NODES;
    give(touched);
    give(e);
    fl_region_nodes_read(&region, &n);
    assert_int_equal(n.node[1].free, MIB(14));
    assert_int_equal(n.several, MIB(32));
}

TEST(one_node_has_one_zone)
{
    struct fl_stats_nodes n;
    nmap = 0;
    assert_int_equal(take(MIB(4))->zone, 0);
    assert_int_equal(region.zones.n, 1);
    fl_region_nodes_read(&region, &n);
    assert_int_equal(n.n, 0);
    assert_int_equal(nmap, 0);
}
