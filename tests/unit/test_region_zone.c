/* Zones: what lies on one node is not handed out for another, on whatever way it comes back. */
#include "unit/zones_fixture.h"

#include "unit/cmocka_all.h"

static void what_one_node_freed_the_other_does_not_get(void **state)
{
    struct fl_extent *e = take_on(1, MIB(6));
    uintptr_t base = e->base;
    assert_lies(e, 1);
    give(e);
    assert_lies(take_on(0, MIB(6)), 0);
    e = take_on(1, MIB(4));
    assert_int_equal(e->base, base); /* which need not be populated */
    assert_lies(e, 1);
    assert_settled();
}

static void small_blocks_of_two_nodes_share_no_huge_page(void **state)
{
    uintptr_t last[NODES] = {0, 0};

    for (unsigned i = 0; i < 32; i++) {
        const struct fl_extent *e = take_on(i % 2, KIB(256));
        assert_lies(e, i % 2);
        last[i % 2] = e->base / fl_page.huge;
        assert_true(last[0] != last[1]);
    }
    assert_settled();
}

static void pages_move_from_the_same_node_alone(void **state)
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
    assert_settled();
}

static void the_stock_has_each_nodes_own(void **state)
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
    assert_settled();
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

static void what_a_program_touched_is_for_its_node(void **state)
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
    assert_settled();
}

static void what_several_nodes_touched_is_for_a_block_of_its_length(void **state)
{
    uintptr_t base = touched_and_freed(NODES);
    assert_int_not_equal(take(MIB(16))->base, base);
    assert_int_equal(take(MIB(32))->base, base);
    assert_settled();
}

/* What was touched, and is given back, belongs to no node any more. */
static void emptied_addresses_are_for_any_touch(void **state)
{
    uintptr_t base = touched_and_freed(1);
    assert_int_equal(fl_region_purge(&region, 0), MIB(32));
    ask_touched(0);
    struct fl_extent *e = take(MIB(32));
    assert_int_equal(e->base, base);
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    assert_lies(e, TOUCH);
    assert_settled();
}

static void blocks_grow_within_their_zone(void **state)
{
    struct fl_extent *e = take_on(1, MIB(4));
    assert_true(fl_region_resize(&region, e, MIB(8)));
    assert_lies(e, 1);
    struct fl_extent *moved = fl_region_move(&region, e, MIB(64));
    if (moved != NULL) {
        assert_lies(moved, 1);
    }
    assert_settled();
}

/* Rather than that both are held; but what was freed just now may be wanted again at once. */
static void what_is_idle_on_one_node_goes_before_another_grows(void **state)
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
    assert_settled();
}

static void what_a_node_has_free_itself_is_used_first(void **state)
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
    assert_settled();
}

static void a_waiting_thread_gets_a_page_of_its_node(void **state)
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
    assert_settled();
}

static void what_lies_on_each_node_can_be_told(void **state)
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
    assert_settled();
}

static void one_node_has_one_zone(void **state)
{
    struct fl_stats_nodes n;
    nmap = 0;
    assert_int_equal(take(MIB(4))->zone, 0);
    assert_int_equal(region.zones.n, 1);
    fl_region_nodes_read(&region, &n);
    assert_int_equal(n.n, 0);
    assert_int_equal(nmap, 0);
    assert_settled();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_one_node_freed_the_other_does_not_get, divided_begin),
        cmocka_unit_test_setup(small_blocks_of_two_nodes_share_no_huge_page, divided_begin),
        cmocka_unit_test_setup(pages_move_from_the_same_node_alone, divided_begin),
        cmocka_unit_test(the_stock_has_each_nodes_own),
        cmocka_unit_test_setup(what_a_program_touched_is_for_its_node, divided_begin),
        cmocka_unit_test_setup(what_several_nodes_touched_is_for_a_block_of_its_length,
                               divided_begin),
        cmocka_unit_test_setup(emptied_addresses_are_for_any_touch, divided_begin),
        cmocka_unit_test_setup(blocks_grow_within_their_zone, divided_begin),
        cmocka_unit_test_setup(what_is_idle_on_one_node_goes_before_another_grows, divided_begin),
        cmocka_unit_test_setup(what_a_node_has_free_itself_is_used_first, divided_begin),
        cmocka_unit_test(a_waiting_thread_gets_a_page_of_its_node),
        cmocka_unit_test_setup(what_lies_on_each_node_can_be_told, divided_begin),
        cmocka_unit_test_setup(one_node_has_one_zone, plain_begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
