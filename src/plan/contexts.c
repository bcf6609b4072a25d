/* Contexts as objects: made for a thread or a program, given back when a thread ends, and what becomes
 * of them in a child of fork. */
#include "plan/context.h"

#include <unistd.h>

enum { NOTICE_AFTER = 32 }; /* requests until a thread is watched */

static _Thread_local unsigned noticed;

/* Lock: plan. */
static struct fl_step_context *find_place(void)
{
    uint32_t n = atomic_load(&fl_plan.ncontexts);
    struct fl_step_context *c = fl_watch_get();

    if (c != NULL) {
        return c;
    }
    if (n < FL_CONTEXTS && (c = fl_plan_map(sizeof *c)) != NULL) {
        c->who.id = n + 1;
        fl_plan.context[n] = c;
        atomic_store_explicit(&fl_plan.ncontexts, n + 1, memory_order_release);
    }
    return c;
}

struct fl_step_context *fl_context_make(bool declared)
{
    fl_plan_lock();
    struct fl_step_context *c = find_place();
    fl_heap_start();
    fl_plan_unlock();
    if (c == NULL) {
        return NULL;
    }
    c->who.declared = declared;
    c->watch.rests = 0;
    c->job.failures = 0;
    c->learn.begun = 0;
    c->learn.live = 0;
    c->lead.leader = NULL;
    c->lead.alone = false;
    atomic_store_explicit(&c->who.last_tid, 0, memory_order_relaxed);
    atomic_store_explicit(&c->learn.freed_by_others, 0, memory_order_relaxed);
    fl_watch_anew(c);
    c->state = FL_REST; /* as a context without a thread is */
    fl_keep_adopt(c);
    fl_context_learn(c);
    c->who.open = true;
    return c;
}

void fl_context_unmake(struct fl_step_context *c)
{
    fl_replay_off(c);
    fl_serve_let_go(c);
    fl_record_drop_all(c);
    c->serve.last = NULL;
    c->who.open = false;
    atomic_store(&c->who.tid, 0);
    fl_engine_abandon(c);
}

void fl_plan_notice(void)
{
    if (fl_plan_mine != NULL || !fl_plan.config.detect || noticed > NOTICE_AFTER ||
        ++noticed < NOTICE_AFTER) {
        return;
    }
    noticed++;
    struct fl_step_context *c = fl_context_make(false);
    if (c != NULL) {
        atomic_store(&c->who.tid, gettid());
        fl_context_enter(c);
        fl_plan.config.watch_thread();
    }
}

void fl_plan_thread_ends(void)
{
    struct fl_step_context *c = fl_plan_mine;

    fl_context_enter(NULL);
    noticed = NOTICE_AFTER + 1;
    if (!fl_home_is_here()) { /* a child that gave up: what is left may be locked for ever */
        return;
    }
    while (c != NULL) {
        struct fl_step_context *outer = c->who.outer;
        c->who.outer = NULL;
        if (c->who.declared && c != fl_plan_default) { /* the program's: it may go on elsewhere */
            fl_context_step_end(c);
            atomic_store(&c->who.tid, 0);
        } else {
            fl_context_unmake(c);
            fl_plan_default = c == fl_plan_default ? NULL : fl_plan_default;
        }
        c = outer;
    }
    if (fl_plan_default != NULL) {
        fl_context_unmake(fl_plan_default);
        fl_plan_default = NULL;
    }
}

/* Who declares steps is not watched for them. */
void fl_context_stop_watching(void)
{
    struct fl_step_context *c = fl_plan_mine;

    noticed = NOTICE_AFTER + 1;
    if (c != NULL && !c->who.declared) {
        fl_context_enter(NULL);
        fl_context_unmake(c);
    }
}

void fl_plan_fork_prepare(void)
{
    fl_plan_lock();
}

void fl_plan_fork_hold(void)
{
    fl_lock_hold_for_fork(&fl_plan.lock);
}

void fl_plan_fork_parent(void)
{
    fl_lock_release_in_parent(&fl_plan.lock);
    fl_region_leave();
}

static bool is_mine(const struct fl_step_context *c)
{
    bool mine = c == fl_plan_default;

    for (const struct fl_step_context *o = fl_plan_mine; o != NULL; o = o->who.outer) {
        mine = mine || o == c;
    }
    return mine;
}

/* An arena that no context has any more goes as soon as it is empty; one that is held stays. */
static void retire_abandoned(void)
{
    for (struct fl_arena *a = fl_plan.arenas; a != NULL; a = a->next) {
        a->use.owned = a->use.held != 0;
    }
    for (uint32_t i = 0; i < atomic_load(&fl_plan.ncontexts); i++) {
        struct fl_arena *a = fl_plan.context[i]->serve.arena;
        if (a != NULL) {
            a->use.owned = true;
        }
    }
    for (struct fl_arena *a = fl_plan.arenas; a != NULL; a = a->next) {
        if (!a->use.owned) {
            atomic_store_explicit(&a->draining, true, memory_order_relaxed);
        }
    }
}

static void go_on_in_child(struct fl_step_context *c)
{
    int tid = atomic_load(&c->who.tid);

    if (tid != 0 && !is_mine(c)) {
        fl_context_abandon(c);
        atomic_store(&c->inside, false);
        atomic_store(&c->who.tid, 0);
    } else if (tid != 0 && !fl_sys_is_confined()) {
        atomic_store(&c->who.tid, gettid());
        atomic_store_explicit(&c->who.last_tid, gettid(), memory_order_relaxed);
    }
    fl_engine_lose(c); /* the worker that was at it is not here */
    fl_context_in_child(c);
}

/* A context goes on that this thread was in, or none. */
bool fl_plan_fork_child(bool has_region)
{
    bool whole = fl_lock_release_in_child(&fl_plan.lock) && has_region;

    fl_region_leave();
    for (uint32_t i = 0; whole && i < atomic_load(&fl_plan.ncontexts); i++) {
        go_on_in_child(fl_plan.context[i]);
    }
    /* A handler may have forked while its thread was about to have an arena. */
    if (whole && (fl_plan_mine == NULL || !atomic_load(&fl_plan_mine->inside))) {
        retire_abandoned();
    }
    return whole;
}
