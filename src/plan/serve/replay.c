/* A request served from the layout.
 *
 * The step's requests are expected in their order. Where one differs it is looked for among the
 * next few, so that one more or one less shifts nothing. */
#include "plan/context.h"

enum { INSTEAD_PART = 64 }; /* README.md, Constants */

static bool fits(const struct fl_plan_entry *s, size_t len)
{
    return len - s->least <= s->most - s->least;
}

/* A request of the step, for which its entry does not stand. */
static void note_request(struct fl_step_context *c, size_t len)
{
    c->serve.recent[c->serve.step.requests++ % FL_SIGNATURE] = len;
}

static void note_hits(struct fl_step_context *c, uint64_t hits, uint64_t bytes)
{
    fl_stats_add(&c->stats.hits, hits);
    fl_stats_add(&c->stats.hit_bytes, bytes);
}

static void go_on_at(struct fl_step_context *c, const struct fl_plan_entry *s)
{
    fl_assert(s > c->serve.layout->entry && s <= c->serve.end);
    c->serve.cursor.next = c->serve.counted = s;
}

void fl_replay_count(struct fl_step_context *c)
{
    const struct fl_plan_entry *from = c->serve.counted, *to = c->serve.cursor.next;

    if (from == to) {
        return;
    }
    fl_assert(from < to && to <= c->serve.end);
    for (const struct fl_plan_entry *s = to - from > FL_SIGNATURE ? to - FL_SIGNATURE : from;
         s < to; s++) {
        c->serve.recent[(c->serve.step.requests + (size_t)(s - from)) % FL_SIGNATURE] = s->most;
    }
    c->serve.step.requests += (uint32_t)(to - from);
    c->serve.step.asked += to->before - from->before;
    note_hits(c, (uint64_t)(to - from), to->before - from->before);
    c->serve.counted = to;
}

uint64_t fl_replay_recent(const struct fl_step_context *c)
{
    uint64_t hash = 0;

    for (uint32_t i = 0; i < FL_SIGNATURE && c->serve.step.requests >= FL_SIGNATURE; i++) {
        hash = fl_record_mix(hash, c->serve.recent[(c->serve.step.requests + i) % FL_SIGNATURE]);
    }
    return hash;
}

struct fl_layout *fl_replay_recognise(const struct fl_step_context *c, const struct fl_layout *but)
{
    uint64_t recent = fl_replay_recent(c);

    for (unsigned i = 0; i < FL_LAYOUTS && recent != 0; i++) {
        struct fl_layout *l = c->serve.known[i];
        if (l != NULL && l != but && l->begins == recent) {
            return l;
        }
    }
    return NULL;
}

/* What a layout was recognised by is not held against the step. */
static void exempt(struct fl_step_context *c)
{
    for (unsigned k = 0; k < FL_SIGNATURE; k++) {
        c->serve.step.exempt += c->serve.recent[k];
    }
}

/* The step that has just begun may be another one that we know; or this one again. */
static bool switch_layout(struct fl_step_context *c)
{
    const struct fl_layout *now = c->serve.layout;

    if (c->serve.step.requests > FL_AHEAD || !fl_arena_is_open(c->serve.arena)) {
        return false;
    }
    bool just_begun = c->serve.cursor.next - now->entry <= FL_SIGNATURE;
    struct fl_layout *l = fl_replay_recognise(c, just_begun ? now : NULL);
    /* Too low an arena: the next step begins with one that holds it. */
    if (l == NULL || !fl_arena_raise(c->serve.arena, l->height)) {
        return false;
    }
    fl_assert(l->n >= FL_SIGNATURE && c->serve.step.requests <= FL_AHEAD);
    exempt(c);
    c->serve.layout = l;
    fl_replay_resume(c);
    return true;
}

/* Its entry, where the step goes on after a difference; NULL: it has none. */
static const struct fl_plan_entry *find_entry(struct fl_step_context *c, size_t len)
{
    const struct fl_plan_entry *s = c->serve.cursor.next;

    if (switch_layout(c) || s == c->serve.end) {
        return NULL;
    }
    for (const struct fl_plan_entry *on = s; on < c->serve.end && on - s <= FL_AHEAD; on++) {
        if (on->most == len && on->least == len) { /* a size that varies proves nothing */
            return on;
        }
    }
    bool has_place = s->granule[c->serve.cursor.parity] != FL_ENTRY_NONE;
    return s->least != s->most && (len <= s->most || !has_place) ? s : NULL;
}

static void count_miss(struct fl_step_context *c, size_t len)
{
    c->serve.step.mismatched++;
    c->serve.step.missed += len;
    fl_stats_bump(&c->stats.misses);
    fl_stats_add(&c->stats.missed_bytes, len);
}

