/* Whose steps these are, where they begin and end, and what is done about it: learn, wait for the packer, serve, rest. */
#include "plan/internal.h"
#include "plan/store/store.h"

#include <unistd.h>

/* A rest after a plan that was no good, in steps, or in requests where nobody says what a step is; each one after it twice as
 * long. */
enum { REST_STEPS = 16, REST_REQUESTS = 4096, REST_DOUBLINGS = 10, NOTICE_AFTER = 32 };
/* A plan that serves for fewer steps than LONG_SERVICE has failed; so often. */
enum { LONG_SERVICE = 64, FAILURES = 3 };
/* Steps: a plan for exact sizes that fits no longer was made too soon. */
enum { EXACT_LEAST = 8 };
/* Planned steps from one look at the heap's end to the next. */
enum { HEAP_STEPS = 8 };

struct fl_plan fl_plan;
_Thread_local unsigned fl_plan_wants;
_Thread_local struct fl_turn *fl_plan_turn;
/* A turn that serves nothing, so that fl_plan_take, or fl_plan_saw, comes to know of the request. Nobody writes it. */
static const struct fl_seat no_seat = {.word = {FL_SEAT_NONE, FL_SEAT_NONE}};
struct fl_turn fl_plan_no_turn = {.next = &no_seat};
_Atomic bool fl_plan_calls;
_Thread_local struct fl_step_context *fl_plan_mine;
_Thread_local struct fl_step_context *fl_plan_default; /* of fl_step_begin(NULL) */
static _Thread_local unsigned noticed;

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
    fl_lock_init(&fl_plan.lock, FL_RANK_PLAN);
    fl_plan.region = r;
    fl_plan.config = *c;
    if (c->on && c->file != NULL) {
        fl_keep_load(c->file);
    }
}

bool fl_context_knows_any(const struct fl_step_context *c)
{
    for (unsigned i = 0; i < FL_LAYOUTS; i++) {
        if (c->known[i] != NULL) {
            return true;
        }
    }
    return false;
}

/* Of the context that the thread is in. A step's first request always goes by fl_plan_take, which may have the worker called. */
static void set_wants(const struct fl_step_context *c)
{
    unsigned wants = 0;

    if (c != fl_plan_mine) {
        return;
    }
    if (c != NULL && c->layout != NULL) {
        wants |= FL_PLAN_REPLAY;
    }
    if (c != NULL && (c->recording || c->detecting || (!c->declared && c->rest != 0) ||
                      (c->layout == NULL && fl_context_knows_any(c)))) {
        wants |= FL_PLAN_WATCH;
    }
    fl_plan_wants = wants;
    atomic_signal_fence(memory_order_seq_cst);
    fl_plan_turn = wants != 0 ? &fl_plan_no_turn : NULL;
}

/* The thread is in `c` from here on; a handler never finds wishes without a context. */
void fl_context_enter(struct fl_step_context *c)
{
    fl_plan_turn = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    fl_plan_wants = 0;
    fl_plan_mine = c;
    atomic_signal_fence(memory_order_seq_cst);
    set_wants(c);
}

static void forget(struct fl_step_context *c, struct fl_layout *l)
{
    for (unsigned i = 0; i < FL_LAYOUTS; i++) {
        if (c->known[i] == l) {
            c->known[i] = NULL;
        }
    }
    c->last = c->last == l ? NULL : c->last;
    fl_better_forget(c, l);
    fl_layout_free(l);
}

void fl_context_note_sizes(struct fl_step_context *c, const struct fl_record *rec)
{
    for (unsigned i = 0; i < FL_LAYOUTS; i++) {
        struct fl_layout *l = c->known[i];
        bool other = l != NULL && l->exact && l->n == rec->n && l->hash != rec->hash;
        c->varied = other ? rec->n : c->varied;
        if (other && l != c->layout && l != c->grown) {
            forget(c, l);
        }
    }
}

static void detect_anew(struct fl_step_context *c)
{
    c->detecting = !c->declared && fl_watch_begin(c);
    if (c->detecting) {
        fl_detect_go_on(c->detect);
    }
}

static void take_a_break(struct fl_step_context *c)
{
    c->rest = c->declared ? REST_STEPS : REST_REQUESTS;
    c->detecting = false;
}

static void rest(struct fl_step_context *c)
{
    unsigned times = c->drops < REST_DOUBLINGS ? c->drops : REST_DOUBLINGS;

    c->rest = (uint64_t)(c->declared ? REST_STEPS : REST_REQUESTS) << times;
    c->drops++;
    c->detecting = false;
    fl_record_drop_all(c);
}

