/* Descriptors: where spare ones come from, and how one becomes an extent's.
 *
 * They are mapped in front of their use, brought into memory in batches, and never unmapped. What
 * was an extent's waits in a stash: the common one or, for a zone with a lock of its own, that
 * zone's. */
#include "space/space.h"

#include <errno.h>

enum { STASHED = 32 }; /* descriptors that a zone of its own lock begins with */

/* Descriptors come into memory in batches, so that the steps after the first ones take no fault for
 * them. The first page is left to its touch: a fault takes half as long as a call. */
void fl_extent_populate_ahead(struct fl_space *s)
{
    static const size_t batch_most = (size_t)64 * FL_KIB;

    if (fl_thread !=
        FL_THREAD_PROGRAM) { /* a mere saving; and who is held up there holds the lock */
        return;
    }
    size_t used = (s->descriptors.used + 1) * sizeof(struct fl_extent);
    size_t batch = fl_min(fl_max(s->descriptors.ready, fl_page.base), batch_most);
    size_t end = fl_align_up(fl_max(used, s->descriptors.ready + batch), fl_page.base);

    if (used > s->descriptors.ready && fl_vspace_grow(&s->descriptors.span, end) == 0) {
        if (s->descriptors.ready != 0) {
            fl_lock_permit_calls(true);
            (void)fl_sys.populate((struct fl_range){
                s->descriptors.span.all.base + s->descriptors.ready, end - s->descriptors.ready});
            fl_lock_permit_calls(false);
        }
        s->descriptors.ready = end;
    }
}

/* What the worker may need when it gives back all that is free: an extent becomes three at most. */
static size_t left_for_worker(const struct fl_space *s)
{
    static const size_t least = 1024;

    return 2 * s->descriptors.plain + least;
}

/* True: what the worker may need is mapped behind `exact` bytes, too. A refusal is not asked for
 * again at each descriptor. */
static bool map_ahead(struct fl_space *s, size_t exact)
{
    static const uint8_t rest = 64;
    size_t left = left_for_worker(s) * sizeof(struct fl_extent);

    if (s->descriptors.rest != 0) {
        s->descriptors.rest--;
        return false;
    }
    bool done = fl_vspace_grow(&s->descriptors.span,
                               fl_min(exact + left, s->descriptors.span.all.len)) == 0;
    s->descriptors.rest = done ? 0 : rest;
    return done && exact <= s->descriptors.span.all.len;
}

bool fl_extent_map(struct fl_space *s, size_t index)
{
    size_t grown = atomic_load_explicit(&s->descriptors.span.grown, memory_order_relaxed);
    size_t exact = (index + 1) * sizeof(struct fl_extent);
    size_t half = left_for_worker(s) / 2 * sizeof(struct fl_extent);

    if (fl_thread != FL_THREAD_PROGRAM) { /* held up there, it would hold the lock */
        return exact <= grown;
    }
    return exact + half <= grown || map_ahead(s, exact) ||
           fl_vspace_grow(&s->descriptors.span, exact) == 0;
}

void fl_extent_skip(struct fl_space *s, size_t n)
{
    size_t used = (s->descriptors.used + n + 1) * sizeof(struct fl_extent);

    fl_extent_populate_ahead(s);
    s->descriptors.used += n;
    s->descriptors.ready = fl_max(s->descriptors.ready, fl_align_down(used, fl_page.base));
}

void fl_extent_drop_row(struct fl_space *s, struct fl_extent *first, size_t n)
{
    first->content = FL_CONTENT_EMPTY;
    first->len = n * sizeof *first;
    first->next = s->descriptors.rows;
    s->descriptors.rows = first;
}

/* The last one of a row that is spare; NULL: there is none. */
static struct fl_extent *take_of_row(struct fl_space *s)
{
    struct fl_extent *first = s->descriptors.rows, *e = NULL;

    if (first != NULL) {
        first->len -= sizeof *first;
        e = first + first->len / sizeof *first;
        s->descriptors.rows = e == first ? first->next : first;
        e->content = FL_CONTENT_EMPTY;
    }
    return e;
}

static FL_INLINE void put(struct fl_stash *stash, struct fl_extent *e)
{
    SLIST_INSERT_HEAD(&stash->spare, e, spare);
    stash->n++;
}

/* There is one. */
static FL_INLINE struct fl_extent *pop(struct fl_stash *stash)
{
    struct fl_extent *e = SLIST_FIRST(&stash->spare);

    SLIST_REMOVE_HEAD(&stash->spare, spare);
    stash->n--;
    return e;
}

static void put_unused(struct fl_space *s, struct fl_extent *e)
{
    fl_extent_set_zone(e, 0);
    put(&s->descriptors.stash, e);
}

