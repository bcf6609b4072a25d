/* Depots: see depot.h. State: r->depots; alike and alike_len of each cache. */
#include "region/free/front.h"
#include "region/state/counts.h"
#include "region/wait/depot_bins.h"
#include "region/free/fit.h"
#include "region/state/lock.h"

#include <string.h>

enum {
    SHARE = 20,       /* of what is in use may wait, in all */
    SLACK = 4,        /* of a share: so much more may wait where frees outrun requests */
    NEAR = 32,        /* of a length: so much longer may a block be that serves a request */
    NEAR_AT_NEED = 2, /* the same where a thread would sleep */
    OTHERS = 3,       /* depots that are looked at beside one's own */
    TRIMMED = 2,      /* blocks that go at a request that found none */
    EVICTED = 8,      /* blocks that go at a free that is too much: one lock for all */
};
static const size_t share_least = (size_t)512 << 10; /* bytes in one depot */
static const size_t share_most = (size_t)32 << 20;

/* Blocks ahead: one for so many requests in a row. */
enum { EACH = 32, AHEAD = FL_ALIKE_LONG / EACH };
static const size_t ahead_most = (size_t)512 << 10; /* bytes, of all of them */

static _Thread_local uint64_t held; /* over a fork of this thread's: bit i: depot number i */

static unsigned pages_of(size_t len)
{
    return (unsigned)(len >> fl_page.shift);
}

static unsigned own_depot(const struct fl_cache *c)
{
    return fl_cache_cpu(c) % FL_DEPOTS;
}

/* Bytes that may wait in depot `i`; 0: none may. */
static size_t most_of(const struct fl_region *r, unsigned i)
{
    bool leads = atomic_load_explicit(&r->depots.lead, memory_order_relaxed) == i;

    return atomic_load_explicit(leads ? &r->depots.lead_most : &r->depots.most,
                                memory_order_relaxed);
}

/* Bytes that may be in depot `i` for the thread to put a block of `len` bytes there. */
static size_t most_for(const struct fl_region *r, unsigned i, const struct fl_cache *c, size_t len)
{
    size_t share = atomic_load_explicit(&r->depots.most, memory_order_relaxed);
    size_t most = share != 0 ? most_of(r, i) + share / SLACK : 0;

    if (most != 0 && c->alike_len == len && c->alike >= FL_ALIKE_LONG) {
        size_t cached = atomic_load_explicit(&r->cache_max, memory_order_relaxed);
        most = fl_max(most, cached < FL_CACHED_MOST ? cached : share_most); /* bounded, or tight */
    }
    return most;
}

bool fl_depot_put(struct fl_region *r, struct fl_cache *c, struct fl_extent *e,
                  struct fl_extent **out_evicted)
{
    unsigned own = own_depot(c);
    size_t most = most_for(r, own, c, e->len);
    struct fl_depot *d = &r->depots.depot[own];

    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
    *out_evicted = NULL;
    if (!fl_depot_has_bin(e->len) || e->len > most || !fl_depot_try_hold(d)) {
        return false;
    }
    fl_depot_push(d, e); /* from let_go on any thread may have it */
    bool full = FL_UNLIKELY(fl_depot_bytes_of(d) > most);
    *out_evicted = full ? fl_depot_take_some(d, EVICTED, most / 2) : NULL;
    fl_depot_let_go(d);
    if (FL_UNLIKELY((atomic_load_explicit(&r->depots.used, memory_order_relaxed) >> own & 1) ==
                    0)) {
        atomic_fetch_or(&r->depots.used, (uint64_t)1 << own);
    }
    return true;
}

/* Up to `more` base pages longer, and of the thread's zone where there are nodes: the first that is
 * long enough, or nothing. */
static FL_APART struct fl_extent *take_from(struct fl_depot *d, size_t len, unsigned more,
                                            const struct fl_cache *c)
{
    unsigned from = fl_depot_bin(len), to = from + more;

    to = to < FL_DEPOT_BINS ? to : FL_DEPOT_BINS - 1;
    if (fl_depot_first(d, from, to) == FL_DEPOT_BINS || !fl_depot_try_hold(d)) {
        return NULL;
    }
    unsigned bin = fl_depot_first(d, from, to);
    bool serves = bin != FL_DEPOT_BINS && (!fl_cache_has_nodes(c) || d->bin[bin]->zone == c->zone);
    struct fl_extent *e = serves ? fl_depot_pop(d, bin) : NULL;
    fl_depot_let_go(d);
    return e;
}

/* The next depot in use behind number `i`. */
static unsigned next_used(uint64_t used, unsigned i)
{
    uint64_t behind = i + 1 < FL_DEPOTS ? used >> (i + 1) << (i + 1) : 0;

    return (unsigned)__builtin_ctzll(behind != 0 ? behind : used);
}

static struct fl_extent *take_from_others(struct fl_region *r, const struct fl_cache *c,
                                          unsigned own, size_t len, unsigned more, int others)
{
    uint64_t used = atomic_load_explicit(&r->depots.used, memory_order_relaxed);
    struct fl_extent *e = NULL;
    unsigned at = own;

    used &= ~((uint64_t)1 << own);
    for (int i = 0; i < others && e == NULL && used != 0; i++) {
        at = next_used(used, at);
        used &= ~((uint64_t)1 << at);
        e = take_from(&r->depots.depot[at], len, more, c);
    }
    return e;
}

