/* Contexts as objects: made for a thread or a program, given back when a thread ends, and what
 * becomes of them in a child of fork. */
#include "plan/context.h"

#include <string.h>

/* By place: a bit for each part that is mapped, of the thread that has the context; the rest is
 * the lock's. */
static uint8_t mapped[FL_CONTEXTS + 1];

void fl_plan_claim_memory(void)
{
    const struct fl_region *r = fl_plan.region;
    uintptr_t window = r->space.window.reserved ? 0 : r->space.window.all.base;

    fl_own_claim(&fl_plan.memory, window, "faultless:plan", r->zones.placing.mapped_own);
}

struct fl_range fl_plan_memory(size_t *out_mapped)
{
    const struct fl_own_memory *m = &fl_plan.memory;

    fl_plan_lock();
    uintptr_t base = m->span.all.base;
    fl_plan_unlock();
    *out_mapped = atomic_load_explicit(&m->mapped, memory_order_relaxed);
    return (struct fl_range){base, atomic_load(&m->used)};
}

static size_t part_len(enum fl_context_part part)
{
    size_t len = part == FL_PART_CONTEXT ? sizeof(struct fl_step_context)
                                         : sizeof(struct fl_life) * FL_LIVES_MOST * FL_MERGE_STEPS;

    return fl_align_up(len, fl_page.base);
}

static struct fl_range part_of(uintptr_t base, enum fl_context_part part)
{
    for (unsigned i = 0; i < part; i++) {
        base += part_len(i);
    }
    return (struct fl_range){base, part_len(part)};
}

void *fl_context_part(uint32_t place, enum fl_context_part part)
{
    struct fl_range r = part_of((uintptr_t)fl_plan.context[place], part);
    bool has = (mapped[place] >> part & 1) != 0 || fl_own_commit(&fl_plan.memory, r);

    fl_assert(place <= FL_CONTEXTS && fl_plan.context[place] != NULL);
    mapped[place] |= (uint8_t)(has << part);
    return has ? (void *)r.base : NULL; /* NOLINT(performance-no-int-to-ptr) */
}

/* Lock: plan. */
static struct fl_step_context *find_place(void)
{
    uint32_t n = atomic_load(&fl_plan.ncontexts);
    struct fl_step_context *c = NULL;

    fl_assert(fl_lock_is_held(FL_RANK_PLAN, 1) && fl_plan.nfree <= FL_CONTEXTS);
    fl_plan_claim_memory();
    if (fl_plan.nfree != 0) {
        n = fl_plan.free[--fl_plan.nfree];
        c = fl_plan.context[n];
    } else if (n <= FL_CONTEXTS) {
        if (fl_plan.context[n] == NULL) { /* once, whether there is memory for it or not */
            size_t len = fl_range_end(part_of(0, FL_PARTS - 1));
            fl_plan.context[n] = (struct fl_step_context *)fl_own_reserve(&fl_plan.memory, len);
        }
        c = fl_plan.context[n] != NULL ? fl_context_part(n, FL_PART_CONTEXT) : NULL;
        atomic_store_explicit(&fl_plan.ncontexts, n + (c != NULL), memory_order_release);
    }
    if (c != NULL) {
        fl_assert(n != 0 && c->who.id == 0 && !c->who.open);
        c->who.id = n;
        __atomic_store_n(&c->learn.before, fl_plan.requests, __ATOMIC_RELAXED);
        __atomic_store_n(&c->learn.requests, fl_plan.requests, __ATOMIC_RELAXED);
    }
    return c;
}

void fl_plan_add_counters(struct fl_plan_counters *sum, const struct fl_plan_counters *c)
{
    const _Atomic uint64_t *from = &c->hits;

    for (_Atomic uint64_t *to = &sum->hits; to < (_Atomic uint64_t *)(sum + 1); to++, from++) {
        fl_stats_add(to, atomic_load_explicit(from, memory_order_relaxed));
    }
}

