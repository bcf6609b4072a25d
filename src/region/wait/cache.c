/* Thread caches: making, draining, handing on. Put and take are inline in cache.h.
 *
 * Each request that grows empties all of them, and there may be thousands that no thread uses. So
 * the region has a list of those that got something since they were last emptied: each free pays
 * for one look at most. An owner enters its cache after the slot is filled; who empties clears
 * `listed` before the slots are looked at; so none is missed. In a child of fork(2) caches may be
 * missing from the list whose threads were about to enter them: fork.c sees to that. */
#include "region/state/counts.h"
#include "region/state/lock.h"

_Atomic uint32_t fl_site[FL_CPU_IDS];

static uint32_t ask(struct fl_region *r, size_t len, struct fl_zonelist *out)
{
    uint32_t before = fl_site_here();

    atomic_thread_fence(memory_order_acquire); /* pairs with the release of a new site */
    r->zones.placing.zonelist(len, out);
    bool tells = before >= FL_SITE_FIRST && !out->on_touch && len < r->zones.placing.alike_below &&
                 fl_site_here() == before;
    return tells ? before : FL_SITE_NONE;
}

uint32_t fl_cache_zonelist(struct fl_region *r, struct fl_cache *own, size_t len,
                           struct fl_zonelist *out)
{
    if (own != NULL) {
        atomic_store_explicit(&own->site, FL_SITE_NONE, memory_order_relaxed);
    }
    return ask(r, len, out);
}

void fl_cache_settle(struct fl_cache *c, uint32_t site, unsigned zone)
{
    uint32_t none = FL_SITE_NONE;

    fl_assert(zone < FL_ZONES);
    if (site == FL_SITE_NONE ||
        atomic_load_explicit(&c->site, memory_order_relaxed) != FL_SITE_NONE) {
        return; /* a signal handler has settled it, or has changed the policy */
    }
    c->zone = (uint8_t)zone;
    atomic_signal_fence(memory_order_seq_cst);
    (void)atomic_compare_exchange_strong(&c->site, &none, site);
}

void fl_cache_recall(struct fl_region *r, struct fl_cache *c, size_t len)
{
    struct fl_zonelist zonelist;
    uint32_t site = ask(r, len, &zonelist);

    if (site != FL_SITE_NONE && zonelist.zone[0] != c->zone) {
        atomic_store_explicit(&c->site, fl_site_void, memory_order_relaxed);
    }
}

/* Out of a slot, if it waits there for so long. The peek at its age may be stale; the exchange
 * decides whose it is. */
static FL_INLINE struct fl_extent *take_aged(struct fl_region *r, _Atomic(struct fl_extent *) *slot,
                                             uint32_t age)
{
    const struct fl_extent *e = atomic_load(slot);

    fl_assert(fl_region_is_locked(r));
    return e == NULL || (age != 0 && !fl_extent_is_aged(r, e, age))
               ? NULL
               : atomic_exchange_explicit(slot, NULL, memory_order_acquire);
}

/* Lock: region. */
static struct fl_cache *adopt(struct fl_region *r)
{
    struct fl_cache *c = r->caches.idle;

    fl_assert(fl_region_is_locked(r));
    if (c != NULL) {
        r->caches.idle = c->next_idle;
    }
    return c;
}

/* Lock: region. */
static void disown(struct fl_region *r, struct fl_cache *c)
{
    fl_assert(fl_region_is_locked(r));
    c->next_idle = r->caches.idle;
    r->caches.idle = c;
}

/* Room for `bytes` bytes among the descriptors, for good, zero; NULL: there is none left. Lock:
 * region. */
static void *take_room(struct fl_region *r, size_t bytes)
{
    size_t slots = (bytes + sizeof(struct fl_extent) - 1) / sizeof(struct fl_extent);
    size_t index = r->space.descriptors.used + 1;

    fl_assert(fl_region_is_locked(r));
    if (!fl_extent_map(&r->space, index + slots - 1)) {
        return NULL;
    }
    r->space.descriptors.used += slots;
    return (void *)(r->space.descriptors.span.all.base +
                    index * sizeof(struct fl_extent)); /* NOLINT */
}

static struct fl_cache *make(struct fl_region *r)
{
    struct fl_cache *c = take_room(r, sizeof *c);

    fl_assert(fl_region_is_locked(r));
    if (c == NULL) {
        return NULL;
    }
    c->next = r->caches.all;
    atomic_store_explicit(&r->caches.all, c, memory_order_release);
    return c;
}

