/* Requests that a plan has places for, and the ends of those. What is usual takes no lock and calls
 * no driver. */
#include "gpu/plan/plan.h"

#include <errno.h>
#include <stdlib.h>

enum { LOOK_AHEAD = 8 };

static void add(_Atomic uint64_t *v, uint64_t n) /* one writer */
{
    /* release: a reader that sees what was given sees that it had been taken */
    atomic_store_explicit(v, atomic_load_explicit(v, memory_order_relaxed) + n,
                          memory_order_release);
}

static uint64_t get(const _Atomic uint64_t *v)
{
    return atomic_load_explicit(v, memory_order_relaxed);
}

/* What was given is looked at first, so that it is never more than what was taken. */
static uint64_t less(const _Atomic uint64_t *taken, const _Atomic uint64_t *given,
                     const _Atomic uint64_t *given_by_others)
{
    uint64_t gone = atomic_load_explicit(given, memory_order_acquire) +
                    atomic_load_explicit(given_by_others, memory_order_acquire);

    return get(taken) - gone;
}

uint64_t fl_planned_live_bytes(const struct fl_pool_plan *plan)
{
    return less(&plan->taken.bytes, &plan->given.bytes, &plan->given_by_others.bytes);
}

uint64_t fl_planned_live(const struct fl_pool_plan *plan)
{
    return less(&plan->taken.count, &plan->given.count, &plan->given_by_others.count);
}

void fl_planned_add_stats(const struct fl_gpu_pool *p, struct fl_gpu_pool_stats *s)
{
    const struct fl_pool_plan *plan = p->plan;
    /* What others are about to end counts until they have. */
    uint64_t peak = get(&plan->peak), live = fl_min(fl_planned_live_bytes(plan), p->kept);

    s->occupied_bytes += live;
    s->free_bytes += p->kept - live;
    s->served_pool_bytes += get(&plan->taken.bytes);
    s->requested_bytes +=
        less(&plan->taken.requested, &plan->given.requested, &plan->given_by_others.requested);
    s->occupied_peak_bytes = peak > s->occupied_peak_bytes ? peak : s->occupied_peak_bytes;
    s->allocs += get(&plan->taken.count);
    s->hits += get(&plan->taken.count);
    s->planned_hits += get(&plan->taken.count);
    s->frees += get(&plan->given.count) + get(&plan->given_by_others.count);
}

/* ---- may it be there? ---- */

/* Everything of `t` up to `stamp` has run, or is in order before `s`. Lock: held, given up for the
 * driver. */
static bool is_safe(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_stream *t,
                    uint64_t stamp)
{
    if (t == NULL || t->safe >= stamp || (t == s && !p->is_pinned)) {
        return true;
    }
    t->stamped = stamp > t->stamped ? stamp : t->stamped;
    (void)fl_stream_ask(p, t);
    return t->safe >= stamp;
}

/* The last block at that place has ended, and everything that used it is in order before `s`. */
static bool is_clear(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_slot *d)
{
    if (atomic_load_explicit(&d->state, memory_order_acquire) != FL_SLOT_FREE ||
        !is_safe(p, s, d->stream, d->stamp)) {
        return false;
    }
    for (const struct fl_pool_use *u = d->use; u != NULL; u = u->next) {
        if (!is_safe(p, s, u->stream, u->stamp)) {
            return false;
        }
    }
    return true;
}

static bool overlaps(const struct fl_pool_slot *a, const struct fl_pool_slot *b)
{
    return a->address < b->address + b->len && b->address < a->address + a->len && b->address != 0;
}

/* When the step is not as it was: each block that may be there is looked at, and its streams are
 * asked. */
static FL_APART bool may_be_placed(struct fl_gpu_pool *p, const struct fl_pool_layout *l,
                                   struct fl_pool_slot *slot, struct fl_pool_stream *s)
{
    struct fl_gpu_guard g;
    bool right = fl_pool_enter(p, &g) == 0;

    if (!right) {
        return false;
    }
    right = !fl_stream_is_capturing(p, s);
    fl_lock_acquire(&p->lock);
    for (size_t i = 0; i < l->n && right; i++) {
        right = !overlaps(slot, &l->slot[i]) || is_clear(p, s, &l->slot[i]);
    }
    fl_lock_release(&p->lock);
    fl_pool_leave(p, &g);
    return right;
}

