/* A plan's places made ready: which slot had each byte before, which addresses there are. */
#include "gpu/plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The slot that had a stretch of the arena last, while slots are gone through in order. */
struct strip {
    size_t from, to;
    uint32_t who; /* slot * 2 + 1 once a step has been gone through */
};

struct strips {
    struct strip *at;
    size_t n, room;
};

static bool reserve(void **at, size_t *room, size_t n, size_t width)
{
    if (n <= *room) {
        return true;
    }
    size_t more = fl_max(2 * *room, n + 64);
    void *grown = realloc(*at, more * width);
    if (grown == NULL) {
        return false;
    }
    *at = grown;
    *room = more;
    return true;
}

static size_t first_beyond(const struct strips *s, size_t from)
{
    size_t lo = 0, hi = s->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (s->at[mid].to <= from) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* Slot `who` covers [from, to) from now on: strips [i, j) were in its way. False: no memory. */
static bool cover(struct strips *s, size_t i, size_t j, struct strip by)
{
    struct strip left = i < j ? s->at[i] : by, right = i < j ? s->at[j - 1] : by;
    struct strip fresh[3];
    size_t n = 0;

    if (!reserve((void **)&s->at, &s->room, s->n + 3, sizeof *s->at)) {
        return false;
    }
    if (left.from < by.from) {
        fresh[n++] = (struct strip){left.from, by.from, left.who};
    }
    fresh[n++] = by;
    if (right.to > by.to) {
        fresh[n++] = (struct strip){by.to, right.to, right.who};
    }
    memmove(s->at + i + n, s->at + j, (s->n - j) * sizeof *s->at);
    memcpy(s->at + i, fresh, n * sizeof *fresh);
    s->n = s->n - (j - i) + n;
    return true;
}

static bool follow(struct fl_pool_layout *l, struct strips *s, uint32_t i, bool note)
{
    struct fl_pool_slot *slot = &l->slot[i];
    size_t from = (size_t)(slot->address - l->address), to = from + slot->len;
    size_t a = first_beyond(s, from), b = a;

    slot->before = (uint32_t)l->nbefore;
    for (; b < s->n && s->at[b].from < to; b++) {
        if (note) {
            if (!reserve((void **)&l->before, &l->before_room, l->nbefore + 1, sizeof *l->before)) {
                return false;
            }
            l->before[l->nbefore++] = s->at[b].who;
        }
    }
    slot->nbefore = (uint32_t)l->nbefore - slot->before;
    return cover(s, a, b, (struct strip){from, to, 2 * i});
}

/* Once through a step, to know which slots are there at its end; and once more, as the step after
 * it. */
static bool find_before(struct fl_pool_layout *l)
{
    struct strips s = {NULL, 0, 0};
    bool right = reserve((void **)&s.at, &s.room, 1, sizeof *s.at);

    for (unsigned round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < l->n && right; i++) {
            right = l->slot[i].address == 0 || follow(l, &s, i, round == 1);
        }
        for (size_t i = 0; i < s.n; i++) {
            s.at[i].who |= 1;
        }
    }
    free(s.at);
    return right;
}

static bool find_sites(struct fl_pool_layout *l)
{
    l->sites = 16;
    l->site_shift = 60;
    while (l->sites < 4 * l->n) {
        l->sites *= 2;
        l->site_shift--;
    }
    l->site = calloc(l->sites, sizeof *l->site);
    for (size_t i = 0; i < l->n && l->site != NULL; i++) {
        struct fl_pool_slot *slot = &l->slot[i];
        if (slot->address != 0) {
            struct fl_pool_site *site = fl_planned_site(l, slot->address);
            site->address = slot->address;
            slot->site = (uint32_t)(site - l->site);
            atomic_store_explicit(&site->slot, slot, memory_order_relaxed);
        }
    }
    return l->site != NULL;
}

static void drop(struct fl_pool_layout *l)
{
    if (l != NULL) {
        free(l->slot);
        free(l->before);
        free(l->site);
        free(l);
    }
}

