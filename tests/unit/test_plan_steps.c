/* Steps that the program declares: learned, packed at once, served where they were; and what
 * becomes of a plan that is wrong. */
#include "region/state/lock.h"
#include "unit/plan_fixture.h"

#include <errno.h>
#include <string.h>

enum { N = 30, LEARN = 4 };

static void misuse_is_answered(void **state)
{
    (void)state;
    struct fl_step_context *a, *b;
    plan_begin(NULL);
    assert_int_equal(fl_plan_context_new(NULL), -EINVAL);
    assert_int_equal(fl_plan_context_free(NULL), -EINVAL);
    assert_int_equal(fl_plan_end(NULL), -EINVAL);
    assert_int_equal(fl_plan_context_new(&a), 0);
    assert_int_equal(fl_plan_context_new(&b), 0);
    assert_int_equal(fl_plan_begin(a), 0);
    assert_int_equal(fl_plan_begin(a), -EINVAL);
    assert_int_equal(fl_plan_begin(b), 0);
    assert_int_equal(fl_plan_end(a), -EINVAL); /* not the innermost */
    assert_int_equal(fl_plan_end(NULL), -EINVAL);
    assert_int_equal(fl_plan_context_free(a), -EBUSY);
    assert_int_equal(fl_plan_end(b), 0);
    assert_int_equal(fl_plan_end(b), -EINVAL);
    assert_int_equal(fl_plan_end(a), 0);
    assert_int_equal(fl_plan_context_free(a), 0);
    assert_int_equal(fl_plan_context_free(a), -EINVAL);
    assert_int_equal(fl_plan_begin(a), -EINVAL);
    assert_int_equal(fl_plan_begin(b), 0);
    fl_region_lock(&region); /* a handler */
    assert_true(fl_plan_begin(NULL) < 0);
    assert_true(fl_plan_end(b) < 0);
    fl_region_unlock(&region);
    assert_int_equal(fl_plan_end(b), 0);
    fl_plan.config.on = false;
    assert_int_equal(fl_plan_context_new(&a), -ENOSYS);
    assert_int_equal(fl_plan_begin(b), -ENOSYS);
    assert_int_equal(fl_plan_end(b), -ENOSYS);
}

static void contexts_are_used_again_and_there_is_an_end_to_them(void **state)
{
    (void)state;
    struct fl_step_context *c[FL_CONTEXTS + 1];
    plan_begin(NULL);
    for (int round = 0; round < 2; round++) {
        unsigned n = 0;
        while (n <= FL_CONTEXTS && fl_plan_context_new(&c[n]) == 0) {
            n++;
        }
        assert_true(n == FL_CONTEXTS || (is_reserved() && n > 128));
        assert_int_equal(fl_plan_context_new(&c[n]), -ENOMEM);
        while (n-- > 0) {
            assert_int_equal(fl_plan_context_free(c[n]), 0);
        }
    }
}

/* Addresses are never given back: those that could not be used are tried again. */
static void a_context_without_memory_takes_no_addresses(void **state)
{
    struct fl_step_context *first, *c;
    size_t mapped;

    (void)state;
    plan_begin(NULL);
    assert_int_equal(fl_plan_context_new(&first), 0);
    fake.commit_max = 1;
    assert_int_equal(fl_plan_context_new(&c), -ENOMEM);
    size_t used = fl_plan_memory(&mapped).len;
    for (int i = 0; i < 4; i++) {
        assert_int_equal(fl_plan_context_new(&c), -ENOMEM);
    }
    assert_int_equal(fl_plan_memory(&mapped).len, used);
    fake.commit_max = SIZE_MAX;
    assert_int_equal(fl_plan_context_new(&c), 0);
    assert_int_equal(fl_plan_memory(&mapped).len, used);
    assert_int_equal(fl_plan_context_free(c), 0);
}

