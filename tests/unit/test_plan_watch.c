/* A thread that has no steps is watched less and less, and its steps are found when they come; what
 * it takes to watch goes when it ends. */
#include "plan/learn/stream.h"
#include "unit/plan_fixture.h"

#include <pthread.h>
#include <stdlib.h>

enum { N = 30, FIRST_WATCH = 16384, AHEAD = 512 };

static struct loop usual;

static int each(void **state)
{
    (void)state;
    plan_begin(&(struct fl_plan_config){.on = true, .detect = true});
    usual = (struct loop){.ask = loop_usual(N), .n = N};
    return 0;
}

/* Bytes of the planner's memory that are there, as mincore has it. */
static size_t there(void)
{
    size_t mapped, sum = 0;
    struct fl_range used = fl_plan_memory(&mapped);

    for (size_t at = 0; at < used.len; at += fl_page.base) {
        size_t n = 0;
        struct fl_range page = {used.base + at, fl_page.base};
        sum += fl_sys.resident(page, &n) == 0 ? n : 0;
    }
    return sum;
}

/* Of these, what has been written to: a page that was only read is the kernel's page of zeros. */
static size_t written(void)
{
    size_t mapped, present, own;

    assert_int_equal(fl_sys_linux.survey(fl_plan_memory(&mapped), &present, &own), 0);
    return own;
}

static void without_a_step_a_thread_is_let_alone(void **state)
{
    (void)state;
    loop_until_noticed();
    assert_non_null(fl_plan_mine);
    assert_true(fl_context_is_watched(fl_plan_mine));
    loop_replace(FIRST_WATCH - 100);
    assert_true(fl_context_is_watched(fl_plan_mine));
    size_t watching = there();
    assert_int_equal(fl_plan_wants & FL_PLAN_COUNT, 0);
    loop_replace(100);
    assert_false(fl_context_is_watched(fl_plan_mine));
    assert_true(fl_plan_wants & FL_PLAN_COUNT); /* lengths are nothing to it */
    assert_true(there() + fl_detect_size() / 2 <= watching);
    struct fl_extent *e = extent_of(fl_malloc_large(KIB(64)));
    assert_int_equal(e->life, 0); /* its free is no business of the planner's */
    fl_free_ours((void *)e->base);
    unsigned rest = (unsigned)fl_plan_mine->watch.rest;
    assert_true(rest > FIRST_WATCH / 2 && rest <= FIRST_WATCH);
    loop_replace(rest - 64); /* what the cache serves is counted by so many */
    assert_false(fl_context_is_watched(fl_plan_mine));
    loop_replace(128);
    assert_true(fl_context_is_watched(fl_plan_mine));
    loop_replace(2 * FIRST_WATCH);
    assert_false(fl_context_is_watched(fl_plan_mine));
    assert_true(fl_plan_mine->watch.rest > 3 * (uint64_t)FIRST_WATCH); /* longer than before */
}

static void steps_that_begin_late_are_found(void **state)
{
    (void)state;
    loop_until_noticed();
    loop_replace(FIRST_WATCH + 100);
    assert_false(fl_context_is_watched(fl_plan_mine));
    unsigned rest = (unsigned)fl_plan_mine->watch.rest;
    for (unsigned i = 0; i < rest / N + 20; i++) {
        loop_step(&usual);
    }
    assert_int_equal(loop_planned(&usual), N);
    assert_int_equal(fl_plan_mine->watch.watches, 0);
    loop_over(&usual);
    assert_sound();
}

/* Requests that come again, of a step that is longer than the watch. */
static void what_is_followed_is_followed_on(void **state)
{
    enum { LONG = 12000 }; /* requests of a step that has been seen once and a half */
    static uint16_t size[LONG];
    static void *block[64];
    (void)state;
    for (unsigned i = 0; i < LONG; i++) {
        size[i] = (uint16_t)(loop_roll() % 256);
    }
    loop_until_noticed();
    for (unsigned i = 0; i < FIRST_WATCH; i++) {
        void **p = &block[i % 64];
        if (*p != NULL) {
            fl_free_ours(*p);
        }
        *p = fl_malloc_large(KIB(64) + (size_t)size[i % LONG] * KIB(4));
    }
    assert_true(fl_context_is_watched(fl_plan_mine));
    for (unsigned i = 0; i < 64; i++) {
        fl_free_ours(block[i]);
    }
}

