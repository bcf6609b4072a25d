/* What of the region's addresses is in memory, by the kernel's account. Asked for when it
 * is needed, and not kept.
 *
 * The walk goes over the window by address. Some extents are noted at a time, with the region's
 * lock held, as ranges of one use; then the kernel is asked of these with no lock of the region's
 * held. The next ones begin at the address where those ended, in whatever lies there by then. So
 * each address is asked for once; what moves meanwhile may count twice, or not at all.
 * Memory of others (FOREIGN) is not ours to count; EMPTY is addresses alone.
 *
 * State: none. */
#include "region/free/fit.h"
#include "region/state/counts.h"
#include "region/state/lock.h"

#include <errno.h>

/* Ranges that are noted at a time; extents and granules that are seen at most meanwhile. */
enum { RANGES = 32, STEPS = 512 };

struct walk {
    struct fl_residency_values *out;
    uintptr_t at;       /* what lies below has been noted */
    size_t held, taken; /* of divided extents: bytes that count as populated, and those of blocks */
    unsigned n;         /* ranges */
    bool live[RANGES];  /* else free */
    struct fl_range range[RANGES];
};

/* False: there is no room for it. */
static bool note(struct walk *w, uintptr_t end, bool live)
{
    struct fl_range part = {w->at, end - w->at};

    if (w->n != 0 && w->live[w->n - 1] == live && fl_range_end(w->range[w->n - 1]) == part.base) {
        w->range[w->n - 1].len += part.len;
    } else if (w->n < RANGES) {
        w->live[w->n] = live;
        w->range[w->n++] = part;
    } else {
        return false;
    }
    w->at = end;
    return true;
}

static bool note_extent(struct fl_region *r, struct walk *w, const struct fl_extent *e)
{
    uint32_t state = fl_extent_state(e);
    bool live = state == FL_EXTENT_LIVE || state == FL_EXTENT_PINNED;
    uintptr_t end = e->base + e->len;
    size_t len = end - w->at;

    fl_assert(fl_region_is_locked(r));
    if (e->content == FL_CONTENT_EMPTY || state == FL_EXTENT_FOREIGN) {
        w->at = end;
        return true;
    }
    if (!note(w, end, live)) {
        return false;
    }
    if (live) {
        w->out->live_bytes += len;
    } else {
        w->out->free_bytes += len - fl_holes_in(&r->pages.holes, (struct fl_range){end - len, len});
    }
    return true;
}

/* The block at w->at of a divided extent, or a granule where there is none. Whose granules are is
 * not the region's to say: a block may come or go meanwhile. */
static bool note_block(struct walk *w, const struct fl_inner *in, const struct fl_extent *outer)
{
    size_t i = (w->at - outer->base) >> in->shift, granule = (size_t)1 << in->shift;
    const struct fl_extent *e = &in->block[i];
    bool live = fl_extent_state(e) != FL_EXTENT_UNUSED;
    size_t len = live ? __atomic_load_n(&e->len, __ATOMIC_RELAXED) : granule;
    uintptr_t from = w->at, start = outer->base + (i << in->shift), all = outer->base + outer->len;
    size_t whole = fl_align_up(fl_min(fl_max(len, granule), all - start), granule);

    if (!note(w, start + whole, live)) {
        return false;
    }
    w->held += from == outer->base ? fl_extent_populated(outer) : 0;
    w->taken += live ? w->at - from : 0;
    return true;
}

/* The next ranges. False: there are none. */
static bool note_some(struct fl_region *r, struct walk *w)
{
    uintptr_t end = fl_range_end(r->space.window.all);
    bool room = true;

    w->n = 0;
    fl_region_lock(r);
    w->at = r->zones.seeded ? w->at : end;
    for (unsigned i = 0; room && i < STEPS && w->at < end; i++) {
        const struct fl_inner *in;
        const struct fl_extent *e = fl_region_extent_around(r, w->at, &in);
        if (e == NULL) {
            w->at = end; /* no such address: see R1 */
        } else {
            room = in != NULL ? note_block(w, in, e) : note_extent(r, w, e);
        }
    }
    fl_region_unlock(r);
    return w->n != 0 || w->at < end;
}

static void walk_window(struct fl_region *r, struct fl_residency_values *out)
{
    struct walk w = {.out = out, .at = r->space.first};

    while (note_some(r, &w)) {
        for (unsigned i = 0; i < w.n; i++) {
            fl_residency_ask(&r->pages, w.range[i],
                             w.live[i] ? &out->live_resident_bytes : &out->free_resident_bytes,
                             &out->unknown_bytes);
        }
    }
    out->live_bytes += w.taken;
    out->free_bytes += w.held - fl_min(w.held, w.taken);
}

static void look_at_stock(struct fl_region *r, struct fl_residency_values *out)
{
    for (unsigned i = 0; i < FL_RESERVE_CHUNKS; i++) {
        fl_region_lock(r);
        struct fl_range part = fl_reserve_mapped(&r->pages.reserve, i);
        out->stock_bytes = r->pages.reserve.held;
        fl_region_unlock(r);
        fl_residency_ask(&r->pages, part, &out->stock_resident_bytes, &out->unknown_bytes);
    }
}

static void look_at_table(struct fl_region *r, struct fl_range table,
                          struct fl_residency_values *out)
{
    out->table_bytes += table.len;
    fl_residency_ask(&r->pages, table, &out->table_resident_bytes, &out->unknown_bytes);
}

static struct fl_range grown_part(struct fl_vspace *v)
{
    return (struct fl_range){v->all.base, atomic_load_explicit(&v->grown, memory_order_relaxed)};
}

int fl_region_residency(struct fl_region *r, struct fl_residency_values *out)
{
    if (fl_region_busy()) { /* a handler: whom it interrupted may hold the lock */
        return -EBUSY;
    }
    walk_window(r, out);
    look_at_stock(r, out);
    look_at_table(r, grown_part(&r->space.pagemap), out);
    look_at_table(r, grown_part(&r->space.descriptors.span), out);
    look_at_table(r, fl_holes_table(&r->pages.holes), out);
    return 0;
}