/* Others who free what its requests were find that they are not current (record.c). One that looked
 * just before may write yet: that comes back as a page of its own, at most. */
void fl_context_leave(struct fl_step_context *c)
{
    uint32_t place = c->who.id;

    fl_assert(place != 0 && !c->who.open && atomic_load(&c->who.thread) == 0);
    fl_plan_lock();
    fl_plan_add_counters(&fl_plan.context[0]->stats, &c->stats);
    memset(&c->stats, 0, sizeof c->stats); /* stats.c, with the lock, finds them once */
    fl_plan.requests = (uint32_t)fl_max(fl_plan.requests, c->learn.requests);
    fl_plan_unlock();
    for (unsigned i = 0; i < FL_PARTS; i++) {
        struct fl_range part = part_of((uintptr_t)c, i);
        bool has = (mapped[place] >> i & 1) != 0;
        bool stays = has && (fl_sys_is_confined() || fl_sys.advise(part, FL_ADVICE_DROP) != 0);
        if (stays && i != FL_PART_RECORDS) { /* locked in memory, say */
            memset((char *)c + (part.base - (uintptr_t)c), 0, part.len);
        }
    }
    fl_plan_lock();
    fl_assert(fl_plan.nfree < FL_CONTEXTS);
    fl_plan.free[fl_plan.nfree++] = (uint16_t)place;
    fl_plan_unlock();
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

struct fl_step_context *fl_context_make(void)
{
    fl_plan_lock();
    struct fl_step_context *c = find_place();
    fl_plan_unlock();
    if (c == NULL) {
        return NULL;
    }
    fl_assert(c->state == FL_LEARN);
    c->who.open = true;
    return c;
}

void fl_context_unmake(struct fl_step_context *c)
{
    fl_assert(c->who.open);
    fl_replay_off(c);
    fl_serve_let_go(c);
    fl_record_drop_all(c);
    c->serve.last = NULL;
    c->who.open = false;
    atomic_store(&c->who.thread, 0);
    fl_engine_abandon(c);
}

void fl_plan_thread_ends(void)
{
    struct fl_step_context *c = fl_plan_mine;

    fl_context_enter(NULL);
    if (!fl_home_is_here()) { /* a child that gave up: what is left may be locked for ever */
        return;
    }
    while (c != NULL) {
        struct fl_step_context *outer = c->who.outer;
        c->who.outer = NULL;
        if (c != fl_plan_default) { /* the program's: it may go on elsewhere */
            fl_context_step_end(c);
            atomic_store(&c->who.thread, 0);
        }
        c = outer;
        fl_plan_leave_steps(outer == NULL);
    }
    if (fl_plan_default != NULL) {
        fl_context_unmake(fl_plan_default);
        fl_plan_default = NULL;
    }
}

struct fl_lock *fl_plan_fork_word(void)
{
    return &fl_plan.lock;
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
    uintptr_t thread = atomic_load(&c->who.thread) & ~(uintptr_t)FL_LOOKS;

    if (thread != 0 && thread != fl_plan_self()) {
        fl_context_abandon(c);
        atomic_store(&c->inside, false);
        atomic_store(&c->who.thread, 0);
    }
    fl_engine_lose(c); /* the worker that was at it is not here */
    fl_context_in_child(c);
}

/* A context goes on that this thread was in, or none. */
void fl_plan_fork_child(bool whole)
{
    atomic_fetch_and(&fl_plan.stepping, ~(uint64_t)UINT32_MAX);
    atomic_fetch_add(&fl_plan.stepping, fl_plan_mine != NULL);
    for (uint32_t i = 0; whole && i < atomic_load(&fl_plan.ncontexts); i++) {
        go_on_in_child(fl_plan.context[i]);
    }
    /* A handler may have forked while its thread was about to have an arena. */
    if (whole && (fl_plan_mine == NULL || !atomic_load(&fl_plan_mine->inside))) {
        retire_abandoned();
    }
}
