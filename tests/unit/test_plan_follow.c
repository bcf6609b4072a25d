/* Threads that move between two nodes: their arenas follow, once they have moved for good, and what is in them stays. */
#include "unit/plan_fixture.h"

#include <errno.h>
#include <string.h>

enum { NODES = 2, N = 30, AWAY_STEPS = 8, MOVES = 512, ROUNDS = 4096 };
static const uint64_t away_ns = 100000000;

static struct loop usual;
static unsigned here;  /* the node that the thread runs on */
static bool full;      /* node 1 is */
static int refusal;    /* what `move` answers */
static unsigned bound; /* the zone that maps were last bound to, but for the worker's own */
static uint64_t now;
static struct {
    struct fl_range range;
    unsigned zone;
    bool busy; /* some block lies there */
} moved[MOVES];
static unsigned nmoved;

static uint64_t clock_now(void)
{
    return now += 1000; /* so that whoever has a budget of time comes to its end */
}

static void wish(size_t len, struct fl_wish *out)
{
    (void)len;
    *out = (struct fl_wish){.n = 2, .zone = {(uint8_t)here, (uint8_t)(1 - here)}};
}

static void mapped(struct fl_range range, unsigned zone)
{
    (void)range;
    bound = zone;
}

static void mapped_own(struct fl_range range)
{
    (void)range;
}

static void no_look(unsigned zone)
{
    (void)zone;
}

static bool has_room(unsigned zone, size_t bytes)
{
    return !(zone == 1 && full && bytes != 0);
}

static struct fl_arena *my_arena(void)
{
    return fl_plan_mine != NULL ? fl_plan_mine->serve.arena : fl_plan.context[0]->serve.arena;
}

static int move(struct fl_range range, unsigned zone)
{
    struct fl_arena *a = my_arena();
    size_t granules = range.len >> FL_GRANULE_SHIFT;

    if (refusal != 0) {
        return refusal;
    }
    assert_true(nmoved < MOVES);
    moved[nmoved].range = range;
    moved[nmoved].zone = zone;
    moved[nmoved++].busy =
        !fl_claims_are_free(&a->claims, (range.base - a->base) >> FL_GRANULE_SHIFT, granules);
    return 0;
}

static unsigned found(struct fl_range range)
{
    (void)range;
    return NODES;
}

static unsigned runs_on(int tid)
{
    (void)tid;
    return 0;
}

static void fill_begin(unsigned zone)
{
    (void)zone;
}

static void fill_end(void)
{
}

static const struct fl_placing placing = {.nodes = NODES,
                                          .wish = wish,
                                          .mapped = mapped,
                                          .mapped_own = mapped_own,
                                          .has_room = has_room,
                                          .look = no_look,
                                          .found = found,
                                          .move = move,
                                          .runs_on = runs_on,
                                          .fill_begin = fill_begin,
                                          .fill_end = fill_end};

static void begin(bool background, bool several)
{
    plan_placing = several ? &placing : NULL;
    plan_begin(&(struct fl_plan_config){.on = true, .background = background});
    fl_sys.now_ns = clock_now;
    usual = (struct loop){.ask = loop_usual(N), .n = N};
}

static int each(void **state)
{
    (void)state;
    begin(true, true);
    return 0;
}

static void steps(unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        loop_declared(&usual, NULL, 1);
        (void)fl_plan_work(&region);
    }
}

static void learn(void)
{
    steps(8);
    assert_int_equal(loop_planned(&usual), N);
}

/* So that it counts as moved, at the end of the last of these steps. */
static void stay_on(unsigned node)
{
    here = node;
    steps(1);
    now += away_ns << 10;
    steps(AWAY_STEPS - 1);
}

/* The worker's share, to its end. Returns whether there was anything to do. */
static bool work(void)
{
    unsigned rounds = 0;

    while (fl_plan_follow(&region) != UINT64_MAX) {
        assert_true(++rounds < ROUNDS);
    }
    return nmoved != 0;
}

static unsigned zone(void)
{
    return my_arena()->inner.outer->zone;
}

static bool was_moved(uintptr_t page)
{
    for (unsigned i = 0; i < nmoved; i++) {
        if (page - moved[i].range.base < moved[i].range.len) {
            assert_int_equal(moved[i].zone, 1);
            return true;
        }
    }
    return false;
}

/* A thread's memory, all of it that is there, is on the other node; and nothing else has changed. */
static void an_arena_follows_its_thread(void **state)
{
    (void)state;
    learn();
    const struct fl_arena *a = my_arena();
    uint64_t in_use = region.stats.in_use, populated = region.populated_bytes;
    assert_int_equal(zone(), 0);
    stay_on(1);
    assert_int_equal(nmoved, 0); /* by the worker alone */
    assert_true(region.wants_worker);
    assert_true(work());
    assert_int_equal(zone(), 1);
    for (size_t i = 0; i < a->filled.granules; i++) {
        assert_int_equal(was_moved(a->base + i * fl_page.huge), fl_arena_is_filled(a, i));
    }
    assert_int_equal(bound, 1);
    steps(2);
    assert_ptr_equal(my_arena(), a);
    assert_int_equal(loop_same(&usual), N);
    assert_int_equal(loop_planned(&usual), N);
    assert_int_equal(plan_stats().misses, 0);
    assert_int_equal(region.stats.in_use, in_use);
    assert_int_equal(region.populated_bytes, populated);
    stay_on(1); /* where it is at home now */
    nmoved = 0;
    assert_false(work());
    loop_over(&usual);
    assert_settled();
}