/* Bytes of an arena that has them. */
static size_t height_of(const struct fl_gpu_slot *slot, size_t n)
{
    size_t height = 0;

    for (size_t i = 0; i < n; i++) {
        if (slot[i].offset != SIZE_MAX) {
            height = fl_max(height, fl_align_up(slot[i].offset + slot[i].size, FL_POOL_UNIT));
        }
    }
    return height;
}

static int take_arena(struct fl_gpu_pool *p, struct fl_pool_layout *l)
{
    l->chunk = calloc(1, sizeof *l->chunk);
    fl_lock_acquire(&p->lock);
    size_t held = p->s.occupied_bytes + p->s.free_bytes + p->kept + p->coming;
    bool right = l->chunk != NULL && (p->o.limit == 0 || held + l->len <= p->o.limit);
    p->coming += right ? l->len : 0;
    fl_lock_release(&p->lock);
    if (!right) {
        free(l->chunk);
        (void)fl_gpu_fail(-ENOMEM, "a plan's arena is more than the pool's limit leaves");
        return -ENOMEM;
    }
    *l->chunk = (struct fl_pool_chunk){.len = l->len, .is_kept = true};
    int rc = fl_chunk_from_driver(p, NULL, l->chunk);
    l->address = l->chunk->address;
    fl_lock_acquire(&p->lock);
    p->coming -= l->len;
    fl_lock_release(&p->lock);
    if (rc != 0) {
        free(l->chunk);
    }
    return rc;
}

/* Everything but the arena's records: false, no memory. */
static bool prepare(struct fl_gpu_pool *p, struct fl_pool_layout *l, const struct fl_gpu_slot *slot)
{
    for (size_t i = 0; i < l->n; i++) {
        l->slot[i].len = p->strategy->round(p, slot[i].size);
        l->slot[i].address = slot[i].offset == SIZE_MAX ? 0 : l->address + slot[i].offset;
    }
    return find_before(l) && find_sites(l);
}

/* What a trim would give back, at least. Lock: held. */
static size_t idle_bytes(const struct fl_gpu_pool *p)
{
    size_t idle = 0;

    for (const struct fl_pool_chunk *c = p->chunks; c != NULL; c = c->next) {
        const struct fl_pool_block *b = c->first;
        bool whole = !c->is_kept && b->len == c->len && b->state == FL_BLOCK_FREE;
        idle += whole && (!p->is_pinned || b->stream == NULL) ? c->len : 0;
    }
    return idle;
}

/* The chunks that the step had before it had a plan go first. -ENOENT: there are fewer than the
 * arena has bytes, because what stays lies among them; then the pool is better off without it. */
static int make_way(struct fl_gpu_pool *p, size_t height)
{
    size_t released;

    fl_lock_acquire(&p->lock);
    (void)fl_stream_drain(p);
    fl_chunks_put_together(p);
    size_t idle = idle_bytes(p);
    fl_lock_release(&p->lock);
    if (idle < height) {
        return -ENOENT;
    }
    (void)fl_chunk_trim(p, 0, &released);
    return 0;
}

int fl_planned_install(struct fl_gpu_pool *p, const struct fl_gpu_slot *slot, size_t n)
{
    struct fl_pool_plan *plan = p->plan;
    struct fl_pool_layout *l;
    size_t height = height_of(slot, n);
    int rc = make_way(p, height);

    if (rc != 0) {
        return rc;
    }
    l = calloc(1, sizeof *l);
    if (l != NULL) {
        l->slot = calloc(n, sizeof *l->slot);
    }
    if (l == NULL || l->slot == NULL) {
        drop(l);
        return fl_gpu_fail(-ENOMEM, "no memory for a plan's records");
    }
    l->n = n;
    l->len = height;
    rc = take_arena(p, l);
    if (rc == 0 && !prepare(p, l, slot)) {
        (void)fl_chunk_to_driver(p, NULL, l->chunk);
        free(l->chunk);
        (void)fl_gpu_fail(-ENOMEM, "no memory for a plan's records");
        rc = -ENOMEM;
    }
    if (rc != 0) {
        drop(l);
        return rc;
    }
    fl_lock_acquire(&p->lock);
    fl_chunk_link(p, l->chunk);
    p->kept += l->len;
    fl_chunk_held(p);
    fl_lock_release(&p->lock);
    plan->cursor = 0;
    plan->step = 1;
    plan->misses = plan->unlike_steps = 0;
    atomic_store_explicit(&plan->layout, l, memory_order_release);
    return 0;
}

