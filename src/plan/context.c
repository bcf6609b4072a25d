/* Whose steps these are, where they begin and end, and what is done about it: learn, wait for the
 * packer, serve, rest. The state changes in go() alone, as next() says, and a plan's service ends
 * in fl_context_end_plan() alone. */
#include "plan/context.h"

/* A rest after a plan that was no good is FL_LONG_SERVICE steps, each next one twice as long, or
 * sixteen times where memory moved for the plan. */
enum { REST_DOUBLINGS = 10, DOUBLINGS_FOR_MOVES = 4 };

static struct fl_step_context gone;
struct fl_plan fl_plan; /* all zero until the start: a process without steps pays nothing */
_Thread_local unsigned fl_plan_wants;
unsigned fl_plan_always;
_Thread_local struct fl_cursor *fl_plan_cursor;
/* A cursor that serves nothing, so that fl_plan_take, or fl_plan_saw, comes to know of the request.
 * Constant. */
static const struct fl_plan_entry no_entry = {.word = {FL_ENTRY_NONE, FL_ENTRY_NONE}};
struct fl_cursor fl_plan_no_cursor = {.next = &no_entry};
_Atomic bool fl_plan_calls;
_Thread_local struct fl_step_context *fl_plan_mine;
_Thread_local struct fl_step_context *fl_plan_default; /* of fl_step_begin(NULL) */

/* By a request of any kind, whichever comes first. */
void fl_plan_call_worker(void)
{
    atomic_store(&fl_plan_calls, true);
    atomic_store(&fl_plan.region->wants_worker, true);
}

void fl_plan_lock(void)
{
    fl_region_enter();
    fl_lock_acquire(&fl_plan.lock);
}

void fl_plan_unlock(void)
{
    fl_lock_release(&fl_plan.lock);
    fl_region_leave();
}

void fl_plan_start(struct fl_region *r, const struct fl_plan_config *c)
{
    uint32_t none = 0;

    fl_lock_init(&fl_plan.lock, FL_RANK_PLAN);
    fl_plan.context[0] = &gone;
    (void)atomic_compare_exchange_strong(&fl_plan.ncontexts, &none, 1);
    fl_plan.region = r;
    fl_plan.config = *c;
}

void fl_plan_set_tick(uint64_t tick_ns)
{
    atomic_store(&fl_plan.config.tick_ns, tick_ns);
}

void fl_plan_set_on(bool on)
{
    atomic_store(&fl_plan.config.on, on);
}

/* What its thread's requests have to be shown to. */
static unsigned mode_of(const struct fl_step_context *c)
{
    bool serves = c->state == FL_SERVE;
    bool watched = c->learn.recording || (!serves && fl_context_knows_any(c));

    return (serves ? FL_PLAN_REPLAY : 0) | (watched ? FL_PLAN_WATCH : 0);
}

static void set_mode(const struct fl_step_context *c)
{
    if (c == fl_plan_mine) {
        fl_plan_wants = fl_plan_always | (c != NULL ? mode_of(c) : 0);
        atomic_signal_fence(memory_order_seq_cst);
        fl_plan_cursor = fl_plan_wants != 0 ? &fl_plan_no_cursor : NULL;
    }
}

void fl_plan_thread_begins(void)
{
    set_mode(fl_plan_mine);
}

void fl_context_enter(struct fl_step_context *c)
{
    fl_plan_cursor = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    fl_plan_wants = 0;
    fl_plan_mine = c;
    atomic_signal_fence(memory_order_seq_cst);
    set_mode(c);
    /* Else by fl_plan_take: requests call the worker, or age memory where there is none. */
    if (fl_plan_wants == FL_PLAN_REPLAY && fl_plan.config.background &&
        !atomic_load(&fl_plan_calls)) {
        fl_plan_cursor = &c->serve.cursor;
    }
}

/* ---- the states ---- */

enum event {
    EVENT_ANEW,     /* nothing is known of its steps */
    EVENT_WANTED,   /* recorded steps are to be packed */
    EVENT_FAILED,   /* that gave no layout */
    EVENT_LAYOUT,   /* there is one for the steps */
    EVENT_UNSERVED, /* the plan's service ends, and other steps may come */
    EVENT_NO_GOOD,  /* plans were of no use, or cannot be had now */
    EVENT_RESTED,
};

static enum fl_plan_state next(enum fl_plan_state state, enum event event)
{
    switch (event) {
    case EVENT_WANTED:
        fl_assert(state == FL_LEARN);
        return FL_PACK;
    case EVENT_FAILED:
        fl_assert(state == FL_PACK);
        return FL_LEARN;
    case EVENT_UNSERVED: /* REST: in a child that a handler forked amid it */
        fl_assert(state == FL_SERVE || state == FL_REST);
        return FL_LEARN;
    case EVENT_RESTED:
        fl_assert(state == FL_REST);
        return FL_LEARN;
    case EVENT_LAYOUT:
        return FL_SERVE;
    case EVENT_NO_GOOD:
        return FL_REST;
    case EVENT_ANEW:
        break;
    }
    return FL_LEARN;
}