enum { GROUP = 32 };

/* The last one up to the next multiple of GROUP. */
static size_t last_of_group(const struct fl_space *s)
{
    return (s->descriptors.used + 1) / GROUP * GROUP + GROUP - 1; /* index 0: none in the pagemap */
}

/* Those that were never used, up to `last`, which is mapped.
 * Threads use them a few at a time, by turns. Where they lie one behind the other a processor that
 * goes through its own fetches those of others ahead, and takes them away: so they come in no
 * order that it knows. */
static FL_APART void put_new(struct fl_space *s, size_t last)
{
    static const uint8_t order[GROUP] = {7, 24, 13, 30, 2,  19, 10, 27, 4,  21, 15,
                                         0, 29, 9,  18, 5,  26, 12, 23, 1,  6,  31,
                                         8, 20, 3,  25, 14, 16, 28, 11, 22, 17};
    size_t next = s->descriptors.used + 1, begin = last + 1 - GROUP;

    fl_assert(last % GROUP == GROUP - 1 && last >= next);
    s->descriptors.used = last;
    s->descriptors.plain += last + 1 - next;
    fl_extent_populate_ahead(s);
    for (size_t i = 0; i < GROUP; i++) {
        if (begin + order[i] >= next) {
            put_unused(s, &s->descriptor[begin + order[i]]);
        }
    }
}

int fl_extent_reserve(struct fl_space *s, size_t n)
{
    while (s->descriptors.stash.n < n) {
        struct fl_extent *e = take_of_row(s);
        size_t last = last_of_group(s);
        if (e != NULL) {
            put_unused(s, e);
        } else if (last <= UINT32_MAX && fl_extent_map(s, last)) {
            put_new(s, last);
        } else {
            return -ENOMEM;
        }
    }
    return 0;
}

static FL_INLINE bool has_own_stash(const struct fl_space *s, unsigned zone)
{
    return FL_UNLIKELY(zone - 1 < s->descriptors.behind);
}

/* The one that the zone's descriptors go to, and come from while there are any. */
static FL_INLINE struct fl_stash *stash_of(struct fl_space *s, unsigned zone)
{
    return has_own_stash(s, zone) ? &s->descriptors.of_zone[zone] : &s->descriptors.stash;
}

size_t fl_extent_spare(struct fl_space *s, unsigned zone)
{
    return stash_of(s, zone)->n;
}

/* Others than the zone's lock's holder look at what becomes a neighbour of theirs: they never see
 * their own zone there. */
void fl_extent_restock(struct fl_space *s, unsigned zone)
{
    struct fl_stash *of = stash_of(s, zone), *common = &s->descriptors.stash;

    if (of == common) {
        (void)fl_extent_reserve(s, of->n < STASHED / 2 ? STASHED : 0);
        return;
    }
    for (size_t i = 0; of->n > (size_t)2 * STASHED && i < STASHED; i++) {
        struct fl_extent *e = pop(of);
        fl_extent_set_zone(e, 0);
        put(common, e);
    }
    if (of->n >= STASHED / 2 || fl_extent_reserve(s, STASHED) != 0) {
        return;
    }
    for (size_t i = 0; i < STASHED; i++) {
        struct fl_extent *e = pop(common);
        fl_extent_set_zone(e, zone);
        put(of, e);
    }
}

struct fl_extent *fl_extent_new(struct fl_space *s, struct fl_range range, enum fl_content content,
                                unsigned zone)
{
    bool own = has_own_stash(s, zone) && s->descriptors.of_zone[zone].n != 0;
    struct fl_extent *e = pop(own ? &s->descriptors.of_zone[zone] : &s->descriptors.stash);

    fl_assert(fl_extent_state(e) == FL_EXTENT_UNUSED);
    e->base = range.base;
    e->len = range.len;
    e->content = content;
    fl_extent_set_zone(e, zone);
    e->unreclaimable = range.len;
    e->queue = FL_QUEUE_NONE;
    e->spent = e->armed = false;
    e->advised = 0;
    e->left = 0;
    e->holes = 0;
    e->zeroed = (struct fl_range){range.base, 0};
    atomic_store_explicit(&e->user_remapped, false, memory_order_relaxed);
    atomic_store_explicit(&e->state, FL_EXTENT_FREE, memory_order_relaxed);
    fl_extent_publish(s, e);
    return e;
}

void fl_extent_drop(struct fl_space *s, struct fl_extent *e)
{
    fl_assert(fl_extent_state(e) != FL_EXTENT_UNUSED);
    atomic_store_explicit(&e->state, FL_EXTENT_UNUSED, memory_order_relaxed);
    put(stash_of(s, e->zone), e);
}
