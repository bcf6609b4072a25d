/* What is populated and in use: the region's accounts. Lock: region. */
#ifndef FL_REGION_COUNTS_H
#define FL_REGION_COUNTS_H

#include "region/region.h"

/* Bytes populated that make a worker worth a thread. */
enum { FL_WORKER_FROM = 16 * FL_MIB };
/* Is that so, or are there threads enough that may hold some? Lock: region. */
static inline bool fl_region_is_worth_worker(const struct fl_region *r)
{
    return r->held.populated >= FL_WORKER_FROM || r->caches.owned >= FL_CROWD;
}
/* Populated bytes, each once. Lock: region. */
static inline size_t fl_region_counted(const struct fl_region *r)
{
    return r->held.populated - r->held.moving - r->held.exempt;
}
/* FREE extents of all zones. */
static inline struct fl_free fl_region_free(const struct fl_region *r)
{
    struct fl_free sum = {0, 0, 0};

    for (unsigned i = 0; i < r->zones.n; i++) {
        const struct fl_free *f = &r->zones.of[i].free;
        sum = (struct fl_free){sum.bytes + f->bytes, sum.huge + f->huge, sum.hidden + f->hidden};
    }
    return sum;
}
/* Bytes of it that count as populated: what is EMPTY does so while it is being mapped. */
static inline size_t fl_extent_populated(const struct fl_extent *e)
{
    if (e->content == FL_CONTENT_PART) {
        return e->filled;
    }
    bool mapped = fl_extent_state(e) == FL_EXTENT_ISOLATED && e->content == FL_CONTENT_EMPTY;
    return mapped || e->content == FL_CONTENT_POPULATED ? e->len : 0;
}
/* The same of a FREE or ISOLATED one, less its holes. Lock: region. */
static inline size_t fl_extent_there(const struct fl_extent *e)
{
    return fl_extent_populated(e) - e->holes;
}
/* fl_extent_new, of now. */
static inline struct fl_extent *fl_extent_make(struct fl_region *r, struct fl_range range,
                                               enum fl_content content, unsigned zone)
{
    struct fl_extent *e = fl_extent_new(&r->space, range, content, zone);

    atomic_store_explicit(&e->epoch, fl_region_epoch(r), memory_order_relaxed);
    return e;
}
/* Was it freed `age` ticks of the worker ago, or more? */
static inline bool fl_extent_is_aged(const struct fl_region *r, const struct fl_extent *e,
                                     uint32_t age)
{
    uint32_t now = fl_region_epoch(r);

    return now - atomic_load_explicit(&e->epoch, memory_order_relaxed) >= age;
}
/* A request has been handed so much unpopulated memory; 0: none. Lock: region. */
static inline void fl_region_count_lazy(struct fl_region *r, size_t len)
{
    r->stats.lazy += len != 0;
    r->stats.lazy_bytes += len;
}
/* Blocks came back, `len` bytes in all: what calls for looks at the memory knows it. */
static inline void fl_region_count_back(struct fl_region *r, size_t len)
{
    r->pressure.since_look += len;
    r->pieces.since += len;
}
/* A block is no longer LIVE: is it one sparse block less? */
static inline void fl_region_count_gone(struct fl_region *r, const struct fl_extent *e)
{
    r->history.sparse_live -= (e->left & FL_LEFT_SPARSE) != 0 || fl_extent_is_thin(e);
}
/* More than the machine's memory and swap: refused by take and resize. No lock needed. */
bool fl_region_is_absurd(const struct fl_region *r, size_t len);
/* Statistics after `in_use` bytes more (or fewer) are handed out. */
void fl_region_count_use(struct fl_region *r, int64_t in_use);
/* fl_region_give, with the lock held; count_given: all of it but that it is inserted. */
void fl_region_give_locked(struct fl_region *r, struct fl_extent *e);
void fl_region_count_given(struct fl_region *r, struct fl_extent *e);
/* A chain by `next` of claimed blocks: all of it to the region. Returns how many. */
size_t fl_region_give_chain(struct fl_region *r, struct fl_extent *e);

#endif
