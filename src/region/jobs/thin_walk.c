/* Blocks of thin kinds that had no slot: a walk over all finds them. */
#include "region/free/fit.h"
#include "region/jobs/evidence.h"
#include "region/jobs/thin_walk.h"
#include "region/state/lock.h"
#include "region/supply/watch.h"

/* A slot whose block is gone; NULL: none from number `*i` on. */
static struct fl_thin_slot *free_slot(struct fl_thin *t, unsigned *i)
{
    for (; *i < FL_THIN_SLOTS; ++*i) {
        struct fl_thin_slot *s = &t->slot[*i];
        if (s->e == NULL) {
            return s;
        }
    }
    return NULL;
}

/* Wants the block a slot of the walk? Lock: region. */
static bool is_wanted(const struct fl_region *r, const struct fl_extent *e)
{
    const struct fl_thin *t = &r->thin;
    bool fits = t->walk_gives ? fl_extent_is_merely_thin(e)
                              : fl_thin_may_watch(r, e) && !fl_extent_is_user_remapped(e);

    fl_assert(fl_region_is_locked(r));
    return fl_extent_is_live(e) && fits && fl_evidence_is_kind_thin(t, e->len);
}

/* Once for those that are to be thin, before the program touches more of them; and once more for
 * what they hold. */
static uintptr_t after_walk(struct fl_region *r)
{
    struct fl_thin *t = &r->thin;

    fl_assert(fl_region_is_locked(r));
    t->walk_gives = !t->walk_gives;
    return t->walk_gives ? r->space.first : 0;
}

static void begin_walk(struct fl_region *r)
{
    struct fl_thin *t = &r->thin;

    fl_assert(fl_region_is_locked(r));
    if (t->thin_kinds == 0) {
        t->missed |= t->walk != 0;
        t->walk = 0;
    } else if (t->walk == 0 && t->missed) {
        t->missed = t->walk_gives = false;
        t->walk = r->space.first;
    }
}

/* The slots that are free are for blocks that had none, of kinds that are thin: the walk over all
 * goes on. Lock: region. */
void fl_thin_walk_on(struct fl_region *r)
{
    enum { STEPS = 4096 };
    struct fl_thin *t = &r->thin;
    uintptr_t end = fl_range_end(r->space.window.all);
    struct fl_thin_slot *s;
    unsigned at = 0;

    fl_assert(fl_region_is_locked(r));
    begin_walk(r);
    for (unsigned i = 0; t->walk != 0 && i < STEPS && (s = free_slot(t, &at)) != NULL; i++) {
        const struct fl_inner *in;
        struct fl_extent *e = fl_region_extent_around(r, t->walk, &in);
        if (e != NULL && in == NULL && is_wanted(r, e)) {
            fl_thin_begin_watch(t, s, e);
            s->range = t->walk_gives ? fl_thin_reach(r, s) : s->range;
        }
        t->walk = e != NULL && e->base + e->len < end ? e->base + e->len : after_walk(r);
    }
}
