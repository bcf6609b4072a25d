/* Threads and contexts: one thread at a time is in a context, and what is beside others. */
#include "unit/plan_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

enum { N = 30, THREADS = 6, STEPS = 12 };

static struct fl_step_context *context;
static pthread_barrier_t all;
static const struct ask *usual; /* theirs all */
static bool asks;               /* where its blocks lie, each of them */

struct other {
    pthread_t thread;
    struct loop l;
    unsigned steps;
    bool waits;                 /* for all in the midst of each step */
    struct fl_step_context *in; /* NULL: its own */
    int begun, ended, again;
    unsigned same, planned; /* requests of the last step */
};

static void meet(bool waits)
{
    if (waits) {
        (void)pthread_barrier_wait(&all);
    }
}

static void *run(void *arg)
{
    struct other *o = arg;

    for (unsigned s = 0; s < o->steps; s++) {
        meet(o->waits);
        struct fl_plan_layout p;
        o->begun |= fl_plan_begin(o->in);
        (void)(asks && fl_plan_layout(o->in, &p, NULL, 0));
        o->again = fl_plan_begin(o->in);
        loop_step(&o->l);
        meet(o->waits);
        o->ended |= fl_plan_end(o->in);
    }
    o->same = loop_same(&o->l);
    o->planned = loop_planned(&o->l);
    loop_over(&o->l);
    thread_end();
    return NULL;
}

static void start_in(struct fl_step_context *c, struct other *o, bool waits, unsigned steps)
{
    *o = (struct other){.l = {.ask = usual, .n = N}, .steps = steps, .waits = waits, .in = c};
    assert_int_equal(pthread_create(&o->thread, NULL, run, o), 0);
}

static void start(struct other *o, bool waits, unsigned steps)
{
    start_in(context, o, waits, steps);
}

static void finish(struct other *o)
{
    assert_int_equal(pthread_join(o->thread, NULL), 0);
    assert_true(o->begun == 0 && o->ended == 0 && o->again == -EINVAL);
}

static int each(void **state)
{
    (void)state;
    plan_begin(NULL);
    usual = loop_usual(N);
    assert_int_equal(fl_plan_context_new(&context), 0);
    return 0;
}