static FL_INLINE bool is_as_planned(const struct fl_gpu_pool *p, const struct fl_pool_layout *l,
                                    const struct fl_pool_slot *slot, const struct fl_pool_stream *s)
{
    const uint32_t *b = l->before + slot->before;

    for (uint32_t i = 0; i < slot->nbefore; i++) {
        const struct fl_pool_slot *d = &l->slot[b[i] >> 1];
        /* acquire: pairs with the release at the slot's end */
        if (atomic_load_explicit(&d->state, memory_order_acquire) != FL_SLOT_FREE ||
            d->step + (b[i] & 1) != p->plan->step || d->use != NULL ||
            (d->stream != NULL && (d->stream != s || p->is_pinned))) {
            return false;
        }
    }
    return true;
}

/* ---- take ---- */

/* The request after next, or one soon after, when some were left out. */
static FL_APART size_t look_ahead(const struct fl_pool_plan *plan, const struct fl_pool_layout *l,
                                  size_t len)
{
    for (size_t i = plan->cursor + 1; i < l->n && i <= plan->cursor + LOOK_AHEAD; i++) {
        if (l->slot[i].len == len) {
            return i;
        }
    }
    return l->n;
}

/* NULL: nothing is known of it, or it is captured: a graph may use what it has whenever it runs. */
static FL_APART struct fl_pool_stream *look_at_stream(struct fl_gpu_pool *p, void *stream)
{
    struct fl_pool_plan *plan = p->plan;
    struct fl_pool_stream *s = NULL;
    bool captures = false;

    plan->stream_generation = atomic_load_explicit(&p->stream_generation, memory_order_relaxed);
    plan->stream = NULL;
    plan->handle = stream;
    if (fl_stream_see(p, fl_stream_named(p, stream), &captures, &s) != 0 || captures) {
        return NULL;
    }
    plan->stream = s->lasts ? s : NULL;
    return s;
}

/* The owner's: what lasts and it used last is at hand. */
static FL_INLINE struct fl_pool_stream *stream_of(struct fl_gpu_pool *p, void *stream)
{
    const struct fl_pool_plan *plan = p->plan;

    if (FL_UNLIKELY(stream == FL_GPU_HOST)) {
        return &p->host;
    }
    return FL_LIKELY(plan->stream != NULL && plan->handle == stream &&
                     plan->stream_generation ==
                         atomic_load_explicit(&p->stream_generation, memory_order_relaxed))
               ? plan->stream
               : look_at_stream(p, stream);
}

/* Uses of the time before: blocks that lay there since were kept from them, or are in order after
 * them. */
static FL_APART void drop_uses(struct fl_gpu_pool *p, struct fl_pool_slot *slot)
{
    struct fl_pool_block shell = {.use = slot->use};

    fl_lock_acquire(&p->lock);
    fl_use_drop(&shell);
    fl_lock_release(&p->lock);
    slot->use = NULL;
}

static FL_INLINE void place(struct fl_gpu_pool *p, struct fl_pool_layout *l,
                            struct fl_pool_slot *slot, struct fl_pool_stream *s, size_t size)
{
    struct fl_pool_plan *plan = p->plan;

    if (FL_UNLIKELY(slot->use != NULL)) {
        drop_uses(p, slot);
    }
    slot->step = plan->step;
    slot->taker = s;
    slot->requested = size;
    atomic_store_explicit(&l->site[slot->site].slot, slot, memory_order_relaxed);
    /* release: pairs with the compare-and-exchange at its end */
    atomic_store_explicit(&slot->state, FL_SLOT_USED, memory_order_release);
    add(&plan->taken.count, 1);
    add(&plan->taken.bytes, slot->len);
    add(&plan->taken.requested, size);
    uint64_t now = fl_min(fl_planned_live_bytes(plan), l->len) + get(&p->occupied);
    if (now > get(&plan->peak)) {
        atomic_store_explicit(&plan->peak, now, memory_order_relaxed);
    }
}

/* Not as planned: may it be there all the same? */
static FL_APART bool place_slowly(struct fl_gpu_pool *p, struct fl_pool_layout *l,
                                  struct fl_pool_slot *slot, struct fl_pool_stream *s)
{
    if (s == NULL || !may_be_placed(p, l, slot, s)) {
        p->plan->misses++;
        return false;
    }
    return true;
}

