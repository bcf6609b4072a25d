/* Which free extent serves a request: the lowest address that fits, over two trees by address.
 *
 * First fit by address, not best fit: on recorded PyTorch steps its window is 1.004 to 1.058 times
 * the live maximum, best fit's 1.009 to 1.113 (docs/internals/regions.md, bench/fit/replay). */
#include "region/state/lock.h"
#include "region/free/advised.h"
#include "region/state/counts.h"
#include "region/free/fit.h"

static struct fl_extent_tree *tree_of(struct fl_region *r, const struct fl_extent *e)
{
    struct fl_zone *z = &r->zones.of[e->zone];

    return e->content == FL_CONTENT_EMPTY ? &z->empty : &z->populated;
}

void fl_fit_start(struct fl_zone *z)
{
    TAILQ_INIT(&z->by_age);
    TAILQ_INIT(&z->pieces);
    TAILQ_INIT(&z->seen);
    TAILQ_INIT(&z->rough);
}

static struct fl_extent_list *list_of(struct fl_zone *z, enum fl_queue queue)
{
    switch (queue) {
    case FL_QUEUE_AGE:
        return &z->by_age;
    case FL_QUEUE_PIECES:
        return &z->pieces;
    case FL_QUEUE_SEEN:
        return &z->seen;
    default:
        return &z->rough;
    }
}

/* Bytes that requests may be given the pages of. */
static void count_huge(struct fl_region *r, const struct fl_extent *e, int sign)
{
    fl_assert(fl_region_is_locked(r));
    if (e->queue == FL_QUEUE_AGE) {
        size_t huge = fl_extent_inner(e).len;
        r->zones.of[e->zone].free.huge += sign > 0 ? huge : -huge;
    }
}

/* It counts no more. */
static FL_INLINE void unlist(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    if (e->queue != FL_QUEUE_NONE) {
        TAILQ_REMOVE(list_of(&r->zones.of[e->zone], e->queue), e, by_age);
        e->queue = FL_QUEUE_NONE;
    }
}

static FL_INLINE void unqueue(struct fl_region *r, struct fl_extent *e)
{
    count_huge(r, e, -1);
    unlist(r, e);
}

void fl_fit_unqueue(struct fl_region *r, struct fl_extent *e)
{
    unqueue(r, e);
}

/* It is in the tree still. */
static FL_INLINE void leave(struct fl_region *r, struct fl_extent *e)
{
    struct fl_free *free = &r->zones.of[e->zone].free;

    fl_assert(fl_region_is_locked(r));
    fl_assert(fl_extent_state(e) == FL_EXTENT_FREE);
    unqueue(r, e);
    fl_assert(!fl_extent_is_populated(e) || free->bytes >= fl_extent_there(e));
    free->hidden -= (e->advised & FL_ADVISED_NO_DUMP) != 0;
    free->bytes -= fl_extent_is_populated(e) ? fl_extent_there(e) : 0;
}

/* It is in the tree. */
static void enter(struct fl_region *r, struct fl_extent *e)
{
    struct fl_free *free = &r->zones.of[e->zone].free;

    fl_assert(fl_region_is_locked(r));
    fl_assert(fl_extent_state(e) == FL_EXTENT_FREE);
    free->hidden += (e->advised & FL_ADVISED_NO_DUMP) != 0;
    free->bytes += fl_extent_is_populated(e) ? fl_extent_there(e) : 0;
    fl_fit_enqueue(r, e);
}

void fl_fit_remove(struct fl_region *r, struct fl_extent *e)
{
    fl_tree_remove(tree_of(r, e), e);
    leave(r, e);
}

/* `into` takes over its neighbour `gone`, which is FREE, and in its tree still. */
static void absorb(struct fl_region *r, struct fl_extent *into, struct fl_extent *gone)
{
    fl_assert(fl_region_is_locked(r));
    fl_assert(into->zone == gone->zone);
    fl_assert((into->content == FL_CONTENT_EMPTY) == (gone->content == FL_CONTENT_EMPTY));
    fl_assert(into->base + into->len == gone->base || gone->base + gone->len == into->base);
    uint32_t age_of_gone = atomic_load_explicit(&gone->epoch, memory_order_relaxed);

    leave(r, gone);
    /* A small neighbour that comes and goes must not keep a large one young. */
    if (fl_extent_there(gone) > fl_extent_there(into)) {
        atomic_store_explicit(&into->epoch, age_of_gone, memory_order_relaxed);
    }
    size_t hidden = fl_advice_all_hidden(into) + fl_advice_all_hidden(gone);
    into->base = into->base < gone->base ? into->base : gone->base;
    into->len += gone->len;
    into->unreclaimable += gone->unreclaimable;
    into->holes += gone->holes;
    into->zeroed = fl_range_join(into->zeroed, gone->zeroed);
    into->advised |= gone->advised;
    into->left |= gone->left;
    fl_advice_note_merged(into, hidden);
}