/* The one place where a state changes. */
static void go(struct fl_step_context *c, enum event event)
{
    enum fl_plan_state had = c->state;

    c->state = next(c->state, event);
    c->serve.bad = c->state == had ? c->serve.bad : 0;
    c->rest.steps = c->state == FL_REST ? c->rest.steps : 0;
    set_mode(c);
    fl_assert((c->state == FL_SERVE) == (c->serve.layout != NULL));
}

/* Longer than the last time, where the last plans were no good. */
static void rest(struct fl_step_context *c, unsigned doublings)
{
    c->rest.steps = (uint64_t)FL_LONG_SERVICE
                    << (doublings != 0 ? fl_min(c->rest.doublings, REST_DOUBLINGS) : 0);
    c->rest.doublings += doublings;
    fl_assert(c->rest.steps != 0);
    c->rest.asked = atomic_load(&c->who.asked);
    go(c, EVENT_NO_GOOD);
}

/* ---- what becomes of a plan ---- */

static void forget(struct fl_step_context *c, struct fl_layout *l)
{
    fl_assert(l != NULL && l != c->serve.layout);
    for (unsigned i = 0; i < FL_LAYOUTS; i++) {
        if (c->serve.known[i] == l) {
            fl_context_set_known(c, i, NULL);
        }
    }
    c->serve.last = c->serve.last == l ? NULL : c->serve.last;
    fl_layout_free(l);
    if (c->serve.arena != NULL && c->serve.arena->use.held == 0) {
        fl_serve_let_go(c); /* blocks that stay may lie there, in the way of other plans */
    }
}

/* By why it ends: is the plan forgotten, does the context rest, and does the plan count as given
 * up? */
static const struct {
    bool forgets, rests, drops;
    unsigned doublings; /* of the next rest */
} fates[FL_ENDS] = {
    [FL_END_BAD] = {.forgets = true, .rests = true, .drops = true, .doublings = 1},
    [FL_END_MOVES] = {.forgets = true,
                      .rests = true,
                      .drops = true,
                      .doublings = DOUBLINGS_FOR_MOVES},
    [FL_END_MISMATCHED] = {.drops = true},
    [FL_END_NO_MEMORY] = {.rests = true},
    [FL_END_FORKED] = {.rests = true},
};

void fl_context_end_plan(struct fl_step_context *c, enum fl_end why)
{
    fl_assert(c->state == FL_SERVE && c->serve.layout != NULL);
    struct fl_layout *l = c->serve.layout;
    bool in_work = atomic_load(&c->job.state) != FL_JOB_NONE && c->job.again == l;

    c->job.unwanted = c->job.unwanted || (fates[why].forgets && in_work);
    if (fates[why].drops) {
        fl_stats_bump(&c->stats.drops);
        fl_timeline_moment(FL_TIMELINE_DROP, c->who.id);
        c->serve.last = NULL;
    }
    fl_replay_off(c);
    if (fates[why].forgets && !in_work) {
        forget(c, l);
    }
    fl_record_drop_all(c);
    if (fates[why].rests) {
        rest(c, fates[why].doublings);
    } else {
        go(c, EVENT_UNSERVED);
    }
}

/* ---- steps ---- */

/* A step of the layout begins with the next request. */
static void serve(struct fl_step_context *c, struct fl_layout *l)
{
    fl_assert(l != NULL);
    c->serve.layout = l;
    go(c, EVENT_LAYOUT);
    if (!fl_replay_begin(c)) {
        fl_context_end_plan(c, FL_END_NO_MEMORY);
    }
}

/* Threads that step beside each other take each other's idle pages, and have to move them back:
 * plans would cost more than they give. Unless it was asked where blocks lie. */
static bool is_beside_others(const struct fl_step_context *c)
{
    bool beside =
        c->who.beside || c->who.number != (uint32_t)(atomic_load(&fl_plan.stepping) >> 32);

    return beside && !atomic_load_explicit(&c->who.asked, memory_order_relaxed);
}

static void end_learned_step(struct fl_step_context *c)
{
    bool beside = is_beside_others(c);

    c->serve.bad = (uint8_t)(c->serve.bad << 1 | beside);
    if (beside) {
        fl_record_drop_all(c);
    }
    if (__builtin_popcount(c->serve.bad) >= FL_FAILURES) {
        rest(c, 1);
    }
}