/* Learned: every request of the loop's last step was the plan's. */
static void learn(struct loop *l, struct fl_step_context *c)
{
    for (int i = 0; i < 20 && (i < 2 || loop_planned(l) < l->n); i++) {
        loop_declared(l, c, 1);
    }
    assert_int_equal(loop_planned(l), l->n);
}

static void a_step_that_repeats_is_served_where_it_was(void **state)
{
    (void)state;
    struct loop l = {.ask = loop_usual(N), .n = N};
    plan_begin(NULL);
    loop_declared(&l, NULL, LEARN);
    assert_int_equal(loop_planned(&l), N);
    struct fl_plan_stats before = plan_stats();
    for (int i = 0; i < 5; i++) {
        loop_declared(&l, NULL, 1);
        assert_int_equal(loop_same(&l), N);
        assert_int_equal(loop_planned(&l), N);
        assert_sound();
    }
    struct fl_plan_stats s = plan_stats();
    assert_int_equal(s.hits - before.hits, 5 * N);
    assert_int_equal(s.steps - before.steps, 5);
    assert_int_equal(s.misses, 0);
    assert_int_equal(s.layouts, 1);
    assert_int_equal(s.drops, 0);
    assert_true(s.arena_bytes != 0);
    /* Between two steps no block is live. */
    assert_true(s.free_bytes != 0);
    assert_int_equal(s.free_bytes, stats().in_use_bytes - stats().cached_bytes);
    thread_end();
    assert_int_equal(plan_stats().arena_bytes, 0);
    assert_settled();
}

static void a_block_that_crosses_has_one_place_and_a_doubled_one_two(void **state)
{
    (void)state;
    struct ask ask[N];
    struct loop l = {.ask = ask, .n = N};
    plan_begin(NULL);
    memcpy(ask, loop_usual(N), sizeof ask);
    ask[10].lives = N - 3; /* until the next step's eighth */
    ask[20].lives = N + 5; /* until after its own like there */
    learn(&l, NULL);
    for (int i = 0; i < 6; i++) {
        void *two_ago = l.was[20];
        loop_declared(&l, NULL, 1);
        assert_int_equal(loop_planned(&l), N);
        assert_int_equal(loop_same(&l), N - 1);
        assert_ptr_equal(l.at[10], l.was[10]);
        assert_ptr_not_equal(l.at[20], l.was[20]);
        assert_true(i == 0 || l.at[20] == two_ago);
    }
    loop_over(&l);
    assert_int_equal(plan_stats().misses, 0);
}

static void what_stays_is_not_planned(void **state)
{
    (void)state;
    struct ask ask[N];
    struct loop l = {.ask = ask, .n = N};
    plan_begin(NULL);
    memcpy(ask, loop_usual(N), sizeof ask);
    ask[5].lives = ask[17].lives = FOR_EVER;
    loop_declared(&l, NULL, 8);
    size_t held = plan_stats().arena_bytes, in_use = stats().in_use_bytes;
    loop_declared(&l, NULL, 10);
    assert_int_equal(loop_planned(&l), N - 2);
    assert_false(l.planned[5] || l.planned[17]);
    assert_int_equal(loop_same(&l), N - 2);
    assert_int_equal(plan_stats().arena_bytes, held);
    assert_true(stats().in_use_bytes - in_use < 11 * (ask[5].n + ask[17].n + KIB(8)));
    assert_sound();
}

static void one_more_or_less_shifts_nothing(void **state)
{
    (void)state;
    struct loop l = {.ask = loop_usual(N), .n = N};
    plan_begin(NULL);
    learn(&l, NULL);
    for (unsigned i = 1; i <= N; i += 4) {
        void *usual[LOOP_MOST];
        memcpy(usual, l.at, sizeof usual);
        l.extra = i;
        loop_declared(&l, NULL, 1);
        assert_true(loop_same(&l) >= N - 1); /* it may lie where one of them should */
        l.skip = i;
        loop_declared(&l, NULL, 1);
        assert_true(loop_same(&l) >= N - 1);
        loop_declared(&l, NULL, 3);
        assert_int_equal(loop_same(&l), N);
        assert_memory_equal(usual, l.at, N * sizeof *usual);
    }
    for (unsigned i = 0; i < 8; i++) { /* nor is it much, beside all that the step asks for */
        l.extra = N / 2;
        loop_declared(&l, NULL, 1);
        loop_declared(&l, NULL, 1); /* this one is recorded */
    }
    assert_int_equal(plan_stats().drops, 0);
}