/* What comes later comes to the new node, and what goes is free there. */
static void its_memory_is_the_other_nodes_from_then_on(void **state)
{
    (void)state;
    learn();
    stay_on(1);
    assert_true(work());
    size_t before = region.zone[0].free_huge;
    loop_over(&usual);
    fl_region_release(&region);
    steps(1);
    assert_int_equal(loop_planned(&usual), N);
    assert_int_equal(bound, 1);
    loop_over(&usual);
    (void)fl_arena_hand_on(my_arena());
    assert_true(region.zone[0].free_huge <= before);
    assert_true(is_reserved() || region.zone[1].free_huge != 0);
    assert_settled();
}

static void a_short_visit_is_none_of_that(void **state)
{
    (void)state;
    learn();
    here = 1;
    now += away_ns;
    steps(AWAY_STEPS - 1);
    here = 0;
    steps(1);
    here = 1;
    steps(AWAY_STEPS - 1);
    here = 0;
    steps(AWAY_STEPS);
    assert_false(work());
    here = 1; /* many steps, but little time */
    uint64_t began = now;
    steps(2 * AWAY_STEPS);
    assert_true(now - began < away_ns);
    assert_false(work());
    assert_int_equal(zone(), 0);
}

static void whoever_wanders_waits_longer_each_time(void **state)
{
    (void)state;
    learn();
    for (unsigned journey = 0; journey < 4; journey++) {
        here = 1 - here;
        steps(1);
        now += (away_ns << journey) - away_ns / 2;
        steps(AWAY_STEPS);
        nmoved = 0;
        assert_false(work());
        now += away_ns / 2;
        steps(1);
        (void)work();
        assert_int_equal(zone(), here);
    }
}

static void hold_one(unsigned i)
{
    if (i == N / 2) {
        (void)work();
    }
}

/* Within a step: what nobody has a block in is first. */
static void idle_pages_go_first(void **state)
{
    bool busy = false;

    (void)state;
    learn();
    stay_on(1);
    usual.also = hold_one;
    steps(1);
    assert_true(nmoved != 0);
    for (unsigned i = 0; i < nmoved; i++) {
        assert_false(busy && !moved[i].busy && i < nmoved / 2);
        busy |= moved[i].busy;
    }
    assert_true(busy); /* blocks as well */
    assert_false(moved[0].busy);
    assert_int_equal(loop_planned(&usual), N);
}

static void to_a_node_without_room_nothing_goes(void **state)
{
    (void)state;
    learn();
    full = true;
    stay_on(1);
    assert_false(work());
    assert_int_equal(zone(), 0);
    full = false; /* the next time it is asked again */
    now += away_ns << 4;
    steps(2 * AWAY_STEPS);
    now += away_ns << 4;
    steps(1);
    assert_true(work());
    assert_int_equal(zone(), 1);
}

static void where_the_kernel_moves_nothing_another_arena_is_taken(void **state)
{
    static const int refusals[] = {-EPERM, -ENOSYS};

    (void)state;
    learn();
    for (unsigned i = 0; i < 2; i++) {
        const struct fl_arena *a = my_arena();
        uint64_t missed = plan_stats().missed_bytes;
        refusal = refusals[i];
        stay_on(1 - here);
        (void)fl_plan_follow(&region);
        assert_int_equal(zone(), 1 - here);
        steps(2);
        assert_true(my_arena() != a || a->height == 0 || zone() == here);
        assert_int_equal(zone(), here);
        assert_int_equal(loop_planned(&usual), N);
        assert_int_equal(plan_stats().missed_bytes, missed);
    }
    loop_over(&usual);
    assert_settled();
}

static void without_a_worker_as_well(void **state)
{
    (void)state;
    begin(false, true);
    learn();
    stay_on(1);
    steps(2);
    assert_int_equal(nmoved, 0);
    assert_int_equal(zone(), 1);
    assert_int_equal(loop_planned(&usual), N);
}

/* A block that outlives the step keeps its arena; the arena goes on all the same, and nothing moves what is not there any more. */
static void an_arena_that_is_gone_does_not_follow(void **state)
{
    (void)state;
    learn();
    stay_on(1);
    loop_over(&usual);
    fl_region_release(&region);
    for (int i = 0; i < 20 && plan_stats().arena_bytes != 0; i++) {
        (void)fl_plan_age(&region);
    }
    assert_int_equal(plan_stats().arena_bytes, 0);
    assert_false(work());
    steps(1);
    assert_int_equal(zone(), 1);
    assert_int_equal(loop_planned(&usual), N);
}

static void one_node_asks_nobody(void **state)
{
    (void)state;
    begin(true, false);
    learn();
    here = 1;
    now += away_ns;
    steps(2 * AWAY_STEPS);
    assert_false(work());
    assert_int_equal(loop_planned(&usual), N);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_arena_follows_its_thread, each),
        cmocka_unit_test_setup(its_memory_is_the_other_nodes_from_then_on, each),
        cmocka_unit_test_setup(a_short_visit_is_none_of_that, each),
        cmocka_unit_test_setup(whoever_wanders_waits_longer_each_time, each),
        cmocka_unit_test_setup(idle_pages_go_first, each),
        cmocka_unit_test_setup(to_a_node_without_room_nothing_goes, each),
        cmocka_unit_test_setup(where_the_kernel_moves_nothing_another_arena_is_taken, each),
        cmocka_unit_test(without_a_worker_as_well),
        cmocka_unit_test_setup(an_arena_that_is_gone_does_not_follow, each),
        cmocka_unit_test(one_node_asks_nobody),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
