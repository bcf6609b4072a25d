/* Blocks that lie together: marked in one step, they are one piece of the next layout, with a place
 * in even and odd steps; and the layout as other layers see it, with memory that stays. */
#include "unit/packed.h"
#include "unit/plan_fixture.h"

#include <errno.h>

enum { N = USUAL, MARKS = 3, ZONE = FL_ZONE_INPUT };

static const unsigned marked[MARKS] = {4, 11, 20};
static unsigned noted;                     /* marks that were taken */
static unsigned first_mark, marks = MARKS; /* those of `marked` that are marked */
static struct fl_plan_place place[N];

/* Each of them once it is there: before the request after it. */
static void mark(unsigned i)
{
    for (unsigned k = first_mark; k < first_mark + marks; k++) {
        if (i == marked[k] + 1) {
            int rc = fl_plan_mark_zone(usual.at[marked[k]], ZONE);
            assert_true(rc == 0 || rc == -ENOENT); /* while a layout is made there is no lookup */
            noted += rc == 0;
        }
    }
}

static struct fl_plan_layout layout(void)
{
    struct fl_plan_layout out;

    assert_int_equal(fl_plan_layout(NULL, &out, place, N), 0);
    assert_int_equal(out.places, N);
    return out;
}

static bool is_marked(unsigned i)
{
    return i == marked[0] || i == marked[1] || i == marked[2];
}

static void zones_are_whole(const struct fl_plan_layout *p)
{
    const struct fl_plan_zone *z = &p->zone[ZONE];
    uint64_t sum = 0;

    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(place[i].zone, is_marked(i) ? ZONE : 0);
        for (int parity = 0; parity < 2; parity++) {
            uint64_t from = place[i].offset[parity], to = from + place[i].size;
            if (is_marked(i)) {
                assert_true(from >= z->offset[parity] && to <= z->offset[parity] + z->len);
            } else { /* nothing else in either */
                for (int k = 0; k < 2; k++) {
                    assert_true(to <= z->offset[k] || from >= z->offset[k] + z->len);
                }
            }
        }
        sum += is_marked(i) ? fl_align_up(place[i].size, FL_GRANULE) : 0;
    }
    assert_true(z->len <= sum && z->len > sum - FL_GRANULE);
    assert_true(z->offset[1] >= z->offset[0] + z->len || z->offset[0] >= z->offset[1] + z->len);
    assert_int_equal(fl_min(z->offset[0], z->offset[1]), 0);
}

/* The zones are whole, and the places say where the requests of the last step lay. */
static struct fl_plan_layout whole_and_served(void)
{
    struct fl_plan_layout p = layout();

    zones_are_whole(&p);
    assert_planned(&usual);
    for (unsigned i = 0; i < N; i++) {
        assert_ptr_equal(usual.at[i], (void *)(p.base + place[i].offset[p.parity]));
    }
    return p;
}

static void marked_blocks_of_recorded_steps_lie_together(void **state)
{
    (void)state;
    usual.also = mark;
    loop_declared(&usual, NULL, 8);
    struct fl_plan_layout p = whole_and_served();
    loop_declared(&usual, NULL, 1);
    struct fl_plan_layout q = whole_and_served();
    assert_int_equal(q.generation, p.generation);
    assert_int_equal(q.parity, !p.parity);
    loop_over(&usual);
}

static void marks_in_served_steps_make_another_layout(void **state)
{
    (void)state;
    loop_declared(&usual, NULL, 8);
    struct fl_plan_layout p = layout();
    assert_int_equal(p.zone[ZONE].len, 0);
    uint64_t layouts = plan_stats().layouts;
    usual.also = mark;
    loop_declared(&usual, NULL, 2);
    assert_int_equal(plan_stats().layouts, layouts + 1);
    loop_declared(&usual, NULL, 6);
    assert_int_equal(plan_stats().layouts, layouts + 1);
    assert_int_equal(noted, 8 * MARKS);
    struct fl_plan_layout q = whole_and_served();
    assert_true(q.generation != p.generation);
    assert_int_equal(q.opening, p.opening);
    loop_over(&usual);
}

