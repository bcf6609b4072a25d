/* What the kernel is told of free memory, and how that is taken back before it is used again.
 *
 * Of whole huge pages of FREE extents: not for children of fork (MADV_DONTFORK, see fork.c), and
 * not for core dumps (MADV_DONTDUMP), so that the dump of a program that has freed its memory is
 * small. The worker hides what rests: all that is free when no request has come for a while, else
 * what was freed two ticks ago. Each hidden piece may be a map more, so there are only so many.
 * Left to fork.c: what children get, and to reserve.c: that the reserve is never dumped.
 * State: the bits `advised` of extents, r->hiding; under the region lock.
 * A1  No LIVE, CACHED or EMPTY extent has a bit of hiding.
 * A2  Of an extent that says so all whole huge pages are hidden. */
#include "region/isolated.h"
#include "region/counts.h"
#include "region/fork.h"
#include "region/fill_plan.h"
#include "region/lock.h"

enum { HIDDEN_MOST = 256 }; /* extents */
enum { REST_TICKS = 2 };    /* age at which memory is hidden though requests come */
enum { BUSY_LOOKS = 16 };   /* in a row, after which looks become rare */
static const uint64_t rest_least = 100000000, rest_most = 1600000000; /* ns */
static const uint64_t forget_after = (uint64_t)60 * 1000000000;       /* ns */
static const uint8_t hiding = FL_ADVISED_NO_DUMP | FL_ADVISED_ALL_HID;

static struct fl_range inner(const struct fl_extent *e)
{
    return fl_range_inner(fl_extent_range(e), fl_page.huge);
}

static bool is_hidden(const struct fl_extent *e)
{
    return (e->advised & FL_ADVISED_NO_DUMP) != 0;
}

uint8_t fl_advice_of_part(uint8_t advised, struct fl_range part)
{
    return fl_range_inner(part, fl_page.huge).len != 0 ? advised : 0;
}

bool fl_advice_is_sound(const struct fl_extent *e)
{
    uint32_t state = atomic_load_explicit(&e->state, memory_order_relaxed);
    bool may = e->content != FL_CONTENT_EMPTY &&
               (state == FL_EXTENT_FREE || state == FL_EXTENT_ISOLATED) && inner(e).len != 0;
    bool all = (e->advised & FL_ADVISED_ALL_HID) != 0;

    return is_hidden(e) ? may : !all;
}

size_t fl_advice_all_hidden(const struct fl_extent *e)
{
    return (e->advised & FL_ADVISED_ALL_HID) != 0 ? inner(e).len : 0;
}

void fl_advice_note_merged(struct fl_extent *e, size_t hidden)
{
    if (inner(e).len != hidden) {
        e->advised &= (uint8_t)~FL_ADVISED_ALL_HID;
    }
}

/* May the rest of it stay hidden? A cut makes two pieces of one; and of what is hidden in part the
 * kernel would be told again at each request. */
static bool may_cut(const struct fl_region *r, const struct fl_extent *e)
{
    return (e->advised & FL_ADVISED_ALL_HID) != 0 &&
           fl_region_free(r).hidden < (size_t)2 * HIDDEN_MOST;
}

void fl_advice_cut(struct fl_region *r, struct fl_extent *e, struct fl_range part,
                   struct fl_fill_plan *g)
{
    uintptr_t from = fl_align_down(part.base, fl_page.huge);
    struct fl_range used = {from, fl_align_up(fl_range_end(part), fl_page.huge) - from};

    fl_fork_undo(r, e);
    if (FL_LIKELY(!is_hidden(e))) {
        return;
    }
    r->hiding.undone = true;
    used = fl_range_common(used, inner(e));
    if (!may_cut(r, e)) { /* others may get the rest at once, and are not told */
        fl_lock_permit_calls(true);
        (void)fl_sys.advise(inner(e), FL_ADVICE_DUMP);
        fl_lock_permit_calls(false);
        e->advised &= (uint8_t)~hiding;
        r->zones.of[e->zone].free.hidden--;
    } else if (used.len != 0) {
        g->hidden[g->nhidden++] = used;
    }
}

