/* The public calls: a program says which context it is in, and where a step begins and ends.
 *
 * A thread that comes while another one is in the context gets a member of it: a context of its
 * own, found by the same name. It gets the same one again the next time, as long as no other thread
 * was quicker. Members are as many as ever were in the context at once.
 * State: the list of a context's members, which only grows while it is open. Lock: plan, to add. */
#include "plan/context.h"

#include <errno.h>

enum { MEMBERS = 63 }; /* besides the context itself: who begins a step looks at each */

/* One more member in the same context. */
static struct fl_step_context *next_member(struct fl_step_context *c)
{
    return atomic_load_explicit(&c->who.next_member, memory_order_acquire);
}

/* The thread's, one within the other, that is the context or a member of it; NULL: it is in
 * none. */
static struct fl_step_context *mine_of(const struct fl_step_context *root)
{
    struct fl_step_context *c = fl_plan_mine;

    while (c != NULL && c != root && c->who.of != root) {
        c = c->who.outer;
    }
    return c;
}

static inline bool claim(struct fl_step_context *c, uintptr_t self)
{
    uintptr_t none = 0;

    return atomic_compare_exchange_strong(&c->who.thread, &none, self);
}

/* acq_rel, on both sides: what the last thread left in the context is seen by the next one. */
static void release(struct fl_step_context *c)
{
    atomic_store(&c->who.thread, 0);
}

/* -EINVAL: it was freed meanwhile. */
static int add_member(struct fl_step_context *root, uintptr_t self, struct fl_step_context **out)
{
    struct fl_step_context *last = root, *made = fl_context_make();
    unsigned n = 0;

    if (made == NULL) {
        return -ENOMEM;
    }
    atomic_store(&made->who.thread, self);
    made->who.of = root;
    fl_plan_lock();
    while (next_member(last) != NULL) {
        last = next_member(last);
        n++;
    }
    int rc = !root->who.open ? -EINVAL : n >= MEMBERS ? -EBUSY : 0;
    if (rc == 0) { /* release: pairs with next_member, which finds all of it */
        atomic_store_explicit(&last->who.next_member, made, memory_order_release);
    }
    fl_plan_unlock();
    if (rc != 0) {
        made->who.of = NULL;
        fl_context_unmake(made);
        made = NULL;
    }
    *out = made;
    return rc;
}

/* The one that the thread was in last; else the context itself; else any that is free; else a
 * new one. */
static int claim_any(struct fl_step_context *root, uintptr_t self, struct fl_step_context **out)
{
    for (int any = 0; any < 2; any++) {
        for (struct fl_step_context *c = root; c != NULL; c = next_member(c)) {
            bool last = atomic_load_explicit(&c->who.last_thread, memory_order_relaxed) == self;
            if ((any || last) && claim(c, self)) {
                *out = c;
                return 0;
            }
        }
    }
    return add_member(root, self, out);
}

/* Steps are on, and the planner is this process's: not so in a child that gave it up, whose locks
 * may be held for ever. */
static bool is_on(void)
{
    return fl_plan.config.on && fl_home_is_here();
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

/* All of it is the caller's, and no thread enters any more. */
static int claim_all(struct fl_step_context *root)
{
    struct fl_step_context *busy = root;
    uintptr_t self = fl_plan_self();

    fl_plan_lock();
    if (!root->who.open) { /* another thread was first */
        fl_plan_unlock();
        return -EINVAL;
    }
    while (busy != NULL && claim(busy, self)) {
        busy = next_member(busy);
    }
    if (busy == NULL) { /* else it is others', who read `open` without the lock */
        root->who.open = false;
    }
    fl_plan_unlock();
    for (struct fl_step_context *c = root; busy != NULL && c != busy; c = next_member(c)) {
        release(c);
    }
    return busy == NULL ? 0 : -EBUSY;
}

int fl_plan_context_free(struct fl_step_context *c)
{
    if (c == NULL || !c->who.open || c->who.of != NULL) {
        return -EINVAL;
    }
    if (!is_on()) {
        return -ENOSYS;
    }
    int rc = claim_all(c);
    while (rc == 0 && c != NULL) {
        struct fl_step_context *next = next_member(c);
        atomic_store_explicit(&c->who.next_member, NULL, memory_order_relaxed);
        c->who.of = NULL;
        fl_context_unmake(c);
        c = next;
    }
    return rc;
}

static struct fl_step_context *default_context(void)
{
    if (fl_plan_default == NULL) {
        fl_plan_default = fl_context_make();
    }
    return fl_plan_default;
}

struct fl_step_context *fl_context_of_thread(struct fl_step_context *c)
{
    struct fl_step_context *mine;

    if (c == NULL) {
        return fl_plan_mine != NULL ? fl_plan_mine : fl_plan_default;
    }
    mine = mine_of(c);
    return mine != NULL ? mine : c;
}

static _Thread_local uint32_t last_number; /* of the thread's steps */

/* The step has a number; one within another has the number of the last that was begun. Others are
 * beside it if they are in steps, or began one since the thread's last, and since the context's. */
static void number(struct fl_step_context *c, bool within)
{
    uint64_t one = within ? 0 : (UINT64_C(1) << 32) + 1;
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
    c = c != NULL ? c : default_context();
    if (c == NULL) {
        return -ENOMEM;
    }
    if (!c->who.open || c->who.of != NULL || mine_of(c) != NULL) {
        return -EINVAL;
    }
    struct fl_step_context *root = c;
    uintptr_t self = fl_plan_self();
    int rc = claim_any(root, self, &c);
    if (rc != 0) {
        return rc;
    }
    if (!root->who.open) { /* freed meanwhile */
        release(c);
        return -EINVAL;
    }
    atomic_store_explicit(&c->who.last_thread, self, memory_order_relaxed);
    c->who.outer = fl_plan_mine;
    atomic_store(&c->inside, true);
    number(c, fl_plan_mine != NULL);
    fl_context_step_begin(c);
    fl_context_enter(c);
    atomic_store(&c->inside, false);
    fl_plan.config.watch_thread();
    return 0;
}

int fl_plan_end(struct fl_step_context *c)
{
    c = c != NULL ? c : fl_plan_default;
    if (!is_on()) {
        return -ENOSYS;
    }
    if (c == NULL || fl_plan_mine == NULL || (c != fl_plan_mine && c != fl_plan_mine->who.of) ||
        fl_region_busy()) {
        return -EINVAL;
    }
    c = fl_plan_mine;
    fl_assert(atomic_load(&c->who.thread) == fl_plan_self());
    fl_plan_cursor = NULL;
    atomic_store(&c->inside, true);
    fl_context_step_end(c);
    c->serve.last = c->serve.layout != NULL ? c->serve.layout : c->serve.last;
    fl_context_enter(c->who.outer);
    fl_plan_leave_steps(fl_plan_mine == NULL);
    c->who.outer = NULL;
    atomic_store(&c->inside, false);
    release(c);
    return 0;
}