static void steps_and_work(unsigned steps)
{
    for (unsigned i = 0; i < steps; i++) {
        loop_declared(&usual, NULL, 1);
        (void)fl_plan_work(&region);
    }
}

/* The worker has its turn after each step; a plan serves. */
static int with_worker(void **state)
{
    (void)state;
    usual_begin(&(struct fl_plan_config){.on = true, .background = true});
    steps_and_work(8);
    assert_planned(&usual);
    usual.also = mark;
    return 0;
}

static void marks_show_with_the_next_layout(void **state)
{
    (void)state;
    loop_declared(&usual, NULL, 1);
    usual.also = NULL;
    (void)layout();
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(place[i].zone, 0);
    }
    (void)fl_plan_work(&region);
    loop_declared(&usual, NULL, 2);
    (void)whole_and_served();
    loop_over(&usual);
}

/* The worker is at another layout meanwhile. Each is marked once. */
static void marks_while_a_layout_is_made_count(void **state)
{
    (void)state;
    for (marks = 1; first_mark < MARKS; first_mark++) {
        loop_declared(&usual, NULL, 1);
    }
    usual.also = NULL;
    assert_int_equal(noted, MARKS);
    (void)fl_plan_work(&region);
    steps_and_work(5);
    loop_declared(&usual, NULL, 1);
    (void)whole_and_served();
    loop_over(&usual);
}

static int marks_are_in_the_child(void)
{
    plan_in_child();
    steps_and_work(6);
    struct fl_plan_layout p = layout();
    zones_are_whole(&p);
    return 0;
}

/* The worker that was to make the layout anew is not there. */
static void marks_count_in_a_child(void **state)
{
    (void)state;
    loop_declared(&usual, NULL, 1);
    usual.also = NULL;
    assert_int_equal(noted, MARKS);
    assert_int_equal(plan_fork(marks_are_in_the_child), 0);
    loop_over(&usual);
}

static void what_is_of_no_step_has_no_zone(void **state)
{
    struct fl_plan_layout p;
    int local;

    (void)state;
    void *q = fl_malloc_large(KIB(200));
    assert_int_equal(fl_plan_mark_zone(q, FL_ZONE_INPUT), -ENOENT);
    assert_int_equal(fl_plan_mark_zone(&local, FL_ZONE_INPUT), -ENOENT);
    assert_int_equal(fl_plan_mark_zone(NULL, FL_ZONE_INPUT), -ENOENT);
    assert_int_equal(fl_plan_mark_zone(q, 0), -EINVAL);
    assert_int_equal(fl_plan_mark_zone(q, FL_PLAN_ZONES + 1), -EINVAL);
    fl_free_ours(q);
    assert_int_equal(fl_plan_layout(NULL, &p, NULL, 0), -EINVAL);
    loop_declared(&usual, NULL, 1);
    assert_int_equal(fl_plan_layout(NULL, &p, NULL, 0), -ENODATA);
    assert_int_equal(fl_plan_hold(NULL, &p), -ENODATA);
    loop_over(&usual);
}

static struct fl_plan_layout held;

static void hold(void)
{
    loop_declared(&usual, NULL, 8);
    loop_over(&usual);
    assert_int_equal(fl_plan_hold(NULL, &held), 0);
}

static bool has_its_bytes(bool fill)
{
    bool has = true;

    for (size_t at = 0; at < held.limit; at += FL_GRANULE) {
        size_t *word = (size_t *)(held.base + at);
        *word = fill ? at : *word;
        has = has && *word == at;
    }
    return has;
}