/* The plan that is served has come to its end. True: it is forgotten, for it never served for long; what was taken for a step may be a part of
 * the program's. */
static bool note_end(struct fl_step_context *c)
{
    struct fl_layout *l = c->layout;
    bool in_work = atomic_load(&c->job) != FL_JOB_NONE && c->grown == l;

    l->failed = (uint8_t)(c->served >= LONG_SERVICE ? 0 : l->failed + 1);
    bool hopeless = !c->declared && l->failed >= FAILURES && !in_work;
    if (hopeless && c->detect != NULL && l->n != c->varied) {
        fl_detect_doubt(c->detect, l->period, c->served);
        c->alone = c->leader != NULL && fl_detect_period(c->detect) == 0;
    }
    fl_replay_off(c);
    if (hopeless) {
        forget(c, l);
    }
    if (!fl_context_knows_any(c)) {
        fl_arena_let_go(c);
    }
    return hopeless;
}

/* A plan that many steps in a row did not fit at all may be right for others: it stays known. */
static void drop(struct fl_step_context *c)
{
    struct fl_layout *l = c->layout;
    bool strange = c->strange != 0;

    fl_stats_bump(&c->stats.drops);
    l->failed = (uint8_t)(l->failed + (!strange && c->served < LONG_SERVICE ? FAILURES : 0));
    bool forgotten = note_end(c);
    c->last = NULL;
    if (!forgotten && !strange && (atomic_load(&c->job) == FL_JOB_NONE || c->grown != l)) {
        forget(c, l);
    }
    if (!fl_context_knows_any(c)) {
        fl_arena_let_go(c);
    }
    if (!strange || forgotten) {
        rest(c);
        return;
    }
    fl_record_drop_all(c);
    if (!c->declared) {
        detect_anew(c);
    }
}

