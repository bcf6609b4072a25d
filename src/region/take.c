/* A request from the region: first fit over what is populated, else growth, else "ask the next allocator". */
#include "region/internal.h"

#include <errno.h>

enum { GROWTH_CANDIDATES = 16 }; /* EMPTY extents that growth looks at */

/* The whole window as one EMPTY extent. Left to the first request, so that a process without any touches nothing. */
static int seed(struct fl_region *r)
{
    if (r->seeded) {
        return 0;
    }
    if (fl_extent_reserve(r, 1) != 0 || fl_window_commit(r, r->first) != 0) {
        return -ENOMEM;
    }
    struct fl_range all = {r->first, fl_range_end(r->window.all) - r->first};
    (void)fl_fit_insert(r, fl_extent_new(r, all, FL_CONTENT_EMPTY));
    r->seeded = true;
    return 0;
}

/* Bytes that would have to be populated to serve the request from the run that begins with `e`; SIZE_MAX: it does not
 * fit. The run: `e`, an EMPTY neighbour, and a populated one behind that. */
static size_t growth_from(struct fl_region *r, const struct fl_extent *e, size_t len, size_t align)
{
    uintptr_t end = fl_align_up(e->base, align) + len;
    size_t fresh = 0;

    for (int i = 0; i < 3 && e != NULL; i++) {
        uintptr_t e_end = e->base + e->len;
        if (e->content == FL_CONTENT_EMPTY) {
            fresh += fl_min(e_end, fl_align_up(end, fl_page.huge)) - e->base;
        }
        if (e_end >= end) {
            return fresh;
        }
        e = fl_extent_free_at(r, e_end);
    }
    return SIZE_MAX;
}

/* The first extent of the run that serves the request with the least population, the lowest such: an EMPTY extent, with
 * the populated one before it where there is one. */
static struct fl_extent *find_growth(struct fl_region *r, size_t len, size_t align,
                                     size_t *out_fresh)
{
    struct fl_extent *best = NULL, *e = fl_fit_lowest(&r->empty);

    *out_fresh = SIZE_MAX;
    for (int i = 0; i < GROWTH_CANDIDATES && e != NULL; i++) {
        struct fl_extent *before = fl_extent_free_before(r, e->base);
        struct fl_extent *start = before != NULL ? before : e;
        size_t fresh = growth_from(r, start, len, align);
        if (fresh < *out_fresh) {
            *out_fresh = fresh;
            best = start;
        }
        e = fl_fit_higher(e);
    }
    if (best == NULL && (best = fl_fit_first(&r->empty, len, align)) != NULL) {
        *out_fresh = growth_from(r, best, len, align);
    }
    return best;
}

static size_t eager_max(const struct fl_region *r, uint64_t available)
{
    return r->config.eager_max != 0 ? r->config.eager_max : available / 8;
}

/* The kernel is asked anew when a quarter of what was available the last time has been used up. */
bool fl_region_may_populate(struct fl_region *r, size_t len, size_t fresh)
{
    if (r->config.limit != 0 && r->populated_bytes + fresh > r->config.limit) {
        return false;
    }
    if (fresh <= r->budget && len <= r->budget / 2) {
        r->budget -= fresh;
        return true;
    }
    uint64_t available = fl_memory_available();
    if (len > eager_max(r, available) || fresh > available) {
        return false;
    }
    r->budget = (available - fresh) / 4;
    return true;
}

/* Unpopulated, in whole huge pages, so that the kernel's fault does as much as it can. For large requests only: a small
 * one would take a huge page on its first touch. */
static struct fl_extent *take_lazy(struct fl_region *r, size_t len, size_t align)
{
    struct fl_grant g;
    size_t huge_len = fl_align_up(len, fl_page.huge);
    struct fl_extent *e = len < 8 * fl_page.huge
                              ? NULL
                              : fl_fit_first(&r->empty, huge_len, fl_max(align, fl_page.huge));

    if (e == NULL) {
        return NULL;
    }
    e = fl_carve(r, e, fl_align_up(e->base, fl_max(align, fl_page.huge)), huge_len, &g);
    if (e != NULL) {
        r->populated_bytes -= huge_len;
        e->content = FL_CONTENT_LAZY;
        r->stats.lazy++;
    }
    return e;
}

static struct fl_extent *grow(struct fl_region *r, size_t len, size_t align, struct fl_grant *g)
{
    size_t fresh;
    struct fl_extent *e = find_growth(r, len, align, &fresh);

    if (e == NULL) {
        return NULL;
    }
    if (!fl_region_may_populate(r, len, fresh)) {
        return take_lazy(r, len, align);
    }
    r->stats.stalls++;
    return fl_carve(r, e, fl_align_up(e->base, align), len, g);
}

static struct fl_extent *take_populated(struct fl_region *r, size_t len, size_t align,
                                        struct fl_grant *g)
{
    struct fl_extent *e = fl_fit_first(&r->populated, len, align);

    return e != NULL ? fl_carve(r, e, fl_align_up(e->base, align), len, g) : NULL;
}

static struct fl_extent *take_locked(struct fl_region *r, struct fl_cache *own, size_t len,
                                     size_t align, struct fl_grant *g)
{
    if (seed(r) != 0 || fl_extent_reserve(r, FL_CARVE_DESCRIPTORS) != 0) {
        return NULL;
    }
    if (own != NULL) {
        (void)fl_cache_drain(
            r, own, 0); /* so that first fit sees it merged: it costs 5 to 20 % of memory else */
    }
    struct fl_extent *e = take_populated(r, len, align, g);
    if (e == NULL && fl_cache_drain_all(r, 0) != 0) {
        e = take_populated(r, len, align, g);
    }
    return e != NULL ? e : grow(r, len, align, g);
}

struct fl_extent *fl_region_take(struct fl_region *r, struct fl_cache *own, size_t len,
                                 size_t align, bool zero)
{
    struct fl_grant g = {.fresh = {0, 0}};

    if (len > r->window.all.len || align > r->window.all.len) {
        return NULL;
    }
    fl_region_lock(r);
    struct fl_extent *e = take_locked(r, own, len, align, &g);
    if (e != NULL) {
        r->stats.takes++;
        fl_region_count_use(r, (int64_t)e->len);
    } else {
        r->stats.refused++;
    }
    fl_region_unlock(r);
    if (e != NULL && e->content != FL_CONTENT_LAZY) {
        fl_grant_fulfil(r, &g, zero);
    }
    return e;
}
