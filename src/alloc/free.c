/* Frees of large blocks: into the thread's cache, else to the region. */
#include "alloc/internal.h"
#include "alloc/own.h"

#include <errno.h>

static FL_COLD void give(struct fl_extent *e)
{
    int saved = errno;

    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
    if (FL_UNLIKELY(fl_harden.on)) {
        fl_harden_give(e, fl_block(e));
    } else if (fl_region_is_closed(fl_route.region)) {
        fl_region_defer(fl_route.region, e);
    } else {
        fl_region_give(fl_route.region, e);
    }
    errno = saved;
}

static FL_COLD void free_no_block(void *p)
{
    if (!fl_harden.on || !fl_harden_free(p)) {
        fl_die("free", p);
    }
}

static FL_COLD void note_touched(struct fl_extent *e)
{
    int saved = errno;

    fl_region_note_touched(fl_route.region, e);
    errno = saved;
}

/* The end of a free: what has to go to the region, if anything, goes. */
static FL_APART void end_free(struct fl_extent *e)
{
    if (e != NULL) {
        give(e);
    }
    fl_call_worker(false);
}

/* It is not kept as it is: see free_extent. */
static FL_APART void free_slowly(struct fl_cache *c, struct fl_extent *e)
{
    size_t longest = atomic_load_explicit(&fl_route.region->cache_max, memory_order_relaxed);

    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED && e->content != FL_CONTENT_INNER);
    if (FL_UNLIKELY((e->left & FL_LEFT_UNSEEN) != 0)) {
        note_touched(e);
    }
    if (c == NULL) {
        e = fl_keep_by_node(e, longest);
    } else if (fl_may_keep(e, longest)) {
        e = fl_keep(c, e);
    }
    end_free(e);
}

/* The cache has got one. NULL: nothing had to make room. */
static FL_APART void after_keep(struct fl_cache *c, struct fl_extent *old)
{
    fl_assert(old == NULL || fl_extent_state(old) == FL_EXTENT_CACHED);
    if (!atomic_load(&c->listed)) {
        fl_cache_list(fl_route.region, c);
    }
    end_free(old != NULL ? fl_let_go(c, old) : NULL);
}

/* Not a planned block. */
static FL_APART void free_extent(struct fl_extent *e)
{
    struct fl_region *r = fl_route.region;
    struct fl_cache *c = fl_my_cache;
    size_t longest = atomic_load_explicit(&r->cache_max, memory_order_relaxed);

    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED && fl_extent_is_sound(e) && e->noted == 0);
    atomic_store_explicit(&e->epoch, fl_region_epoch(r), memory_order_relaxed);
    if (FL_UNLIKELY(c == NULL || !fl_may_keep(e, longest) || (e->left & FL_LEFT_UNSEEN) != 0)) {
        free_slowly(c, e);
        return;
    }
    struct fl_extent *old = fl_cache_put_unlisted(c, e);
    if (FL_UNLIKELY(old != NULL || !atomic_load(&c->listed) || atomic_load(&r->wants_worker))) {
        after_keep(c, old);
    }
}

FL_COLD void fl_tell_end(uint32_t life, uint32_t watcher, uint32_t sample)
{
    if (life != 0) {
        fl_plan_saw_free(watcher, life);
    }
    if (sample != 0) {
        fl_profile_freed(sample);
    }
}

static FL_COLD void free_noted(struct fl_extent *e)
{
    int saved = errno;
    uint32_t life = e->life, watcher = e->watcher, sample = e->sample;

    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
    e->noted = 0;
    fl_tell_end(life, watcher, sample);
    errno = saved;
    if (e->content == FL_CONTENT_INNER) {
        fl_plan_give(e);
    } else {
        free_extent(e);
    }
}

void fl_free_ours(void *p)
{
    struct fl_extent *e;

    if (FL_UNLIKELY(!fl_region_look(fl_route.region, (uintptr_t)p, &e) || e->base != (uintptr_t)p ||
                    !fl_extent_free_once(e))) {
        free_no_block(p);
    } else if (FL_UNLIKELY(e->noted != 0)) {
        free_noted(e);
    } else if (e->content == FL_CONTENT_INNER) {
        fl_plan_give(e);
    } else {
        free_extent(e);
    }
}
