/* Cuts a LIVE extent out of a run of adjacent FREE ones.
 *
 * Two phases: what can fail (growing the window, spare descriptors) comes first, the rest cannot. */
#include "region/internal.h"

/* Where the run has to be cut behind `end`: an EMPTY extent only at a huge page (R3). */
static uintptr_t cut_after(const struct fl_extent *last, uintptr_t end)
{
    return last->content == FL_CONTENT_EMPTY ? fl_align_up(end, fl_page.huge) : end;
}

/* What taking `part` of the FREE extent `e` costs: population or, for calloc, clearing. */
static void note_part(struct fl_grant *g, const struct fl_extent *e, struct fl_range part)
{
    if (e->content == FL_CONTENT_EMPTY) {
        g->fresh = g->fresh.len == 0
                       ? part
                       : (struct fl_range){g->fresh.base, fl_range_end(part) - g->fresh.base};
    } else if (e->content == FL_CONTENT_DIRTY) {
        g->dirty[g->dirty[0].len != 0] = part;
    }
}

static void put_back(struct fl_region *r, uintptr_t base, uintptr_t end, enum fl_content content,
                     uint32_t epoch)
{
    if (end > base) {
        struct fl_extent *rest = fl_extent_new(r, (struct fl_range){base, end - base}, content);
        atomic_store_explicit(&rest->epoch, epoch, memory_order_relaxed);
        (void)fl_fit_insert(r, rest);
    }
}

struct fl_extent *fl_carve(struct fl_region *r, struct fl_extent *e, uintptr_t start, size_t len,
                           struct fl_grant *g)
{
    uintptr_t end = start + len;
    struct fl_extent *last = e;

    *g = (struct fl_grant){.refusal = 0};
    while (last->base + last->len < end) {
        last = fl_extent_free_at(r, last->base + last->len);
    }
    if (fl_window_commit(r, cut_after(last, end)) != 0) {
        return NULL;
    }
    struct fl_range whole = {e->base, last->base + last->len - e->base};
    enum fl_content first_content = e->content, last_content = last->content;
    uint32_t epoch = atomic_load_explicit(&last->epoch, memory_order_relaxed);
    uint32_t first_epoch = atomic_load_explicit(&e->epoch, memory_order_relaxed);
    uintptr_t cut = cut_after(last, end);
    for (struct fl_extent *next; e != NULL; e = next) {
        uintptr_t from = fl_max(e->base, start), to = fl_min(e->base + e->len, end);
        next = e == last ? NULL : fl_extent_free_at(r, e->base + e->len);
        if (e->content == FL_CONTENT_EMPTY) {
            from = fl_align_down(from, fl_page.huge);
            to = e == last ? cut : e->base + e->len;
            r->populated_bytes += to - from;
        }
        note_part(g, e, (struct fl_range){from, to - from});
        fl_fit_remove(r, e);
        fl_extent_drop(r, e);
    }
    struct fl_extent *live = fl_extent_new(r, (struct fl_range){start, len}, FL_CONTENT_DIRTY);
    atomic_store_explicit(&live->state, FL_EXTENT_LIVE, memory_order_relaxed);
    /* An EMPTY extent cut for alignment leaves whole huge pages EMPTY and the odd piece populated. */
    uintptr_t front =
        first_content == FL_CONTENT_EMPTY ? fl_align_down(start, fl_page.huge) : start;
    put_back(r, whole.base, front, first_content, first_epoch);
    put_back(r, front, start, FL_CONTENT_ZEROED, epoch);
    put_back(r, end, cut, FL_CONTENT_ZEROED, epoch);
    put_back(r, cut, fl_range_end(whole), last_content, epoch);
    return live;
}