static void end_served_step(struct fl_step_context *c)
{
    enum fl_end why = fl_replay_end(c, is_beside_others(c));

    if (why != FL_END_NOT) {
        fl_context_end_plan(c, why);
        return;
    }
    bool good = c->serve.bad == 0 && c->serve.mismatched_steps == 0;
    c->rest.doublings = good && c->serve.served >= FL_LONG_SERVICE ? 0 : c->rest.doublings;
    if (fl_replay_is_away(c)) {
        fl_serve_let_go(c);
    }
}

/* What the packer has made is served from the next step on. */
static void take_made(struct fl_step_context *c)
{
    struct fl_layout *no_good = c->job.unwanted ? c->job.again : NULL;
    struct fl_layout *l = fl_engine_collect(c);

    /* It is not at work any more; and may serve once more, since it was known meanwhile. */
    if (no_good != NULL && !c->job.unwanted && no_good != c->serve.layout) {
        forget(c, no_good);
    } else if (l != NULL) {
        c->serve.layout = c->serve.last = l;
        go(c, EVENT_LAYOUT);
    } else if (c->state == FL_PACK && atomic_load(&c->job.state) == FL_JOB_NONE) {
        go(c, EVENT_FAILED);
        if (c->job.failures >= FL_FAILURES) {
            rest(c, 1);
        }
    }
}

/* Is there something to pack? */
static bool has_job(struct fl_step_context *c)
{
    bool again = c->state == FL_SERVE && c->serve.layout->marked;

    c->job.again = again ? c->serve.layout : NULL;
    c->job.nlives = again ? 0 : fl_record_ready(c, c->job.lives);
    return again || c->job.nlives != 0;
}

/* So many steps, and none was like one before. */
static bool learns_in_vain(const struct fl_step_context *c)
{
    return c->state == FL_LEARN && c->learn.stable == 0 &&
           c->learn.sampled > fl_plan.config.max + FL_MERGE_STEPS &&
           !atomic_load_explicit(&c->who.asked, memory_order_relaxed);
}

void fl_context_step_end(struct fl_step_context *c)
{
    uint64_t told = (uint64_t)c->who.id * 2 + (c->state == FL_SERVE);

    fl_timeline_span(FL_TIMELINE_STEP, c->who.begun_ns, told);
    c->who.begun_ns = 0;
    fl_record_end(c);
    if (c->state == FL_SERVE) {
        end_served_step(c);
    } else if (c->state == FL_LEARN) {
        end_learned_step(c);
    }
    take_made(c);
    if (atomic_load(&c->job.state) != FL_JOB_NONE || c->state == FL_REST) {
        return;
    }
    if (has_job(c)) {
        fl_engine_want(c);
        if (c->state == FL_LEARN) {
            go(c, EVENT_WANTED);
        }
    } else if (learns_in_vain(c)) {
        fl_record_drop_all(c);
        rest(c, 1);
    }
}

static bool wants_record(struct fl_step_context *c)
{
    bool wants = c->state == FL_SERVE ? c->learn.relearn : c->state == FL_LEARN;

    wants = wants || fl_plan.config.trace != NULL;
    return wants && c->learn.begun++ >= fl_plan.config.start &&
           atomic_load(&c->job.state) == FL_JOB_NONE;
}

void fl_context_step_begin(struct fl_step_context *c)
{
    fl_assert(atomic_load(&c->inside) && atomic_load(&c->who.thread) == fl_plan_self());
    c->who.begun_ns = fl_timeline_now();
    if (c->state == FL_REST) {
        c->rest.steps -= c->rest.steps != 0;
        if (c->rest.steps == 0 || c->rest.asked != atomic_load(&c->who.asked)) {
            go(c, EVENT_RESTED);
        }
    }
    if (c->state == FL_SERVE) {
        serve(c, c->serve.layout);
    } else if (c->state == FL_LEARN && c->serve.last != NULL) {
        serve(c, c->serve.last);
    } else {
        c->serve.step = (struct fl_step_figures){0};
    }
    if (wants_record(c)) {
        fl_record_begin(c);
    }
    set_mode(c);
}

void fl_context_abandon(struct fl_step_context *c)
{
    c->serve = (struct fl_serve){0};
    fl_replay_go_nowhere(c);
    fl_record_drop_all(c);
    go(c, EVENT_ANEW);
}

void fl_context_in_child(struct fl_step_context *c)
{
    if (c->state == FL_SERVE &&
        c->serve.layout == NULL) { /* the thread that ended its plan is gone */
        rest(c, 0);
    }
    if (c->serve.arena != NULL && c->serve.arena->use.held != 0) { /* its memory is not here */
        c->serve.arena = NULL;
        if (c->state == FL_SERVE) {
            fl_context_end_plan(c, FL_END_FORKED);
        }
    }
}

void fl_context_resume(struct fl_step_context *c, struct fl_layout *l)
{
    c->serve.mismatched_steps = 0;
    fl_record_drop_all(c);
    serve(c, l);
    if (c->state == FL_SERVE) {
        fl_replay_resume(c);
    }
}
