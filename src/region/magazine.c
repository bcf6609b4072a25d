/* See magazine.h. */
#include "region/magazine.h"
#include "region/lock.h"
#include "region/row.h"

enum { OTHERS = 8 };                               /* caches that are looked at */
static const size_t bytes_most = (size_t)16 << 20; /* in one */

static uint32_t load(const _Atomic uint32_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

static size_t len_of(const struct fl_magazine *m)
{
    return atomic_load_explicit(&m->len, memory_order_relaxed);
}

static void set_top(struct fl_magazine *m, uint32_t top)
{
    atomic_store_explicit(&m->top, top, memory_order_relaxed);
    atomic_store_explicit(&m->bytes, top * len_of(m), memory_order_relaxed);
}

void fl_magazine_note_gone(struct fl_magazine *m, size_t len)
{
    (void)atomic_fetch_add_explicit(&m->gone, len, memory_order_relaxed);
}

/* What a handler took was not noted. */
static FL_COLD void note_seen(struct fl_magazine *m, size_t len)
{
    size_t gone = atomic_load_explicit(&m->gone, memory_order_relaxed);

    while (!atomic_compare_exchange_weak_explicit(&m->gone, &gone, gone - fl_min(gone, len),
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
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
    if (FL_UNLIKELY(e->len != len || (fl_cache_has_nodes(own) && fl_extent_zone(e) != own->zone))) {
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

    fl_row_note_back(c, holes - fl_min(holes, passed_on));
    note_seen(m, holes * len_of(m));
}

struct fl_extent *fl_magazine_take(struct fl_region *r, struct fl_cache *c, size_t len)
{
    struct fl_magazine *m = fl_magazine_of(c);
    struct fl_extent *e = NULL;
    uint32_t top = load(&m->top), holes = 0;

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

/* The lowest block of another thread's. That it is gone is noted first: its owner may pass by. */
static struct fl_extent *take_lowest(struct fl_region *r, const struct fl_cache *own,
                                     struct fl_magazine *m, size_t len)
{
    uint32_t i = load(&m->bottom), used = load(&m->used);
    struct fl_extent *e = NULL;

    if (i >= used) {
        return NULL;
    }
    fl_magazine_note_gone(m, len);
    while (i < used && e == NULL) {
        e = take_out(m, i++);
    }
    atomic_store_explicit(&m->bottom, i, memory_order_relaxed);
    if (e == NULL) {
        note_seen(m, len);
        return NULL;
    }
    (void)atomic_fetch_add_explicit(&m->passed_on, 1, memory_order_relaxed);
    return as_asked(r, own, e, len);
}

static struct fl_magazine *of_use(const struct fl_cache *own, const struct fl_cache *c, size_t len)
{
    struct fl_magazine *m = c != own ? fl_magazine_of(c) : NULL;
    bool here = m != NULL && (!fl_cache_has_nodes(own) || load(&m->zone) == own->zone);

    return here && len_of(m) == len ? m : NULL;
}

/* The first block of one of them, and whose it was. */
static struct fl_extent *take_of_others(struct fl_region *r, struct fl_cache *own, size_t len,
                                        struct fl_magazine **whose)
{
    struct fl_cache *all = atomic_load_explicit(&r->caches.all, memory_order_acquire);
    struct fl_cache *first = own->theirs != NULL ? own->theirs : all, *c = first;
    struct fl_extent *e = NULL;
    int i = 0;

    do {
        *whose = of_use(own, c, len);
        e = *whose != NULL ? take_lowest(r, own, *whose, len) : NULL;
        own->theirs = c;
        c = c->next != NULL ? c->next : all;
    } while (e == NULL && c != first && ++i < OTHERS);
    return e;
}

struct fl_extent *fl_magazine_take_theirs(struct fl_region *r, struct fl_cache *own, size_t len)
{
    struct fl_magazine *whose;
    bool may = own != NULL && fl_row_is_long(own, len);
    struct fl_extent *first = may ? take_of_others(r, own, len, &whose) : NULL, *e = first;

    for (int i = 0; i < FL_CACHE_SLOTS && e != NULL; i++) {
        e = take_lowest(r, own, whose, len);
        if (e != NULL) {
            fl_row_keep(r, own, e);
        }
    }
    if (first != NULL) {
        fl_stats_bump(&own->stats.cache_hits);
        fl_stats_add(&own->stats.hit_bytes, len);
    }
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
        atomic_store_explicit(&r->caches.magazines, m, memory_order_release);
        atomic_store_explicit(&c->magazine, m, memory_order_release);
    }
    fl_region_unlock(r);
    if (m == NULL) {
        c->row = 0; /* not at each free */
    }
    return m;
}

/* As many as it was before, or more. */
static void note_used(struct fl_magazine *m, uint32_t slots)
{
    uint32_t used = load(&m->used);

    while (FL_UNLIKELY(used < slots) && !atomic_compare_exchange_weak(&m->used, &used, slots)) {
    }
}

struct fl_extent *fl_magazine_put(struct fl_region *r, struct fl_cache *c, struct fl_extent *e)
{
    size_t len = e->len; /* once it is in a slot, any thread may have e */
    struct fl_magazine *m = fl_magazine_of(c);
    m = m != NULL ? m : make(r, c);
    size_t most = atomic_load_explicit(&r->cache_max, memory_order_relaxed);
    uint32_t top = m != NULL ? load(&m->top) : FL_MAGAZINE;
    if (top >= FL_MAGAZINE || (top + 1) * len > fl_min(most, bytes_most)) {
        return e;
    }
    atomic_store_explicit(&m->len, len, memory_order_relaxed);
    atomic_store_explicit(&m->zone, fl_extent_zone(e), memory_order_relaxed);
    note_used(m, top + 1);
    if (top < load(&m->bottom)) {
        atomic_store_explicit(&m->bottom, top, memory_order_relaxed);
    }
    /* Sequentially consistent: `used` comes before it, the looks at `listed` and at wants_worker
     * after it. */
    struct fl_extent *old = atomic_exchange(&m->slot[top], e);
    note_used(m, top + 1); /* a handler may have emptied it meanwhile */
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
        atomic_store(&m->used, 0);
        atomic_store_explicit(&m->gone, 0, memory_order_relaxed);
        atomic_store_explicit(&m->passed_on, 0, memory_order_relaxed);
    }
}

size_t fl_magazine_bytes(const struct fl_region *r)
{
    size_t sum = 0;

    for (const struct fl_magazine *m = r->caches.magazines; m != NULL; m = m->next) {
        size_t bytes = atomic_load_explicit(&m->bytes, memory_order_relaxed);
        sum += bytes - fl_min(bytes, atomic_load_explicit(&m->gone, memory_order_relaxed));
    }
    return sum;
}
