/* Blocks that lie together: marked in one step, they are one piece of the next layout, with a place
 * in even and odd steps; and the layout as other layers see it, with memory that stays. */
#include "unit/packed.h"
#include "unit/plan_fixture.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 30, MARKS = 3 };

static struct loop l;
static const unsigned marked[MARKS] = {4, 11, 20};
static unsigned zone = FL_ZONE_INPUT;
static unsigned noted; /* marks that were taken */

/* Each of them once it is there: before the request after it. */
static void mark(unsigned i)
{
    for (unsigned k = 0; k < MARKS; k++) {
        if (i == marked[k] + 1) {
            int rc = fl_plan_mark_zone(l.at[marked[k]], zone);
            assert_true(rc == 0 || rc == -ENOENT); /* while a layout is made there is no lookup */
            noted += rc == 0;
        }
    }
}

static void begin(void)
{
    plan_begin(NULL);
    l = (struct loop){.ask = loop_usual(N), .n = N};
}

static struct fl_plan_layout layout(struct fl_plan_place *place)
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

/* Do the places say where the requests of the last step lay? */
static void same_as_served(const struct fl_plan_layout *p, const struct fl_plan_place *place)
{
    for (unsigned i = 0; i < N; i++) {
        assert_true(l.planned[i]);
        assert_ptr_equal(l.at[i], (void *)(p->base + place[i].offset[p->parity]));
    }
}

static void zones_are_whole(const struct fl_plan_layout *p, const struct fl_plan_place *place)
{
    const struct fl_plan_zone *z = &p->zone[zone];
    uint64_t sum = 0;

    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(place[i].zone, is_marked(i) ? zone : 0);
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

static void marked_blocks_of_recorded_steps_lie_together(void **state)
{
    struct fl_plan_place place[N];

    (void)state;
    begin();
    l.also = mark;
    loop_declared(&l, NULL, 8);
    assert_int_equal(loop_planned(&l), N);
    struct fl_plan_layout p = layout(place);
    zones_are_whole(&p, place);
    same_as_served(&p, place);
    loop_declared(&l, NULL, 1);
    struct fl_plan_layout q = layout(place);
    assert_int_equal(q.generation, p.generation);
    assert_int_equal(q.parity, !p.parity);
    same_as_served(&q, place);
    loop_over(&l);
}

static void marks_in_served_steps_make_another_layout(void **state)
{
    struct fl_plan_place place[N];

    (void)state;
    begin();
    loop_declared(&l, NULL, 8);
    struct fl_plan_layout p = layout(place);
    assert_int_equal(p.zone[zone].len, 0);
    uint64_t layouts = plan_stats().layouts;
    l.also = mark;
    loop_declared(&l, NULL, 2);
    assert_int_equal(plan_stats().layouts, layouts + 1);
    loop_declared(&l, NULL, 6);
    assert_int_equal(plan_stats().layouts, layouts + 1);
    assert_int_equal(noted, 8 * MARKS);
    struct fl_plan_layout q = layout(place);
    assert_true(q.generation != p.generation);
    assert_int_equal(q.opening, p.opening);
    zones_are_whole(&q, place);
    same_as_served(&q, place);
    assert_int_equal(loop_planned(&l), N);
    loop_over(&l);
}

/* What was written in a step is there in the next one, though its block was freed. */
static void places_of_two_steps_are_apart(void **state)
{
    void *before[MARKS];

    (void)state;
    begin();
    l.also = mark;
    loop_declared(&l, NULL, 8);
    for (unsigned k = 0; k < MARKS; k++) {
        before[k] = l.at[marked[k]];
        memset(before[k], 0x5a, l.ask[marked[k]].n);
    }
    loop_declared(&l, NULL, 1);
    for (unsigned k = 0; k < MARKS; k++) {
        assert_ptr_not_equal(l.at[marked[k]], before[k]);
        for (size_t at = 0; at < l.ask[marked[k]].n; at++) {
            assert_int_equal(((unsigned char *)before[k])[at], 0x5a);
        }
    }
    loop_declared(&l, NULL, 1);
    for (unsigned k = 0; k < MARKS; k++) {
        assert_ptr_equal(l.at[marked[k]], before[k]);
    }
    loop_over(&l);
}

/* The worker has its turn after each step; a plan serves. */
static void begin_with_worker(void)
{
    plan_begin(&(struct fl_plan_config){.on = true, .background = true});
    l = (struct loop){.ask = loop_usual(N), .n = N};
    for (unsigned i = 0; i < 8; i++) {
        loop_declared(&l, NULL, 1);
        (void)fl_plan_work(&region);
    }
}

static void marks_show_with_the_next_layout(void **state)
{
    struct fl_plan_place place[N];

    (void)state;
    begin_with_worker();
    l.also = mark;
    loop_declared(&l, NULL, 1);
    l.also = NULL;
    (void)layout(place);
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(place[i].zone, 0);
    }
    (void)fl_plan_work(&region);
    loop_declared(&l, NULL, 2);
    struct fl_plan_layout p = layout(place);
    zones_are_whole(&p, place);
    loop_over(&l);
}

