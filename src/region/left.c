/* Memory that is left to the first touch: handed out as it comes from the kernel, with nothing behind it yet.
 *
 * A huge page costs its clearing, whoever asks for it; so what may never be touched is not asked for ahead. It counts as populated all
 * the same, which is the most that it may become. What was touched once stays, and serves later requests without a fault.
 * The evidence: how much of such blocks was in memory when they were freed, by their length. Where that says that they are touched, the
 * stock is filled ahead of the next ones; base pages, each a fault, are then populated before they are handed out.
 * State: r->touched; `left` of each extent. */
#include "region/internal.h"

#include <string.h>

enum { KNOWN_FROM = 90 }; /* percent in memory, from which on a kind of blocks counts as touched */
enum {
    DENSE_FROM = 50
}; /* percent, from which on it will be cut into other blocks: its pagemap is wanted */
enum { SAMPLES = 16 }; /* base pages of a long block that are looked at, 4 us each */
enum { PARTS = 16 };   /* pieces that one look at the pagemap tells of */
static const size_t whole_most = (size_t)32 << 20; /* bytes looked at one by one: some 6 us */
/* Bytes in base pages, below which a request is populated: a fault for each costs more than what may be held in vain. */
static const size_t small_most = (size_t)1 << 20;
static const size_t clear_least = (size_t)256
                                  << 10; /* bytes; less is sooner cleared than looked at */

static unsigned kind_of(size_t len)
{
    return 63 - (unsigned)__builtin_clzll(len);
}

bool fl_left_was_touched(const struct fl_region *r, size_t len)
{
    return atomic_load_explicit(&r->touched[kind_of(len)], memory_order_relaxed) > KNOWN_FROM;
}

bool fl_left_wants(const struct fl_region *r, const struct fl_grant *g, size_t len)
{
    if (!r->config.wait_for_touch || r->config.first_touch || g->to_stay) {
        return false;
    }
    if (!r->config.huge || fl_supply_is_crawling(r)) {
        return len > small_most && !fl_left_was_touched(r, len);
    }
    return true;
}

uint8_t fl_left_of(const struct fl_region *r, const struct fl_grant *g)
{
    /* What moves from a free extent may be nothing: which one it will be is not known yet. */
    bool fresh = g->leaves || g->on_touch || (r->config.wait_for_touch && g->from_free != 0);
    bool new = g->leaves && g->live.len >= fl_page.huge;

    return (uint8_t)((fresh || g->hollow ? FL_LEFT_HOLLOW : 0) | (new ? FL_LEFT_UNSEEN : 0));
}

size_t fl_left_clear(struct fl_region *r, struct fl_range range,
                     void (*clear)(void *base, size_t len))
{
    struct fl_range part[PARTS];
    size_t cleared = 0;
    /* What is not there yet may be on its way: whoever moves pages here got the whole huge page, of which this is a part. */
    bool whole = range.len < clear_least || atomic_load(&r->leaving) != 0;
    int n = PARTS;

    while (n == PARTS && range.len != 0) {
        uintptr_t end = fl_range_end(range);
        n = whole ? -1 : fl_sys.touched(range, part, PARTS);
        if (n < 0) { /* nobody knows: all of it */
            part[0] = range;
        }
        for (int i = 0; i < (n < 0 ? 1 : n); i++) {
            clear((void *)part[i].base, part[i].len); /* NOLINT(performance-no-int-to-ptr) */
            cleared += part[i].len;
            range.base = fl_range_end(part[i]);
        }
        range.len = end - range.base;
    }
    return cleared;
}

static void plainly(void *base, size_t len)
{
    memset(base, 0, len);
}

void fl_region_clear(struct fl_region *r, struct fl_extent *e, size_t n)
{
    struct fl_range part = {e->base, fl_align_up(n, fl_page.base)};

    if (fl_left_clear(r, part, plainly) == e->len) {
        e->left = 0;
    }
}

/* Percent of `all` in memory; negative: nobody knows. */
static int share_of(struct fl_range all)
{
    size_t there = 0, sum = 0, stride = fl_align_down(all.len / SAMPLES, fl_page.base);

    if (all.len <= whole_most) {
        return fl_sys.resident(all, &there) == 0 ? (int)(there * 100 / all.len) : -1;
    }
    /* Not to the end where more than half is missing: how much more is of no interest. */
    for (size_t i = 0; i < SAMPLES && (i - sum / fl_page.base) * 2 <= SAMPLES; i++) {
        struct fl_range page = {all.base + i * stride, fl_page.base};
        if (fl_sys.resident(page, &there) != 0) {
            return -1;
        }
        sum += there;
    }
    return (int)(sum / fl_page.base * 100 / SAMPLES);
}

void fl_region_note_touched(struct fl_region *r, struct fl_extent *e)
{
    _Atomic uint8_t *kind = &r->touched[kind_of(e->len)];
    int share = share_of(fl_extent_range(e)),
        before = atomic_load_explicit(kind, memory_order_relaxed);

    e->left &= (uint8_t)~FL_LEFT_UNSEEN;
    if (share < 0) {
        return;
    }
    if (share >= DENSE_FROM) {
        fl_pagemap_populate(r, fl_extent_range(e));
    }
    if (share == 100 && e->len <= whole_most) {
        e->left = 0;
    }
    int now = before == 0 ? share : (3 * (before - 1) + share) / 4;
    atomic_store_explicit(kind, (uint8_t)(now + 1), memory_order_relaxed);
}
