/* What a look at the memory says: how much free memory may be held. What programs need that
 * allocate otherwise than through us must not be missing.
 *
 * tight    less is left than twice what we hold free. What was free is purged, and what is freed
 *          from then on is left to the kernel (MADV_FREE): it stays populated until it is needed,
 *          and no process is killed for it. An extent counts its bytes for which that has yet to be
 *          done (`unreclaimable`): small blocks have to merge to a huge page first.
 * scarce   the least memory cgroup is a small one, or a medium one with little left. What is free
 *          there is missing at once when a program goes on in small blocks, of which nothing tells
 *          us, and the kernel kills before the worker can hear of it: each free leaves its pages to
 *          the kernel, by base pages, and what it cannot have is no more than a 64th or so of the
 *          cgroup. In a tiny one blocks come by base pages, too: huge ones at the edges of what is
 *          used would be too much.
 * keep     under limits that count maps, no more than their eighth is held free.
 * Where there are bounds of the process's own, thread caches hold small extents alone.
 * State: fields of struct fl_region, under its lock. */
#include "region/state/lock.h"
#include "region/state/counts.h"
#include "region/supply/look.h"

enum { LOOK_SHARE = 32 }; /* of what memory there is, what comes back between two looks, at least */
/* Bytes of the least cgroup, below which it is a medium, a small, a tiny one. */
static const uint64_t medium_below = (uint64_t)2 << 30, small_below = (uint64_t)512 << 20,
                      tiny_below = (uint64_t)128 << 20;
/* Of a medium cgroup, what is left when it becomes scarce, and when it no longer is: steps that use
 * two thirds of it at their peak do not make it so. */
enum { SCARCE_SHARE = 8, AMPLE_SHARE = 4 };
/* Of a medium cgroup, what all thread caches hold. */
enum { CACHED_SHARE = 8, SCARCE_CACHED_SHARE = 64 };
static const size_t cached_least = (size_t)4 << 20; /* longest cached extent in a bounded process */

/* Nearly nothing is left: the next allocator may hold some. It is asked less and less often while
 * that brings nothing. */
static void note_starvation(struct fl_region *r, const struct fl_memory *m)
{
    uint64_t left = m->unused < m->headroom ? m->unused : m->headroom;

    fl_assert(fl_region_is_locked(r));
    size_t least = r->pressure.least;

    r->pressure.since_starved += r->pressure.since_look;
    if (left / 4 > least) {
        r->pressure.starve_after = 0;
    } else if (left / 2 < least && r->pressure.since_starved >= r->pressure.starve_after) {
        atomic_store_explicit(&r->starved, true, memory_order_relaxed);
        r->pressure.starve_after = fl_min(2 * r->pressure.starve_after + least, FL_STARVE_MOST);
        r->pressure.since_starved = 0;
    }
}

static size_t beyond(size_t bytes, uint64_t keep)
{
    return bytes > keep ? bytes - (size_t)keep : 0;
}

/* With several nodes only of what lies alike whatever its length. */
static size_t longest_cached(const struct fl_region *r, const struct fl_memory *m)
{
    size_t most = m->bounded ? cached_least : FL_CACHED_MOST;

    fl_assert(fl_region_is_locked(r));
    if (m->grouped && m->most < medium_below) {
        size_t all =
            (size_t)m->most / (fl_region_is_scarce(r) ? SCARCE_CACHED_SHARE : CACHED_SHARE);
        most = fl_min(most, all / FL_CACHE_SLOTS / fl_max(r->caches.owned, 1));
    }
    return r->zones.placing.nodes != 0 ? fl_min(most, r->zones.placing.alike_below - fl_page.base)
                                       : most;
}

static bool is_scarce(const struct fl_region *r, const struct fl_memory *m)
{
    fl_assert(fl_region_is_locked(r));
    if (!m->grouped || m->most >= medium_below || fl_region_kept(r) == SIZE_MAX) {
        return false;
    }
    return m->most < small_below ||
           m->headroom < m->most / (fl_region_is_scarce(r) ? AMPLE_SHARE : SCARCE_SHARE);
}

/* What others and we go by that depends on how much there is in all. */
static void note_size(struct fl_region *r, const struct fl_memory *m)
{
    bool scarce = is_scarce(r, m);
    size_t most = fl_min(m->most, SIZE_MAX), keep = fl_min(m->keep, SIZE_MAX / 8) * 8;
    size_t fits = most != 0 ? fl_min(most, keep) : keep;

    fl_assert(fl_region_is_locked(r));
    atomic_store_explicit(&r->scarce, scarce, memory_order_relaxed);
    if (m->keep != UINT64_MAX && r->hooks.maps_are_counted != NULL) {
        r->hooks.maps_are_counted();
    }
    if (scarce && m->most < tiny_below && r->held.populated == 0) {
        r->pages.huge = r->pages.collapse = false;
    }
    r->pressure.most = most;
    r->pressure.least = most != 0 ? fl_min(most / LOOK_SHARE, FL_LOOK_LEAST) : FL_LOOK_LEAST;
    if (fits != r->pressure.fits) {
        r->pressure.fits = fits;
        atomic_store_explicit(&r->refits, true, memory_order_relaxed);
    }
}

size_t fl_region_note_memory(struct fl_region *r, const struct fl_memory *m)
{
    fl_assert(fl_region_is_locked(r));
    note_size(r, m);
    bool was = fl_region_is_tight(r);
    /* It must get much better before it counts as better: no back and forth at each step. */
    struct fl_free free = fl_region_free(r);
    size_t idle = free.bytes + fl_depot_bytes(r);
    bool tight = m->headroom / 2 < idle || (was && m->headroom / 4 < r->held.populated);

    tight = tight && fl_region_kept(r) != SIZE_MAX;

    atomic_store_explicit(&r->tight, tight, memory_order_relaxed);
    fl_depot_resize(r);
    if (tight || idle > m->keep) {
        (void)fl_depot_drain(r, 0);
    }
    atomic_store_explicit(&r->cache_max, tight ? 0 : longest_cached(r, m), memory_order_relaxed);
    r->pieces.headroom = fl_min(m->headroom, SIZE_MAX);
    r->pressure.look_after = fl_max(fl_min(m->headroom, m->keep) / 16, r->pressure.least);
    if (fl_region_is_scarce(r)) {
        r->pressure.look_after = r->pressure.least;
    }
    note_starvation(r, m);
    r->pressure.since_look = 0;
    if (tight && !was) {
        r->pieces.step = 0;
        return fl_region_free(r).bytes;
    }
    /* What is absent counts as mapped, too, and no purge changes that: a half goes for it. */
    free = fl_region_free(r);
    size_t over = beyond(free.bytes, m->keep);
    size_t absent = beyond(free.bytes + r->pages.holes.absent, m->keep) - over;
    return fl_min(over + fl_min(absent, free.huge) / 2, free.bytes);
}
