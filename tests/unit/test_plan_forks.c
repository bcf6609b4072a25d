/* Children of fork: what becomes of a context that another thread was in, or none. */
#include "unit/plan_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

enum { N = USUAL };

static struct fl_step_context *context;
static pthread_barrier_t all;

static void meet(void)
{
    (void)pthread_barrier_wait(&all);
}

static int each(void **state)
{
    (void)usual_each(state);
    assert_int_equal(fl_plan_context_new(&context), 0);
    return 0;
}

static void *others_block;       /* of the step that another thread is in */
static struct fl_arena *had;     /* that its context had when its process was forked */
static void (*leave_as)(void);   /* how its thread is just then */
static struct fl_extent *absent; /* blocks where it was about to bring memory; NULL: none */

/* A step that is served lasts from one meeting to the next. */
static void *stay_inside(void *arg)
{
    loop_declared(&usual, context, 8);
    assert_planned(&usual);
    assert_int_equal(fl_plan_begin(context), 0);
    others_block = fl_malloc_large(usual.ask[0].n);
    assert_ptr_equal(others_block, usual.at[0]);
    meet();
    meet();
    fl_free_ours(others_block);
    assert_int_equal(fl_plan_end(context), 0);
    loop_over(&usual);
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
    struct loop l = {.ask = usual.ask, .n = N};

    leave_as();
    plan_in_child();
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

/* Of the thread that is in it the child has nothing but what it was at, half done. */
static void a_child_learns_anew_where_another_thread_was(void **state)
{
    pthread_t t;

    leave_as = *(void (**)(void)) * state;
    (void)each(NULL);
    assert_int_equal(pthread_barrier_init(&all, NULL, 2), 0);
    assert_int_equal(pthread_create(&t, NULL, stay_inside, NULL), 0);
    meet();
    had = context->serve.arena;
    assert_int_equal(plan_fork(go_on_without_it), 0);
    meet();
    assert_int_equal(pthread_join(t, NULL), 0);
}

static int go_on_at_once(void)
{
    plan_in_child();
    loop_declared(&usual, context, 1);
    if (loop_planned(&usual) != N || fl_region_check(&region) != NULL) {
        return 1;
    }
    (void)fl_plan_release();
    return plan_stats().arena_bytes == 0 ? 0 : 2;
}

static void *come_and_leave(void *arg)
{
    loop_declared(&usual, context, 12);
    loop_over(&usual);
    thread_end();
    return arg;
}

static void a_child_goes_on_where_no_other_thread_was(void **state)
{
    (void)state;
    (void)in_thread(come_and_leave, NULL);
    assert_int_equal(plan_fork(go_on_at_once), 0);
}

/* And so does the parent. */
static void a_child_goes_on_where_its_parent_was(void **state)
{
    (void)state;
    loop_declared(&usual, context, 8);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(plan_fork(go_on_at_once), 0);
        loop_declared(&usual, context, 2);
        assert_repeated(&usual);
    }
    assert_sound();
}

static int have_it_again(void)
{
    struct fl_step_context *c = NULL;
    uint32_t n = fl_plan.ncontexts;

    plan_in_child();
    return fl_plan_context_new(&c) != 0 || fl_plan.ncontexts != n;
}

/* The worker, which was at its steps when the program gave it back, is not there to clean up. */
static void a_child_has_what_the_worker_was_left(void **state)
{
    struct fl_step_context *c = NULL;

    (void)state;
    assert_int_equal(fl_plan_context_new(&c), 0);
    assert_true(fl_plan.nfree == 0);
    atomic_store(&c->job.state, FL_JOB_RUNNING);
    assert_int_equal(fl_plan_context_free(c), 0);
    assert_int_equal(c->job.state, FL_JOB_ABANDONED);
    assert_int_equal(plan_fork(have_it_again), 0);
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
    (void)state;
    assert_int_equal(fl_plan_begin(NULL), 0); /* so that there is one of its own to leave, too */
    assert_int_equal(fl_plan_end(NULL), 0);
    assert_int_equal(fl_plan_begin(context), 0);
    assert_int_equal(plan_fork(find_no_steps), 0);
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
        LEAVES(leave_amid_requests),
        LEAVES(leave_amid_a_plans_end),
        LEAVES(leave_amid_a_retirement),
        LEAVES(leave_amid_a_fill),
        cmocka_unit_test_setup(a_child_goes_on_where_no_other_thread_was, each),
        cmocka_unit_test_setup(a_child_goes_on_where_its_parent_was, each),
        cmocka_unit_test_setup(a_child_has_what_the_worker_was_left, each),
        cmocka_unit_test_setup(a_child_that_gave_up_has_no_steps, each),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