/* The thread's slots did not serve a request for `len` bytes. */
static void note_alike(struct fl_cache *own, size_t len)
{
    if (own->alike_len != len) {
        own->alike_len = len;
        own->alike = 0;
    }
    own->alike += own->alike < FL_ALIKE_LONG;
}

static struct fl_extent *hit(struct fl_cache *c, struct fl_extent *e, size_t len)
{
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED && e->len >= len);
    atomic_store_explicit(&e->state, FL_EXTENT_LIVE, memory_order_relaxed);
    fl_stats_bump(&c->stats.cache_hits);
    fl_stats_add(&c->stats.hit_bytes, e->len);
    note_alike(c, len);
    return e;
}

struct fl_extent *fl_depot_take_same(struct fl_region *r, struct fl_cache *c, size_t len)
{
    struct fl_depot *d = &r->depots.depot[own_depot(c)];
    unsigned bin = fl_depot_bin(len);

    if (bin >= FL_DEPOT_BINS || !fl_depot_may_have(d, bin) || !fl_depot_try_hold(d)) {
        return NULL;
    }
    struct fl_extent *e = d->bin[bin];
    bool serves = e != NULL && (!fl_cache_has_nodes(c) || e->zone == c->zone);
    if (serves) {
        (void)fl_depot_pop(d, bin);
    }
    fl_depot_let_go(d);
    return serves ? hit(c, e, len) : NULL;
}

/* From the depot of the thread's CPU, else from others; up to one of `nearer` parts longer. */
static struct fl_extent *serve(struct fl_region *r, struct fl_cache *c, size_t len, unsigned nearer,
                               int others)
{
    if (!fl_depot_has_bin(len) ||
        atomic_load_explicit(&r->depots.used, memory_order_relaxed) == 0) {
        return NULL;
    }
    unsigned own = own_depot(c), more = c->exact ? 0 : pages_of(len) / nearer;
    struct fl_extent *e = take_from(&r->depots.depot[own], len, more, c);

    e = e != NULL ? e : take_from_others(r, c, own, len, more, others);
    return e != NULL ? hit(c, e, len) : NULL;
}

struct fl_extent *fl_depot_take(struct fl_region *r, struct fl_cache *c, size_t len)
{
    return serve(r, c, len, NEAR, OTHERS);
}

struct fl_extent *fl_depot_take_longer(struct fl_region *r, struct fl_cache *c, size_t len)
{
    return c->exact ? NULL : serve(r, c, len, NEAR_AT_NEED, FL_DEPOTS);
}

/* Blocks of `len` bytes to carve from the FREE `e`: one more for so many requests in a row. */
static unsigned row_of(struct fl_region *r, struct fl_cache *own, const struct fl_extent *e,
                       size_t len)
{
    fl_assert(fl_region_is_locked(r));
    if (fl_region_is_scarce(r) || (fl_cache_has_nodes(own) && e->zone != own->zone)) {
        return 1;
    }
    note_alike(own, len);
    size_t ahead = len <= ahead_most / AHEAD ? own->alike / EACH : 0;
    size_t n = fl_min(ahead + 1, e->len / len);
    return (unsigned)fl_max(fl_min(n, fl_extent_spare(&r->space, e->zone)), 1);
}

struct fl_extent *fl_depot_carve(struct fl_region *r, struct fl_cache *own, struct fl_extent *e,
                                 size_t len, unsigned *n)
{
    struct fl_depot *d = own != NULL ? &r->depots.depot[own_depot(own)] : NULL;
    struct fl_extent *ahead[AHEAD];

    fl_assert(fl_region_is_locked(r));
    *n = own != NULL ? row_of(r, own, e, len) : 1;
    fl_assert(*n - 1 <= AHEAD);
    *n = *n != 1 && fl_depot_try_hold(d) ? *n : 1;
    struct fl_extent *first = fl_carve_front(r, e, len);
    for (unsigned i = 1; i < *n; i++) {
        ahead[i - 1] = fl_carve_front(r, e, len);
        atomic_store_explicit(&ahead[i - 1]->state, FL_EXTENT_CACHED, memory_order_relaxed);
    }
    for (unsigned i = *n; i > 1; i--) { /* the lowest comes first */
        fl_depot_push(d, ahead[i - 2]);
    }
    if (*n != 1) {
        fl_depot_let_go(d);
        atomic_fetch_or(&r->depots.used, (uint64_t)1 << (d - r->depots.depot));
    }
    return first;
}

struct fl_extent *fl_depot_trim(struct fl_region *r, const struct fl_cache *own)
{
    unsigned i = own != NULL ? own_depot(own) : 0;
    struct fl_depot *d = &r->depots.depot[i];
    size_t most = own != NULL ? most_of(r, i) : SIZE_MAX;

    if (fl_depot_bytes_of(d) <= most || !fl_depot_try_hold(d)) {
        return NULL;
    }
    struct fl_extent *chain = fl_depot_take_some(d, TRIMMED, most);
    fl_depot_let_go(d);
    return chain;
}

