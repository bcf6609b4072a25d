/* Whose steps these are, where they begin and end, and what is done about it: watch, learn, wait
 * for the packer, serve, rest. The state changes in go() alone, and a plan's service ends in
 * fl_context_end_plan() alone. */
#include "plan/context.h"

/* A rest after a plan that was no good, in declared steps or in requests; each one after it is
 * twice as long. Without a detector a thread rests for NO_DETECTOR requests. */
enum { REST_STEPS = 16, REST_REQUESTS = 4096, REST_DOUBLINGS = 10 };
/* So many doublings come first where pages moved to and fro: that lies in the program. */
enum { CHURNED_RESTS = 6 };
enum { NO_DETECTOR = 1 << 30 };
/* A plan that serves for fewer steps than LONG_SERVICE has failed; so often until it is
 * forgotten. */
enum { LONG_SERVICE = 64, FAILURES = 3 };
/* Steps: a plan for exact sizes that fits no longer was made too soon. */
enum { EXACT_LEAST = 8 };
/* Planned steps from one look at the heap's end to the next. */
enum { HEAP_STEPS = 8 };

static struct fl_step_context gone;
struct fl_plan fl_plan; /* all zero until the start: a process without steps pays nothing */
_Thread_local unsigned fl_plan_wants;
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
    fl_plan.in_vain = 0;
    fl_plan.begun = 0;
    if (c->on && c->file != NULL) {
        fl_plan_claim_memory();
        fl_keep_load(c->file);
    }
}

bool fl_context_knows_any(const struct fl_step_context *c)
{
    for (unsigned i = 0; i < FL_LAYOUTS; i++) {
        if (c->serve.known[i] != NULL) {
            return true;
        }
    }
    return false;
}

unsigned fl_context_find_known(const struct fl_step_context *c, uint64_t hash, uint32_t n)
{
    unsigned i = 0;

    while (i < FL_LAYOUTS && (c->serve.known[i] == NULL || c->serve.known[i]->hash != hash ||
                              c->serve.known[i]->n != n)) {
        i++;
    }
    return i;
}

/* What its thread's requests have to be shown to. A step's first request always goes by
 * fl_plan_take, which may have the worker called. */
static unsigned mode_of(const struct fl_step_context *c)
{
    unsigned mode = c->state == FL_SERVE ? FL_PLAN_REPLAY : 0;
    bool watched = c->learn.recording || (!c->who.declared && c->state != FL_SERVE) ||
                   (c->state != FL_SERVE && fl_context_knows_any(c));

    if (c->state == FL_REST && !c->who.declared && !fl_context_knows_any(c)) {
        return FL_PLAN_COUNT;
    }
    return watched ? mode | FL_PLAN_WATCH : mode;
}

static void set_mode(const struct fl_step_context *c)
{
    if (c == fl_plan_mine) {
        fl_plan_wants = c != NULL ? mode_of(c) : 0;
        atomic_signal_fence(memory_order_seq_cst);
        fl_plan_cursor =
            (fl_plan_wants | FL_PLAN_COUNT) != FL_PLAN_COUNT ? &fl_plan_no_cursor : NULL;
    }
}

void fl_context_enter(struct fl_step_context *c)
{
    fl_plan_cursor = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    fl_plan_wants = 0;
    fl_plan_mine = c;
    atomic_signal_fence(memory_order_seq_cst);
    set_mode(c);
}

/* ---- the states ---- */

/* From each state, a bit for each that may follow. */
#define TO(state) (1 << FL_##state)
static const uint8_t follows[] = {
    [FL_WATCH] = TO(LEARN) | TO(SERVE) | TO(REST), [FL_LEARN] = TO(PACK) | TO(SERVE) | TO(REST),
    [FL_PACK] = TO(LEARN) | TO(SERVE) | TO(REST),  [FL_SERVE] = TO(WATCH) | TO(LEARN) | TO(REST),
    [FL_REST] = TO(WATCH) | TO(LEARN) | TO(SERVE),
};

/* The one place where a state changes. */
static void go(struct fl_step_context *c, enum fl_plan_state to)
{
    /* Checked builds end where a state is entered that cannot follow. */
    if (FL_CHECK_LEVEL >= 2 && to != c->state && (follows[c->state] >> to & 1) == 0) {
        fl_fatal("a context went from one state to another that cannot follow");
    }
    c->state = to;
    c->watch.rest = to == FL_REST ? c->watch.rest : 0;
    c->watch.over = to == FL_REST ? c->watch.over : 0;
    c->watch.unfound = to == FL_SERVE ? 0 : c->watch.unfound;
    set_mode(c);
}

void fl_context_learn(struct fl_step_context *c)
{
    if (c->who.declared) {
        go(c, FL_LEARN);
    } else if (fl_watch_begin(c)) {
        fl_detect_go_on(c->watch.detect);
        go(c, FL_WATCH);
    } else {
        c->watch.rest = NO_DETECTOR;
        c->watch.over = 0;
        go(c, FL_REST);
    }
}

