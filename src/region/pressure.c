/* How much free memory may be held: what programs need that allocate otherwise than through us must not be missing.
 *
 * glibc gives a large block back when it is freed; whoever then takes as much in small blocks, in a memory cgroup or
 * under RLIMIT_AS, must get it under faultless too. Nobody tells us of small requests, so we look at the memory at each
 * sixteenth of what is left that comes back to us:
 * tight    less is left than twice what we hold free. What was free is purged, and what is freed from then on is left to
 *          the kernel (MADV_FREE): it stays populated until somebody needs it, and nobody is killed for it. An extent
 *          counts its bytes for which that has yet to be done (`hard`): small blocks have to merge to a huge page first.
 * keep     under limits that count maps, no more than their eighth is held free.
 * Where there are bounds of the process's own, thread caches hold small extents alone.
 * State: fields of struct fl_region, under its lock. */
#include "region/internal.h"

enum { CONFINED_SHARE = 4 };
static const size_t look_least = (size_t)16
                                 << 20; /* bytes that come back between two looks, at least */
/* Bytes taken between two calls for help, at most. */
static const size_t starve_most = (size_t)4 << 30;
static const size_t cached_least = (size_t)4 << 20; /* longest cached extent in a bounded process */

/* Nearly nothing is left: the next allocator may hold some. It is asked less and less often while that brings nothing. */
static void note_starvation(struct fl_region *r, const struct fl_memory *m)
{
    uint64_t left = m->unused < m->headroom ? m->unused : m->headroom;

    r->since_starved += r->since_look;
    if (left / 4 > look_least) {
        r->starve_after = 0;
    } else if (left / 2 < look_least && r->since_starved >= r->starve_after) {
        atomic_store_explicit(&r->starved, true, memory_order_relaxed);
        r->starve_after = fl_min(2 * r->starve_after + look_least, starve_most);
        r->since_starved = 0;
    }
}

size_t fl_region_note_memory(struct fl_region *r, const struct fl_memory *m)
{
    bool was = atomic_load_explicit(&r->tight, memory_order_relaxed);
    /* It must get much better before it counts as better: no back and forth at each step. */
    bool tight = m->headroom / 2 < r->free_bytes || (was && m->headroom / 4 < r->populated_bytes);

    atomic_store_explicit(&r->tight, tight, memory_order_relaxed);
    atomic_store_explicit(&r->cache_max,
                          tight        ? 0
                          : m->bounded ? cached_least
                                       : FL_CACHED_MOST,
                          memory_order_relaxed);
    r->look_after = fl_max(fl_min(m->headroom, m->keep) / 16, look_least);
    note_starvation(r, m);
    r->since_look = 0;
    if (tight && !was) {
        return r->free_bytes;
    }
    return r->free_bytes > m->keep ? r->free_bytes - m->keep : 0;
}

bool fl_region_note_reuse(struct fl_region *r, size_t len)
{
    if (!atomic_load_explicit(&r->tight, memory_order_relaxed)) {
        return false;
    }
    r->since_look += len;
    return r->since_look >= look_least;
}

/* In a confined process the memory cannot be looked at, and nothing ages: a share of what is in use
 * may be free. */
static void bound_free(struct fl_region *r)
{
    fl_region_lock(r);
    size_t may = fl_max(r->stats.in_use / CONFINED_SHARE, look_least), has = r->free_huge;
    fl_region_unlock(r);
    if (has > may) {
        (void)fl_region_purge_some(r, 0, has - may / 2);
    }
}

bool fl_region_note_touch(struct fl_region *r, size_t len)
{
    r->since_look += len;
    return r->since_look >= r->look_after;
}

void fl_region_look_after(struct fl_region *r, size_t len)
{
    struct fl_memory m;

    if (FL_UNLIKELY(fl_sys_is_confined())) {
        bound_free(r);
        return;
    }
    if (!fl_region_lock_unless_forking(r)) {
        return; /* the next free looks */
    }
    r->since_look += len;
    bool due = r->since_look >= r->look_after || r->surplus != 0;
    due = due && fl_look_leaving_lock(r, &m);
    size_t surplus = r->surplus;
    r->surplus = 0;
    bool tight = atomic_load_explicit(&r->tight, memory_order_relaxed);
    bool tick = fl_tick_is_due(r);
    fl_region_unlock(r);
    if (tick) {
        fl_region_tick_alone(r);
    }
    if (surplus != 0) {
        (void)fl_region_purge_some(r, 0, surplus);
    }
    if (due && tight) {
        fl_region_soften(r);
    }
}