struct fl_cache *fl_cache_acquire(struct fl_region *r)
{
    fl_region_lock(r);
    struct fl_cache *c = adopt(r);
    if (c == NULL) {
        c = make(r);
    }
    if (c != NULL) {
        r->caches.owned++;
        c->alike = 0;
        atomic_store_explicit(&c->site, r->zones.placing.nodes != 0 ? FL_SITE_NONE : FL_SITE_ONE,
                              memory_order_relaxed);
    }
    fl_region_unlock(r);
    return c;
}

void fl_cache_release(struct fl_region *r, struct fl_cache *c)
{
    fl_region_lock(r);
    (void)fl_cache_drain(r, c, 0);
    disown(r, c);
    fl_assert(r->caches.owned != 0);
    r->caches.owned--;
    fl_region_unlock(r);
}

size_t fl_cache_drain(struct fl_region *r, struct fl_cache *c, uint32_t age)
{
    size_t n = 0;

    fl_assert(fl_region_is_locked(r));
    for (unsigned i = 0; i < FL_CACHE_SLOTS; i++) {
        struct fl_extent *e = take_aged(r, &c->slot[i].extent, age);
        if (e != NULL) {
            e->unreclaimable = e->len;
            fl_region_give_locked(r, e);
            n++;
        }
    }
    return n;
}

void fl_cache_count(const struct fl_cache *c, struct fl_cached *sum)
{
    for (const struct fl_cache_slot *s = c->slot; s < c->slot + FL_CACHE_SLOTS; s++) {
        if (atomic_load_explicit(&s->extent, memory_order_relaxed) != NULL) {
            sum->blocks++;
            sum->bytes += atomic_load_explicit(&s->len, memory_order_relaxed);
        }
    }
}

bool fl_cache_has_some(const struct fl_cache *c)
{
    bool some = false;

    for (unsigned i = 0; i < FL_CACHE_SLOTS && !some; i++) {
        some = atomic_load(&c->slot[i].extent) != NULL;
    }
    return some;
}

void fl_cache_list(struct fl_region *r, struct fl_cache *c)
{
    if (atomic_exchange(&c->listed, true)) { /* a signal handler did */
        return;
    }
    atomic_store_explicit(&c->came, fl_region_epoch(r) + 1, memory_order_relaxed);
    c->next_filled = atomic_load_explicit(&r->caches.filled, memory_order_relaxed);
    /* release: pairs with the acquire of take_list */
    while (!atomic_compare_exchange_weak_explicit(&r->caches.filled, &c->next_filled, c,
                                                  memory_order_release, memory_order_relaxed)) {
    }
}

static struct fl_cache *take_list(struct fl_region *r)
{
    return atomic_exchange_explicit(&r->caches.filled, NULL, memory_order_acquire);
}

/* Its owner may enter it again from here on. Returns the one after it. */
static struct fl_cache *unlist(struct fl_cache *c)
{
    struct fl_cache *next = c->next_filled;

    atomic_store(&c->listed, false);
    return next;
}

static size_t drain_filled(struct fl_region *r)
{
    size_t n = 0;

    fl_assert(fl_region_is_locked(r));
    for (struct fl_cache *c = take_list(r), *next; c != NULL; c = next) {
        next = unlist(c);
        n += fl_cache_drain(r, c, 0);
    }
    return n;
}

size_t fl_cache_drain_all(struct fl_region *r, uint32_t age)
{
    size_t n = 0;

    fl_assert(fl_region_is_locked(r));
    if (age == 0) {
        return drain_filled(r) + fl_depot_drain(r, 0);
    }
    for (struct fl_cache *c = r->caches.all; c != NULL; c = c->next) {
        n += fl_cache_drain(r, c, age);
    }
    return n + fl_depot_drain(r, age);
}

size_t fl_cache_drain_some(struct fl_region *r, size_t most)
{
    return drain_filled(r) + fl_depot_drain_some(r, most);
}

void fl_cache_drain_orphans(struct fl_region *r, const struct fl_cache *survivor)
{
    bool relist = false;

    fl_assert(fl_region_is_locked(r));
    for (struct fl_cache *c = take_list(r), *next; c != NULL; c = next) {
        next = unlist(c);
        relist |= c == survivor;
    }
    r->caches.idle = NULL;
    r->caches.owned = survivor != NULL;
    for (struct fl_cache *c = r->caches.all; c != NULL; c = c->next) {
        if (c != survivor) {
            (void)fl_cache_drain(r, c, 0);
            atomic_store(&c->listed, false);
            disown(r, c);
        } else if (relist) { /* else it is empty, or its thread is about to enter it */
            fl_cache_list(r, c);
        }
    }
}