/* All that used them has run. Lock: not held. */
static int wait_for_slots(struct fl_gpu_pool *p, const struct fl_pool_layout *l)
{
    int rc = 0;

    fl_lock_acquire(&p->lock);
    for (size_t i = 0; i < l->n && rc == 0; i++) {
        const struct fl_pool_slot *slot = &l->slot[i];
        rc = slot->stream != NULL ? fl_stream_wait(p, NULL, slot->stream, slot->stamp) : 0;
        for (const struct fl_pool_use *u = slot->use; u != NULL && rc == 0; u = u->next) {
            rc = fl_stream_wait(p, NULL, u->stream, u->stamp);
        }
    }
    fl_lock_release(&p->lock);
    return rc != 0 ? fl_gpu_fail(-EBUSY, "a stream still uses the plan's arena") : 0;
}

void fl_planned_release_held(struct fl_gpu_pool *p)
{
    const struct fl_pool_layout *l = fl_planned_layout(p);

    for (size_t i = 0; l != NULL && i < l->n; i++) {
        uint32_t held = FL_SLOT_HELD;
        (void)atomic_compare_exchange_strong_explicit(&l->slot[i].state, &held, FL_SLOT_FREE,
                                                      memory_order_relaxed, memory_order_relaxed);
    }
}

static bool has_held(const struct fl_pool_layout *l)
{
    size_t i = 0;

    while (i < l->n &&
           atomic_load_explicit(&l->slot[i].state, memory_order_acquire) != FL_SLOT_HELD) {
        i++;
    }
    return i < l->n;
}

int fl_planned_remove(struct fl_gpu_pool *p)
{
    struct fl_pool_plan *plan = p->plan;
    struct fl_pool_layout *l = fl_planned_layout(p);

    if (l == NULL) {
        return 0;
    }
    if (fl_planned_live(plan) != 0) {
        return fl_gpu_fail(-EBUSY, "something of the plan is allocated");
    }
    if (has_held(l)) {
        return fl_gpu_fail(-EBUSY, "a graph may use something of the plan");
    }
    int rc = p->is_pinned ? wait_for_slots(p, l) : 0; /* else cuMemFree does */
    if (rc != 0) {
        return rc;
    }
    /* First: what the driver gives out at these addresses is nothing of the plan's. */
    atomic_store_explicit(&plan->layout, NULL, memory_order_release);
    rc = fl_chunk_to_driver(p, NULL, l->chunk);
    if (rc != 0) {
        atomic_store_explicit(&plan->layout, l, memory_order_release);
        return rc;
    }
    fl_lock_acquire(&p->lock);
    fl_chunk_unlink(p, l->chunk);
    p->kept -= l->len;
    for (size_t i = 0; i < l->n; i++) {
        struct fl_pool_block shell = {.use = l->slot[i].use};
        fl_use_drop(&shell);
        l->slot[i].use = NULL;
    }
    fl_lock_release(&p->lock);
    free(l->chunk);
    l->chunk = NULL;
    l->next = plan->old;
    plan->old = l;
    return 0;
}

void fl_planned_free(struct fl_gpu_pool *p)
{
    struct fl_pool_plan *plan = p->plan;
    struct fl_pool_layout *l = plan != NULL ? fl_planned_layout(p) : NULL;

    if (plan == NULL) {
        return;
    }
    drop(l);
    for (l = plan->old; l != NULL;) {
        struct fl_pool_layout *next = l->next;
        drop(l);
        l = next;
    }
    free(plan->life);
    free(plan->before);
    free(plan);
    p->plan = NULL;
}