void fl_context_over(struct fl_step_context *c)
{
    atomic_store_explicit(&c->ended, atomic_load_explicit(&c->ended, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    fl_record_end(c);
    if (c->layout != NULL && !fl_replay_end(c)) {
        drop(c);
    } else if (c->layout != NULL && c->bad == 0 && c->strange == 0 && c->served >= LONG_SERVICE) {
        c->drops = 0;
    }
    if (c->layout != NULL) {
        if (fl_replay_is_crowded(c) || !fl_follow_look(c)) {
            fl_arena_let_go(c);
        }
        if (c->in_arena % HEAP_STEPS == 1) {
            fl_heap_look();
        }
    }
    fl_engine_collect(c);
    if (atomic_load(&c->job) != FL_JOB_NONE) {
        return;
    }
    if (atomic_load_explicit(&c->better_made, memory_order_relaxed) != NULL) {
        fl_better_collect(c);
    }
    if (c->layout != NULL && c->layout->wish) {
        c->nlives = 0;
        c->grown = c->layout;
        fl_engine_want(c);
        return;
    }
    c->nlives = fl_record_ready(c, c->lives);
    if (c->nlives != 0) {
        c->grown = NULL;
        fl_engine_want(c);
    }
}

/* A step of the layout, if there is one, begins with the next request. */
static void serve_from_here(struct fl_step_context *c)
{
    bool had_layout = c->layout != NULL;

    fl_replay_begin(c);
    if (had_layout && c->layout == NULL) { /* no memory for the arena */
        take_a_break(c);
    }
}

void fl_context_begins(struct fl_step_context *c)
{
    if (c->declared && c->rest != 0) {
        c->rest--;
    }
    if (c->layout == NULL && c->declared && c->rest == 0) {
        c->layout = c->last;
    }
    serve_from_here(c);
    c->detecting = c->detecting && c->layout == NULL;
    bool wants_more = c->layout == NULL ? c->rest == 0 : c->relearn;

    wants_more = wants_more || fl_plan.config.trace != NULL;
    wants_more = wants_more && c->begun++ >= fl_plan.config.start;
    if (wants_more && atomic_load(&c->job) == FL_JOB_NONE) {
        (void)fl_record_begin(c);
    }
    set_wants(c);
}

void fl_context_boundary(struct fl_step_context *c)
{
    fl_watch_anew(c);
    fl_context_over(c);
    fl_context_begins(c);
}

void fl_context_restart(struct fl_step_context *c)
{
    fl_replay_forgive(c);
    fl_record_drop_all(c); /* the end is some requests behind */
    fl_context_over(c);
    if (c->layout != NULL) { /* it may be another one by now */
        struct fl_layout *l = fl_replay_recognise(c);
        c->layout = l != NULL ? l : c->layout;
        serve_from_here(c);
        if (c->layout != NULL && l != NULL) {
            fl_replay_resume(c);
            c->requests_here = FL_SIGNATURE;
            fl_replay_forgive(c);
            c->asked = c->forgiven;
        }
    }
    set_wants(c);
}

void fl_context_give_up(struct fl_step_context *c)
{
    if (c->layout != NULL && c->layout->exact && c->served < EXACT_LEAST) {
        c->varied = c->layout->n;
        c->layout->failed = FAILURES;
    }
    if (c->layout != NULL) {
        (void)note_end(c);
    }
    fl_record_drop_all(c);
    detect_anew(c);
    set_wants(c);
}

void fl_context_watched(struct fl_step_context *c)
{
    if (c->rest != 0 && --c->rest == 0) {
        detect_anew(c);
        set_wants(c);
    }
}

void fl_context_resume(struct fl_step_context *c, struct fl_layout *l)
{
    c->layout = l;
    c->rest = 0;
    c->bad = 0;
    c->strange = c->misses_in_a_row = 0;
    c->detecting = false;
    fl_record_drop_all(c);
    fl_replay_begin(c);
    if (c->layout != NULL) {
        fl_replay_resume(c);
    } else {
        detect_anew(c);
    }
    set_wants(c);
}

/* Lock: plan. */
static struct fl_step_context *find_place(void)
{
    uint32_t n = atomic_load(&fl_plan.ncontexts);
    struct fl_step_context *c = fl_watch_get();

    if (c != NULL) {
        return c;
    }
    if (n < FL_CONTEXTS && (c = fl_plan_map(sizeof *c)) != NULL) {
        c->id = n + 1;
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
    c->declared = declared;
    c->rest = c->drops = c->begun = 0;
    c->varied = 0;
    c->live = 0;
    c->leader = NULL;
    c->alone = false;
    atomic_store_explicit(&c->last_tid, 0, memory_order_relaxed);
    atomic_store_explicit(&c->freed_by_others, 0, memory_order_relaxed);
    fl_watch_anew(c);
    detect_anew(c);
    fl_keep_adopt(c);
    c->open = true;
    return c;
}

void fl_context_unmake(struct fl_step_context *c)
{
    fl_replay_off(c);
    fl_arena_let_go(c);
    fl_record_drop_all(c);
    c->detecting = false;
    c->last = NULL;
    bool is_free = fl_engine_abandon(c);
    c->open = false;
    atomic_store(&c->tid, 0);
    if (!is_free) { /* it is lost */
        return;
    }
    fl_watch_leave(c);
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
        atomic_store(&c->tid, gettid());
        fl_context_enter(c);
        fl_plan.config.watch_thread();
    }
}

void fl_plan_thread_ends(void)
{
    struct fl_step_context *c = fl_plan_mine;

    fl_context_enter(NULL);
    noticed = NOTICE_AFTER + 1;
    while (c != NULL) {
        struct fl_step_context *outer = c->outer;
        c->outer = NULL;
        if (c->declared && c != fl_plan_default) { /* the program's: it may go on elsewhere */
            fl_context_over(c);
            atomic_store(&c->tid, 0);
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
    if (c != NULL && !c->declared) {
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

    for (const struct fl_step_context *o = fl_plan_mine; o != NULL; o = o->outer) {
        mine = mine || o == c;
    }
    return mine;
}

/* The contexts of other threads have no thread any more; their blocks are live, and their arenas go
 * when those are freed. */
bool fl_plan_fork_child(bool has_region)
{
    bool whole = fl_lock_release_in_child(&fl_plan.lock) && has_region;

    fl_region_leave();
    for (uint32_t i = 0; whole && i < atomic_load(&fl_plan.ncontexts); i++) {
        struct fl_step_context *c = fl_plan.context[i];
        bool mine = is_mine(c);
        if (atomic_load(&c->job) != FL_JOB_NONE) { /* whoever was at it is not here */
            c->made = c->draft = NULL;
            c->grown = NULL;
            atomic_store(&c->job, FL_JOB_NONE);
            fl_record_drop_all(c);
        }
        c->better = NULL; /* likewise */
        atomic_store(&c->better_for, 0);
        atomic_store(&c->better_made, NULL);
        if (c->arena != NULL && c->arena->held != 0) { /* its memory is not here */
            c->arena = NULL;
            fl_replay_off(c);
        }
        if (!mine) {
            atomic_store(&c->inside, false);
            atomic_store(&c->tid, 0);
        } else if (atomic_load(&c->tid) != 0 && !fl_sys_is_confined()) {
            atomic_store(&c->tid, gettid());
        }
    }
    return whole;
}