/* The owner's. */
static FL_INLINE bool take(struct fl_gpu_pool *p, struct fl_pool_layout *l, size_t size,
                           void *stream, uint64_t *out)
{
    struct fl_pool_plan *plan = p->plan;
    size_t len = fl_align_up(size, FL_POOL_UNIT), i = plan->cursor;
    if (FL_UNLIKELY(i >= l->n || l->slot[i].len != len)) {
        i = look_ahead(plan, l, len);
        if (i == l->n) {
            plan->misses++;
            return false;
        }
    }
    struct fl_pool_slot *slot = &l->slot[i];
    plan->cursor = i + 1;
    if (slot->address == 0) {
        return false;
    }
    struct fl_pool_stream *s = stream_of(p, stream);
    if (FL_UNLIKELY(s == NULL || !is_as_planned(p, l, slot, s)) && !place_slowly(p, l, slot, s)) {
        return false;
    }
    place(p, l, slot, s, size);
    *out = slot->address;
    return true;
}

bool fl_planned_take(struct fl_gpu_pool *p, size_t size, void *stream, uint64_t *out)
{
    bool taken = false;

    if (fl_planned_layout(p) != NULL && fl_planned_enter(p->plan)) {
        struct fl_pool_layout *l = fl_planned_layout(p); /* the turn before may have ended it */
        taken = l != NULL && take(p, l, size, stream, out);
        fl_planned_leave(p->plan);
    }
    return taken;
}

/* ---- give ---- */

/* The slot that has that address now, the caller's to end; NULL: none. */
static FL_INLINE struct fl_pool_slot *begin_end(const struct fl_pool_layout *l, uint64_t address)
{
    /* The layout may have gone, while a caller asks for what is not there. */
    struct fl_pool_slot *slot =
        l == NULL ? NULL
                  : atomic_load_explicit(&fl_planned_site(l, address)->slot, memory_order_relaxed);

    if (FL_UNLIKELY(slot == NULL)) {
        return NULL;
    }
    uint32_t used = FL_SLOT_USED;
    return atomic_compare_exchange_strong_explicit(&slot->state, &used, FL_SLOT_ENDING,
                                                   memory_order_acquire, memory_order_relaxed)
               ? slot
               : NULL;
}

/* Events for what nothing else would ask for in time. True: a stream is captured, so that a graph
 * may use the slot whenever it runs. */
static FL_APART bool cover(struct fl_gpu_pool *p, struct fl_pool_slot *slot, bool live)
{
    struct fl_gpu_guard g;

    /* Before the driver has a say in it. */
    fl_lock_acquire(&p->lock);
    slot->stamp = fl_pool_stamp_users(p, slot->stream, slot->use);
    fl_lock_release(&p->lock);
    if (fl_pool_enter_light(p, &g) != 0) {
        return false;
    }
    fl_lock_acquire(&p->lock);
    int rc = fl_pool_cover_users(p, slot->stream, slot->use, live);
    fl_lock_release(&p->lock);
    fl_pool_leave(p, &g);
    return rc == -EINPROGRESS;
}

static FL_INLINE void end(struct fl_gpu_pool *p, struct fl_pool_slot *slot, bool mine,
                          enum fl_slot_state state)
{
    struct fl_pool_flow *flow = mine ? &p->plan->given : &p->plan->given_by_others;
    size_t requested = slot->requested, len = slot->len;

    /* release: pairs with the owner's acquire */
    atomic_store_explicit(&slot->state, (uint32_t)state, memory_order_release);
    if (FL_LIKELY(mine)) {
        add(&flow->count, 1);
        add(&flow->bytes, len);
        add(&flow->requested, requested);
    } else {
        atomic_fetch_add_explicit(&flow->count, 1, memory_order_release);
        atomic_fetch_add_explicit(&flow->bytes, len, memory_order_release);
        atomic_fetch_add_explicit(&flow->requested, requested, memory_order_release);
    }
}

/* The stream of that name, if it is there. */
static int giver_of(struct fl_gpu_pool *p, struct fl_stream_name name, bool mine,
                    struct fl_pool_stream **out)
{
    if (name.handle == FL_GPU_HOST) {
        *out = &p->host;
        return 0;
    }
    *out = mine && p->plan->handle == name.handle ? p->plan->stream : NULL;
    if (*out != NULL && p->plan->stream_generation ==
                            atomic_load_explicit(&p->stream_generation, memory_order_relaxed)) {
        return 0;
    }
    return fl_stream_see(p, name, NULL, out);
}

