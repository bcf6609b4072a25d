/* The extent that an address lies in. */
#include "region/state/lock.h"
#include "region/free/fit.h"

/* What others have changed since the walk came to `at`. */
static struct fl_extent *changed_around(struct fl_region *r, uintptr_t at)
{
    struct fl_extent *e = NULL;

    FL_EACH_ZONE(r, z)
    {
        e = e != NULL ? e : fl_tree_around(&z->populated, at);
        e = e != NULL ? e : fl_tree_around(&z->empty, at);
    }
    for (struct fl_extent *a = TAILQ_FIRST(&r->isolated); e == NULL && a != NULL;
         a = TAILQ_NEXT(a, by_age)) {
        e = at - a->base < a->len ? a : NULL;
    }
    return e != NULL ? e : fl_extent_around(&r->space, at);
}

struct fl_extent *fl_region_extent_around(struct fl_region *r, uintptr_t at,
                                          const struct fl_inner **out_in)
{
    struct fl_extent *e, *outer = NULL;
    bool named = fl_region_look(r, at, &e);

    fl_assert(fl_region_is_locked(r));
    *out_in = NULL;
    if (named && e->content != FL_CONTENT_INNER && e->base == at &&
        fl_extent_state(e) != FL_EXTENT_UNUSED) {
        return e;
    }
    *out_in = fl_inner_around(&r->space, at, &outer);
    return *out_in != NULL ? outer : changed_around(r, at);
}
