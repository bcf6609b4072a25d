/* Threads that move between two nodes: once they have moved for good, another arena is taken where
 * they run. */
#include "unit/plan_fixture.h"
#include "unit/zones_fixture.h"

static struct fl_placing following;

static uint64_t clock_now(void)
{
    return atomic_fetch_add(&fake.now_ns, 1000); /* so that a budget of time comes to its end */
}

static struct fl_arena *my_arena(void)
{
    return fl_plan_mine != NULL ? fl_plan_mine->serve.arena : fl_plan.context[1]->serve.arena;
}

static void begin(bool background, bool several)
{
    following = placing;
    following.alike_below = 0;
    following.follows = true;
    lies_on = NODES;
    ask_on(0);
    plan_placing = several ? &following : NULL;
    usual_begin(&(struct fl_plan_config){.on = true, .background = background});
    fl_sys.now_ns = clock_now;
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
    assert_planned(&usual);
}

/* So that it counts as moved, at the end of the last but one of these steps. */
static void stay_on(unsigned node)
{
    ask_on(node);
    steps(FL_LONG_SERVICE + 1);
}

static unsigned zone(void)
{
    return my_arena()->inner.outer->zone;
}

static void an_arena_follows_its_thread(void **state)
{
    (void)state;
    learn();
    uint64_t missed = plan_stats().missed_bytes;
    assert_int_equal(zone(), 0);
    stay_on(1);
    assert_int_equal(zone(), 1);
    assert_int_equal(mapped_for(my_arena()->base), 1);
    assert_planned(&usual);
    assert_int_equal(plan_stats().missed_bytes, missed);
    steps(2);
    assert_repeated(&usual);
    const struct fl_arena *a = my_arena();
    stay_on(1); /* where it is at home now */
    assert_ptr_equal(my_arena(), a);
    loop_over(&usual);
    assert_settled();
}

/* What the old one held is free on the old node, or is there in the new one. */
static void nothing_is_held_twice(void **state)
{
    (void)state;
    learn();
    loop_over(&usual);
    uint64_t in_use = region.held.in_use;
    stay_on(1);
    loop_over(&usual);
    assert_true(region.held.in_use <= in_use);
    (void)fl_arena_hand_on(my_arena());
    assert_true(is_reserved() || region.zones.of[1].free.huge != 0);
    assert_settled();
}

static void a_short_visit_is_none_of_that(void **state)
{
    (void)state;
    learn();
    for (int visits = 0; visits < 2; visits++) {
        ask_on(1);
        steps(FL_LONG_SERVICE - 1);
        ask_on(0);
        steps(1);
    }
    steps(FL_LONG_SERVICE);
    assert_int_equal(zone(), 0);
}

/* As one that a device has registered. */
static void an_arena_that_is_held_stays(void **state)
{
    struct fl_plan_layout held;

    (void)state;
    learn();
    assert_int_equal(fl_plan_hold(NULL, &held), 0);
    stay_on(1);
    assert_int_equal(zone(), 0);
    fl_plan_let_go(held.opening);
    stay_on(1);
    assert_int_equal(zone(), 1);
    loop_over(&usual);
}

static void without_a_worker_as_well(void **state)
{
    (void)state;
    begin(false, true);
    learn();
    stay_on(1);
    assert_int_equal(zone(), 1);
    assert_planned(&usual);
}

static void one_node_does_not_ask(void **state)
{
    (void)state;
    begin(true, false);
    learn();
    const struct fl_arena *a = my_arena();
    stay_on(1);
    assert_ptr_equal(my_arena(), a);
    assert_planned(&usual);
}

static size_t held_pages(void)
{
    const struct fl_bitmap *absent = &my_arena()->absent;

    return (absent->granules - fl_bitmap_count(absent, absent->granules)) * FL_GRANULE /
           fl_page.huge;
}

/* A block that no plan has. */
static void ask_beside(void)
{
    void *p = fl_memalign_large(MIB(2), MIB(2));

    assert_non_null(p);
    fl_free_ours(p);
}

/* What is idle on one node is no loan for a request on another. */
static void loans_stay_on_their_node(void **state)
{
    (void)state;
    learn();
    loop_over(&usual);
    size_t had = held_pages();
    assert_true(had != 0);
    ask_on(1);
    ask_beside();
    assert_int_equal(held_pages(), had);
    assert_int_equal(fl_plan_lend(1, MIB(2)), 0);
    assert_int_equal(held_pages(), had);
    ask_on(0);
    ask_beside();
    assert_true(is_reserved() || held_pages() < had);
    had = held_pages();
    assert_int_equal(fl_plan_lend(0, MIB(2)), had != 0 ? MIB(2) : 0);
    assert_sound();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(loans_stay_on_their_node, each),
        cmocka_unit_test_setup(an_arena_follows_its_thread, each),
        cmocka_unit_test_setup(nothing_is_held_twice, each),
        cmocka_unit_test_setup(a_short_visit_is_none_of_that, each),
        cmocka_unit_test_setup(an_arena_that_is_held_stays, each),
        cmocka_unit_test(without_a_worker_as_well),
        cmocka_unit_test(one_node_does_not_ask),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
