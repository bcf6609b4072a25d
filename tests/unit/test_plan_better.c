/* A lower layout is searched for in the background and taken over between two steps: nothing is lost, nothing comes from the kernel for it, and where
 * none is found all stays as it is. */
#include "unit/plan_fixture.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 64 };

static struct loop l;
static struct ask asks[N];
static uint64_t clock_ns;

static uint64_t fake_clock(void)
{
    return clock_ns;
}

/* What takes a search: with these seeds a lower layout is found, but not at once. The last few live on into the next step. */
static const struct ask *hard(uint64_t seed, unsigned most, unsigned living_on)
{
    for (unsigned i = 0; i < N; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        unsigned n = 1 + (unsigned)(seed >> 33) % 60;
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        unsigned lives = 1 + (unsigned)(seed >> 33) % most;
        asks[i].n = (size_t)n << FL_GRANULE_SHIFT;
        asks[i].lives = i + living_on >= N ? N - i + 2 : lives < N - i ? lives : N - i;
    }
    return asks;
}

static void begin(const struct ask *ask)
{
    plan_begin(&(struct fl_plan_config){.on = true, .background = true});
    fl_sys.now_ns = fake_clock;
    l = (struct loop){.ask = ask, .n = N};
}

static struct fl_plan_layout layout(struct fl_plan_place *place)
{
    struct fl_plan_layout out;

    assert_int_equal(fl_plan_layout(NULL, &out, place, place != NULL ? N : 0), 0);
    return out;
}

/* To the first layout's first step. */
static void learn(void)
{
    loop_declared(&l, NULL, 3);
    (void)fl_plan_work(&region);
    loop_declared(&l, NULL, 2);
    assert_int_equal(loop_planned(&l), N);
    assert_int_equal(plan_stats().layouts, 1);
}

static unsigned search(void)
{
    unsigned turns = 0;

    while (fl_plan_work(&region) != UINT64_MAX) {
        clock_ns += 1000000000;
        turns++;
        assert_true(turns < 100);
    }
    return turns;
}

static bool gained(size_t height, size_t was)
{
    return height < was && was - height >= was / 200;
}

static void a_lower_layout_is_taken_between_two_steps(void **state)
{
    struct fl_plan_place place[N];

    (void)state;
    begin(hard(107, 25, 0));
    learn();
    struct fl_plan_layout first = layout(place);
    assert_true(search() > 0);
    assert_int_equal(layout(NULL).generation, first.generation); /* not before a step is over */
    uint64_t populated = region.stats.populate_bytes;
    loop_declared(&l, NULL, 1);
    for (unsigned i = 0; i < N; i++) { /* the one that was under way then was the old one's */
        assert_ptr_equal(l.at[i], (void *)(first.base + place[i].offset[first.parity]));
    }
    struct fl_plan_layout then = layout(place);
    assert_true(then.generation != first.generation && gained(then.height, first.height));
    assert_int_equal(then.opening, first.opening);
    loop_declared(&l, NULL, 1);
    then = layout(place);
    for (unsigned i = 0; i < N; i++) {
        assert_true(l.planned[i]);
        assert_ptr_equal(l.at[i], (void *)(then.base + place[i].offset[then.parity]));
    }
    loop_declared(&l, NULL, 3);
    assert_int_equal(loop_same(&l), N);
    assert_int_equal(plan_stats().layouts, 2);
    assert_int_equal(plan_stats().missed_bytes, 0);
    assert_int_equal(region.stats.populate_bytes, populated);
    loop_over(&l);
}

/* What the lower layout does not want is the region's. */
static void what_it_leaves_is_given_back(void **state)
{
    (void)state;
    begin(hard(107, 25, 0));
    learn();
    struct fl_plan_layout first = layout(NULL);
    (void)search();
    loop_declared(&l, NULL, 4);
    struct fl_plan_layout then = layout(NULL);
    assert_true(then.limit < first.limit && then.limit == fl_align_up(then.height, fl_page.huge));
    assert_int_equal(plan_stats().arena_bytes, then.limit);
    struct fl_extent *outer = NULL;
    assert_non_null(fl_inner_around(&region, then.base, &outer));
    assert_true(outer->zeroed.len <= then.limit);
    loop_over(&l);
}

/* Blocks of the step before are where they were until they are freed. */
static void what_lives_on_keeps_its_bytes(void **state)
{
    (void)state;
    begin(hard(332, 40, 4));
    learn();
    struct fl_plan_layout first = layout(NULL);
    for (unsigned i = 0; i < 2; i++) {
        (void)search();
        loop_declared(&l, NULL, 6);
    }
    assert_true(gained(layout(NULL).height, first.height));
    assert_int_equal(loop_planned(&l), N);
    loop_declared(&l, NULL, 2);
    assert_int_equal(plan_stats().drops, 0);
    loop_over(&l);
}