static void sizes_of_another_scale_are_learned_anew(void **state)
{
    (void)state;
    struct loop l = {.ask = loop_usual(N), .n = N};
    plan_begin(NULL);
    for (unsigned s = 0; s < 12; s++) { /* sizes move together */
        l.scale = 18 + s * 3 % 4 * 2;
        loop_declared(&l, NULL, 1);
    }
    uint64_t held = plan_stats().arena_bytes;
    l.scale = 24;
    loop_declared(&l, NULL, 1);
    assert_int_equal(loop_planned(&l), N);
    l.scale = 64; /* more than ever, and by far */
    loop_declared(&l, NULL, 16);
    assert_int_equal(loop_planned(&l), N);
    assert_int_equal(loop_same(&l), N);
    assert_true(plan_stats().arena_bytes > held);
    assert_sound();
}

static void a_plan_that_is_no_good_is_given_up_and_learned_again(void **state)
{
    (void)state;
    struct ask other[N];
    struct loop l = {.ask = loop_usual(N), .n = N}, m = {.ask = other, .n = N};
    plan_begin(NULL);
    fake.pretend_populate = true;
    learn(&l, NULL);
    memcpy(other, l.ask, sizeof other);
    for (unsigned step = 0; step < 6;
         step++) { /* a third of it fits in no gap, and never repeats */
        for (unsigned i = 0; i < N; i += 3) {
            other[i].n = MIB(20) + step * MIB(1) + i * KIB(64);
        }
        loop_declared(&m, NULL, 1);
    }
    assert_int_equal(plan_stats().drops, 1);
    assert_int_equal(plan_stats().arena_bytes, 0);
    assert_int_equal(loop_planned(&m), 0);
    loop_declared(&l, NULL, 4); /* it rests */
    assert_int_equal(loop_planned(&l), 0);
    loop_declared(&l, NULL, FL_LONG_SERVICE + 24);
    assert_int_equal(loop_planned(&l), N);
    assert_int_equal(loop_same(&l), N);
    assert_int_equal(plan_stats().drops, 1);
    assert_sound();
}

static void irregular_steps(int steps)
{
    struct ask other[N];
    struct loop m = {.ask = other, .n = N};
    uint64_t x = 1;

    for (int step = 0; step < steps; step++) {
        for (unsigned i = 0; i < N; i++) {
            x = x * 6364136223846793005 + 1442695040888963407;
            other[i] =
                (struct ask){MIB(1) + (x >> 30) % MIB(3), 1 + (unsigned)((x >> 60) % (N - i))};
        }
        loop_declared(&m, NULL, 1);
    }
    loop_over(&m);
}

/* What does not repeat at all has no plan, and rests. */
static void what_never_repeats_holds_nothing(void **state)
{
    (void)state;
    plan_begin(NULL);
    irregular_steps(24);
    assert_int_equal(plan_stats().layouts, 0);
    assert_int_equal(fl_plan_default->state, FL_REST);
    assert_int_equal(plan_stats().arena_bytes, 0);
    assert_sound();
}

/* What came before it has one rest at most between it and its plan. */
static void a_loop_that_settles_is_planned(void **state)
{
    (void)state;
    struct loop l = {.ask = loop_usual(N), .n = N};
    plan_begin(NULL);
    irregular_steps(16);
    loop_declared(&l, NULL, FL_LONG_SERVICE + 8);
    assert_int_equal(loop_planned(&l), N);
    loop_over(&l);
}