/* Where the plan says; NULL: that place is taken, by a block that lives longer than it should or by
 * another that had to go somewhere. The arena may have gone back to the kernel amid the step: then
 * it is opened again. */
static struct fl_extent *at_entry(struct fl_step_context *c, const struct fl_plan_entry *s,
                                  size_t len)
{
    uint32_t granule = s->granule[c->serve.cursor.parity];

    fl_assert(granule != FL_ENTRY_NONE && c->serve.arena != NULL);
    fl_assert(len <= s->most);
    struct fl_extent *e = fl_arena_take(c->serve.arena, granule, len, s->room);
    bool again =
        e == NULL && (fl_arena_is_open(c->serve.arena) ? fl_arena_was_thinned(c->serve.arena)
                                                       : fl_serve_open_arena(c));
    return again ? fl_arena_take(c->serve.arena, granule, len, s->room) : e;
}

/* A step that began as the layout's, and asks for others where the plan expects some, one after the
 * other, holds them beside the places that wait: the plan ends at once, and its memory is the
 * region's. Not for one more here and there; nor if it was asked where blocks lie. */
static void note_unknown(struct fl_step_context *c, size_t len)
{
    struct fl_step_figures *f = &c->serve.step;
    uint64_t before = f->unknown_at == c->serve.cursor.next ? f->unknown : 0;
    uint64_t most = 2 * fl_page.huge + c->serve.layout->height / INSTEAD_PART;

    f->unknown = before + len;
    f->unknown_at = c->serve.cursor.next;
    if (f->begun_alike && c->serve.cursor.next != c->serve.end && before > f->exempt + most &&
        !atomic_load_explicit(&c->who.asked, memory_order_relaxed)) {
        fl_context_end_plan(c, FL_END_BAD);
    }
}

/* What has no entry, or cannot have it, goes the ordinary way: it may stay for ever, and would be
 * in the way in each step. That it finds memory there is the region's matter, which takes what is
 * idle here: see fl_plan_lend. */
static struct fl_extent *serve(struct fl_step_context *c, size_t len)
{
    const struct fl_plan_entry *s = c->serve.cursor.next;

    c->serve.step.begun_alike |=
        c->serve.step.requests >= FL_SIGNATURE && c->serve.step.mismatched == 0;
    note_request(c, len);
    c->serve.step.asked += len;
    if (FL_UNLIKELY(s == c->serve.end || !fits(s, len)) && (s = find_entry(c, len)) == NULL) {
        fl_stats_bump(&c->stats.unplaced);
        count_miss(c, len);
        note_unknown(c, len);
        return NULL;
    }
    go_on_at(c, s + 1);
    if (s->granule[c->serve.cursor.parity] == FL_ENTRY_NONE) { /* known, and not planned */
        c->serve.step.asked -= len;
        return NULL;
    }
    struct fl_extent *e = at_entry(c, s, len);
    if (FL_LIKELY(e != NULL)) {
        fl_assert(e->len == len && fl_extent_is_live(e));
        note_hits(c, 1, len);
        return e;
    }
    c->serve.step.displaced++;
    count_miss(c, len);
    return NULL;
}

/* A request that is not planned may be the one that was expected all the same. */
static void skip(struct fl_step_context *c, size_t len)
{
    const struct fl_plan_entry *s = c->serve.cursor.next;

    if (c->serve.layout != NULL && s != c->serve.end && fits(s, len)) {
        go_on_at(c, s + 1);
    }
}

struct fl_extent *fl_plan_take(size_t len, size_t align)
{
    struct fl_step_context *c = fl_plan_mine;
    struct fl_extent *e = NULL;

    if (FL_UNLIKELY(atomic_load_explicit(&c->inside, memory_order_relaxed) || fl_region_busy())) {
        return NULL;
    }
    atomic_store_explicit(&c->inside, true, memory_order_relaxed);
    fl_plan_cursor = &fl_plan_no_cursor;
    atomic_signal_fence(memory_order_seq_cst);
    fl_assert(fl_plan_mine == c && (fl_plan_wants & FL_PLAN_REPLAY) != 0);
    fl_replay_count(c);
    if (FL_UNLIKELY(align > FL_GRANULE)) { /* too much is asked of its address: not planned */
        note_request(c, len);
        skip(c, len);
    } else if (FL_LIKELY(c->serve.layout != NULL)) {
        e = serve(c, len);
    }
    atomic_signal_fence(memory_order_seq_cst);
    if (FL_LIKELY(fl_plan_wants == FL_PLAN_REPLAY)) {
        fl_plan_cursor = &c->serve.cursor;
    }
    atomic_store_explicit(&c->inside, false, memory_order_relaxed);
    return e;
}
