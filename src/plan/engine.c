/* Packing in the background: records in, a layout out. The context's thread asks at the end of a
 * step and looks at the end of each later one; meanwhile it does not touch its records. Where there
 * is no worker it waits for the first layout. */
#include "plan/context.h"

#include <errno.h>

/* Then places are addresses alone, unless the arena is held. */
static bool memory_moves(void)
{
    fl_region_prove(fl_plan.region);
    return fl_region_moves_pages(fl_plan.region);
}

/* Has it blocks that are to lie together, whatever that takes? */
static bool is_marked(const struct fl_lives *s)
{
    bool marked = false;

    for (size_t i = 0; i < s->n; i++) {
        marked = marked || s->life[i].zone != 0;
    }
    return marked;
}

/* Where memory does not move, what a varying step leaves idle in an arena serves nothing else
 * (victim_optional: 302 MiB in place of 250): there only steps that repeat to the byte are planned,
 * and those with marks. NULL: there is no plan. */
static struct fl_layout *from_records(const struct fl_lives *lives, unsigned nlives)
{
    fl_assert(nlives != 0 && nlives <= FL_MERGE_STEPS);
    if (nlives > 1 && !memory_moves() && !is_marked(&lives[0])) {
        return NULL;
    }
    struct fl_layout *l = fl_layout_new(lives[0].n);
    size_t scratch_len = fl_merge_scratch(lives[0].n, nlives);
    void *scratch = l != NULL ? fl_own_map(&fl_plan.memory, scratch_len) : NULL;
    int rc = scratch != NULL ? fl_merge(lives, nlives, l->slot, &l->largest, scratch, scratch_len)
                             : -ENOMEM;

    fl_own_unmap(&fl_plan.memory, scratch, scratch_len);
    if (rc != 0) {
        fl_layout_free(l);
        return NULL;
    }
    l->hash = lives[0].hash;
    return l;
}

/* As `from`, of which some slots were marked. */
static struct fl_layout *marked_copy(const struct fl_layout *from)
{
    struct fl_layout *l = fl_layout_copy(from);

    if (l != NULL) {
        fl_merge_zones(l->slot, l->n);
        l->marked = false;
    }
    return l;
}

/* NULL: there is none. */
static struct fl_layout *make_layout(struct fl_step_context *c)
{
    struct fl_layout *l =
        c->job.nlives == 0 ? c->job.layout : from_records(c->job.lives, c->job.nlives);

    if (l == NULL || fl_engine_pack(l) != 0) {
        fl_layout_free(l);
        return NULL;
    }
    fl_layout_make_entries(l);
    fl_assert(l->height != 0);
    return l;
}

/* The layout's place among those that are known: that of its like, or a free one, or that of the
 * one that was not served for the longest time. */
static unsigned place_of(struct fl_step_context *c, const struct fl_layout *l)
{
    unsigned at = fl_context_find_known(c, l->hash, l->n);

    for (unsigned i = 0; at == FL_LAYOUTS && i < FL_LAYOUTS; i++) {
        at = c->serve.known[i] == NULL ? i : at;
    }
    if (at < FL_LAYOUTS) {
        return at;
    }
    at = 0;
    for (unsigned i = 1; i < FL_LAYOUTS; i++) {
        at = c->serve.known[i]->served_at < c->serve.known[at]->served_at ? i : at;
    }
    fl_assert(at < FL_LAYOUTS);
    return at;
}

/* What was marked in `old` since the job was wanted is left to the next one. */
static void carry_marks(const struct fl_layout *old, struct fl_layout *l)
{
    for (uint32_t i = 0; i < l->n && old->marked && old->n == l->n; i++) {
        if (fl_slot_is_planned(&l->slot[i]) && old->slot[i].zone != l->slot[i].zone) {
            l->slot[i].zone = old->slot[i].zone;
            l->marked = true;
        }
    }
}

/* It takes the place of its like. */
static void know(struct fl_step_context *c, struct fl_layout *l)
{
    fl_assert(l->height != 0);
    unsigned i = place_of(c, l);
    struct fl_layout *old = c->serve.known[i];

    if (old != NULL && old == c->job.again) {
        carry_marks(old, l);
    }
    l->served_at = atomic_load_explicit(&c->stats.steps, memory_order_relaxed);
    fl_context_set_known(c, i, l);
    fl_stats_bump(&c->stats.layouts);
    fl_timeline_moment(FL_TIMELINE_PLAN, l->height);
    c->job.again = NULL; /* first: a handler may fork */
    if (old != NULL) {
        c->serve.layout = c->serve.layout == old ? l : c->serve.layout;
        c->serve.last = c->serve.last == old ? l : c->serve.last;
        fl_layout_free(old);
    }
}