static FL_INLINE enum fl_queue queue_of(struct fl_region *r, const struct fl_extent *e)
{
    if (e->content == FL_CONTENT_EMPTY) {
        return FL_QUEUE_NONE;
    }
    struct fl_range inner = fl_extent_inner(e);
    if (inner.len == 0) {
        return fl_extent_there(e) != 0 ? FL_QUEUE_PIECES : FL_QUEUE_NONE;
    }
    bool rough = r->pages.holes.split != 0 &&
                 fl_holes_first_split(&r->pages.holes, inner) != fl_range_end(inner);
    return rough ? FL_QUEUE_ROUGH : FL_QUEUE_AGE;
}

enum fl_queue fl_fit_queue_of(struct fl_region *r, const struct fl_extent *e)
{
    return queue_of(r, e);
}

/* Oldest first, nearly: what comes back older than the head becomes the head. */
void fl_fit_enqueue(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    fl_assert(fl_extent_state(e) == FL_EXTENT_FREE);
    e->queue = (uint8_t)queue_of(r, e);
    struct fl_extent_list *list = list_of(&r->zones.of[e->zone], e->queue);
    const struct fl_extent *head = TAILQ_FIRST(list);
    uint32_t own = atomic_load_explicit(&e->epoch, memory_order_relaxed);

    count_huge(r, e, 1);
    if (e->queue == FL_QUEUE_NONE) {
        return;
    }
    if (head != NULL &&
        (int32_t)(own - atomic_load_explicit(&head->epoch, memory_order_relaxed)) < 0) {
        TAILQ_INSERT_HEAD(list, e, by_age);
    } else {
        TAILQ_INSERT_TAIL(list, e, by_age);
    }
}

void fl_fit_note_seen(struct fl_region *r, struct fl_extent *e, bool again)
{
    fl_assert(fl_region_is_locked(r));
    fl_assert(fl_extent_state(e) == FL_EXTENT_FREE);
    fl_fit_unqueue(r, e);
    if (again) {
        e->queue = FL_QUEUE_SEEN;
        TAILQ_INSERT_TAIL(&r->zones.of[e->zone].seen, e, by_age);
    }
}

void fl_fit_look_again(struct fl_region *r)
{
    struct fl_extent *e;

    fl_assert(fl_region_is_locked(r));
    FL_EACH_ZONE(r, z)
    {
        while ((e = TAILQ_FIRST(&z->seen)) != NULL) {
            fl_fit_unqueue(r, e);
            fl_fit_enqueue(r, e);
        }
    }
}

/* Nothing of that is absent; the field has been the owner's. */
static bool was_in_use(const struct fl_extent *e)
{
    uint32_t state = fl_extent_state(e);

    return state == FL_EXTENT_LIVE || state == FL_EXTENT_CACHED;
}

/* In use until now, and of pages that are like those of others. */
static bool is_plain(const struct fl_extent *e)
{
    return e->content == FL_CONTENT_POPULATED && e->advised == 0 && !fl_extent_is_user_remapped(e);
}

/* Neither is in a tree. False: they are no neighbours, or not alike. */
static bool join(struct fl_region *r, struct fl_extent *e, struct fl_extent *gone)
{
    bool before = gone->base + gone->len == e->base;

    fl_assert(fl_region_is_locked(r));
    fl_assert(fl_extent_state(e) != FL_EXTENT_FREE && fl_extent_state(gone) != FL_EXTENT_FREE);
    if ((!before && e->base + e->len != gone->base) || e->zone != gone->zone || !is_plain(e) ||
        !is_plain(gone)) {
        return false;
    }
    if (gone->len > e->len) { /* as in absorb */
        atomic_store_explicit(&e->epoch, atomic_load_explicit(&gone->epoch, memory_order_relaxed),
                              memory_order_relaxed);
    }
    e->base = before ? gone->base : e->base;
    e->len += gone->len;
    e->unreclaimable = e->len;
    e->zeroed = (struct fl_range){e->base, 0};
    e->left |= gone->left;
    fl_extent_drop(&r->space, gone);
    return true;
}