enum { CROWD = 40 };
static pthread_barrier_t all_there;

static void *be_watched(void *arg)
{
    (void)arg;
    for (size_t i = 0; i < (size_t)2 * N; i++) { /* neither slots nor depots have any */
        fl_free_ours(fl_malloc_large(MIB(1) + (i % 6 + 1) * KIB(8)));
    }
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_there);
    thread_end();
    return NULL;
}

static void crowd(size_t before)
{
    pthread_t t[CROWD];

    pthread_barrier_init(&all_there, NULL, CROWD + 1);
    for (int i = 0; i < CROWD; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, be_watched, NULL), 0);
    }
    pthread_barrier_wait(&all_there);
    assert_true(there() - before <= CROWD * KIB(64));
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < CROWD; i++) {
        pthread_join(t[i], NULL);
    }
    pthread_barrier_destroy(&all_there);
}

/* Nothing but what the planner has for any of them, a page of its own table, say; and no address
 * more by the next ones. */
static void threads_leave_nothing(void **state)
{
    size_t mapped, before = there();
    (void)state;
    crowd(before);
    assert_true(there() - before <= KIB(8));
    size_t used = fl_plan_memory(&mapped).len;
    crowd(before);
    crowd(before);
    assert_int_equal(fl_plan_memory(&mapped).len, used);
    assert_true(there() - before <= KIB(8));
    size_t left_behind = written();
    (void)fl_plan_work(&region); /* nor does the worker bring any of it back */
    assert_int_equal(written(), left_behind);
}

/* A loop of six sizes, more than a thread's cache holds and longer than depots take, is too short
 * for a step, however long it is followed. */
static void a_loop_that_is_no_step_is_let_alone(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 64 + FIRST_WATCH; i++) {
        fl_free_ours(fl_malloc_large(MIB(2) + i % 6 * KIB(8)));
    }
    assert_false(fl_context_is_watched(fl_plan_mine));
    assert_true(fl_plan_wants & FL_PLAN_COUNT);
}

/* Its plan is known, the program does something else for long, and comes back. */
static void a_known_step_is_served_at_once_after_a_rest(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        loop_step(&usual);
    }
    assert_int_equal(loop_planned(&usual), N);
    loop_over(&usual);
    loop_replace(FIRST_WATCH + 1000);
    assert_false(fl_context_is_watched(fl_plan_mine));
    assert_true(fl_plan_mine->watch.rest != 0);
    assert_false(fl_plan_wants & FL_PLAN_COUNT); /* its first requests are looked for */
    assert_false(fl_plan_mine->learn.recording);
    for (unsigned i = 0; i < 4; i++) {
        loop_step(&usual);
    }
    assert_int_equal(loop_planned(&usual), N);
    assert_int_equal(fl_plan_mine->watch.rest, 0);
    assert_int_equal(fl_plan_wants, FL_PLAN_REPLAY); /* by the shortest way */
    loop_over(&usual);
    assert_sound();
}

static pthread_barrier_t turn;
static void *passed[2]; /* a block for the other to free */

static void swap_blocks(unsigned me)
{
    void *mine = fl_malloc_large(KIB(64) + loop_roll() % KIB(256));

    fl_free_ours(passed[!me]);
    passed[me] = mine;
}

/* The other thread: it has its turn between two barriers. */
static void *follow(void *arg)
{
    unsigned turns = *(unsigned *)arg;

    loop_until_noticed();
    passed[1] = fl_malloc_large(KIB(64));
    for (unsigned i = 0; i < turns; i++) {
        pthread_barrier_wait(&turn);
        swap_blocks(1);
        pthread_barrier_wait(&turn);
    }
    thread_end();
    return NULL;
}

