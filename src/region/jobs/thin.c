/* Long new blocks of which little is touched show it early.
 *
 * A touch of new memory brings a huge page, of which a hash table uses a few bytes. The worker
 * looks at such blocks while they are being touched, and judges by some of their huge pages:
 * evidence.c. A block that shows that next to nothing of it is touched becomes thin: its untouched
 * rest gets base pages (MADV_NOHUGEPAGE), and its huge pages go back to the kernel but
 * for what they hold (pages/thin.c). Its kind is known to be sparse from then on: left.c. Should it
 * fill nevertheless, it gets huge pages again.
 *
 * When it is looked: while the process's memory grows or shrinks, each millisecond; and when it
 * does not, after a 32nd of the time for which it has not, for some seconds. Then the worker may
 * end: it looks again when it is called, for whatever it may be.
 *
 * No lock is held while the kernel works. The block may be freed meanwhile: the advice is given
 * first, and the extent marked after it. Who frees it sees the mark and maps it anew
 * (user_remapped.c), or the worker sees that it is no longer LIVE, and takes the advice back.
 * State: r->thin. */
#include "region/free/fit.h"
#include "region/jobs/evidence.h"
#include "region/jobs/thin_walk.h"
#include "region/state/lock.h"
#include "region/supply/watch.h"

#include <string.h>

enum { REST_SHARE = 32, WORK_SHARE = 4 };
static const size_t step = (size_t)8 << 20;  /* bytes: less is no change */
static const uint64_t rest_least = 1000000;  /* ns */
static const uint64_t patience = 4000000000; /* ns without a change; then a call begins anew */
static const uint64_t work_most = 2000000;   /* ns of one run: others wait for the worker */

enum next { NEXT_CHANGE, NEXT_SOON, NEXT_NOW, NEXT_NEVER };

void fl_thin_fork_child(struct fl_region *r)
{
    fl_assert(fl_region_is_locked(r) && r->thin.used <= FL_THIN_SLOTS);
    for (unsigned i = 0; i < r->thin.used; i++) {
        r->thin.slot[i].e = NULL;
    }
    r->thin.came = r->thin.todo = 0;
    r->thin.walk = 0;
}

/* The huge pages that the block lies in; len 0: it was freed, or the program has laid hands on it.
 * Lock: region. */
static struct fl_range around(const struct fl_thin_slot *s)
{
    const struct fl_extent *e = s->e;

    if (e == NULL || !fl_extent_is_live(e) ||
        (fl_extent_is_user_remapped(e) && !fl_extent_is_merely_thin(e))) {
        return (struct fl_range){0, 0};
    }
    uintptr_t from = fl_align_down(e->base, fl_page.huge);
    uintptr_t end = fl_align_up(e->base + e->len, fl_page.huge);
    return (struct fl_range){from, end - from};
}

static struct fl_thin_view view_of(struct fl_region *r, struct fl_thin_slot *s)
{
    fl_region_lock(r);
    struct fl_thin_view v = {.around = around(s), .len = s->len, .turn = s->turn};
    v.thin = v.around.len != 0 && fl_extent_is_merely_thin(s->e);
    v.range = fl_range_common(s->range, v.around);
    s->e = v.around.len != 0 ? s->e : NULL;
    fl_region_unlock(r);
    return v;
}

/* The slot is done with, unless another watch has begun there. */
static void leave(struct fl_region *r, struct fl_thin_slot *s, const struct fl_thin_view *v)
{
    fl_region_lock(r);
    s->e = s->turn == v->turn ? NULL : s->e;
    fl_region_unlock(r);
}

/* Is `part` of a thin block? Lock: region. */
static bool is_thin(struct fl_region *r, struct fl_range part)
{
    const struct fl_extent *e = fl_extent_in_use_around(&r->space, part.base);

    return e != NULL && fl_extent_is_live(e) && fl_extent_is_merely_thin(e) &&
           e->base <= part.base && e->base + e->len >= fl_range_end(part);
}

/* Its whole huge pages, and those that it shares with thin blocks alone. Lock: region. */
struct fl_range fl_thin_reach(struct fl_region *r, const struct fl_thin_slot *s)
{
    struct fl_range all = fl_extent_range(s->e), whole = around(s);
    uintptr_t from = whole.base, end = fl_range_end(all), upto = fl_range_end(whole);

    if (from < all.base && !is_thin(r, (struct fl_range){from, all.base - from})) {
        from += fl_page.huge;
    }
    if (end < upto && !is_thin(r, (struct fl_range){end, upto - end})) {
        upto -= fl_page.huge;
    }
    return (struct fl_range){from, upto > from ? upto - from : 0};
}