struct fl_extent *fl_fit_insert(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    fl_assert(fl_extent_is_sound(e));
    fl_assert(e->content == FL_CONTENT_EMPTY || e->content == FL_CONTENT_POPULATED);
    bool empty = e->content == FL_CONTENT_EMPTY;
    unsigned zone = empty ? fl_placing_when_empty(&r->zones.placing, e->zone) : e->zone;
    struct fl_extent *before = fl_extent_free_before(&r->space, e->base, zone);
    struct fl_extent *after = fl_extent_free_at(&r->space, e->base + e->len, zone);

    fl_extent_set_zone(e, zone);
    e->left = empty ? 0 : e->left & FL_LEFT_HOLLOW;
    if (empty || was_in_use(e)) {
        e->holes = 0;
    }
    if (empty) { /* its neighbours of that kind have none */
        fl_holes_forget(&r->pages.holes, fl_extent_range(e));
    }
    /* not yet a neighbour */
    atomic_store_explicit(&e->state, FL_EXTENT_UNUSED, memory_order_relaxed);
    before = before != NULL && (before->content == FL_CONTENT_EMPTY) == empty ? before : NULL;
    after = after != NULL && (after->content == FL_CONTENT_EMPTY) == empty ? after : NULL;
    if (before != NULL && after != NULL) {
        fl_tree_remove(tree_of(r, after), after);
    }
    struct fl_extent *seat = before != NULL ? before : after; /* whose place it takes in the tree */
    if (before != NULL) {
        absorb(r, e, before);
    }
    if (after != NULL) {
        absorb(r, e, after);
    }
    atomic_store_explicit(&e->state, FL_EXTENT_FREE, memory_order_relaxed);
    fl_extent_publish(&r->space, e);
    if (seat != NULL) {
        fl_tree_replace(tree_of(r, e), seat, e);
        fl_extent_drop(&r->space, seat);
    } else {
        fl_tree_insert(tree_of(r, e), e);
    }
    if (before != NULL && after != NULL) {
        fl_extent_drop(&r->space, after);
    }
    enter(r, e);
    return e;
}

struct fl_extent *fl_fit_join(struct fl_region *r, struct fl_extent *run, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    if (run != NULL && join(r, run, e)) {
        return run;
    }
    if (run != NULL) {
        (void)fl_fit_insert(r, run);
    }
    return e;
}

struct fl_extent *fl_fit_change_zone(struct fl_region *r, struct fl_extent *e, unsigned zone)
{
    fl_assert(fl_region_is_locked(r));
    fl_fit_remove(r, e);
    fl_extent_set_zone(e, zone);
    return fl_fit_insert(r, e);
}

void fl_fit_cut(struct fl_region *r, struct fl_extent *e, struct fl_extent *head,
                struct fl_extent *tail)
{
    struct fl_extent *seat = head != NULL ? head : tail;

    fl_assert(head == NULL || head->base == e->base);
    fl_assert(tail == NULL || fl_range_end(fl_extent_range(tail)) == e->base + e->len);
    leave(r, e);
    if (seat != NULL) {
        fl_tree_replace(tree_of(r, seat), e, seat);
        enter(r, seat);
    } else {
        fl_tree_remove(tree_of(r, e), e);
    }
    if (tail != NULL && tail != seat) {
        fl_tree_insert(tree_of(r, tail), tail);
        enter(r, tail);
    }
}

void fl_fit_shorten(struct fl_region *r, struct fl_extent *e, size_t len)
{
    fl_assert(fl_region_is_locked(r));
    fl_assert(fl_extent_state(e) == FL_EXTENT_FREE && e->content == FL_CONTENT_POPULATED);
    fl_assert(len != 0 && len <= e->len && e->holes == 0);
    if (len == e->len) {
        fl_fit_remove(r, e);
        fl_extent_drop(&r->space, e);
        return;
    }
    count_huge(r, e, -1);
    r->zones.of[e->zone].free.bytes -= len;
    e->base += len;
    e->len -= len;
    e->unreclaimable = fl_min(e->unreclaimable, e->len);
    e->zeroed = fl_range_common(fl_extent_range(e), e->zeroed);
    fl_tree_note_shorter(e);
    fl_extent_publish_base(&r->space, e);
    if (e->queue == (uint8_t)fl_fit_queue_of(r, e)) { /* it is no younger than it was */
        count_huge(r, e, 1);
        return;
    }
    unlist(r, e);
    fl_fit_enqueue(r, e);
}

struct fl_extent *fl_fit_walk(struct fl_region *r, struct fl_walk *w)
{
    struct fl_extent *e = NULL;

    fl_assert(fl_region_is_locked(r));
    for (; w->zone < r->zones.n; w->zone++, w->at = 0) {
        e = fl_tree_from(&r->zones.of[w->zone].populated, w->at);
        if (e != NULL) {
            break;
        }
    }
    return e;
}