static void have_a_turn(void)
{
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    swap_blocks(0);
}

/* Two threads that free each other's blocks, and neither has steps any more: what one of them was
 * told by the other is no news for that one. */
static void steps_do_not_come_of_each_other(void **state)
{
    enum { TURNS = 100 };
    unsigned turns = TURNS + 2;
    pthread_t t;

    (void)state;
    plan_begin(&(struct fl_plan_config){.on = true, .detect = true, .stable = 999, .max = 999});
    usual = (struct loop){.ask = loop_usual(N), .n = N};
    assert_int_equal(pthread_barrier_init(&turn, NULL, 2), 0);
    loop_until_noticed();
    passed[0] = fl_malloc_large(KIB(64));
    assert_int_equal(pthread_create(&t, NULL, follow, &turns), 0);
    have_a_turn();
    for (unsigned i = 0; i < 20; i++) {
        loop_step(&usual);
    }
    assert_true(fl_detect_period(fl_plan_mine->watch.detect) != 0);
    have_a_turn();
    loop_over(&usual);
    loop_replace(1000);
    assert_int_equal(fl_detect_period(fl_plan_mine->watch.detect), 0);
    uint32_t begun = fl_plan_mine->learn.begun;
    for (unsigned i = 0; i < TURNS; i++) {
        have_a_turn();
    }
    assert_true(fl_plan_mine->learn.begun - begun <= 4);
    pthread_join(t, NULL);
    fl_free_ours(passed[0]);
}

static void *leave_a_block(void *arg)
{
    loop_until_noticed();
    *(void **)arg = fl_malloc_large(KIB(64));
    thread_end();
    return NULL;
}

/* Its owner has ended, and its context is another thread's by now. */
static void a_block_is_freed_while_its_context_begins_anew(void **state)
{
    void *block[2];
    pthread_t t;

    (void)state;
    loop_until_noticed();
    pthread_create(&t, NULL, leave_a_block, &block[0]);
    pthread_join(t, NULL);
    assert_int_not_equal(extent_of(block[0])->life, 0);
    pthread_create(&t, NULL, leave_a_block, &block[1]);
    fl_free_ours(block[0]);
    pthread_join(t, NULL);
    fl_free_ours(block[1]);
    assert_sound();
}

/* The detector's memory comes ahead of its events, by the worker: each call wakes a thread. */
static void the_worker_is_called_the_less_the_longer_a_watch(void **state)
{
    unsigned calls = 0;
    (void)state;
    plan_begin(&(struct fl_plan_config){.on = true, .detect = true, .background = true});
    loop_until_noticed();
    struct fl_step_context *c = fl_plan_mine;
    for (unsigned i = 0; i < FIRST_WATCH - 100; i++) {
        loop_replace(1);
        if (c->watch.warms != 0) {
            calls++;
            fl_watch_warm(c);
            uint32_t events = fl_detect_events(c->watch.detect);
            uintptr_t next = (uintptr_t)detect_at(c->watch.detect, events + AHEAD);
            size_t n = 0;
            assert_int_equal(
                fl_sys.resident((struct fl_range){fl_align_down(next, KIB(4)), KIB(4)}, &n), 0);
            assert_int_equal(n, KIB(4));
        }
    }
    assert_true(fl_context_is_watched(c));
    assert_in_range(calls, 4, 8);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, each)
    const struct CMUnitTest tests[] = {
        T(without_a_step_a_thread_is_let_alone),
        T(steps_that_begin_late_are_found),
        T(what_is_followed_is_followed_on),
        T(threads_leave_nothing),
        T(a_loop_that_is_no_step_is_let_alone),
        T(a_known_step_is_served_at_once_after_a_rest),
        T(a_block_is_freed_while_its_context_begins_anew),
        T(the_worker_is_called_the_less_the_longer_a_watch),
        cmocka_unit_test(steps_do_not_come_of_each_other),
    };
    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
