/* New blocks that the worker will look at: thin.c. Lock: region. */
#include "region/state/lock.h"
#include "region/supply/watch.h"

bool fl_thin_may_watch(const struct fl_region *r, const struct fl_extent *e)
{
    const struct fl_region_config *c = &r->config;
    bool fresh = (e->left & FL_LEFT_UNSEEN) != 0 || e->content == FL_CONTENT_LAZY;

    return fresh && (e->left & (FL_LEFT_SPARSE | FL_LEFT_HUGETLB)) == 0 && c->wait_for_touch &&
           !c->first_touch && fl_pages_fault_huge(&r->pages);
}

/* One that is free or whose block is gone, or that of an earlier watch; else that of the shortest
 * block among some. */
static struct fl_thin_slot *thin_slot_for(struct fl_thin *t, const struct fl_extent *e)
{
    enum { LOOKED_AT = 16 };
    struct fl_thin_slot *best = NULL; /* whose block is watched no more: a walk may find it */

    fl_assert(t->next < FL_THIN_SLOTS);
    for (unsigned i = 0; i < LOOKED_AT; i++) {
        struct fl_thin_slot *s = &t->slot[t->next];
        t->next = (t->next + 1) % FL_THIN_SLOTS;
        if (s->e == NULL || s->e == e || !fl_extent_is_live(s->e)) {
            return s;
        }
        best = best == NULL || s->len < best->len ? s : best;
    }
    t->missed = true;
    return best;
}

void fl_thin_begin_watch(struct fl_thin *t, struct fl_thin_slot *s, struct fl_extent *e)
{
    fl_assert((size_t)(s - t->slot) < FL_THIN_SLOTS);
    s->e = e;
    s->range = fl_extent_inner(e);
    s->len = e->len;
    s->turn = atomic_fetch_add_explicit(&t->turn, 1, memory_order_relaxed) + 1;
    t->used = (unsigned)fl_max(t->used, (size_t)(s - t->slot) + 1);
}

void fl_thin_watch(struct fl_region *r, struct fl_extent *e, size_t more)
{
    struct fl_thin *t = &r->thin;

    fl_assert(fl_region_is_locked(r));
    if (more < FL_THIN_FROM || !fl_thin_may_watch(r, e)) {
        return;
    }
    fl_thin_begin_watch(t, thin_slot_for(t, e), e);
    t->came += more;
    if (t->came >= FL_THIN_LEAST) {
        atomic_store(&r->wants_worker, true);
    }
}

void fl_thin_forget(struct fl_region *r, struct fl_extent *e)
{
    uint8_t had = atomic_fetch_and(&e->user_remapped, (uint8_t)~FL_REMAPPED_THIN);

    fl_assert(fl_region_is_locked(r));
    r->history.sparse_live -= (had & FL_REMAPPED_THIN) != 0;
}
