/* Memory that is left to the first touch: handed out as it comes from the kernel, with nothing
 * behind it yet.
 *
 * A huge page costs its clearing at any time; so what may never be touched is not asked for ahead.
 * It counts as populated all the same, which is the most that it may become. What was touched once
 * stays, and serves later requests without a fault. The evidence: how much of such blocks was in
 * memory when they were freed, by their length; and that one in use is thin: thin.c. Where that
 * says that they are touched, the reserve is filled ahead of the next ones; base pages, each a
 * fault, are then populated before they are handed out. Short blocks are populated unless they are
 * known to be seldom touched: for that a few of those that lie in holes are left to the touch, too.
 * State: r->history.touched; `left` of each extent. */
#include "region/state/lock.h"
#include "region/supply/supply.h"

#include <string.h>

enum { KNOWN_FROM = 90 }; /* percent in memory, from which on a kind of blocks counts as touched */
/* The same, from which on a block will be cut into others: its pagemap is wanted. */
enum { DENSE_FROM = 50 };
enum { SPARSE_MOST = 12 };     /* the same, up to which a kind is sparse: 1 of SAMPLES is 6 */
enum { SPARSE_LOG_MOST = 15 }; /* log2 of sparse blocks that may be out: each is a map or two */
enum { SPARSE_FROM_HUGE = 1 }; /* huge pages; a shorter block is less than what a touch brings */
/* Bytes in base pages, below which a request is populated: a fault for each costs more than what
 * may be held in vain. */
static const size_t small_most = (size_t)1 << 20;
enum { SELDOM_MOST = 33 };  /* percent in memory, up to which that is no longer so */
enum { SAMPLE_EVERY = 16 }; /* short requests of holes: one of them is left to the touch */

bool fl_left_was_touched(const struct fl_region *r, size_t len)
{
    return atomic_load_explicit(&r->history.touched[fl_left_kind(len)], memory_order_relaxed) >
           KNOWN_FROM;
}

/* Each free that found a sparse block lets twice as many be out: so one that was asked for in vain
 * does not settle how thousands are served. */
static uint32_t sparse_most(const struct fl_region *r)
{
    uint32_t seen = atomic_load_explicit(&r->history.sparse_seen, memory_order_relaxed);

    return (uint32_t)1 << fl_min(seen, SPARSE_LOG_MOST);
}

static bool may_be_sparse(const struct fl_region *r, size_t len)
{
    const struct fl_region_config *c = &r->config;

    return len >= SPARSE_FROM_HUGE * fl_page.huge && c->wait_for_touch && !c->first_touch &&
           fl_pages_fault_huge(&r->pages) && c->limit == 0 && !fl_sys_is_confined();
}

/* A touch of a huge page costs a hundred times as much as a base page's, and holds 512 times as
 * much. What is free comes first, where more than the peak would be held. */
bool fl_left_is_sparse(const struct fl_region *r, size_t len)
{
    uint8_t known =
        atomic_load_explicit(&r->history.touched[fl_left_kind(len)], memory_order_relaxed);

    return known != 0 && known - 1 <= SPARSE_MOST && may_be_sparse(r, len) &&
           r->history.sparse_live < sparse_most(r) && !fl_supply_is_full(r, len, len);
}

bool fl_left_is_beyond(const struct fl_region *r, size_t len)
{
    return r->pressure.most != 0 && r->held.in_use + len > r->pressure.most && !fl_page.always &&
           may_be_sparse(r, len) && !fl_left_was_touched(r, len) &&
           r->history.sparse_live < (uint32_t)1 << SPARSE_LOG_MOST;
}

static bool may_wait(const struct fl_region *r, const struct fl_fill_plan *g)
{
    return r->config.wait_for_touch && !r->config.first_touch && !g->asked.to_stay;
}

static bool is_seldom_touched(const struct fl_region *r, size_t len)
{
    uint8_t known =
        atomic_load_explicit(&r->history.touched[fl_left_kind(len)], memory_order_relaxed);

    return known != 0 && known - 1 <= SELDOM_MOST;
}

/* Of base pages: a request for `len` needs so many bytes. */
static bool base_pages_wait(const struct fl_region *r, size_t bytes, size_t len)
{
    return bytes > small_most && !fl_left_was_touched(r, len);
}

bool fl_left_is_usual(const struct fl_region *r)
{
    return r->config.wait_for_touch && !r->config.first_touch && fl_pages_fault_huge(&r->pages);
}

