/* Steps that the program declares: learned, packed at once, served where they were; and what
 * becomes of a plan that is wrong. */
#include "region/state/lock.h"
#include "unit/plan_fixture.h"

#include <errno.h>
#include <string.h>

enum { N = USUAL };

static void misuse_is_answered(void **state)
{
    (void)state;
    struct fl_step_context *a, *b;
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

static void a_step_that_repeats_is_served_where_it_was(void **state)
{
    (void)state;
    usual_learn();
    struct fl_plan_stats before = plan_stats();
    for (int i = 0; i < 5; i++) {
        loop_declared(&usual, NULL, 1);
        assert_repeated(&usual);
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
    memcpy(ask, usual.ask, sizeof ask);
    usual.ask = ask;
    ask[10].lives = N - 3; /* until the next step's eighth */
    ask[20].lives = N + 5; /* until after its own like there */
    usual_learn();
    for (int i = 0; i < 6; i++) {
        void *two_ago = usual.was[20];
        loop_declared(&usual, NULL, 1);
        assert_planned(&usual);
        assert_int_equal(loop_same(&usual), N - 1);
        assert_ptr_equal(usual.at[10], usual.was[10]);
        assert_ptr_not_equal(usual.at[20], usual.was[20]);
        assert_true(i == 0 || usual.at[20] == two_ago);
    }
    loop_over(&usual);
    assert_int_equal(plan_stats().misses, 0);
}

static void what_stays_is_not_planned(void **state)
{
    (void)state;
    struct ask ask[N];
    memcpy(ask, usual.ask, sizeof ask);
    usual.ask = ask;
    ask[5].lives = ask[17].lives = FOR_EVER;
    loop_declared(&usual, NULL, 8);
    size_t held = plan_stats().arena_bytes, in_use = stats().in_use_bytes;
    loop_declared(&usual, NULL, 10);
    assert_int_equal(loop_planned(&usual), N - 2);
    assert_false(usual.planned[5] || usual.planned[17]);
    assert_int_equal(loop_same(&usual), N - 2);
    assert_int_equal(plan_stats().arena_bytes, held);
    assert_true(stats().in_use_bytes - in_use < 11 * (ask[5].n + ask[17].n + KIB(8)));
    assert_sound();
}

static void one_more_or_less_shifts_nothing(void **state)
{
    (void)state;
    usual_learn();
    for (unsigned i = 1; i <= N; i += 4) {
        void *before[LOOP_MOST];
        memcpy(before, usual.at, sizeof before);
        usual.extra = i;
        loop_declared(&usual, NULL, 1);
        assert_true(loop_same(&usual) >= N - 1); /* it may lie where one of them should */
        usual.skip = i;
        loop_declared(&usual, NULL, 1);
        assert_true(loop_same(&usual) >= N - 1);
        loop_declared(&usual, NULL, 3);
        assert_int_equal(loop_same(&usual), N);
        assert_memory_equal(before, usual.at, N * sizeof *before);
    }
    for (unsigned i = 0; i < 8; i++) { /* nor is it much, beside all that the step asks for */
        usual.extra = N / 2;
        loop_declared(&usual, NULL, 1);
        loop_declared(&usual, NULL, 1); /* this one is recorded */
    }
    assert_int_equal(plan_stats().drops, 0);
}

static void irregular_steps(int steps)
{
    struct ask other[N];
    struct loop m = {.ask = other, .n = N};

    for (int step = 0; step < steps; step++) {
        for (unsigned i = 0; i < N; i++) {
            uint64_t x = loop_roll();
            other[i] =
                (struct ask){MIB(1) + (x >> 30) % MIB(3), 1 + (unsigned)((x >> 60) % (N - i))};
        }
        loop_declared(&m, NULL, 1);
    }
    loop_over(&m);
}

static void sizes_of_another_scale_are_learned_anew(void **state)
{
    (void)state;
    for (unsigned s = 0; s < 12; s++) { /* sizes move together */
        usual.scale = 18 + s * 3 % 4 * 2;
        loop_declared(&usual, NULL, 1);
    }
    uint64_t held = plan_stats().arena_bytes;
    usual.scale = 24;
    loop_declared(&usual, NULL, 1);
    assert_planned(&usual);
    usual.scale = 64; /* more than ever, and by far */
    loop_declared(&usual, NULL, 16);
    assert_repeated(&usual);
    assert_true(plan_stats().arena_bytes > held);
    assert_sound();
}

/* What does not repeat at all has no plan, and rests; then there is one rest at most between what
 * settles and its plan. */
static void what_never_repeats_holds_nothing(void **state)
{
    (void)state;
    irregular_steps(24);
    assert_int_equal(plan_stats().layouts, 0);
    assert_int_equal(fl_plan_default->state, FL_REST);
    assert_int_equal(plan_stats().arena_bytes, 0);
    assert_sound();
    loop_declared(&usual, NULL, FL_LONG_SERVICE + 8);
    assert_planned(&usual);
    loop_over(&usual);
}

static void steps_without_requests_are_no_reason_to_rest(void **state)
{
    (void)state;
    for (unsigned s = 0; s < 40; s++) {
        assert_int_equal(fl_plan_begin(NULL), 0);
        assert_int_equal(fl_plan_end(NULL), 0);
    }
    loop_declared(&usual, NULL, 8);
    assert_planned(&usual);
    loop_over(&usual);
}

/* Each step is a little larger, all of it: a plan would move memory in each. */
static void what_only_grows_is_planned_for_who_asks(void **state)
{
    (void)state;
    struct fl_plan_layout p;
    usual.scale = 16;
    for (; usual.scale < 32; usual.scale++) {
        loop_declared(&usual, NULL, 1);
    }
    assert_int_equal(plan_stats().layouts, 0);
    assert_int_equal(fl_plan_default->state, FL_REST);
    assert_int_equal(fl_plan_layout(NULL, &p, NULL, 0), -ENODATA);
    assert_int_equal(plan_stats().layouts, 0);
    for (unsigned s = 0; s < 10; s++) {
        usual.scale = 32 - s;
        loop_declared(&usual, NULL, 1);
    }
    assert_planned(&usual);
    loop_over(&usual);
    assert_sound();
}

/* Phases are told apart by their first requests, short ones are no reason to give a plan up, and
 * two may begin alike. */
static struct turns {
    unsigned of_a, of_b, alike; /* steps of one kind, then of another; requests in common first */
} long_ones = {12, 8, 0}, short_ones = {5, 3, 0}, alike = {12, 8, FL_SIGNATURE - 1};

static void each_phase_has_its_plan(void **state)
{
    const struct turns *t = *state;
    struct ask ask[N];
    struct loop b = {.ask = ask, .n = N - 4};
    (void)usual_each(NULL);
    memcpy(ask, usual.ask + 4, (N - 4) * sizeof *ask);
    for (unsigned i = 0; i < N - 4; i++) {
        ask[i].n = i < t->alike ? usual.ask[i].n : ask[i].n + KIB(36);
        ask[i].lives = ask[i].lives < N - 4 - i ? ask[i].lives : N - 4 - i;
    }
    for (int round = 0; round < 6; round++) {
        loop_declared(&usual, NULL, t->of_a);
        loop_declared(&b, NULL, t->of_b);
    }
    uint64_t misses = plan_stats().misses;
    for (int round = 0; round < 6; round++) {
        for (unsigned i = 0; i < t->of_a; i++) {
            loop_declared(&usual, NULL, 1);
            assert_true(loop_planned(&usual) >= N - FL_SIGNATURE);
        }
        for (unsigned i = 0; i < t->of_b; i++) {
            loop_declared(&b, NULL, 1);
            assert_true(loop_planned(&b) >= b.n - FL_SIGNATURE);
        }
        assert_int_equal(loop_same(&b), b.n);
    }
    assert_true(plan_stats().misses - misses <= 12 * FL_SIGNATURE);
    assert_int_equal(plan_stats().layouts, 2);
    assert_int_equal(plan_stats().drops, 0);
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
    usual.also = grow_one;
    loop_declared(&usual, NULL, 6);
    struct fl_plan_stats s = plan_stats();
    void *was = grown;
    for (int i = 0; i < 10; i++) {
        loop_declared(&usual, NULL, 1);
        assert_int_equal(loop_same(&usual), N);
        assert_ptr_equal(grown, was);
    }
    assert_int_equal(plan_stats().layouts, s.layouts); /* it is known */
    assert_int_equal(plan_stats().misses, s.misses);
    assert_int_equal(plan_stats().drops, 0);
}

static void what_a_plan_cannot_align_holds_no_memory(void **state)
{
    (void)state;
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
#define T(f) cmocka_unit_test_setup(f, usual_each)
#define PHASES(how)                                                                                \
    {                                                                                              \
        .name = "each_phase_has_its_plan, " #how, .test_func = each_phase_has_its_plan,            \
        .initial_state = &how,                                                                     \
    }
    const struct CMUnitTest tests[] = {
        T(misuse_is_answered),
        T(contexts_are_used_again_and_there_is_an_end_to_them),
        T(a_context_without_memory_takes_no_addresses),
        T(a_step_that_repeats_is_served_where_it_was),
        T(a_block_that_crosses_has_one_place_and_a_doubled_one_two),
        T(what_stays_is_not_planned),
        T(one_more_or_less_shifts_nothing),
        T(sizes_of_another_scale_are_learned_anew),
        T(what_only_grows_is_planned_for_who_asks),
        T(what_never_repeats_holds_nothing),
        T(steps_without_requests_are_no_reason_to_rest),
        PHASES(long_ones),
        PHASES(short_ones),
        PHASES(alike),
        T(blocks_that_realloc_makes_longer_are_planned_too),
        T(what_a_plan_cannot_align_holds_no_memory),
    };
    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