/* Of a slot that nothing is known of but its taker: that stream, or limbo, which is never past
 * anything. NULL: no memory for limbo. */
static FL_APART struct fl_pool_stream *user_of(struct fl_gpu_pool *p,
                                               const struct fl_pool_slot *slot)
{
    struct fl_pool_stream *s = slot->taker;

    if (s == &p->host) {
        fl_lock_acquire(&p->lock);
        s = fl_stream_limbo(p);
        fl_lock_release(&p->lock);
    }
    return s;
}

static FL_INLINE int give(struct fl_gpu_pool *p, uint64_t address, struct fl_stream_name name,
                          bool live, bool mine)
{
    struct fl_pool_stream *s = NULL;
    int rc = live ? giver_of(p, name, mine, &s) : 0;

    if (FL_UNLIKELY(rc != 0)) {
        return rc;
    }
    struct fl_pool_slot *slot = begin_end(fl_planned_layout(p), address);
    if (FL_UNLIKELY(slot == NULL)) {
        return fl_pool_not_here();
    }
    slot->stream = live ? s : user_of(p, slot);
    if (FL_UNLIKELY(slot->stream == NULL)) {
        atomic_store_explicit(&slot->state, FL_SLOT_USED, memory_order_release);
        return fl_gpu_fail(-ENOMEM, "no memory for a stream's record");
    }
    enum fl_slot_state state = FL_SLOT_FREE;
    slot->stamp = atomic_load_explicit(&p->epoch, memory_order_relaxed);
    if (FL_UNLIKELY(slot->use != NULL || (live && !s->lasts))) {
        state = cover(p, slot, live) ? FL_SLOT_HELD : FL_SLOT_FREE;
    }
    if (s == &p->host) {
        slot->stream = NULL;
    }
    end(p, slot, mine, state);
    return 0;
}

int fl_planned_give(struct fl_gpu_pool *p, uint64_t address, struct fl_stream_name name, bool live)
{
    bool mine = fl_planned_enter(p->plan);
    int rc = give(p, address, name, live, mine);

    if (mine) {
        fl_planned_leave(p->plan);
    }
    return rc;
}

/* ---- what a slot is used for ---- */

static struct fl_pool_slot *find_used(const struct fl_gpu_pool *p, uint64_t address)
{
    const struct fl_pool_layout *l = fl_planned_layout(p);
    /* The layout may have gone, while a caller asks for what is not there. */
    struct fl_pool_slot *slot =
        l == NULL ? NULL
                  : atomic_load_explicit(&fl_planned_site(l, address)->slot, memory_order_relaxed);

    return slot != NULL && atomic_load_explicit(&slot->state, memory_order_acquire) == FL_SLOT_USED
               ? slot
               : NULL;
}

struct fl_pool_use **fl_planned_uses(struct fl_gpu_pool *p, uint64_t address)
{
    struct fl_pool_slot *slot = find_used(p, address);

    return slot != NULL ? &slot->use : NULL;
}

bool fl_planned_find(const struct fl_gpu_pool *p, uint64_t address, struct fl_gpu_block *out)
{
    const struct fl_pool_layout *l = fl_planned_layout(p);

    for (size_t i = 0; l != NULL && i < l->n; i++) {
        const struct fl_pool_slot *slot = &l->slot[i];
        if (address - slot->address < slot->len &&
            atomic_load_explicit(&slot->state, memory_order_acquire) == FL_SLOT_USED) {
            out->address = slot->address;
            out->bytes = slot->len;
            out->requested_bytes = slot->requested;
            return true;
        }
    }
    return false;
}

int fl_planned_inplace(struct fl_gpu_pool *p, uint64_t address, size_t size)
{
    const struct fl_pool_slot *slot = find_used(p, address);

    if (slot == NULL) {
        return fl_pool_not_here();
    }
    if (size > slot->len || slot->use != NULL) {
        return fl_gpu_fail(-EBUSY, "the block is too small, or another stream uses it");
    }
    fl_lock_acquire(&p->lock);
    p->s.inplace++;
    fl_lock_release(&p->lock);
    return 0;
}