bool fl_left_wants(const struct fl_region *r, const struct fl_fill_plan *g, size_t len)
{
    bool huge = fl_pages_fault_huge(&r->pages) && !fl_populate_backs_off(&r->pages);

    return may_wait(r, g) && (huge || fl_region_is_scarce(r) || base_pages_wait(r, len, len));
}

/* One of so many of its kind is left to the touch, and so learnt from. Where others are freed and
 * asked for in turns, no kind is passed over. */
static bool is_sample(struct fl_region *r, const struct fl_fill_plan *g)
{
    fl_assert(fl_region_is_locked(r));
    return g->todo.holes == g->todo.live.len &&
           ++r->history.hole_turn[fl_left_kind(g->todo.live.len)] % SAMPLE_EVERY == 0;
}

void fl_left_note_holes(struct fl_region *r, struct fl_fill_plan *g, struct fl_extent *live,
                        enum fl_refusal refusal)
{
    fl_assert(fl_region_is_locked(r));
    /* Of a short one calloc clears all, page by page. */
    bool may = g->todo.holes != 0 && may_wait(r, g) &&
               !(g->asked.zero && g->todo.live.len < fl_clear_looked_at);
    bool is_short = may && live != NULL && g->todo.live.len <= small_most;
    bool sample = is_short && is_sample(r, g);

    g->supply.leave_holes = (g->todo.holes != 0 && refusal != FL_REFUSED_NOT) || sample ||
                            (is_short && is_seldom_touched(r, g->todo.live.len)) ||
                            (may && base_pages_wait(r, g->todo.holes, g->todo.live.len));
    if (sample) {
        live->left |= FL_LEFT_HOLLOW | FL_LEFT_UNSEEN;
    }
}

uint8_t fl_left_of(const struct fl_region *r, const struct fl_fill_plan *g)
{
    /* What moves from a free extent may be nothing: which one it will be is not known yet. */
    bool fresh = g->supply.leaves || g->asked.on_touch ||
                 (r->config.wait_for_touch && g->supply.from_free != 0);
    bool new = g->supply.leaves && g->todo.live.len >= fl_page.huge;

    return (uint8_t)((fresh || g->todo.hollow ? FL_LEFT_HOLLOW : 0) | (new ? FL_LEFT_UNSEEN : 0));
}

void fl_region_clear(struct fl_region *r, struct fl_extent *e)
{
    if (fl_clear_touched(&r->pages, fl_extent_range(e), fl_supply_is_coming(r)) == e->len) {
        e->left &= FL_LEFT_SPARSE; /* it is one of those still */
    }
}

static void note_share(struct fl_region *r, size_t len, int share)
{
    _Atomic uint8_t *kind = &r->history.touched[fl_left_kind(len)];
    int before = atomic_load_explicit(kind, memory_order_relaxed);
    int now = before == 0 ? share : (3 * (before - 1) + share) / 4;
    uint32_t seen = atomic_load_explicit(&r->history.sparse_seen, memory_order_relaxed);

    fl_assert(share >= 0 && share <= 100);
    atomic_store_explicit(kind, (uint8_t)(now + 1), memory_order_relaxed);
    if (len >= SPARSE_FROM_HUGE * fl_page.huge) {
        seen = share > SPARSE_MOST ? seen / 2 : seen + (seen < SPARSE_LOG_MOST);
        atomic_store_explicit(&r->history.sparse_seen, seen, memory_order_relaxed);
    }
}

void fl_left_note_thin(struct fl_region *r, size_t len)
{
    note_share(r, len, 0);
}

void fl_left_note_filled(struct fl_region *r, size_t len)
{
    note_share(r, len, 100);
}

void fl_region_note_touched(struct fl_region *r, struct fl_extent *e)
{
    bool sparse = (e->left & FL_LEFT_SPARSE) != 0 || fl_extent_is_thin(e);
    int share = -1;

    e->left &= (uint8_t)~FL_LEFT_UNSEEN;
    if (!fl_region_busy()) { /* a handler: others wait for whom it interrupted */
        share = fl_residency_share(&r->pages, fl_extent_range(e), sparse);
    }
    if (share < 0) {
        return;
    }
    if (share > KNOWN_FROM) { /* the next ones may come from the reserve */
        fl_region_prove(r);
    }
    if (share >= DENSE_FROM && !sparse && e->len >= fl_page.huge) {
        fl_pagemap_populate(&r->space, fl_extent_range(e));
    }
    if (share == 100 && e->len <= FL_RESIDENCY_WHOLE && fl_extent_is_populated(e)) {
        e->left = 0;
    }
    note_share(r, e->len, share);
}
