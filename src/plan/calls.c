/* The public calls: a program says which context it is in, and where a step begins and ends. A
 * context has one thread at a time. */
#include "plan/context.h"

#include <errno.h>

/* Steps begin, and the planner is this process's: not so in a child that gave it up, whose locks
 * may be held for ever. */
static bool is_on(void)
{
    return atomic_load(&fl_plan.config.on) && fl_home_is_here();
}

int fl_plan_context_new(struct fl_step_context **out)
{
    if (out == NULL) {
        return -EINVAL;
    }
    if (!is_on()) {
        return -ENOSYS;
    }
    *out = fl_context_make();
    return *out != NULL ? 0 : -ENOMEM;
}

static int claim(struct fl_step_context *c)
{
    uintptr_t was = 0, self = fl_plan_self();

    while (!atomic_compare_exchange_strong(&c->who.thread, &was, self)) {
        if ((was & FL_LOOKS) == 0 || was == (self | FL_LOOKS)) {
            return -EBUSY;
        }
        (void)fl_call(SYS_sched_yield); /* until that look is over */
        was = 0;
    }
    if (!c->who.open) { /* freed meanwhile */
        atomic_store(&c->who.thread, 0);
        return -EINVAL;
    }
    fl_assert(atomic_load(&c->who.thread) == self);
    return 0;
}

int fl_plan_context_free(struct fl_step_context *c)
{
    if (c == NULL || !c->who.open) {
        return -EINVAL;
    }
    int rc = fl_home_is_here() ? claim(c) : -ENOSYS;
    if (rc == 0) {
        fl_context_unmake(c);
    }
    return rc;
}

static const uint64_t ONE_STEP = UINT64_C(1) << 32; /* of fl_plan.stepping */
static _Thread_local uint32_t last_number;          /* of the thread's steps */

/* The step has a number; one within another has the number of the last that was begun. Others are
 * beside it if they are in steps, or began one since the thread's last, and since the context's. */
static void number(struct fl_step_context *c, bool within)
{
    uint64_t one = within ? 0 : ONE_STEP + 1;
    uint64_t was = atomic_fetch_add(&fl_plan.stepping, one);
    uint32_t last = (uint32_t)(was >> 32);

    c->who.beside = (uint32_t)was != within ||
                    (!within && last_number != 0 && last != last_number && last != c->who.number);
    c->who.number = last + !within;
    last_number = c->who.number;
}

int fl_plan_begin(struct fl_step_context *c)
{
    if (!is_on()) {
        return -ENOSYS;
    }
    if (fl_region_busy()) {
        return -EBUSY;
    }
    if (c == NULL && fl_plan_default == NULL) {
        fl_plan_default = fl_context_make();
    }
    c = c != NULL ? c : fl_plan_default;
    if (c == NULL) {
        return -ENOMEM;
    }
    if (!c->who.open || atomic_load(&c->who.thread) == fl_plan_self()) {
        return -EINVAL;
    }
    int rc = claim(c);
    if (rc == -EBUSY) { /* a step all the same, beside that of the thread that is in it */
        atomic_fetch_add(&fl_plan.stepping, ONE_STEP);
    }
    if (rc != 0) {
        return rc;
    }
    fl_assert(c->who.outer == NULL && !atomic_load(&c->inside));
    c->who.outer = fl_plan_mine;
    atomic_store(&c->inside, true);
    number(c, fl_plan_mine != NULL);
    fl_context_step_begin(c);
    fl_context_enter(c);
    fl_assert(fl_plan_mine == c && atomic_load(&c->inside));
    atomic_store(&c->inside, false);
    fl_plan.config.watch_thread();
    return 0;
}

int fl_plan_end(struct fl_step_context *c)
{
    c = c != NULL ? c : fl_plan_default;
    bool is_within = c != NULL && c == fl_plan_mine; /* its end counts, though none may begin now */
    if (!fl_home_is_here() || (!is_within && !is_on())) {
        return -ENOSYS;
    }
    if (!is_within || fl_region_busy()) {
        return -EINVAL;
    }
    fl_assert(atomic_load(&c->who.thread) == fl_plan_self());
    fl_plan_cursor = NULL;
    atomic_store(&c->inside, true);
    fl_context_step_end(c);
    c->serve.last = c->serve.layout != NULL ? c->serve.layout : c->serve.last;
    fl_context_enter(c->who.outer);
    fl_assert(fl_plan_mine != c);
    fl_plan_leave_steps(fl_plan_mine == NULL);
    c->who.outer = NULL;
    atomic_store(&c->inside, false);
    atomic_store(&c->who.thread, 0); /* what it left in `c` is seen by the next one */
    return 0;
}
