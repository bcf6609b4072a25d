/* See magazine.h. */
#include "region/magazine.h"
#include "region/lock.h"
#include "region/row.h"

enum { OTHERS = 8 }; /* caches that are looked at */

static uint32_t used_of(const struct fl_magazine *m)
{
    return atomic_load_explicit(&m->used, memory_order_relaxed);
}

static uint32_t bottom_of(const struct fl_magazine *m)
{
    return atomic_load_explicit(&m->bottom, memory_order_relaxed);
}

static size_t len_of(const struct fl_magazine *m)
{
    return atomic_load_explicit(&m->len, memory_order_relaxed);
}

static void set_top(struct fl_magazine *m, uint32_t top)
{
    m->top = top;
    atomic_store_explicit(&m->bytes, top * len_of(m), memory_order_relaxed);
}

/* acquire: pairs with the release in fl_magazine_put */
static struct fl_extent *take_out(struct fl_magazine *m, uint32_t i)
{
    return atomic_load_explicit(&m->slot[i], memory_order_relaxed) == NULL
               ? NULL
               : atomic_exchange_explicit(&m->slot[i], NULL, memory_order_acquire);
}

/* LIVE; NULL: it is another one than was looked for, as a handler's free may be. */
static struct fl_extent *as_asked(struct fl_region *r, const struct fl_cache *own,
                                  struct fl_extent *e, size_t len)
{
    if (FL_UNLIKELY(e->len != len || (fl_cache_has_nodes(own) && e->zone != own->zone))) {
        fl_region_defer(r, e);
        return NULL;
    }
    atomic_store_explicit(&e->state, FL_EXTENT_LIVE, memory_order_relaxed);
    return e;
}

/* So many holes were passed by. What went to other rows is none of this one. */
static FL_COLD void note_holes(struct fl_cache *c, struct fl_magazine *m, uint32_t holes)
{
    uint32_t passed_on = atomic_exchange_explicit(&m->passed_on, 0, memory_order_relaxed);
    size_t gone = atomic_load_explicit(&m->gone, memory_order_relaxed);

    fl_row_note_back(c, holes - fl_min(holes, passed_on));
    while (!atomic_compare_exchange_weak_explicit(&m->gone, &gone,
                                                  gone - fl_min(gone, holes * len_of(m)),
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

struct fl_extent *fl_magazine_take(struct fl_region *r, struct fl_cache *c, size_t len)
{
    struct fl_magazine *m = fl_magazine_of(c);
    struct fl_extent *e = NULL;
    uint32_t top = m->top, holes = 0;

    if (len_of(m) != len || top == 0) {
        return NULL;
    }
    while (top != 0 && e == NULL) {
        e = take_out(m, --top);
        holes += e == NULL;
    }
    set_top(m, top);
    if (FL_UNLIKELY(holes != 0)) {
        note_holes(c, m, holes);
    }
    return e != NULL ? as_asked(r, c, e, len) : NULL;
}

/* The lowest block. */
static struct fl_extent *take_lowest(struct fl_region *r, const struct fl_cache *own,
                                     struct fl_magazine *m, size_t len)
{
    uint32_t i = bottom_of(m), used = used_of(m);
    struct fl_extent *e = NULL;

    while (i < used && e == NULL) {
        e = take_out(m, i++);
    }
    atomic_store_explicit(&m->bottom, i, memory_order_relaxed);
    if (e == NULL) {
        return NULL;
    }
    (void)atomic_fetch_add_explicit(&m->passed_on, 1, memory_order_relaxed);
    fl_magazine_note_gone(m, e->len);
    return as_asked(r, own, e, len);
}

static struct fl_magazine *find_theirs(struct fl_region *r, struct fl_cache *own, size_t len)
{
    struct fl_cache *all = atomic_load_explicit(&r->caches.all, memory_order_acquire);
    struct fl_cache *c = own->theirs != NULL ? own->theirs : all;

    for (int i = 0; i < OTHERS; i++, c = c->next != NULL ? c->next : all) {
        struct fl_magazine *m = c != own ? fl_magazine_of(c) : NULL;
        own->theirs = c;
        if (m != NULL && len_of(m) == len && bottom_of(m) < used_of(m)) {
            return m;
        }
    }
    return NULL;
}

struct fl_extent *fl_magazine_take_theirs(struct fl_region *r, struct fl_cache *own, size_t len)
{
    bool may = own != NULL && fl_row_keeps(own, len) != 0;
    struct fl_magazine *m = may ? find_theirs(r, own, len) : NULL;
    struct fl_extent *first = m != NULL ? take_lowest(r, own, m, len) : NULL, *e = first;

    if (first == NULL) {
        return NULL;
    }
    for (int i = 0; i < FL_CACHE_SLOTS && (e = take_lowest(r, own, m, len)) != NULL; i++) {
        fl_row_keep(r, own, e);
    }
    fl_stats_bump(&own->stats.cache_hits);
    fl_stats_add(&own->stats.hit_bytes, len);
    return first;
}

static FL_COLD struct fl_magazine *make(struct fl_region *r, struct fl_cache *c)
{
    if (!fl_region_lock_unless_forking(r)) {
        return NULL;
    }
    struct fl_magazine *m = fl_magazine_of(c);
    if (m == NULL && (m = fl_cache_room(r, sizeof *m)) != NULL) { /* else a handler did */
        m->next = r->caches.magazines;
        r->caches.magazines = m;
        atomic_store_explicit(&c->magazine, m, memory_order_release);
    }
    fl_region_unlock(r);
    return m;
}

struct fl_extent *fl_magazine_put(struct fl_region *r, struct fl_cache *c, struct fl_extent *e)
{
    size_t len = e->len; /* once it is in a slot, any thread may have e */
    size_t most = fl_min(fl_row_keeps(c, len), FL_MAGAZINE);

    if (FL_LIKELY(most == 0)) {
        return e;
    }
    struct fl_magazine *m = fl_magazine_of(c);
    m = m != NULL ? m : make(r, c);
    if (m == NULL || m->top >= most) {
        return e;
    }
    uint32_t top = m->top;
    atomic_store_explicit(&m->len, len, memory_order_relaxed);
    if (top >= used_of(m)) {
        atomic_store_explicit(&m->used, top + 1, memory_order_relaxed);
    }
    if (top < bottom_of(m)) {
        atomic_store_explicit(&m->bottom, top, memory_order_relaxed);
    }
    /* Sequentially consistent: `used` comes before it, the looks at `listed` and at wants_worker
     * after it. */
    struct fl_extent *old = atomic_exchange(&m->slot[top], e);
    set_top(m, top + 1);
    if (FL_UNLIKELY(!atomic_load(&c->listed))) {
        fl_cache_list(r, c);
    }
    return old; /* a handler's */
}

void fl_magazine_emptied(struct fl_cache *c)
{
    struct fl_magazine *m = fl_magazine_of(c);

    if (m != NULL) {
        set_top(m, 0);
        atomic_store_explicit(&m->gone, 0, memory_order_relaxed);
        atomic_store_explicit(&m->passed_on, 0, memory_order_relaxed);
    }
}
