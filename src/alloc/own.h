/* The calling thread's cache, as requests and frees use it. */
#ifndef FL_ALLOC_OWN_H
#define FL_ALLOC_OWN_H

#include "alloc/internal.h"

/* NULL: there is none, or fl_from_node_cache knows it: where there are several nodes. So no look at
 * nodes is on the way where there is one. */
extern FL_HIDDEN _Thread_local struct fl_cache *fl_my_cache;

void fl_call_worker_now(bool may_allocate);
/* FL_HITS_A_LOOK more were served. errno is kept. */
void fl_note_hits(void);
/* As fl_from_cache. */
struct fl_extent *fl_from_node_cache(size_t len);
/* Several nodes: the claimed `e` into the thread's cache. Returns what has to go to the region;
 * NULL: nothing. */
struct fl_extent *fl_keep_by_node(struct fl_extent *e, size_t longest);

/* `longest`: r->cache_max. */
static FL_INLINE bool fl_may_keep(const struct fl_extent *e, size_t longest)
{
    return e->content != FL_CONTENT_LAZY && e->len <= longest && !fl_extent_is_user_remapped(e);
}

/* `old` had to make room in the cache. As fl_keep_by_node; errno is kept. */
struct fl_extent *fl_let_go(struct fl_cache *c, struct fl_extent *old);

/* The claimed `e` in its thread's cache. As fl_keep_by_node. */
static FL_INLINE struct fl_extent *fl_keep(struct fl_cache *c, struct fl_extent *e)
{
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
    struct fl_extent *old = fl_cache_put(fl_route.region, c, e);

    fl_assert(old == NULL || fl_extent_state(old) == FL_EXTENT_CACHED);
    return FL_LIKELY(old == NULL) ? NULL : fl_let_go(c, old);
}

/* Something may age and no worker watches it. A request may start the worker for the first time,
 * which allocates. Keeps errno. */
static inline void fl_call_worker(bool may_allocate)
{
    if (FL_UNLIKELY(atomic_load(&fl_route.region->wants_worker))) {
        fl_call_worker_now(may_allocate);
    }
}

enum { FL_HITS_A_LOOK = 64 };

static inline bool fl_cache_look_is_due(const struct fl_cache *c)
{
    return atomic_load_explicit(&c->stats.cache_hits, memory_order_relaxed) % FL_HITS_A_LOOK == 0;
}

static FL_INLINE struct fl_extent *fl_take_cached(struct fl_cache *c, size_t len)
{
    struct fl_extent *e = fl_cache_take(fl_route.region, c, len);

    if (e != NULL) {
        fl_assert(e->len == len && fl_extent_is_live(e));
        fl_stats_bump(&c->stats.cache_hits);
        fl_stats_add(&c->stats.hit_bytes, len);
        fl_call_worker(true);
        if (FL_UNLIKELY(fl_cache_look_is_due(c))) {
            fl_note_hits();
        }
    }
    return e;
}

/* An extent of exactly that length from the thread's cache; NULL: there is none. */
static FL_INLINE struct fl_extent *fl_from_cache(size_t len)
{
    struct fl_cache *c = fl_my_cache;

    return FL_LIKELY(c != NULL) ? fl_take_cached(c, len) : fl_from_node_cache(len);
}

#endif