static void steps_without_requests_are_no_reason_to_rest(void **state)
{
    (void)state;
    struct loop l = {.ask = loop_usual(N), .n = N};
    plan_begin(NULL);
    for (unsigned s = 0; s < 40; s++) {
        assert_int_equal(fl_plan_begin(NULL), 0);
        assert_int_equal(fl_plan_end(NULL), 0);
    }
    loop_declared(&l, NULL, 8);
    assert_int_equal(loop_planned(&l), N);
    loop_over(&l);
}

/* Each step is a little larger, all of it: a plan would move memory in each. */
static void what_only_grows_is_planned_for_who_asks(void **state)
{
    (void)state;
    struct fl_plan_layout p;
    struct loop l = {.ask = loop_usual(N), .n = N, .scale = 16};
    plan_begin(NULL);
    for (; l.scale < 32; l.scale++) {
        loop_declared(&l, NULL, 1);
    }
    assert_int_equal(plan_stats().layouts, 0);
    assert_int_equal(fl_plan_default->state, FL_REST);
    assert_int_equal(fl_plan_layout(NULL, &p, NULL, 0), -ENODATA);
    assert_int_equal(plan_stats().layouts, 0);
    for (unsigned s = 0; s < 10; s++) {
        l.scale = 32 - s;
        loop_declared(&l, NULL, 1);
    }
    assert_int_equal(loop_planned(&l), N);
    loop_over(&l);
    assert_sound();
}

/* So many steps of a kind, then so many of another, whose first requests are alike. */
static void take_turns(unsigned of_a, unsigned of_b, unsigned alike)
{
    struct ask ask[N];
    struct loop a = {.ask = loop_usual(N), .n = N}, b = {.ask = ask, .n = N - 4};
    memcpy(ask, loop_usual(N) + 4, (N - 4) * sizeof *ask);
    for (unsigned i = 0; i < N - 4; i++) {
        ask[i].n = i < alike ? a.ask[i].n : ask[i].n + KIB(36);
        ask[i].lives = ask[i].lives < N - 4 - i ? ask[i].lives : N - 4 - i;
    }
    plan_begin(NULL);
    for (int round = 0; round < 6; round++) {
        loop_declared(&a, NULL, of_a);
        loop_declared(&b, NULL, of_b);
    }
    uint64_t misses = plan_stats().misses;
    for (int round = 0; round < 6; round++) {
        for (unsigned i = 0; i < of_a; i++) {
            loop_declared(&a, NULL, 1);
            assert_true(loop_planned(&a) >= N - FL_SIGNATURE);
        }
        for (unsigned i = 0; i < of_b; i++) {
            loop_declared(&b, NULL, 1);
            assert_true(loop_planned(&b) >= b.n - FL_SIGNATURE);
        }
        assert_int_equal(loop_same(&b), b.n);
    }
    assert_true(plan_stats().misses - misses <= 12 * FL_SIGNATURE);
    assert_int_equal(plan_stats().layouts, 2);
    assert_int_equal(plan_stats().drops, 0);
}

static void phases_are_told_apart_by_their_first_requests(void **state)
{
    (void)state;
    take_turns(12, 8, 0);
}

static void short_phases_are_no_reason_to_give_a_plan_up(void **state)
{
    (void)state;
    take_turns(5, 3, 0);
}

static void phases_may_begin_alike(void **state)
{
    (void)state;
    take_turns(12, 8, FL_SIGNATURE - 1);
}

static struct fl_step_context *inner;
static struct loop inside;

static void step_within(unsigned i)
{
    if (i == 12) {
        loop_declared(&inside, inner, 1);
    }
}