/* All of it is there, whatever asks for its memory, until it is let go as often as it was held. */
static void memory_that_is_held_stays(void **state)
{
    struct fl_plan_layout p = {0};

    (void)state;
    hold();
    assert_int_equal(fl_plan_hold(NULL, &p), 0);
    assert_int_equal(p.opening, held.opening);
    (void)has_its_bytes(true);
    for (unsigned round = 0; round < 2; round++) {
        assert_int_equal(fl_plan_release(), 0);
        for (unsigned i = 0; i < 8; i++) {
            (void)fl_plan_age(&region);
        }
        assert_true(has_its_bytes(false));
        fl_plan_let_go(held.opening + round); /* the second is another's */
    }
    assert_int_equal(fl_plan_release(), 0);
    fl_plan_let_go(held.opening);
    assert_true(fl_plan_release() >= held.limit);
    assert_int_equal(fl_plan_layout(NULL, &p, NULL, 0), -ENODATA);
    loop_declared(&usual, NULL, 1);
    assert_int_equal(fl_plan_layout(NULL, &p, NULL, 0), 0);
    assert_true(p.opening != held.opening);
    fl_plan_set_on(false);
    assert_int_equal(fl_plan_layout(NULL, &p, NULL, 0), -ENODATA);
    fl_plan_set_on(true);
    assert_int_equal(fl_plan_layout(NULL, &p, NULL, 0), 0);
    loop_over(&usual);
}

static bool is_held(const void *p)
{
    return (uintptr_t)p - held.base < held.limit;
}

static int serve_nothing_of_it(void)
{
    plan_in_child();
    loop_declared(&usual, NULL, 8);
    for (unsigned i = 0; i < N; i++) {
        if (is_held(usual.at[i])) {
            return 2;
        }
    }
    return 0;
}

/* Its addresses are no map there: nothing may be served from them. */
static void a_child_has_nothing_of_what_is_held(void **state)
{
    (void)state;
    hold();
    assert_int_equal(plan_fork(serve_nothing_of_it), 0);
    loop_declared(&usual, NULL, 1);
    assert_true(is_held(usual.at[0]));
    loop_over(&usual);
}

static uint64_t any(uint64_t n)
{
    return (loop_roll() >> 33) % n;
}

/* Slots of all kinds and zones, with places for blocks of some MiB, and now and then for one from a
 * huge page on. */
static struct fl_layout *some_slots(size_t n)
{
    struct fl_layout *made = fl_layout_new(n);

    assert_non_null(made);
    for (size_t i = 0; i < n; i++) {
        size_t size = KIB(4) * (16 + any(any(8) == 0 ? 12000 : 400));
        uint32_t zone = (uint32_t)any(2 * FL_PLAN_ZONES);
        made->slot[i] = (struct fl_slot){.size = size,
                                         .least = size,
                                         .most = size,
                                         .align = any(4) == 0 ? KIB(64) : 0,
                                         .birth = i,
                                         .death = i + 1 + any(n - i),
                                         .offset = {FL_PACK_NONE, FL_PACK_NONE},
                                         .kind = (enum fl_slot_kind)any(FL_SLOT_KEPT + 1),
                                         .zone = zone > FL_PLAN_ZONES ? 0 : zone};
    }
    fl_merge_zones(made->slot, n);
    return made;
}

static void no_zone_overlaps_anything(void **state)
{
    enum { LAYOUTS = 200, MOST = 60 };
    static struct fl_pack_buffer buffer[2 * MOST];
    static uint32_t back[2 * MOST];

    (void)state;
    for (int round = 0; round < LAYOUTS; round++) {
        struct fl_layout *made = some_slots(1 + any(MOST));
        struct fl_merge_buffers b = {.buffer = buffer, .back = back};
        struct fl_merge_unit unit = {FL_GRANULE, FL_HUGE_FROM, fl_page.huge};
        assert_int_equal(fl_engine_pack(made), 0);
        fl_merge_buffers(made->slot, made->n, unit, &b);
        assert_true(packed_well(b.buffer, b.n, made->height));
        fl_layout_free(made);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(no_zone_overlaps_anything, usual_each),
        cmocka_unit_test_setup(marked_blocks_of_recorded_steps_lie_together, usual_each),
        cmocka_unit_test_setup(marks_in_served_steps_make_another_layout, usual_each),
        cmocka_unit_test_setup(marks_show_with_the_next_layout, with_worker),
        cmocka_unit_test_setup(marks_while_a_layout_is_made_count, with_worker),
        cmocka_unit_test_setup(marks_count_in_a_child, with_worker),
        cmocka_unit_test_setup(what_is_of_no_step_has_no_zone, usual_each),
        cmocka_unit_test_setup(memory_that_is_held_stays, usual_each),
        cmocka_unit_test_setup(a_child_has_nothing_of_what_is_held, usual_each),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