static unsigned only; /* the one that is marked */

static void mark_only(unsigned i)
{
    if (i == marked[only] + 1) {
        assert_int_equal(fl_plan_mark_zone(l.at[marked[only]], zone), 0);
    }
}

/* The worker is at another layout meanwhile. Each is marked once. */
static void marks_while_a_layout_is_made_count(void **state)
{
    struct fl_plan_place place[N];

    (void)state;
    begin_with_worker();
    assert_int_equal(loop_planned(&l), N);
    l.also = mark_only;
    for (only = 0; only < MARKS; only++) {
        loop_declared(&l, NULL, 1);
    }
    l.also = NULL;
    for (unsigned i = 0; i < 6; i++) {
        (void)fl_plan_work(&region);
        loop_declared(&l, NULL, 1);
    }
    struct fl_plan_layout p = layout(place);
    zones_are_whole(&p, place);
    same_as_served(&p, place);
    loop_over(&l);
}

static void what_is_of_no_step_has_no_zone(void **state)
{
    struct fl_plan_layout p;
    int local;

    (void)state;
    begin();
    void *q = fl_malloc_large(KIB(200));
    assert_int_equal(fl_plan_mark_zone(q, FL_ZONE_INPUT), -ENOENT);
    assert_int_equal(fl_plan_mark_zone(&local, FL_ZONE_INPUT), -ENOENT);
    assert_int_equal(fl_plan_mark_zone(NULL, FL_ZONE_INPUT), -ENOENT);
    assert_int_equal(fl_plan_mark_zone(q, 0), -EINVAL);
    assert_int_equal(fl_plan_mark_zone(q, FL_PLAN_ZONES + 1), -EINVAL);
    fl_free_ours(q);
    assert_int_equal(fl_plan_layout(NULL, &p, NULL, 0), -EINVAL);
    loop_declared(&l, NULL, 1);
    assert_int_equal(fl_plan_layout(NULL, &p, NULL, 0), -ENODATA);
    assert_int_equal(fl_plan_hold(NULL, &p), -ENODATA);
    loop_over(&l);
}

/* All of it is there, whatever asks for its memory, until it is let go. */
static void memory_that_is_held_stays(void **state)
{
    struct fl_plan_layout p, q;

    (void)state;
    begin();
    loop_declared(&l, NULL, 8);
    loop_over(&l);
    assert_int_equal(fl_plan_hold(NULL, &p), 0);
    assert_int_equal(fl_plan_hold(NULL, &q), 0);
    assert_int_equal(q.opening, p.opening);
    for (size_t at = 0; at < p.limit; at += FL_GRANULE) {
        *(size_t *)(p.base + at) = at;
    }
    for (unsigned round = 0; round < 2; round++) {
        assert_int_equal(fl_plan_release(), 0);
        for (unsigned i = 0; i < 8; i++) {
            (void)fl_plan_age(&region);
        }
        for (size_t at = 0; at < p.limit; at += FL_GRANULE) {
            assert_int_equal(*(size_t *)(p.base + at), at);
        }
        fl_plan_let_go(round == 0 ? p.opening : p.opening + 1); /* the second is another's */
    }
    fl_plan_let_go(p.opening);
    assert_true(fl_plan_release() >= p.limit);
    assert_int_equal(fl_plan_layout(NULL, &q, NULL, 0), -ENODATA);
    loop_declared(&l, NULL, 1);
    assert_int_equal(fl_plan_layout(NULL, &q, NULL, 0), 0);
    assert_true(q.opening != p.opening);
    loop_over(&l);
}