/* Twice as long as the last time, where the last plans were no good. */
static void rest(struct fl_step_context *c, bool longer, unsigned doublings)
{
    uint64_t times = longer ? fl_min(fl_max(c->watch.rests, doublings), REST_DOUBLINGS) : 0;

    c->watch.rest = (uint64_t)(c->who.declared ? REST_STEPS : REST_REQUESTS) << times;
    c->watch.rests += longer;
    go(c, FL_REST);
}

/* ---- what becomes of a plan ---- */

static void forget(struct fl_step_context *c, struct fl_layout *l)
{
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

/* By why it ends: how many failures that is, where it has not served for long; is the plan
 * forgotten in any case, and does the context rest? */
static const struct {
    uint8_t failures;
    bool forgets, rests, drops;
} fates[FL_ENDS] = {
    [FL_END_LOST] = {.failures = 1},
    [FL_END_BAD] = {.failures = FAILURES, .forgets = true, .rests = true, .drops = true},
    [FL_END_CHURNED] = {.forgets = true, .rests = true, .drops = true},
    [FL_END_MISMATCHED] = {.failures = 1, .drops = true},
    [FL_END_NO_MEMORY] = {.rests = true},
    [FL_END_FORKED] = {.rests = true},
};

/* The plan that is served has come to its end. True: it never served for long, and is to be
 * forgotten: what was taken for a step may be a part of the program's, so the detector doubts
 * it. */
static bool is_hopeless(struct fl_step_context *c, struct fl_layout *l, enum fl_end why,
                        bool in_work)
{
    bool too_soon = why == FL_END_LOST && l->exact && c->serve.served < EXACT_LEAST;
    unsigned failures = too_soon ? FAILURES : fates[why].failures;
    bool served_long = c->serve.served >= LONG_SERVICE;

    if (failures != 0) {
        l->failed = (uint8_t)(served_long ? 0 : fl_min(l->failed + failures, UINT8_MAX));
    }
    bool hopeless = !c->who.declared && l->failed >= FAILURES && !in_work;
    if (hopeless && c->watch.detect != NULL) {
        fl_detect_doubt(c->watch.detect, l->period, c->serve.served);
        c->lead.alone = c->lead.leader != NULL && fl_detect_period(c->watch.detect) == 0;
    }
    return hopeless;
}

void fl_context_end_plan(struct fl_step_context *c, enum fl_end why)
{
    struct fl_layout *l = c->serve.layout;
    bool in_work = atomic_load(&c->job.state) != FL_JOB_NONE && c->job.grown == l;
    bool hopeless = is_hopeless(c, l, why, in_work);

    c->job.unwanted = c->job.unwanted || (fates[why].forgets && in_work);
    if (fates[why].drops) {
        fl_stats_bump(&c->stats.drops);
        fl_timeline_moment(FL_TIMELINE_DROP, c->who.id);
        c->serve.last = NULL;
    }
    fl_replay_off(c);
    if (hopeless || (fates[why].forgets && !in_work)) {
        forget(c, l);
    }
    fl_record_drop_all(c);
    for (unsigned i = 0; why == FL_END_CHURNED && i < FL_LAYOUTS; i++) { /* so would the others */
        if (c->serve.known[i] != NULL && c->serve.known[i] != c->job.grown) {
            forget(c, c->serve.known[i]);
        }
    }
    if (fates[why].rests || (hopeless && why == FL_END_MISMATCHED)) {
        rest(c, fates[why].drops, why == FL_END_CHURNED ? CHURNED_RESTS : 0);
    } else {
        fl_context_learn(c);
    }
}

/* ---- steps ---- */

/* A step of the layout begins with the next request. */
static void serve(struct fl_step_context *c, struct fl_layout *l)
{
    c->serve.layout = l;
    go(c, FL_SERVE);
    if (!fl_replay_begin(c)) {
        fl_context_end_plan(c, FL_END_NO_MEMORY);
    }
}

static void end_served_step(struct fl_step_context *c)
{
    enum fl_end why = fl_replay_end(c);

    if (why != FL_END_NOT) {
        fl_context_end_plan(c, why);
        return;
    }
    bool good = c->serve.bad == 0 && c->serve.mismatched_steps == 0;
    c->watch.rests = good && c->serve.served >= LONG_SERVICE ? 0 : c->watch.rests;
    if (good && !c->who.declared) {
        fl_watch_found();
    }
    if (fl_replay_is_away(c)) {
        fl_serve_let_go(c);
    }
    if (c->serve.served % HEAP_STEPS == 1) {
        fl_heap_look();
    }
}

/* What the packer has made is served from the next step on. */
static void take_made(struct fl_step_context *c)
{
    struct fl_layout *no_good = c->job.unwanted ? c->job.grown : NULL;
    struct fl_layout *l = fl_engine_collect(c);

    /* It is not at work any more; and may serve once more, since it was known meanwhile. */
    if (no_good != NULL && !c->job.unwanted && no_good != c->serve.layout) {
        forget(c, no_good);
    }
    if (l != NULL) {
        c->serve.layout = c->serve.last = l;
        go(c, FL_SERVE);
    } else if (c->state == FL_PACK && atomic_load(&c->job.state) == FL_JOB_NONE) {
        go(c, FL_LEARN); /* it failed */
        if (c->job.failures >= FAILURES) {
            rest(c, true, 0);
        }
    }
}

/* Is there something to pack? */
static bool has_job(struct fl_step_context *c)
{
    if (c->state == FL_SERVE && c->serve.layout->wish) {
        c->job.nlives = 0;
        c->job.grown = c->serve.layout;
        return true;
    }
    c->job.nlives = fl_record_ready(c, c->job.lives);
    c->job.grown = NULL;
    return c->job.nlives != 0;
}

void fl_context_step_end(struct fl_step_context *c)
{
    uint64_t told = (uint64_t)c->who.id * 2 + (c->state == FL_SERVE);
    uint32_t ended = atomic_load_explicit(&c->lead.ended, memory_order_relaxed);

    fl_timeline_span(FL_TIMELINE_STEP, c->who.begun_ns, told);
    c->who.begun_ns = 0;
    atomic_store_explicit(&c->lead.ended, ended + !c->lead.led, memory_order_relaxed);
    c->lead.led = false;
    fl_record_end(c);
    if (c->state == FL_SERVE) {
        end_served_step(c);
    }
    take_made(c);
    if (atomic_load(&c->job.state) != FL_JOB_NONE) {
        return;
    }
    if (has_job(c)) {
        fl_engine_want(c);
        if (c->state == FL_LEARN) {
            go(c, FL_PACK);
        }
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
    c->who.begun_ns = fl_timeline_now();
    if (c->state == FL_REST && c->who.declared && (c->watch.rest == 0 || --c->watch.rest == 0)) {
        go(c, FL_LEARN);
    }
    if (c->state == FL_SERVE) {
        serve(c, c->serve.layout);
    } else if (c->state == FL_LEARN && c->who.declared && c->serve.last != NULL) {
        serve(c, c->serve.last);
    } else {
        c->serve.step = (struct fl_step_figures){0};
    }
    if (wants_record(c)) {
        fl_record_begin(c);
    }
    set_mode(c);
}

void fl_context_boundary(struct fl_step_context *c)
{
    fl_watch_anew(c);
    if (c->state == FL_WATCH) {
        go(c, FL_LEARN);
    }
    fl_context_step_end(c);
    fl_context_step_begin(c);
}

void fl_context_restart(struct fl_step_context *c)
{
    fl_replay_exempt(c);
    fl_record_drop_all(c); /* the end is some requests behind */
    fl_context_step_end(c);
    c->who.begun_ns = fl_timeline_now();
    if (c->state == FL_SERVE) { /* from another layout, maybe, by now */
        struct fl_layout *l = fl_replay_recognise(c);
        serve(c, l != NULL ? l : c->serve.layout);
        if (c->state == FL_SERVE && l != NULL) {
            fl_replay_resume(c);
            c->serve.step.requests = FL_SIGNATURE;
            fl_replay_exempt(c);
            c->serve.step.asked = c->serve.step.exempt;
        }
    }
    set_mode(c);
}

void fl_context_abandon(struct fl_step_context *c)
{
    c->serve = (struct fl_serve){
        .others = atomic_load_explicit(&c->learn.freed_by_others, memory_order_relaxed)};
    fl_replay_go_nowhere(c);
    fl_record_drop_all(c);
    go(c, FL_LEARN);
}

void fl_context_in_child(struct fl_step_context *c)
{
    if (c->state == FL_SERVE &&
        c->serve.layout == NULL) { /* the thread that ended its plan is gone */
        rest(c, false, 0);
    }
    if (c->serve.arena != NULL && c->serve.arena->use.held != 0) { /* its memory is not here */
        c->serve.arena = NULL;
        if (c->state == FL_SERVE) {
            fl_context_end_plan(c, FL_END_FORKED);
        }
    }
}

void fl_context_rested(struct fl_step_context *c)
{
    if (c->state == FL_REST && (c->watch.rest == 0 || --c->watch.rest == 0)) {
        fl_context_learn(c);
    }
}

void fl_context_unfound(struct fl_step_context *c)
{
    fl_record_drop_all(c); /* what was recorded has no end */
    go(c, FL_REST);
}

void fl_context_resume(struct fl_step_context *c, struct fl_layout *l)
{
    c->serve.bad = c->serve.churned = 0;
    c->serve.mismatched_steps = c->serve.misses_in_a_row = 0;
    fl_record_drop_all(c);
    serve(c, l);
    if (c->state == FL_SERVE) {
        fl_replay_resume(c);
    }
}
