/* What programs do to the pages of their blocks besides reading and writing them: mprotect, munmap,
 * mmap, mremap, some advice, mlock. glibc unmaps a large block when it is freed, and nothing of it
 * is left; here its pages would go to the next request with that protection, hole or flag. So the
 * call is noted in the block's extent before it is made (preload/maps.c), and an extent with a note
 * is no thread cache's, does not move, and is mapped anew when it comes back.
 *
 * Its whole huge pages are unmapped: they are EMPTY then. At its edges it shares huge pages with
 * neighbours: fresh base pages take the place of its own. What the kernel does not unmap (sealed,
 * or too many maps) is in no block any more.
 *
 * A block that the worker has made thin (thin.c) comes back in the same way.
 *
 * Pages that the program gives back (MADV_DONTNEED, munmap) are to be the kernel's at once, as with
 * base pages. Of a huge page that loses a part the kernel unmaps that part and keeps the memory,
 * until it is short. So a huge page at either end is split before the call; those between go whole.
 * The block is as good as new when it is freed, in huge pages again; until then the worker leaves
 * what has holes as it is (repair.c). */
#include "region/state/counts.h"
#include "region/free/fit.h"
#include "region/special/user_remapped.h"
#include "region/state/lock.h"

static bool is_in_use(const struct fl_extent *e)
{
    return fl_extent_state(e) == FL_EXTENT_LIVE || fl_extent_is_pinned(e);
}

/* The part of what is anything where extents are. */
static struct fl_range among_extents(const struct fl_region *r, struct fl_range range)
{
    struct fl_range extents = {r->space.first, fl_range_end(r->space.window.all) - r->space.first};
    uintptr_t end = range.len < UINTPTR_MAX - range.base ? fl_range_end(range) : UINTPTR_MAX;

    return fl_range_common((struct fl_range){range.base, end - range.base}, extents);
}

/* `anew`: what a read meets there, or a child of fork, may be another thing, too. */
static void note(struct fl_region *r, struct fl_range range, bool anew)
{
    struct fl_range rest = among_extents(r, range);

    for (uintptr_t at = rest.base; at < fl_range_end(rest);) {
        struct fl_extent *outer;
        const struct fl_inner *in = fl_inner_around(&r->space, at, &outer);
        if (in != NULL) {
            at = fl_inner_note_remapped(in, outer, (struct fl_range){at, fl_range_end(rest) - at});
            continue;
        }
        struct fl_extent *e = fl_extent_around(&r->space, at);
        if (e == NULL) { /* beyond the last block, or not the program's */
            return;
        }
        if (is_in_use(e)) {
            fl_extent_note_remapped(e);
            if (anew && (e->left & FL_LEFT_HUGETLB) != 0) {
                atomic_store_explicit(&e->hugetlb.changed, true, memory_order_relaxed);
            }
        }
        at = fl_max(at + fl_page.base, e->base + e->len);
    }
}

void fl_region_note_remapped(struct fl_region *r, struct fl_range range)
{
    note(r, range, true);
}

void fl_region_note_flagged(struct fl_region *r, struct fl_range range)
{
    note(r, range, false);
}

/* The program's memory in the huge page around `at`, which is to lose a part. */
static void split(struct fl_region *r, uintptr_t at)
{
    struct fl_range page = {fl_align_down(at, fl_page.base), fl_page.base};

    fl_region_note_remapped(r, page);
    fl_purge_split(page);
}

void fl_region_note_dropped(struct fl_region *r, struct fl_range range)
{
    struct fl_range part = among_extents(r, range);
    uintptr_t end = fl_align_up(fl_range_end(part), fl_page.base);

    if (part.len == 0 || !r->pages.huge || range.base % fl_page.base != 0) {
        return; /* nothing is huge, or the kernel refuses the call */
    }
    bool one = fl_align_down(part.base, fl_page.huge) == fl_align_down(end - 1, fl_page.huge);
    bool amid = end % fl_page.huge != 0;
    if (part.base % fl_page.huge != 0 || (one && amid)) {
        split(r, part.base);
    }
    if (amid && !one) {
        split(r, end - 1);
    }
}

static bool map_anew(struct fl_region *r, uintptr_t base, uintptr_t end, unsigned zone)
{
    struct fl_range edge = {base, end - base};

    return edge.len == 0 || fl_pages_commit(&r->pages, edge, r->pages.huge, zone) == 0;
}

bool fl_remapped_renew(struct fl_region *r, const struct fl_extent *e)
{
    struct fl_range all = fl_extent_range(e), inner = fl_range_inner(all, fl_page.huge);
    uintptr_t end = fl_range_end(all);

    if (fl_vspace_decommit(&r->space.window, all) != 0) {
        return false;
    }
    if (inner.len == 0) {
        return map_anew(r, all.base, end, e->zone);
    }
    return map_anew(r, all.base, inner.base, e->zone) &&
           map_anew(r, fl_range_end(inner), end, e->zone);
}