/* Its addresses are no map there: nothing may be served from them. */
static void a_child_has_nothing_of_what_is_held(void **state)
{
    struct fl_plan_layout p;
    int status = 1;

    (void)state;
    begin();
    loop_declared(&l, NULL, 8);
    loop_over(&l);
    assert_int_equal(fl_plan_hold(NULL, &p), 0);
    fl_lock_acquire(fl_plan_fork_word());
    fl_lock_hold_for_fork(fl_plan_fork_word());
    pid_t pid = fork();
    if (pid == 0) {
        fl_plan_fork_child(fl_lock_release_in_child(fl_plan_fork_word()));
        loop_declared(&l, NULL, 8);
        for (unsigned i = 0; i < N; i++) {
            if ((uintptr_t)l.at[i] - p.base < p.limit) {
                _exit(2);
            }
        }
        _exit(0);
    }
    fl_lock_release_in_parent(fl_plan_fork_word());
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    loop_declared(&l, NULL, 1);
    assert_int_equal((uintptr_t)l.at[0] - p.base < p.limit, true);
    loop_over(&l);
}

/* The worker that was to make the layout anew is not there. */
static void marks_count_in_a_child(void **state)
{
    struct fl_plan_place place[N];
    int status = 1;

    (void)state;
    begin_with_worker();
    l.also = mark;
    loop_declared(&l, NULL, 1);
    l.also = NULL;
    assert_int_equal(noted, MARKS);
    fl_lock_acquire(fl_plan_fork_word());
    fl_lock_hold_for_fork(fl_plan_fork_word());
    pid_t pid = fork();
    if (pid == 0) {
        fl_plan_fork_child(fl_lock_release_in_child(fl_plan_fork_word()));
        for (unsigned i = 0; i < 6; i++) {
            loop_declared(&l, NULL, 1);
            (void)fl_plan_work(&region);
        }
        struct fl_plan_layout p = layout(place);
        zones_are_whole(&p, place);
        _exit(0);
    }
    fl_lock_release_in_parent(fl_plan_fork_word());
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    loop_over(&l);
}

/* Another thread was about to end the plan that the context was served from: so it left it. */
static void a_child_finds_a_context_amid_the_end_of_a_plan(void **state)
{
    struct fl_step_context *c = NULL;
    int status = 1;

    (void)state;
    begin();
    assert_int_equal(fl_plan_context_new(&c), 0);
    loop_declared(&l, c, 8);
    loop_over(&l);
    assert_int_equal(c->state, FL_SERVE);
    fl_lock_acquire(fl_plan_fork_word());
    fl_lock_hold_for_fork(fl_plan_fork_word());
    pid_t pid = fork();
    if (pid == 0) {
        c->serve.layout = c->serve.last = NULL;
        c->who.thread = 16;
        fl_plan_fork_child(fl_lock_release_in_child(fl_plan_fork_word()));
        loop_declared(&l, c, 40);
        _exit(loop_planned(&l) == N ? 0 : 2);
    }
    fl_lock_release_in_parent(fl_plan_fork_word());
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
}

static uint64_t any(uint64_t n)
{
    static uint64_t random = 1;

    random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (random >> 33) % n;
}

/* Slots of all kinds and zones, with places for blocks of some MiB, and now and then for one from a
 * huge page on. */
static struct fl_layout *some_slots(size_t n)
{
    struct fl_layout *made = fl_layout_new(n);

    assert_non_null(made);
    for (size_t i = 0; i < n; i++) {
        size_t size = KIB(4) * (16 + any(any(8) == 0 ? 12000 : 400));
        made->slot[i] = (struct fl_slot){.size = size,
                                         .least = size,
                                         .most = size,
                                         .align = any(4) == 0 ? KIB(64) : 0,
                                         .birth = i,
                                         .death = i + 1 + any(n - i),
                                         .offset = {FL_PACK_NONE, FL_PACK_NONE},
                                         .kind = (enum fl_slot_kind)any(FL_SLOT_KEPT + 1),
                                         .zone = (uint32_t)any(2 * FL_PLAN_ZONES)};
        made->slot[i].zone = made->slot[i].zone > FL_PLAN_ZONES ? 0 : made->slot[i].zone;
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
    begin();
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
        cmocka_unit_test(no_zone_overlaps_anything),
        cmocka_unit_test(marked_blocks_of_recorded_steps_lie_together),
        cmocka_unit_test(marks_in_served_steps_make_another_layout),
        cmocka_unit_test(marks_show_with_the_next_layout),
        cmocka_unit_test(places_of_two_steps_are_apart),
        cmocka_unit_test(marks_while_a_layout_is_made_count),
        cmocka_unit_test(what_is_of_no_step_has_no_zone),
        cmocka_unit_test(memory_that_is_held_stays),
        cmocka_unit_test(a_child_has_nothing_of_what_is_held),
        cmocka_unit_test(marks_count_in_a_child),
        cmocka_unit_test(a_child_finds_a_context_amid_the_end_of_a_plan),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