static void a_step_within_a_step_has_a_plan_of_its_own(void **state)
{
    (void)state;
    struct loop l = {.ask = loop_usual(N), .n = N, .also = step_within};
    struct fl_step_context *outer;
    plan_begin(NULL);
    inside = (struct loop){.ask = loop_usual(N) + 8, .n = 10};
    struct ask ask[10];
    for (unsigned i = 0; i < 10; i++) {
        ask[i] = (struct ask){KIB(90) + i * KIB(12), 1};
    }
    inside.ask = ask;
    assert_int_equal(fl_plan_context_new(&inner), 0);
    assert_int_equal(fl_plan_context_new(&outer), 0);
    loop_declared(&l, outer, 8);
    assert_int_equal(loop_same(&l), N);
    assert_int_equal(loop_planned(&l), N);
    assert_int_equal(loop_same(&inside), 10);
    assert_int_equal(loop_planned(&inside), 10);
    assert_int_equal(plan_stats().misses, 0);
    assert_int_equal(plan_stats().layouts, 2);
    assert_int_equal(fl_plan_context_free(inner), 0);
    assert_int_equal(fl_plan_context_free(outer), 0);
    assert_int_equal(plan_stats().arena_bytes, 0);
}

static void *grown;

static void grow_one(unsigned i)
{
    if (i == 7) {
        grown = fl_realloc_any(fl_malloc_large(KIB(100)), KIB(400));
    } else if (i == 9) {
        fl_free_ours(grown);
    }
}

static void blocks_that_realloc_makes_longer_are_planned_too(void **state)
{
    (void)state;
    struct loop l = {.ask = loop_usual(N), .n = N, .also = grow_one};
    plan_begin(NULL);
    loop_declared(&l, NULL, 6);
    struct fl_plan_stats s = plan_stats();
    void *was = grown;
    for (int i = 0; i < 10; i++) {
        loop_declared(&l, NULL, 1);
        assert_int_equal(loop_same(&l), N);
        assert_ptr_equal(grown, was);
    }
    assert_int_equal(plan_stats().layouts, s.layouts); /* it is known */
    assert_int_equal(plan_stats().misses, s.misses);
    assert_int_equal(plan_stats().drops, 0);
}

static void what_a_plan_cannot_align_holds_no_memory(void **state)
{
    (void)state;
    plan_begin(NULL);
    for (int step = 0; step < 10; step++) {
        void *p[8];
        assert_int_equal(fl_plan_begin(NULL), 0);
        for (int i = 0; i < 8; i++) {
            p[i] = fl_memalign_large(MIB(2), MIB(1));
            assert_int_equal((uintptr_t)p[i] % MIB(2), 0);
        }
        for (int i = 0; i < 8; i++) {
            fl_free_ours(p[i]);
        }
        assert_int_equal(fl_plan_end(NULL), 0);
    }
    (void)fl_region_purge(&region, 0);
    assert_int_equal(region.held.populated, 0);
    assert_sound();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse_is_answered),
        cmocka_unit_test(contexts_are_used_again_and_there_is_an_end_to_them),
        cmocka_unit_test(a_context_without_memory_takes_no_addresses),
        cmocka_unit_test(a_step_that_repeats_is_served_where_it_was),
        cmocka_unit_test(a_block_that_crosses_has_one_place_and_a_doubled_one_two),
        cmocka_unit_test(what_stays_is_not_planned),
        cmocka_unit_test(one_more_or_less_shifts_nothing),
        cmocka_unit_test(sizes_of_another_scale_are_learned_anew),
        cmocka_unit_test(a_plan_that_is_no_good_is_given_up_and_learned_again),
        cmocka_unit_test(what_never_repeats_holds_nothing),
        cmocka_unit_test(what_only_grows_is_planned_for_who_asks),
        cmocka_unit_test(a_loop_that_settles_is_planned),
        cmocka_unit_test(steps_without_requests_are_no_reason_to_rest),
        cmocka_unit_test(phases_are_told_apart_by_their_first_requests),
        cmocka_unit_test(short_phases_are_no_reason_to_give_a_plan_up),
        cmocka_unit_test(phases_may_begin_alike),
        cmocka_unit_test(a_step_within_a_step_has_a_plan_of_its_own),
        cmocka_unit_test(blocks_that_realloc_makes_longer_are_planned_too),
        cmocka_unit_test(what_a_plan_cannot_align_holds_no_memory),
    };
    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