/* After the advice: who frees it from here on sees the mark. False: it is gone. Lock: region. */
static bool mark(struct fl_region *r, struct fl_thin_slot *s, const struct fl_thin_view *v)
{
    struct fl_extent *e = s->turn == v->turn && around(s).len != 0 ? s->e : NULL;

    fl_assert(fl_region_is_locked(r));
    if (e == NULL) {
        return false;
    }
    uint8_t had = atomic_fetch_or(&e->user_remapped, FL_REMAPPED_THIN);
    bool its = fl_extent_is_live(e);
    r->history.sparse_live += (had & FL_REMAPPED_THIN) == 0;
    if (!its) { /* who frees it may not have seen the mark */
        fl_thin_forget(r, e);
    }
    return its;
}

static void advise_huge(struct fl_range range)
{
    if (range.len != 0) {
        (void)fl_sys.advise(range, FL_ADVICE_HUGE);
    }
}

/* `shown`: by the block itself, and not by others of its kind. False: it is not to be. */
static bool make_thin(struct fl_region *r, struct fl_thin_slot *s, const struct fl_thin_view *v,
                      bool shown)
{
    fl_region_lock(r);
    bool its = s->turn == v->turn && around(s).len != 0;
    struct fl_range reach = its ? fl_thin_reach(r, s) : (struct fl_range){0, 0};
    fl_region_unlock(r);
    if (!its) {
        return false;
    }
    /* Of a short block there may be nothing yet. Else: too many maps. */
    bool advised = reach.len == 0 || fl_sys.advise(reach, FL_ADVICE_NO_HUGE) == 0;
    fl_region_lock(r);
    bool marked = advised && mark(r, s, v);
    if (marked) {
        s->range = reach;
    }
    if (marked && (shown || v->len < FL_THIN_OWN_FROM)) {
        fl_left_note_thin(r, v->len);
    }
    if (marked && shown) {
        fl_evidence_note_own(r, v);
    }
    fl_region_unlock(r);
    if (!marked) {
        advise_huge(reach);
        return false;
    }
    s->seen.state = FL_THIN_GIVING;
    s->seen.cursor = reach.base;
    s->seen.given = reach;
    s->seen.thin = s->seen.full = s->seen.rest = 0;
    return true;
}

/* Of a block that is not known yet. */
static enum next watch(struct fl_region *r, struct fl_thin_slot *s, const struct fl_thin_view *v)
{
    struct fl_thin_seen *k = &s->seen;

    fl_evidence_gather(r, k, v);
    bool shown = fl_evidence_is_own(k, v);
    if (shown || fl_evidence_is_of_kind(r, k, v)) {
        bool made = make_thin(r, s, v, shown), more = r->thin.walk != 0 && !r->thin.walk_gives;
        if (made && !more) {
            return NEXT_NOW;
        }
        k->state = FL_THIN_KNOWN; /* others first, which are being touched: what it holds waits */
        return NEXT_NEVER;
    }
    if (fl_evidence_is_scarce(k) && fl_residency_is_dense(v->around)) {
        return NEXT_NEVER;
    }
    return fl_evidence_is_pending(k) ? NEXT_SOON : NEXT_CHANGE;
}

/* One huge page more of a thin block. */
static enum next give(struct fl_region *r, struct fl_thin_slot *s, const struct fl_thin_view *v)
{
    struct fl_thin_seen *k = &s->seen;
    uintptr_t page =
        r->thin.never_back ? 0 : fl_thin_next(&r->pages, fl_evidence_rest(k, v->range));

    if (page == 0) {
        k->state = FL_THIN_KNOWN;
        k->cursor = v->range.base;
        return r->thin.walk != 0 ? NEXT_NEVER : NEXT_CHANGE; /* others want the slot */
    }
    k->cursor = page + fl_page.huge;
    if (!fl_thin_is_full(&r->pages, page)) {
        enum fl_thin_given given = fl_thin_give(&r->pages, page);
        r->thin.never_back = given == FL_THIN_NOT_BACK;
        if (given == FL_THIN_GIVEN) {
            (void)__atomic_fetch_add(&r->stats.thin_bytes, fl_page.huge, __ATOMIC_RELAXED);
        }
    }
    return NEXT_NOW;
}

/* Huge pages from here on; and the worker collapses those that are in memory as a whole. */
static void undo(struct fl_region *r, struct fl_thin_slot *s, const struct fl_thin_view *v)
{
    fl_region_lock(r);
    if (s->turn == v->turn && around(s).len != 0) {
        fl_extent_note_remapped(s->e);
        fl_thin_forget(r, s->e);
    }
    fl_left_note_filled(r, v->len);
    fl_region_unlock(r);
    advise_huge(v->range);
    atomic_store_explicit(&r->pages.pace.left_base, true, memory_order_relaxed);
    atomic_store(&r->wants_worker, true);
}

/* Of one that is thin. */
static enum next weigh(struct fl_region *r, struct fl_thin_slot *s, const struct fl_thin_view *v)
{
    if (fl_evidence_fills(r, &s->seen, v)) {
        undo(r, s, v);
        return NEXT_NEVER;
    }
    return NEXT_CHANGE;
}

static enum next serve(struct fl_region *r, struct fl_thin_slot *s, const struct fl_thin_view *v)
{
    struct fl_thin_seen *k = &s->seen;