void fl_advice_show(const struct fl_fill_plan *g)
{
    for (unsigned i = 0; i < g->nhidden; i++) {
        (void)fl_sys.advise(g->hidden[i], FL_ADVICE_DUMP);
    }
}

void fl_advice_show_apart(const struct fl_extent *e)
{
    if (is_hidden(e)) {
        (void)fl_sys.advise(fl_extent_range(e), FL_ADVICE_DUMP);
    }
}

void fl_advice_note_shown(struct fl_extent *e)
{
    e->advised &= (uint8_t)~hiding;
}

/* The oldest extent that dumps would have, claimed; NULL: none of that age, or enough are hidden.
 * */
static struct fl_extent *claim_shown(struct fl_region *r, uint32_t age)
{
    bool full = fl_region_free(r).hidden >= HIDDEN_MOST;
    struct fl_extent *e;

    FL_EACH_ZONE(r, z)
    {
        TAILQ_FOREACH(e, &z->by_age, by_age)
        {
            bool due = (e->advised & FL_ADVISED_ALL_HID) == 0 && fl_extent_is_aged(r, e, age);
            if (due && (is_hidden(e) || !full)) {
                return fl_extent_reserve(&r->space, 2) == 0 ? fl_isolated_claim(r, e, SIZE_MAX)
                                                            : NULL;
            }
        }
    }
    return NULL;
}

void fl_advice_hide(struct fl_region *r, uint32_t age, unsigned most)
{
    struct fl_extent *e;
    bool hid = true;

    for (unsigned n = 0; hid && n < most && (e = claim_shown(r, age)) != NULL; n++) {
        fl_region_unlock(r);
        hid = fl_sys.advise(fl_extent_range(e), FL_ADVICE_NO_DUMP) == 0;
        if (!hid) { /* too many maps: the kernel may have done a part */
            (void)fl_sys.advise(fl_extent_range(e), FL_ADVICE_DUMP);
        }
        fl_region_lock(r);
        e->advised = (uint8_t)(hid ? e->advised | hiding : e->advised & ~hiding);
        fl_isolated_return(r, e, false);
    }
}

static uint64_t requests(const struct fl_region *r)
{
    uint64_t n = r->stats.takes;

    for (const struct fl_cache *c = r->caches.all; c != NULL; c = c->next) {
        n += atomic_load_explicit(&c->stats.cache_hits, memory_order_relaxed);
    }
    return n;
}

/* What was hidden is used again: from then on memory has to rest twice as long. */
static void note_undone(struct fl_hiding *h, uint64_t now)
{
    if (h->undone) {
        h->undone_ns = now;
        h->rest_ns = fl_min(2 * fl_max(h->rest_ns, rest_least), rest_most);
    } else if (h->rest_ns == 0 || now - h->undone_ns >= forget_after) {
        h->rest_ns = rest_least;
    }
    h->undone = false;
}

/* Returns the ns until memory has rested long enough; 0: it has. */
static uint64_t look(struct fl_hiding *h, uint64_t seen, uint64_t now)
{
    note_undone(h, now);
    if (seen == h->seen) {
        uint64_t rested = now - h->changed_ns;
        return rested < h->rest_ns ? h->rest_ns - rested : 0;
    }
    h->seen = seen;
    h->changed_ns = now;
    h->busy = h->busy < BUSY_LOOKS ? h->busy + 1 : h->busy;
    return h->busy < BUSY_LOOKS ? h->rest_ns : rest_most;
}

uint64_t fl_region_hide(struct fl_region *r)
{
    fl_region_lock(r);
    uint64_t rest = look(&r->hiding, requests(r), fl_sys.now_ns());
    if (rest == 0) {
        r->hiding.busy = 0;
        (void)fl_cache_drain_all(r, 0);
    }
    fl_advice_hide(r, rest == 0 ? 0 : REST_TICKS, HIDDEN_MOST);
    if (rest == 0) { /* the next free calls */
        atomic_store(&r->wants_worker, true);
    }
    fl_region_unlock(r);
    return rest == 0 ? UINT64_MAX : rest;
}
