/* Nodes without room: what gives way, and who is refused. */
#include "unit/region_case.h"
#include "unit/zones_fixture.h"

TEST_FROM(divided_begin, a_full_node_gives_way_to_the_next)
{
    give(take_on(0, MIB(4)));
    full[0] = true;
    assert_lies(take_on(0, MIB(4)), 0); /* what is free there serves still */
    assert_lies(take_on(0, MIB(4)), 1);
    full[1] = true; /* none has room: as the kernel will have it */
    assert_lies(take_on(0, MIB(4)), 0);
    assert_false(fl_region_is_bound() && !next_zones.strict);
}

static bool has_room_once_purged(unsigned zone, size_t bytes)
{
    return zone != 1 || region.stats.purge_bytes != 0;
}

/* Pages in turns over the nodes, which are free: rather than that another node has what is asked
 * for. */
TEST(what_is_free_of_several_nodes_goes_before_a_full_one_gives_way)
{
    struct fl_placing asked = placing;
    asked.has_room = has_room_once_purged;
    nmap = 0;
    fl_region_divide(&region, &asked);
    give(take_on(0, MIB(8)));
    next_zones = (struct fl_zonelist){.n = 1, .zone = {SPREAD}};
    give(take(MIB(16)));
    assert_lies(take_on(1, MIB(4)), 1);
    assert_true(stats().purge_bytes >= MIB(8)); /* a half of that lies there */
    assert_int_equal(region.zones.of[0].free.huge, MIB(8));
}

/* What has gone back in pieces comes from the node anew. */
TEST_FROM(divided_begin, holes_of_a_full_node_are_not_filled)
{
    struct fl_extent *e = take_on(0, KIB(512));
    assert_lies(take_on(0, KIB(512)), 0);
    give(e);
    assert_true(fl_region_purge(&region, 0) >= KIB(512));
    full[0] = true;
    assert_lies(take_on(0, KIB(512)), 1);
    next_zones = (struct fl_zonelist){.n = 1, .zone = {0}, .strict = true};
    assert_null(take(KIB(512)));
}

/* Half of the machine is in use: only what is touched may be taken. */
TEST_FROM(divided_begin, what_waits_for_its_touch_goes_where_there_is_room)
{
    fake_file("/proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n");
    full[0] = true;
    assert_lies(take_on(0, MIB(4)), 1);
    assert_lies(take_on(0, MIB(32)), 1);
    next_zones = (struct fl_zonelist){.n = 1, .zone = {0}, .strict = true};
    assert_null(take(MIB(4)));
    assert_true(fl_region_is_bound());
}

TEST_FROM(divided_begin, a_thread_bound_to_a_full_node_is_refused)
{
    next_zones = (struct fl_zonelist){.n = 1, .zone = {1}, .strict = true};
    full[1] = true;
    assert_null(take(MIB(4)));
    assert_true(fl_region_is_bound());
    assert_int_equal(stats().refused, 1);
    full[1] = false;
    assert_lies(take(MIB(4)), 1);
}

static unsigned asked; /* zones that were asked for a loan */

static size_t lends_nothing(unsigned zone, size_t bytes)
{
    asked |= 1u << zone;
    return 0;
}

/* One whose arenas lend nothing does not stop the other. */
TEST_FROM(divided_begin, each_node_is_asked_for_a_loan)
{
    static struct fl_inner arena[NODES];
    (void)fl_region_prove(&region);
    for (unsigned i = 0; i < NODES; i++) {
        ask_on(i);
        arena[i].shift = 16;
        assert_int_equal(fl_inner_open(&region, &arena[i], MIB(4)), 0);
        assert_true(fl_inner_fill(&region, &arena[i], fl_extent_range(arena[i].outer)));
        assert_int_equal(arena[i].outer->zone, i);
    }
    region.hooks.lend = lends_nothing;
    full[0] = true;
    assert_lies(take_on(0, MIB(16)), 1);
    assert_int_equal(asked, region.pages.move.method != FL_METHOD_NONE ? 3 : 0);
    region.hooks.lend = NULL;
    for (unsigned i = 0; i < NODES; i++) {
        fl_inner_close(&region, &arena[i]);
    }
}