static void where_nothing_gains_nothing_changes(void **state)
{
    (void)state;
    begin(loop_usual(30));
    l.n = 30;
    loop_declared(&l, NULL, 3);
    (void)fl_plan_work(&region);
    loop_declared(&l, NULL, 2);
    uint64_t generation = layout(NULL).generation;
    assert_int_equal(search(), 0);
    for (unsigned i = 0; i < 10; i++) {
        loop_declared(&l, NULL, 1);
        assert_int_equal(loop_same(&l), 30);
    }
    assert_int_equal(layout(NULL).generation, generation);
    assert_int_equal(plan_stats().layouts, 1);
    loop_over(&l);
}

static void the_same_layout_each_time(void **state)
{
    struct fl_plan_place place[2][N];
    struct fl_step_context *c[2];

    (void)state;
    begin(hard(146, 25, 0));
    for (unsigned k = 0; k < 2; k++) {
        struct fl_plan_layout out;
        assert_int_equal(fl_plan_context_new(&c[k]), 0);
        loop_declared(&l, c[k], 3);
        (void)fl_plan_work(&region);
        loop_declared(&l, c[k], 2);
        (void)search();
        loop_declared(&l, c[k], 2);
        assert_int_equal(plan_stats().layouts, 2 * (k + 1));
        assert_int_equal(fl_plan_layout(c[k], &out, place[k], N), 0);
    }
    for (unsigned i = 0; i < N; i++) {
        assert_int_equal(place[0][i].offset[0], place[1][i].offset[0]);
    }
    loop_over(&l);
}

static void a_search_for_what_is_gone_ends(void **state)
{
    struct fl_step_context *c;

    (void)state;
    begin(hard(107, 25, 0));
    assert_int_equal(fl_plan_context_new(&c), 0);
    loop_declared(&l, c, 3);
    (void)fl_plan_work(&region);
    loop_declared(&l, c, 2);
    assert_int_equal(plan_stats().layouts, 1);
    assert_int_equal(fl_plan_context_free(c), 0);
    assert_int_equal(search(), 0);
    /* And one that has ended already: its layout is nobody's when others have that place. */
    assert_int_equal(fl_plan_context_new(&c), 0);
    loop_declared(&l, c, 3);
    (void)fl_plan_work(&region);
    loop_declared(&l, c, 2);
    assert_true(search() > 0);
    assert_int_equal(fl_plan_context_free(c), 0);
    struct fl_step_context *again;
    assert_int_equal(fl_plan_context_new(&again), 0);
    assert_ptr_equal(again, c);
    l.ask = loop_usual(N);
    loop_over(&l);
    loop_declared(&l, again, 3);
    (void)fl_plan_work(&region);
    loop_declared(&l, again, 3);
    assert_int_equal(loop_planned(&l), N);
    loop_over(&l);
}

static void a_child_goes_on_without_the_search(void **state)
{
    int status = 1;

    (void)state;
    begin(hard(107, 25, 0));
    learn();
    fl_plan_fork_prepare();
    fl_plan_fork_hold();
    pid_t pid = fork();
    if (pid == 0) {
        fl_plan_fork_child(true);
        loop_declared(&l, NULL, 2);
        _exit(fl_plan_work(&region) == UINT64_MAX && loop_planned(&l) == N ? 0 : 2);
    }
    fl_plan_fork_parent();
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    assert_true(search() > 0);
    loop_declared(&l, NULL, 1);
    assert_int_equal(plan_stats().layouts, 2);
    loop_over(&l);
}

static _Atomic bool stop;

static void *work(void *none)
{
    while (!stop) {
        (void)fl_plan_work(&region);
    }
    return none;
}

/* A worker that is never at rest, and a program that changes what it does. */
static void beside_a_worker(void **state)
{
    pthread_t thread;

    (void)state;
    begin(hard(332, 40, 4));
    fl_sys.now_ns = fl_sys_linux.now_ns;
    assert_int_equal(pthread_create(&thread, NULL, work, NULL), 0);
    for (unsigned i = 0; i < 120; i++) {
        if (i % 30 == 29) {
            loop_over(&l);
            l.ask = i % 60 == 29 ? hard(85, 40, 4) : hard(332, 40, 4);
        }
        loop_declared(&l, NULL, 1);
        usleep(5000);
    }
    stop = true;
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(plan_stats().layouts > 0);
    loop_over(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lower_layout_is_taken_between_two_steps),
        cmocka_unit_test(what_it_leaves_is_given_back),
        cmocka_unit_test(what_lives_on_keeps_its_bytes),
        cmocka_unit_test(where_nothing_gains_nothing_changes),
        cmocka_unit_test(the_same_layout_each_time),
        cmocka_unit_test(a_search_for_what_is_gone_ends),
        cmocka_unit_test(a_child_goes_on_without_the_search),
        cmocka_unit_test(beside_a_worker),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