    if (k->turn != v->turn) {
        *k = (struct fl_thin_seen){.turn = v->turn,
                                   .state = v->thin ? FL_THIN_GIVING : FL_THIN_WATCHED,
                                   .given = v->thin ? v->range : (struct fl_range){0, 0},
                                   .cursor = v->around.base};
    }
    if (k->state == FL_THIN_GIVING) {
        return give(r, s, v);
    }
    if (k->skip != 0 && r->thin.changed) {
        k->skip--;
        return NEXT_CHANGE;
    }
    if (!r->thin.changed && !fl_evidence_is_pending(k) &&
        (k->thin == 0 || k->state == FL_THIN_KNOWN)) {
        return NEXT_CHANGE;
    }
    return k->state == FL_THIN_KNOWN ? weigh(r, s, v) : watch(r, s, v);
}

/* Freed amid that: who has it now is not to go without huge pages. */
static void end_giving(struct fl_thin_slot *s)
{
    if (s->seen.state == FL_THIN_GIVING) {
        advise_huge(s->seen.given);
        s->seen.state = FL_THIN_KNOWN;
    }
}

/* A slot until it rests, or there was enough work. */
static void look_at(struct fl_region *r, struct fl_thin_slot *s, uint64_t until_ns)
{
    struct fl_thin_view v;
    enum next next;

    do {
        v = view_of(r, s);
        if (v.around.len == 0 || v.turn != s->seen.turn) {
            end_giving(s);
        }
        next = v.around.len != 0 ? serve(r, s, &v) : NEXT_CHANGE;
    } while (next == NEXT_NOW && fl_sys.now_ns() < until_ns);
    if (next == NEXT_NEVER) {
        leave(r, s, &v);
    }
    r->thin.soon |= next == NEXT_SOON || next == NEXT_NOW;
    r->thin.watched += v.around.len != 0 && next != NEXT_NEVER ? v.len : 0;
}

/* Bytes of the process in memory; 0: unknown. */
static uint64_t resident(void)
{
    char text[128];
    uint64_t pages = 0;

    return fl_sys.read_file("/proc/thread-self/statm", text, sizeof text) == 0 &&
                   fl_parse_after(text, " ", &pages)
               ? pages << fl_page.shift
               : 0;
}

/* False: what is in memory cannot be told. */
static bool begin(struct fl_region *r, uint64_t now, bool came)
{
    struct fl_thin *t = &r->thin;
    uint64_t there = resident(), had = t->resident;

    t->changed = came || (there > had ? there - had : had - there) >= step;
    if (t->changed) {
        t->resident = there;
        t->changed_ns = now;
    }
    t->soon = false;
    t->watched = 0;
    t->picks = FL_EVIDENCE_PICKS;
    fl_region_lock(r);
    fl_evidence_count_kinds(t);
    fl_thin_walk_on(r);
    t->todo = t->used;
    fl_region_unlock(r);
    t->at = 0;
    return there != 0;
}

/* Returns the ns until the next look. */
static uint64_t end(struct fl_region *r, uint64_t began)
{
    struct fl_thin *t = &r->thin;
    uint64_t now = fl_sys.now_ns();

    fl_region_lock(r);
    t->came =
        t->watched < FL_THIN_LEAST ? t->watched : 0; /* with more of them it is worth the looks */
    fl_region_unlock(r);
    t->soon |= t->walk != 0;
    if (!t->soon && (t->watched < FL_THIN_LEAST || now - t->changed_ns >= patience)) {
        memset(t->evidence, 0, sizeof t->evidence);
        t->thin_kinds = 0; /* what comes later is another part of it all */
        return UINT64_MAX;
    }
    uint64_t rest = fl_max((now - t->changed_ns) / REST_SHARE, (now - began) * WORK_SHARE);
    return t->soon ? rest_least : fl_max(rest, rest_least);
}

uint64_t fl_region_thin(struct fl_region *r)
{
    struct fl_thin *t = &r->thin;
    uint32_t turn = atomic_load_explicit(&t->turn, memory_order_relaxed);
    uint64_t now = fl_sys.now_ns();

    if (turn == 0 || fl_sys_is_confined()) { /* as in most processes */
        return UINT64_MAX;
    }
    if (t->todo == 0 && turn == t->known && now < t->due_ns) {
        return t->due_ns - now;
    }
    if (t->todo == 0 && !begin(r, now, turn != t->known)) {
        return UINT64_MAX;
    }
    t->known = turn;
    fl_assert(t->at < FL_THIN_SLOTS);
    for (; t->todo != 0 && fl_sys.now_ns() - now < work_most; t->todo--) {
        look_at(r, &t->slot[t->at++], now + work_most);
    }
    uint64_t rest = t->todo == 0 ? end(r, now) : 0;
    t->due_ns = rest == UINT64_MAX ? 0 : fl_sys.now_ns() + rest;
    return rest;
}