/* Not unmapped, in a window that is not reserved either: others might map something there, and it
 * would go with the next renewal. */
bool fl_region_withhold(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
    (void)fl_touch_disarm(r, e);
    if (fl_sys.decommit(fl_extent_range(e)) != 0) {
        return false;
    }
    fl_extent_note_remapped(e);
    fl_region_lock(r);
    if (fl_extent_is_populated(e)) {
        fl_assert(r->held.populated >= e->len);
        r->held.populated -= e->len;
        e->content = FL_CONTENT_LAZY; /* until it is mapped anew */
    }
    fl_region_unlock(r);
    return true;
}

static void put_edge(struct fl_region *r, uintptr_t base, uintptr_t end, unsigned zone)
{
    fl_assert(fl_region_is_locked(r));
    if (end > base) {
        (void)fl_fit_insert(
            r, fl_extent_make(r, (struct fl_range){base, end - base}, FL_CONTENT_POPULATED, zone));
    }
}

/* `inner` of it is EMPTY, the rest fresh. Two descriptors have been reserved. */
static void put_apart(struct fl_region *r, struct fl_extent *e, struct fl_range inner)
{
    struct fl_range all = fl_extent_range(e);
    unsigned zone = e->zone;

    fl_assert(fl_region_is_locked(r));
    r->held.populated -= fl_extent_is_populated(e) ? all.len : 0;
    r->held.populated += all.len - inner.len;
    e->content = FL_CONTENT_EMPTY;
    e->base = inner.base;
    e->len = e->unreclaimable = inner.len;
    e->zeroed = (struct fl_range){inner.base, 0};
    (void)fl_fit_insert(r, e);
    put_edge(r, all.base, inner.base, zone);
    put_edge(r, fl_range_end(inner), fl_range_end(all), zone);
}

static FL_APART void settle(struct fl_region *r, struct fl_extent *e, bool renewed, bool has_room)
{
    struct fl_range inner = fl_extent_inner(e);
    bool apart = renewed && inner.len != 0 && has_room;

    fl_assert(fl_region_is_locked(r));
    fl_region_count_gone(r, e);
    if (renewed && !apart && inner.len != 0) { /* no descriptors: then it stays one */
        fl_lock_permit_calls(true);
        renewed = map_anew(r, inner.base, fl_range_end(inner), e->zone);
        fl_lock_permit_calls(false);
    }
    atomic_store_explicit(&e->user_remapped, false, memory_order_relaxed);
    r->stats.gives++;
    if ((e->left & FL_LEFT_HUGETLB) == 0) { /* those never counted */
        fl_region_count_use(r, -(int64_t)e->len);
    }
    e->left &= (uint8_t)~FL_LEFT_HUGETLB;
    if (!renewed) {
        atomic_store_explicit(&e->state, FL_EXTENT_FOREIGN, memory_order_relaxed);
    } else if (apart) {
        r->stats.purge_bytes += inner.len;
        put_apart(r, e, inner);
    } else {
        r->held.populated += fl_extent_is_populated(e) ? 0 : e->len;
        e->content = FL_CONTENT_POPULATED;
        e->unreclaimable = e->len;
        (void)fl_fit_insert(r, e);
    }
}

/* It gets descriptors before there is much on the stack. */
void fl_remapped_settle(struct fl_region *r, struct fl_extent *e, bool renewed)
{
    settle(r, e, renewed, fl_extent_reserve(&r->space, 2) == 0);
}

void fl_remapped_shrink(struct fl_region *r, struct fl_extent *e, size_t len)
{
    bool lazy = e->content == FL_CONTENT_LAZY;
    size_t kept = lazy ? fl_align_up(len, fl_page.huge) : len;

    fl_assert(fl_extent_is_live(e) && len != 0 && len % fl_page.base == 0);
    if (kept >= e->len || (e->left & FL_LEFT_HUGETLB) != 0 || !fl_touch_disarm(r, e)) {
        return;
    }
    fl_region_lock(r);
    bool may = fl_extent_reserve(&r->space, 1) == 0;
    struct fl_extent *tail = NULL;
    if (may) {
        tail = fl_extent_make(r, (struct fl_range){e->base + kept, e->len - kept}, e->content,
                              e->zone);
        atomic_store_explicit(&tail->state, FL_EXTENT_CACHED, memory_order_relaxed);
        atomic_store_explicit(&tail->user_remapped, true, memory_order_relaxed);
        e->len = kept;
        fl_extent_publish(&r->space, e);
        r->stats.takes++;
    }
    fl_region_unlock(r);
    if (may) {
        fl_region_give(r, tail);
    }
}