static uint64_t all_used(const struct fl_region *r)
{
    return atomic_load(&r->depots.used);
}

/* Takes the lowest number out of `set`; there is one. */
static unsigned take_number(uint64_t *set)
{
    unsigned i = (unsigned)__builtin_ctzll(*set);

    *set &= *set - 1;
    return i;
}

size_t fl_depot_bytes(const struct fl_region *r)
{
    size_t bytes = 0;

    for (uint64_t used = all_used(r); used != 0;) {
        bytes += fl_depot_bytes_of(&r->depots.depot[take_number(&used)]);
    }
    return bytes;
}

size_t fl_depot_blocks(const struct fl_region *r)
{
    size_t blocks = 0;

    for (uint64_t used = all_used(r); used != 0;) {
        const struct fl_depot *d = &r->depots.depot[take_number(&used)];
        blocks += atomic_load_explicit(&d->blocks, memory_order_relaxed);
    }
    return blocks;
}

/* What waits in depots is no need of the program's. */
void fl_depot_note_peak(struct fl_region *r)
{
    r->depots.seen = fl_min(fl_depot_bytes(r), r->held.in_use);
    r->held.in_use_peak = fl_max(r->held.in_use_peak, r->held.in_use - r->depots.seen);
}

/* Shares are equal; what the others leave of theirs the fullest may have. */
void fl_depot_resize(struct fl_region *r)
{
    bool none = fl_region_is_scarce(r) || fl_region_is_tight(r);
    size_t all = none ? 0 : r->held.in_use / SHARE, n = 0, sum = 0, fullest = 0;
    unsigned lead = 0;

    for (uint64_t used = all_used(r); used != 0; n++) {
        unsigned i = take_number(&used);
        size_t bytes = fl_depot_bytes_of(&r->depots.depot[i]);
        sum += bytes;
        lead = bytes > fullest ? i : lead;
        fullest = fl_max(bytes, fullest);
    }
    fl_assert(fullest <= sum);
    size_t share = none ? 0 : fl_max(fl_min(all / fl_max(n, 1), share_most), share_least);
    size_t rest = all - fl_min(all, sum - fullest);
    atomic_store_explicit(&r->depots.most, share, memory_order_relaxed);
    atomic_store_explicit(&r->depots.lead, lead, memory_order_relaxed);
    atomic_store_explicit(&r->depots.lead_most, fl_max(share, fl_min(rest, share_most)),
                          memory_order_relaxed);
    r->depots.uses = 0;
    fl_depot_note_peak(r);
}

size_t fl_depot_drain(struct fl_region *r, uint32_t age)
{
    size_t n = 0;

    fl_assert(fl_region_is_locked(r));
    for (uint64_t used = all_used(r); used != 0;) {
        struct fl_depot *d = &r->depots.depot[take_number(&used)];
        if (fl_depot_bytes_of(d) != 0 && fl_depot_try_hold(d)) {
            struct fl_extent *chain = fl_depot_take_aged(r, d, age);
            fl_depot_let_go(d);
            n += fl_region_give_chain(r, chain);
        }
    }
    return n;
}

size_t fl_depot_drain_some(struct fl_region *r, size_t most)
{
    uint64_t used = all_used(r);
    size_t n = 0;

    fl_assert(fl_region_is_locked(r));
    for (unsigned at = r->depots.turn; used != 0 && n < most; used &= ~((uint64_t)1 << at)) {
        at = next_used(used, at);
        struct fl_depot *d = &r->depots.depot[at];
        if (fl_depot_bytes_of(d) != 0 && fl_depot_try_hold(d)) {
            struct fl_extent *chain = fl_depot_take_some(d, most - n, 0);
            fl_depot_let_go(d);
            r->depots.turn = at;
            n += fl_region_give_chain(r, chain);
        }
    }
    return n;
}

bool fl_depot_has_some(struct fl_region *r)
{
    for (uint64_t used = all_used(r); used != 0;) {
        struct fl_depot *d = &r->depots.depot[take_number(&used)];
        if (!fl_depot_try_hold(d)) {
            return true;
        }
        bool some = fl_depot_bytes_of(d) != 0;
        fl_depot_let_go(d);
        if (some) {
            return true;
        }
    }
    return false;
}

void fl_depot_fork_lock(struct fl_region *r)
{
    held = 0;
    for (uint64_t used = all_used(r); used != 0;) {
        unsigned i = take_number(&used);
        held |= (uint64_t)fl_depot_hold(&r->depots.depot[i]) << i;
    }
}

void fl_depot_fork_parent(struct fl_region *r)
{
    while (held != 0) {
        fl_depot_let_go(&r->depots.depot[take_number(&held)]);
    }
}

void fl_depot_fork_child(struct fl_region *r)
{
    for (uint64_t lost = all_used(r) & ~held; lost != 0;) {
        struct fl_depot *d = &r->depots.depot[take_number(&lost)];
        memset(d, 0, sizeof *d); /* the thread that changed it is not here */
    }
    fl_depot_fork_parent(r);
}
