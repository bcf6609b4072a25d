/* The calling thread's cache: had with its first large request, left at its end. With several nodes
 * it is asked first whether the thread is where it was. */
#include "alloc/own.h"

#include <errno.h>

_Thread_local struct fl_cache *fl_my_cache;
static _Thread_local struct fl_cache *my_node_cache;
static _Thread_local bool ending; /* none must be asked for again */

static FL_COLD void get_cache(void)
{
    if (ending || fl_region_busy()) {
        return;
    }
    int saved = errno;
    fl_route.first_large();
    if (fl_plan_always != 0) {
        fl_plan_thread_begins();
    }
    if (fl_route.caches) {
        fl_assert(fl_my_cache == NULL && my_node_cache == NULL);
        ending = true; /* what thread_ends allocates takes the way without a cache */
        struct fl_cache *c = fl_cache_acquire(fl_route.region);
        if (c != NULL) {
            fl_route.thread_ends(c);
        }
        if (c != NULL && fl_cache_has_nodes(c)) {
            my_node_cache = c;
        } else {
            fl_my_cache = c;
        }
        ending = false;
    }
    errno = saved;
}

struct fl_cache *fl_thread_cache(void)
{
    return fl_my_cache != NULL ? fl_my_cache : my_node_cache;
}

void fl_thread_unsettle(void)
{
    if (my_node_cache != NULL) {
        atomic_store_explicit(&my_node_cache->site, fl_site_void, memory_order_relaxed);
    }
}

void fl_thread_end(struct fl_cache *c)
{
    fl_assert(c == fl_thread_cache());
    ending = true;
    fl_my_cache = my_node_cache = NULL;
    fl_cache_release(fl_route.region, c);
}

FL_COLD void fl_note_hits(void)
{
    int saved = errno;

    if (!fl_region_is_closed(fl_route.region)) {
        fl_region_age_alone(fl_route.region);
    }
    errno = saved;
}

FL_APART struct fl_extent *fl_let_go(struct fl_cache *c, struct fl_extent *old)
{
    fl_assert(fl_extent_state(old) == FL_EXTENT_CACHED);
    if (FL_UNLIKELY(fl_region_is_closed(fl_route.region))) {
        return old;
    }
    int saved = errno;
    bool waits = fl_region_keep(fl_route.region, c, old);
    errno = saved;
    return waits ? NULL : old;
}

FL_APART struct fl_extent *fl_from_node_cache(size_t len)
{
    struct fl_cache *c = my_node_cache;

    if (FL_UNLIKELY(c == NULL)) {
        bool is_told = fl_plan_cursor != NULL; /* who calls tells of it */
        get_cache();
        return fl_plan_always == 0 || is_told
                   ? NULL
                   : fl_from_region(len, fl_page.base, FL_REQUEST_MALLOC);
    }
    struct fl_extent *e = fl_cache_is_home(c) ? fl_take_cached(c, len) : NULL;
    if (e != NULL && FL_UNLIKELY(fl_cache_look_is_due(c))) {
        int saved = errno;
        fl_cache_recall(fl_route.region, c, len);
        errno = saved;
    }
    fl_assert(e == NULL || (e->len == len && fl_extent_is_live(e)));
    return e;
}

FL_APART struct fl_extent *fl_keep_by_node(struct fl_extent *e, size_t longest)
{
    struct fl_cache *c = my_node_cache;

    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
    return c != NULL && fl_may_keep(e, longest) && fl_cache_takes(c, e) ? fl_keep(c, e) : e;
}
