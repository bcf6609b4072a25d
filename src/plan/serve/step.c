/* A step that is served: its arena, its beginning, and the judgement at its end. */
#include "plan/context.h"

/* README.md, Constants */
enum { BAD_OF_EIGHT = 3, MOVES_OF_EIGHT = 2, MISMATCHED_MOST = 8, SOME_PAGES = 4 };

void fl_serve_let_go(struct fl_step_context *c)
{
    c->steps_away = 0;
    if (c->serve.arena != NULL) {
        fl_assert(c->serve.arena->use.owned);
        fl_arena_retire(c->serve.arena);
        c->serve.arena = NULL;
    }
}

/* An arena that holds every layout we know. Those of one context are never in use at once, so they
 * share it. */
static bool have_arena(struct fl_serve *s, struct fl_step_context *c)
{
    size_t height = 0, needs = 0;

    if (FL_LIKELY(s->ready && s->arena != NULL && fl_arena_is_open(s->arena))) {
        return true;
    }
    for (unsigned i = 0; i < FL_LAYOUTS; i++) {
        const struct fl_layout *l = s->known[i];
        height = l != NULL ? fl_max(height, l->height) : height;
        needs = l != NULL ? fl_max(needs, fl_layout_needs(l)) : needs;
    }
    size_t has = s->arena != NULL ? atomic_load(&s->arena->height) : 0;
    if (has != 0 && has < height) {
        fl_serve_let_go(c);
    }
    s->arena = s->arena != NULL ? s->arena : fl_arena_new();
    s->ready = s->arena != NULL && fl_arena_raise(s->arena, height);
    if (!s->ready && s->arena != NULL && fl_arena_open(s->arena, height)) {
        s->ready = s->step.opened = true;
    }
    if (s->ready) {
        fl_assert(atomic_load(&s->arena->limit) >= height);
        fl_arena_expect(s->arena, needs);
    }
    return s->ready;
}

bool fl_serve_open_arena(struct fl_step_context *c)
{
    struct fl_serve *s = &c->serve;

    if (!have_arena(s, c)) {
        fl_replay_go_nowhere(c); /* from the bits that there were */
        return false;
    }
    s->cursor.block = s->arena->inner.block;
    s->cursor.claimed = s->arena->claimed.word;
    s->cursor.absent = s->arena->absent.word;
    atomic_store_explicit(&s->arena->use.used, true, memory_order_relaxed);
    return true;
}

void fl_replay_go_nowhere(struct fl_step_context *c)
{
    c->serve.cursor.next = c->serve.counted = c->serve.end = fl_plan_no_cursor.next;
}

bool fl_replay_begin(struct fl_step_context *c)
{
    struct fl_serve *s = &c->serve;

    fl_assert(s->layout != NULL);
    s->step = (struct fl_step_figures){0};
    if (!fl_serve_open_arena(c)) {
        return false;
    }
    s->step.moved = s->arena->moved;
    s->cursor.parity ^= 1;
    s->cursor.next = s->counted = s->layout->entry;
    s->end = s->layout->entry + s->layout->n;
    fl_assert(s->cursor.parity <= 1);
    return true;
}

void fl_replay_resume(struct fl_step_context *c)
{
    fl_assert(c->serve.layout->n >= FL_SIGNATURE);
    c->serve.cursor.next = c->serve.counted = c->serve.layout->entry + FL_SIGNATURE;
    c->serve.end = c->serve.layout->entry + c->serve.layout->n;
}

/* What is wanted moves into an arena that is new; what has two places, in the next step, too. */
static bool moves_much(const struct fl_serve *s)
{
    size_t moved = s->arena != NULL ? s->arena->moved - s->step.moved : 0;
    size_t may = s->step.asked / FL_BAD_PART + (s->served < 2 ? fl_layout_in_zones(s->layout) : 0);

    return !s->step.opened && moved > SOME_PAGES + may / fl_page.huge;
}

enum fl_end fl_replay_end(struct fl_step_context *c, bool beside)
{
    struct fl_serve *s = &c->serve;

    fl_replay_count(c);
    if (FL_UNLIKELY(s->layout == NULL)) { /* in a child: see fl_context_in_child */
        return FL_END_NOT;
    }
    fl_assert(s->step.displaced <= s->step.mismatched && s->step.mismatched <= s->step.requests);
    fl_assert(s->step.missed <= s->step.asked);
    bool differs = FL_UNLIKELY(s->step.mismatched != 0);
    bool mismatched = differs && s->step.mismatched - s->step.displaced > s->step.requests / 2;
    bool misses = differs && !mismatched &&
                  (s->step.missed > s->step.exempt + s->step.asked / FL_BAD_PART ||
                   s->step.mismatched > FL_SIGNATURE + s->step.requests / FL_BAD_PART);
    bool moves = moves_much(s), bad = misses || beside || moves;

    c->learn.relearn = differs && s->step.mismatched > s->step.requests / FL_BAD_PART;
    s->mismatched_steps = mismatched ? s->mismatched_steps + 1 : 0;
    s->bad = (uint8_t)(s->bad << 1 | bad);
    s->served++;
    fl_stats_bump(&c->stats.steps);
    s->layout->served_at = atomic_load_explicit(&c->stats.steps, memory_order_relaxed);
    if (s->mismatched_steps >= MISMATCHED_MOST) { /* from the first on: it is right for none */
        return s->served > s->mismatched_steps ? FL_END_MISMATCHED : FL_END_BAD;
    }
    int n = bad ? __builtin_popcount(s->bad) : 0;
    return moves && n >= MOVES_OF_EIGHT ? FL_END_MOVES
           : n >= BAD_OF_EIGHT          ? FL_END_BAD
                                        : FL_END_NOT;
}

bool fl_replay_is_away(struct fl_step_context *c)
{
    const struct fl_arena *a = c->serve.arena;

    if (FL_LIKELY(!fl_plan.region->zones.placing.follows) || a == NULL || !fl_arena_is_open(a) ||
        a->use.held != 0) {
        c->steps_away = 0;
        return false;
    }
    bool away = fl_zone_first(fl_plan.region, fl_page.huge) != a->inner.outer->zone;
    c->steps_away = away ? c->steps_away + 1 : 0;
    return c->steps_away >= FL_LONG_SERVICE;
}

void fl_replay_off(struct fl_step_context *c)
{
    fl_replay_count(c);
    if (c->serve.arena != NULL) {
        (void)fl_arena_trim(c->serve.arena);
    }
    c->serve.layout = NULL;
    fl_replay_go_nowhere(c);
    c->serve.served = 0;
    c->serve.mismatched_steps = 0;
}