static void each_thread_that_asks_has_its_plan(void **state)
{
    static struct other o[THREADS];

    (void)each(state);
    asks = true;
    assert_int_equal(pthread_barrier_init(&all, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        start_in(NULL, &o[i], true, STEPS);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        finish(&o[i]);
        assert_int_equal(o[i].planned, N);
        assert_int_equal(o[i].same, N);
    }
    assert_int_equal(plan_stats().layouts, THREADS);
    assert_int_equal(plan_stats().missed_bytes, 0);
    assert_int_equal(plan_stats().arena_bytes, 0);
}

/* They would take each other's idle pages, and move them back. Alone, the thread is planned again
 * after a rest. */
static void steps_beside_others_are_not_planned(void **state)
{
    static struct other o[2];

    (void)each(state);
    assert_int_equal(pthread_barrier_init(&all, NULL, 2), 0);
    start(&o[0], true, STEPS);
    start_in(NULL, &o[1], true, STEPS);
    finish(&o[0]);
    finish(&o[1]);
    assert_int_equal(o[0].planned + o[1].planned, 0);
    assert_int_equal(plan_stats().layouts, 0);
    start(&o[0], false, 2 * FL_LONG_SERVICE);
    finish(&o[0]);
    assert_int_equal(o[0].planned, N);
    assert_int_equal((uint32_t)atomic_load(&fl_plan.stepping), 0);
}

/* Nor where they come between, one after the other. */
static void nor_are_those_that_take_turns(void **state)
{
    struct fl_step_context *own;
    struct loop l;

    (void)each(state);
    l = (struct loop){.ask = usual, .n = N};
    assert_int_equal(fl_plan_context_new(&own), 0);
    for (unsigned s = 0; s < STEPS; s++) {
        static struct other o;
        loop_declared(&l, own, 1);
        start(&o, false, 1);
        finish(&o);
    }
    assert_int_equal(loop_planned(&l), 0);
    loop_over(&l);
}

/* Asked amid a rest, it learns at once. */
static void who_asks_is_planned_beside_others(void **state)
{
    static struct loop l;
    struct fl_plan_layout p;

    (void)each(state);
    l = (struct loop){.ask = usual, .n = N};
    atomic_fetch_add(&fl_plan.stepping, 1); /* another one, for ever */
    loop_declared(&l, context, 4);
    assert_int_equal(context->state, FL_REST);
    assert_int_equal(fl_plan_begin(context), 0);
    assert_int_equal(fl_plan_layout(context, &p, NULL, 0), -ENODATA);
    loop_step(&l);
    assert_int_equal(fl_plan_end(context), 0);
    loop_declared(&l, context, 4);
    assert_int_equal(loop_planned(&l), N);
    loop_over(&l);
}

static struct loop marks;
static void mark(unsigned i)
{
    if (i == N / 2) {
        assert_int_equal(fl_plan_mark_zone(marks.at[i - 1], 1), 0);
        marks.also = NULL;
    }
}

static void whose_block_is_marked_is_planned(void **state)
{
    (void)each(state);
    marks = (struct loop){.ask = usual, .n = N, .also = mark};
    atomic_fetch_add(&fl_plan.stepping, 1);
    assert_int_equal(fl_plan_begin(context), 0);
    loop_step(&marks);
    assert_int_equal(fl_plan_end(context), 0);
    loop_declared(&marks, context, 5);
    assert_int_equal(loop_planned(&marks), N);
    loop_over(&marks);
}

/* The thread ends within its step, or is not in the child of a fork. */
static void who_is_gone_is_beside_none(void **state)
{
    (void)each(state);
    assert_int_equal(fl_plan_begin(context), 0);
    thread_end();
    assert_int_equal((uint32_t)atomic_load(&fl_plan.stepping), 0);
    assert_int_equal(fl_plan_begin(NULL), 0);
    atomic_fetch_add(&fl_plan.stepping, 1); /* another one */
    fl_plan_fork_child(true);
    assert_int_equal((uint32_t)atomic_load(&fl_plan.stepping), 1);
}

static void those_that_come_one_after_the_other_share_one(void **state)
{
    static struct other o;

    (void)each(state);
    for (unsigned i = 0; i < STEPS; i++) {
        start(&o, false, 1);
        finish(&o);
        assert_int_equal(o.planned, i < 3 ? 0 : N);
    }
    assert_int_equal(fl_plan.ncontexts, 1 + 1);
}

static void *find_it_busy(void *arg)
{
    bool refused = fl_plan_begin(context) == -EBUSY && fl_plan_end(context) == -EINVAL &&
                   fl_plan_context_free(context) == -EBUSY;

    thread_end();
    return refused ? arg : NULL;
}

/* Who is refused was beside it all the same. */
static void one_thread_at_a_time(void **state)
{
    static struct loop l;
    struct fl_step_context *other;
    pthread_t t;

    (void)each(state);
    l = (struct loop){.ask = usual, .n = N};
    assert_int_equal(fl_plan_context_new(&other), 0);
    for (unsigned s = 0; s < STEPS; s++) {
        assert_int_equal(fl_plan_begin(context), 0);
        assert_int_equal(fl_plan_begin(other), 0);
        assert_int_equal(fl_plan_end(context), -EINVAL); /* not the innermost */
        assert_int_equal(fl_plan_begin(context), -EINVAL);
        assert_int_equal(fl_plan_end(other), 0);
        void *refused = NULL;
        assert_int_equal(pthread_create(&t, NULL, find_it_busy, &l), 0);
        loop_step(&l);
        assert_int_equal(pthread_join(t, &refused), 0);
        assert_non_null(refused);
        assert_int_equal(fl_plan_context_free(context), -EBUSY);
        assert_int_equal(fl_plan_end(context), 0);
    }
    assert_int_equal(loop_planned(&l), 0);
    loop_over(&l);
    assert_int_equal(fl_plan_context_free(context), 0);
    assert_int_equal(fl_plan_context_free(context), -EINVAL);
    assert_int_equal(fl_plan_begin(context), -EINVAL);
}

static atomic_bool over;

static void *look_all_the_time(void *arg)
{
    struct fl_plan_layout p;

    while (!atomic_load(&over)) {
        (void)fl_plan_layout(context, &p, NULL, 0);
    }
    thread_end();
    return arg;
}

/* Who only looks where blocks lie is in no step. */
static void a_look_refuses_no_step(void **state)
{
    struct loop l;
    pthread_t t;

    (void)each(state);
    l = (struct loop){.ask = usual, .n = N};
    atomic_store(&over, false);
    assert_int_equal(pthread_create(&t, NULL, look_all_the_time, NULL), 0);
    for (unsigned s = 0; s < 300; s++) {
        assert_int_equal(fl_plan_begin(context), 0);
        loop_step(&l);
        assert_int_equal(fl_plan_end(context), 0);
    }
    atomic_store(&over, true);
    assert_int_equal(pthread_join(t, NULL), 0);
    loop_over(&l);
    assert_int_equal(fl_plan_context_free(context), 0);
}

static void *come_and_go(void *arg)
{
    bool right = true;

    for (unsigned s = 0; s < 4 * STEPS; s++) {
        int rc = fl_plan_begin(context);
        loop_step(arg);
        right &= (rc == 0 && fl_plan_end(context) == 0) ||
                 (rc == -EBUSY && fl_plan_end(context) == -EINVAL);
    }
    loop_over(arg);
    thread_end();
    return right ? arg : NULL;
}

/* Each as fast as it can: whose step it is is left to chance. */
static void threads_come_and_go(void **state)
{
    static struct loop l[THREADS];
    pthread_t t[THREADS];

    (void)each(state);
    for (unsigned i = 0; i < THREADS; i++) {
        l[i] = (struct loop){.ask = usual, .n = N};
        assert_int_equal(pthread_create(&t[i], NULL, come_and_go, &l[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *right = NULL;
        assert_int_equal(pthread_join(t[i], &right), 0);
        assert_non_null(right);
    }
    assert_int_equal((uint32_t)atomic_load(&fl_plan.stepping), 0);
    assert_int_equal(fl_plan_context_free(context), 0);
    assert_int_equal(plan_stats().arena_bytes, 0);
}

/* ---- forks ---- */

static struct loop others;
static void *others_block;       /* of the step that it is in */
static struct fl_arena *had;     /* that its context had when its process was forked */
static void (*leave_as)(void);   /* how its thread is just then */
static struct fl_extent *absent; /* blocks where it was about to bring memory; NULL: none */

/* A step that is served lasts from one meeting to the next. */
static void *stay_inside(void *arg)
{
    loop_declared(&others, context, 8);
    assert_int_equal(loop_planned(&others), N);
    assert_int_equal(fl_plan_begin(context), 0);
    others_block = fl_malloc_large(usual[0].n);
    assert_ptr_equal(others_block, others.at[0]);
    meet(true);
    meet(true);
    fl_free_ours(others_block);
    assert_int_equal(fl_plan_end(context), 0);
    loop_over(&others);
    thread_end();
    return arg;
}

static void leave_amid_requests(void)
{
}

/* end_plan has let go of the layout, and waits for a lock to forget it. */
static void leave_amid_a_plans_end(void)
{
    context->serve.layout = NULL;
}

/* fl_serve_let_go has handed its arena on, and not forgotten it. */
static void leave_amid_a_retirement(void)
{
    had->draining = true;
    had->use.owned = false;
}

/* fl_arena_bring has marked a huge page as filled; its descriptors are those of another arena. */
static void leave_amid_a_fill(void)
{
    size_t per = fl_page.huge >> FL_GRANULE_SHIFT, pages = had->limit / fl_page.huge;
    size_t page = ((uintptr_t)others_block - had->base) / fl_page.huge == 0 ? 1 : 0;

    assert_true(pages > 1);
    assert_true(fl_bitmap_take(&had->claimed, page * per, 1));
    assert_true(fl_bitmap_take(&had->absent, page * per, per));
    absent = &had->inner.block[page * per];
    for (size_t i = 0; i < per; i++) {
        absent[i].base -= MIB(64);
    }
    had->missing = 1;
}

static bool arenas_have_one_owner(void)
{
    for (uint32_t i = 0; i < fl_plan.ncontexts; i++) {
        const struct fl_arena *a = fl_plan.context[i]->serve.arena;
        if (a != NULL && (!a->use.owned || a->draining)) {
            return false;
        }
    }
    return true;
}

static int go_on_without_it(void)
{
    struct loop l = {.ask = usual, .n = N};

    leave_as();
    fl_region_fork_child(&region, fl_thread_cache());
    fl_plan_fork_child(fl_lock_release_in_child(fl_plan_fork_word()));
    if (!arenas_have_one_owner()) {
        return 2;
    }
    loop_declared(&l, context, 8);
    if (loop_planned(&l) != N || loop_same(&l) != N || fl_region_check(&region) != NULL) {
        return 3;
    }
    loop_over(&l);
    fl_free_ours(others_block);
    if (absent == NULL && fl_arena_is_open(had)) {
        return 4; /* it was the last one there */
    }
    return fl_plan_context_free(context) != 0 ? 5 : fl_region_check(&region) != NULL ? 6 : 0;
}

static int fork_now(int (*child)(void))
{
    fl_lock_acquire(fl_plan_fork_word());
    fl_region_fork_lock(&region);
    fl_lock_hold_for_fork(fl_plan_fork_word());
    int rc = fake_child(child);
    fl_region_fork_parent(&region);
    fl_lock_release_in_parent(fl_plan_fork_word());
    return rc;
}

/* Of the thread that is in it the child has nothing but what it was at, half done. */
static void a_child_learns_anew_where_another_thread_was(void **state)
{
    pthread_t t;

    leave_as = *(void (**)(void)) * state;
    (void)each(NULL);
    others = (struct loop){.ask = usual, .n = N};
    assert_int_equal(pthread_barrier_init(&all, NULL, 2), 0);
    assert_int_equal(pthread_create(&t, NULL, stay_inside, NULL), 0);
    meet(true);
    had = context->serve.arena;
    assert_int_equal(fork_now(go_on_without_it), 0);
    meet(true);
    assert_int_equal(pthread_join(t, NULL), 0);
}

static int go_on_at_once(void)
{
    struct loop l = {.ask = usual, .n = N};

    fl_region_fork_child(&region, fl_thread_cache());
    fl_plan_fork_child(fl_lock_release_in_child(fl_plan_fork_word()));
    loop_declared(&l, context, 1);
    return loop_planned(&l) != N || fl_region_check(&region) != NULL;
}

static void a_child_goes_on_where_no_other_thread_was(void **state)
{
    static struct other o;

    (void)each(state);
    start(&o, false, STEPS);
    finish(&o);
    assert_int_equal(fork_now(go_on_at_once), 0);
}

static int have_it_again(void)
{
    struct fl_step_context *c = NULL;
    uint32_t n = fl_plan.ncontexts;

    fl_region_fork_child(&region, fl_thread_cache());
    fl_plan_fork_child(fl_lock_release_in_child(fl_plan_fork_word()));
    return fl_plan_context_new(&c) != 0 || fl_plan.ncontexts != n;
}

/* The worker, which was at its steps when the program gave it back, is not there to clean up. */
static void a_child_has_what_the_worker_was_left(void **state)
{
    struct fl_step_context *c = NULL;

    (void)each(state);
    assert_int_equal(fl_plan_context_new(&c), 0);
    assert_true(fl_plan.nfree == 0);
    atomic_store(&c->job.state, FL_JOB_RUNNING);
    assert_int_equal(fl_plan_context_free(c), 0);
    assert_int_equal(c->job.state, FL_JOB_ABANDONED);
    assert_int_equal(fork_now(have_it_again), 0);
}

/* As after a fork that lasted so long that another thread took the lock over. */
static int find_no_steps(void)
{
    struct fl_step_context *made = NULL;

    fl_region_fork_child(&region, fl_thread_cache());
    (void)fl_lock_release_in_child(fl_plan_fork_word());
    fl_plan_fork_child(false);
    fl_home_leave();
    fl_lock_acquire(&fl_plan.lock);
    alarm(20); /* nothing waits for it */
    if (fl_plan_end(context) != -ENOSYS || fl_plan_begin(context) != -ENOSYS ||
        fl_plan_begin(NULL) != -ENOSYS) {
        return 2;
    }
    if (fl_plan_context_new(&made) != -ENOSYS || fl_plan_context_free(context) != -ENOSYS) {
        return 3;
    }
    fl_plan_thread_ends();
    return 0;
}

static void a_child_that_gave_up_has_no_steps(void **state)
{
    (void)each(state);
    assert_int_equal(fl_plan_begin(NULL), 0); /* so that there is one of its own to leave, too */
    assert_int_equal(fl_plan_end(NULL), 0);
    assert_int_equal(fl_plan_begin(context), 0);
    assert_int_equal(fork_now(find_no_steps), 0);
    assert_int_equal(fl_plan_end(context), 0);
}

#define LEAVES(how)                                                                                \
    {                                                                                              \
        .name = "a_child_learns_anew_where_a_thread_would_" #how,                                  \
        .test_func = a_child_learns_anew_where_another_thread_was,                                 \
        .initial_state = (void (*[])(void)){how},                                                  \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_thread_that_asks_has_its_plan),
        cmocka_unit_test(steps_beside_others_are_not_planned),
        cmocka_unit_test(nor_are_those_that_take_turns),
        cmocka_unit_test(who_asks_is_planned_beside_others),
        cmocka_unit_test(whose_block_is_marked_is_planned),
        cmocka_unit_test(who_is_gone_is_beside_none),
        cmocka_unit_test(those_that_come_one_after_the_other_share_one),
        cmocka_unit_test(one_thread_at_a_time),
        cmocka_unit_test(a_look_refuses_no_step),
        cmocka_unit_test(threads_come_and_go),
        LEAVES(leave_amid_requests),
        LEAVES(leave_amid_a_plans_end),
        LEAVES(leave_amid_a_retirement),
        LEAVES(leave_amid_a_fill),
        cmocka_unit_test(a_child_goes_on_where_no_other_thread_was),
        cmocka_unit_test(a_child_has_what_the_worker_was_left),
        cmocka_unit_test(a_child_that_gave_up_has_no_steps),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