/* There is no job any more; `failed`: what a layout was to be made anew for is to be done yet. */
static void end_job(struct fl_step_context *c, bool failed)
{
    fl_assert(atomic_load(&c->job.state) != FL_JOB_NONE);
    if (failed && c->job.again != NULL) {
        c->job.again->marked = true;
    }
    c->job.layout = c->job.again = NULL;
    c->job.unwanted = false;
    atomic_store(&c->job.state, FL_JOB_NONE);
}

struct fl_layout *fl_engine_collect(struct fl_step_context *c)
{
    if (atomic_load_explicit(&c->job.state, memory_order_acquire) != FL_JOB_DONE) {
        return NULL;
    }
    struct fl_layout *l = c->job.layout;
    bool failed = l == NULL && !c->job.unwanted;
    c->job.failures = failed ? c->job.failures + 1 : 0;
    if (c->job.unwanted) {
        fl_layout_free(l);
        l = NULL;
    } else if (l != NULL) {
        know(c, l);
    }
    end_job(c, failed && c->job.failures < FL_FAILURES);
    fl_assert(c->job.again == NULL && c->job.layout == NULL);
    return l;
}

/* Its plans are no more. The thread, or the worker where it was at it. */
static void clean_up(struct fl_step_context *c)
{
    (void)fl_engine_collect(c);
    fl_layout_free(c->job.layout);
    c->job.layout = NULL;
    for (unsigned i = 0; i < FL_LAYOUTS; i++) {
        fl_layout_free(c->serve.known[i]);
        fl_context_set_known(c, i, NULL);
    }
    c->serve.last = c->serve.layout = NULL;
    fl_assert(!fl_context_knows_any(c));
}

void fl_engine_lose(struct fl_step_context *c)
{
    uint32_t state = atomic_load(&c->job.state);

    if (state == FL_JOB_NONE) {
        return;
    }
    end_job(c, !c->job.unwanted && state != FL_JOB_ABANDONED);
    fl_record_drop_all(c);
    if (state == FL_JOB_ABANDONED) { /* as the worker would have done */
        clean_up(c);
        fl_context_leave(c);
    }
}

void fl_engine_abandon(struct fl_step_context *c)
{
    uint32_t wanted = FL_JOB_WANTED, running = FL_JOB_RUNNING;

    (void)atomic_compare_exchange_strong(&c->job.state, &wanted, FL_JOB_NONE);
    if (!atomic_compare_exchange_strong(&c->job.state, &running, FL_JOB_ABANDONED)) {
        clean_up(c);
        fl_context_leave(c);
    }
}

static void work_on(struct fl_step_context *c)
{
    uint32_t wanted = FL_JOB_WANTED, running = FL_JOB_RUNNING;

    /* Looked at first: the page of a context that no thread has is not written to. */
    if (atomic_load(&c->job.state) != FL_JOB_WANTED ||
        !atomic_compare_exchange_strong(&c->job.state, &wanted, FL_JOB_RUNNING)) {
        return;
    }
    fl_assert(c->job.nlives <= FL_MERGE_STEPS);
    c->job.layout = make_layout(c);
    if (atomic_compare_exchange_strong(&c->job.state, &running, FL_JOB_DONE)) {
        return;
    }
    if (running == FL_JOB_ABANDONED) {
        atomic_store(&c->job.state, FL_JOB_DONE);
        clean_up(c);
        fl_context_leave(c);
    } else { /* a handler forked amid it, and this is the child: see fl_engine_lose */
        fl_layout_free(c->job.layout);
        c->job.layout = NULL;
    }
}

void fl_engine_want(struct fl_step_context *c)
{
    fl_assert(atomic_load(&c->job.state) == FL_JOB_NONE);
    fl_assert((c->job.nlives != 0) != (c->job.again != NULL));
    fl_record_drop_all(c);
    if (c->job.again != NULL) { /* more of it may be marked while it serves */
        c->job.layout = marked_copy(c->job.again);
        c->job.again->marked = false;
    }
    atomic_store_explicit(&c->job.state, FL_JOB_WANTED, memory_order_release);
    if (fl_plan.config.background) {
        fl_plan_call_worker();
    } else {
        work_on(c);
    }
}

uint64_t fl_plan_work(struct fl_region *r)
{
    (void)r;
    for (struct fl_arena *a = fl_plan.arenas; a != NULL; a = a->next) {
        fl_arena_warm(a);
    }
    for (uint32_t i = 0; i < atomic_load_explicit(&fl_plan.ncontexts, memory_order_acquire); i++) {
        work_on(fl_plan.context[i]);
    }
    return UINT64_MAX;
}
