/* Threads and contexts: one thread at a time is in a context, what is beside others, and what a
 * thread leaves behind that ends. */
#include "unit/plan_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { N = USUAL, THREADS = 6, STEPS = 12, LEFT = 64 };

static struct fl_step_context *context;
static pthread_barrier_t all;
static bool asks; /* where its blocks lie, each of them */

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

static void start(struct fl_step_context *c, struct other *o, bool waits, unsigned steps)
{
    *o = (struct other){.l = {.ask = usual.ask, .n = N}, .steps = steps, .waits = waits, .in = c};
    assert_int_equal(pthread_create(&o->thread, NULL, run, o), 0);
}

static void finish(struct other *o)
{
    assert_int_equal(pthread_join(o->thread, NULL), 0);
    assert_true(o->begun == 0 && o->ended == 0 && o->again == -EINVAL);
}

static int each(void **state)
{
    (void)usual_each(state);
    assert_int_equal(fl_plan_context_new(&context), 0);
    return 0;
}

static void each_thread_that_asks_has_its_plan(void **state)
{
    static struct other o[THREADS];

    (void)state;
    asks = true;
    assert_int_equal(pthread_barrier_init(&all, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        start(NULL, &o[i], true, STEPS);
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

    (void)state;
    assert_int_equal(pthread_barrier_init(&all, NULL, 2), 0);
    start(context, &o[0], true, STEPS);
    start(NULL, &o[1], true, STEPS);
    finish(&o[0]);
    finish(&o[1]);
    assert_int_equal(o[0].planned + o[1].planned, 0);
    assert_int_equal(plan_stats().layouts, 0);
    start(context, &o[0], false, 2 * FL_LONG_SERVICE);
    finish(&o[0]);
    assert_int_equal(o[0].planned, N);
    assert_int_equal((uint32_t)atomic_load(&fl_plan.stepping), 0);
}

/* Nor where they come between, one after the other. */
static void nor_are_those_that_take_turns(void **state)
{
    struct fl_step_context *own;

    (void)state;
    assert_int_equal(fl_plan_context_new(&own), 0);
    for (unsigned s = 0; s < STEPS; s++) {
        static struct other o;
        loop_declared(&usual, own, 1);
        start(context, &o, false, 1);
        finish(&o);
    }
    assert_int_equal(loop_planned(&usual), 0);
    loop_over(&usual);
}

/* Asked amid a rest, it learns at once. */
static void who_asks_is_planned_beside_others(void **state)
{
    struct fl_plan_layout p;

    (void)state;
    atomic_fetch_add(&fl_plan.stepping, 1); /* another one, for ever */
    loop_declared(&usual, context, 4);
    assert_int_equal(context->state, FL_REST);
    assert_int_equal(fl_plan_begin(context), 0);
    assert_int_equal(fl_plan_layout(context, &p, NULL, 0), -ENODATA);
    loop_step(&usual);
    assert_int_equal(fl_plan_end(context), 0);
    loop_declared(&usual, context, 4);
    assert_planned(&usual);
    loop_over(&usual);
}

static void mark(unsigned i)
{
    if (i == N / 2) {
        assert_int_equal(fl_plan_mark_zone(usual.at[i - 1], 1), 0);
        usual.also = NULL;
    }
}

static void whose_block_is_marked_is_planned(void **state)
{
    (void)state;
    usual.also = mark;
    atomic_fetch_add(&fl_plan.stepping, 1);
    loop_declared(&usual, context, 6);
    assert_planned(&usual);
    loop_over(&usual);
}

/* The thread ends within its step, or is not in the child of a fork. */
static void who_is_gone_is_beside_none(void **state)
{
    (void)state;
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

    (void)state;
    for (unsigned i = 0; i < STEPS; i++) {
        start(context, &o, false, 1);
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
    pthread_t t;

    (void)state;
    for (unsigned s = 0; s < STEPS; s++) {
        assert_int_equal(fl_plan_begin(context), 0);
        void *refused = NULL;
        assert_int_equal(pthread_create(&t, NULL, find_it_busy, &usual), 0);
        loop_step(&usual);
        assert_int_equal(pthread_join(t, &refused), 0);
        assert_non_null(refused);
        assert_int_equal(fl_plan_end(context), 0);
    }
    assert_int_equal(loop_planned(&usual), 0);
    loop_over(&usual);
    assert_int_equal(fl_plan_context_free(context), 0);
}

static void *come_and_go(void *arg)
{
    struct loop l = {.ask = usual.ask, .n = N};
    bool right = true;

    for (unsigned s = 0; s < 4 * STEPS; s++) {
        int rc = fl_plan_begin(context);
        loop_step(&l);
        int ended = fl_plan_end(context);
        right = right && ((rc == 0 && ended == 0) || (rc == -EBUSY && ended == -EINVAL));
    }
    loop_over(&l);
    thread_end();
    return right ? arg : NULL;
}

/* Each as fast as it can: whose step it is is left to chance. */
static void threads_come_and_go(void **state)
{
    pthread_t t[THREADS];

    (void)state;
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, come_and_go, &usual), 0);
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
    pthread_t t;

    (void)state;
    atomic_store(&over, false);
    assert_int_equal(pthread_create(&t, NULL, look_all_the_time, NULL), 0);
    loop_declared(&usual, context, 300);
    atomic_store(&over, true);
    assert_int_equal(pthread_join(t, NULL), 0);
    loop_over(&usual);
    assert_int_equal(fl_plan_context_free(context), 0);
}

/* ---- ended threads ---- */

static void *left[LEFT]; /* by a thread that has ended */

static void *leave_blocks(void *arg)
{
    (void)arg;
    for (int step = 0; step < 2; step++) { /* amid the second the thread ends */
        assert_int_equal(fl_plan_begin(NULL), 0);
        for (int i = 0; i < LEFT && step == 1; i++) {
            left[i] = fl_malloc_large(MIB(4));
        }
        assert_int_equal(step == 0 ? fl_plan_end(NULL) : 0, 0);
    }
    thread_end();
    return NULL;
}

static void free_left(void)
{
    for (int i = 0; i < LEFT; i++) {
        fl_free_ours(left[i]);
    }
}

/* In the context that another thread had before. */
static void *go_in_steps(void *frees)
{
    if (frees != NULL) {
        free_left();
    }
    loop_declared(&usual, NULL, 40);
    bool planned = fl_plan_default->who.id == 2 && loop_planned(&usual) == N;
    loop_over(&usual);
    thread_end();
    return planned ? &usual : NULL;
}

/* Before the next thread has its context, or by that one: nothing of the first is the other's. */
static void what_an_ended_thread_left_is_freed(void **state)
{
    (void)state;
    for (int by_next = 0; by_next < 2; by_next++) {
        (void)in_thread(leave_blocks, NULL);
        assert_int_not_equal(extent_of(left[LEFT - 1])->life, 0);
        if (by_next == 0) {
            free_left();
        }
        assert_non_null(in_thread(go_in_steps, by_next != 0 ? left : NULL));
        assert_sound();
    }
}

static void *learn_and_leave(void *with_blocks)
{
    struct ask ask[N];

    memcpy(ask, usual.ask, sizeof ask);
    ask[10].lives = with_blocks != NULL ? N - 2 : 1;
    usual.ask = ask;
    loop_declared(&usual, NULL, 8);
    assert_true(usual.planned[10]);
    thread_end();
    usual.ask = loop_usual(N);
    return NULL;
}

static void a_thread_that_ends_leaves_its_blocks_alone(void **state)
{
    (void)state;
    (void)in_thread(learn_and_leave, &usual);
    assert_true(plan_stats().arena_bytes != 0);
    loop_over(&usual); /* another thread frees them */
    assert_int_equal(plan_stats().arena_bytes, 0);
    assert_settled();
    (void)in_thread(learn_and_leave, NULL); /* what it had is used again */
    assert_int_equal(plan_stats().arena_bytes, 0);
    assert_settled();
}

static void *end_amid_a_step(void *arg)
{
    loop_declared(&usual, context, 8);
    assert_int_equal(fl_plan_begin(context), 0);
    void *p = fl_malloc_large(usual.ask[0].n);
    assert_ptr_equal(p, usual.at[0]);
    fl_free_ours(p);
    thread_end();
    return arg;
}

static void a_context_goes_on_in_another_thread(void **state)
{
    (void)state;
    (void)in_thread(end_amid_a_step, NULL);
    loop_declared(&usual, context, 3);
    assert_repeated(&usual);
    assert_int_equal(plan_stats().layouts, 1);
    assert_int_equal(fl_plan_context_free(context), 0);
    assert_int_equal(plan_stats().arena_bytes, 0);
}

static struct fl_plan_stats amid; /* the most, while memory of a context is given back */
static int (*usual_advise)(struct fl_range r, enum fl_sys_advice advice);

static int look_and_advise(struct fl_range r, enum fl_sys_advice advice)
{
    struct fl_plan_stats now = advice == FL_ADVICE_DROP ? plan_stats() : amid;

    amid = now.steps > amid.steps ? now : amid;
    return usual_advise(r, advice);
}

static void figures_of_a_thread_that_ends_count_once(void **state)
{
    (void)state;
    loop_declared(&usual, NULL, 40);
    loop_over(&usual);
    struct fl_plan_stats before = plan_stats();
    assert_true(before.steps != 0 && before.hits != 0);
    usual_advise = fl_sys.advise;
    fl_sys.advise = look_and_advise;
    thread_end();
    fl_sys.advise = usual_advise;
    assert_int_equal(amid.steps, before.steps);
    assert_int_equal(amid.hits, before.hits);
    assert_int_equal(plan_stats().steps, before.steps);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup(f, each)
    const struct CMUnitTest tests[] = {
        T(each_thread_that_asks_has_its_plan),
        T(steps_beside_others_are_not_planned),
        T(nor_are_those_that_take_turns),
        T(who_asks_is_planned_beside_others),
        T(whose_block_is_marked_is_planned),
        T(who_is_gone_is_beside_none),
        T(those_that_come_one_after_the_other_share_one),
        T(one_thread_at_a_time),
        T(threads_come_and_go),
        T(a_look_refuses_no_step),
        T(what_an_ended_thread_left_is_freed),
        T(a_thread_that_ends_leaves_its_blocks_alone),
        T(a_context_goes_on_in_another_thread),
        T(figures_of_a_thread_that_ends_count_once),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
