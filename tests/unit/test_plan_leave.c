/* A thread with steps has ended, and another one has its context: nothing of the first is the
 * other's. */
#include "unit/plan_fixture.h"

#include <pthread.h>

enum { N = 30, LEFT = 64 };

static struct loop usual;

static int each(void **state)
{
    (void)state;
    plan_begin(NULL);
    usual = (struct loop){.ask = loop_usual(N), .n = N};
    return 0;
}

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

static void leave(void)
{
    pthread_t t;

    pthread_create(&t, NULL, leave_blocks, NULL);
    pthread_join(t, NULL);
    assert_int_not_equal(extent_of(left[LEFT - 1])->life, 0);
}

/* In the context that another thread had before. */
static void *go_in_steps(void *frees)
{
    if (frees != NULL) {
        free_left();
    }
    loop_declared(&usual, NULL, 40);
    bool planned = fl_plan_default == fl_plan.context[1] && loop_planned(&usual) == N;
    loop_over(&usual);
    thread_end();
    return planned ? &usual : NULL;
}

static void steps_after_others(void *frees)
{
    void *planned;
    pthread_t t;

    pthread_create(&t, NULL, go_in_steps, frees);
    pthread_join(t, &planned);
    assert_non_null(planned);
    assert_sound();
}

static void what_an_ended_thread_left_is_freed_before_the_next_one(void **state)
{
    (void)state;
    leave();
    free_left();
    steps_after_others(NULL);
}

static void what_an_ended_thread_left_is_freed_by_the_next_one(void **state)
{
    (void)state;
    leave();
    steps_after_others(left);
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
        T(what_an_ended_thread_left_is_freed_before_the_next_one),
        T(what_an_ended_thread_left_is_freed_by_the_next_one),
        T(figures_of_a_thread_that_ends_count_once),
    };
    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
