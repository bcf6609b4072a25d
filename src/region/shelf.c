/* Shelves: see shelf.h. State: r->shelves; uses_shelves of each cache. */
#include "region/counts.h"
#include "region/fit.h"

#include <string.h>

enum {
    SHARE = 20,       /* of what is in use may wait, in all */
    NEAR = 32,        /* of a length: so much longer may a block be that serves a request */
    NEAR_AT_NEED = 2, /* the same where a thread would sleep */
    OTHERS = 3,       /* shelves that are looked at beside one's own */
    MAKE_ROOM = 2,    /* blocks that make room at a request that found none */
    SLACK = 4,        /* of a share: so much more may wait where frees outrun requests */
    TRIES = 1000,     /* for a shelf that another thread changes */
    FAST_NS = 128000, /* FL_SHELF_MISSES misses: 4 us each */
    WORD_BITS = 64
};
static const size_t use_least = (size_t)128 << 20;  /* bytes in use, below which nothing waits */
static const size_t most_of_one = (size_t)32 << 20; /* bytes on one shelf */

static _Thread_local uint64_t held; /* over a fork of this thread's: bit i: shelf number i */

static unsigned pages_of(size_t len)
{
    return (unsigned)(len >> fl_page.shift);
}

static unsigned bin_of(size_t len)
{
    return pages_of(len) - 1;
}

static bool is_short(size_t len)
{
    return len <= (size_t)FL_SHELF_BINS << fl_page.shift;
}

static unsigned own_shelf(const struct fl_cache *c)
{
    return fl_cache_cpu(c) % FL_SHELVES;
}

/* Bytes that may wait on shelf `i`; 0: none may. */
static size_t most_of(const struct fl_region *r, unsigned i)
{
    bool leads = atomic_load_explicit(&r->shelves.lead, memory_order_relaxed) == i;

    return atomic_load_explicit(leads ? &r->shelves.lead_most : &r->shelves.most,
                                memory_order_relaxed);
}

/* From here to let_go a handler sees that the thread is at work in the region: one that forks makes
 * no whole child. */
static bool try_hold(struct fl_shelf *s)
{
    if (atomic_load_explicit(&s->word, memory_order_relaxed) != 0) {
        return false;
    }
    fl_region_enter();
    /* Sequentially consistent: comes after what a tick has raised, or is seen by its look. */
    if (atomic_exchange(&s->word, 1) == 0) {
        return true;
    }
    fl_region_leave();
    return false;
}

static void let_go(struct fl_shelf *s)
{
    fl_assert(atomic_load_explicit(&s->word, memory_order_relaxed) == 1);
    /* release: pairs with the exchange of who holds it next */
    atomic_store_explicit(&s->word, 0, memory_order_release);
    fl_region_leave();
}

static bool hold(struct fl_shelf *s)
{
    for (int i = 0; i < TRIES; i++) {
        if (try_hold(s)) {
            return true;
        }
        fl_cpu_relax();
    }
    return false;
}

static uint64_t word_of(const struct fl_shelf *s, unsigned i)
{
    return atomic_load_explicit(&s->some[i], memory_order_relaxed);
}

/* Less, where they are negative. */
static void add(struct fl_shelf *s, size_t bytes, uint32_t blocks)
{
    fl_assert((intptr_t)(fl_shelf_bytes_of(s) + bytes) >= 0);
    atomic_store_explicit(&s->bytes, atomic_load_explicit(&s->bytes, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
    atomic_store_explicit(&s->blocks,
                          atomic_load_explicit(&s->blocks, memory_order_relaxed) + blocks,
                          memory_order_relaxed);
}

static void mark(struct fl_shelf *s, unsigned bin, bool some)
{
    uint64_t bit = (uint64_t)1 << bin % WORD_BITS, was = word_of(s, bin / WORD_BITS);

    atomic_store_explicit(&s->some[bin / WORD_BITS], some ? was | bit : was & ~bit,
                          memory_order_relaxed);
}

/* `link` leads to it: the bin, or the one before it. */
static struct fl_extent *unlink_at(struct fl_shelf *s, unsigned bin, struct fl_extent **link)
{
    struct fl_extent *e = *link;

    *link = e->next;
    add(s, -e->len, -1u);
    if (s->bin[bin] == NULL) {
        mark(s, bin, false);
    }
    return e;
}

/* The first bin in [from, to] with something; FL_SHELF_BINS: there is none. */
static unsigned first_of(const struct fl_shelf *s, unsigned from, unsigned to)
{
    for (unsigned i = from / WORD_BITS; i <= to / WORD_BITS; i++) {
        uint64_t some = word_of(s, i) &
                        (i == from / WORD_BITS ? ~(uint64_t)0 << from % WORD_BITS : ~(uint64_t)0);
        if (some != 0) {
            unsigned bin = i * WORD_BITS + (unsigned)__builtin_ctzll(some);
            return bin <= to ? bin : FL_SHELF_BINS;
        }
    }
    return FL_SHELF_BINS;
}

bool fl_shelf_put(struct fl_region *r, struct fl_cache *c, struct fl_extent *e)
{
    size_t share = atomic_load_explicit(&r->shelves.most, memory_order_relaxed);
    size_t len = e->len; /* once it is there, any thread may have e */
    unsigned own = own_shelf(c), bin = bin_of(len);
    struct fl_shelf *s = &r->shelves.shelf[own];

    if (share == 0 || !is_short(len) || fl_shelf_bytes_of(s) > most_of(r, own) + share / SLACK ||
        !try_hold(s)) {
        return false;
    }
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED && bin < FL_SHELF_BINS);
    e->next = s->bin[bin];
    s->bin[bin] = e;
    mark(s, bin, true);
    add(s, len, 1);
    let_go(s);
    if ((atomic_load_explicit(&r->shelves.used, memory_order_relaxed) >> own & 1) == 0) {
        atomic_fetch_or(&r->shelves.used, (uint64_t)1 << own);
    }
    return true;
}

/* Up to `more` base pages longer, and of the thread's zone where there are nodes: the first that is
 * long enough, or nothing. */
static struct fl_extent *take_from(struct fl_shelf *s, size_t len, unsigned more,
                                   const struct fl_cache *c)
{
    unsigned from = bin_of(len), to = from + more;

    to = to < FL_SHELF_BINS ? to : FL_SHELF_BINS - 1;
    if (first_of(s, from, to) == FL_SHELF_BINS || !try_hold(s)) {
        return NULL;
    }
    unsigned bin = first_of(s, from, to);
    bool serves = bin != FL_SHELF_BINS && (!fl_cache_has_nodes(c) || s->bin[bin]->zone == c->zone);
    struct fl_extent *e = serves ? unlink_at(s, bin, &s->bin[bin]) : NULL;
    let_go(s);
    return e;
}

/* The next shelf in use behind number `i`. */
static unsigned next_used(uint64_t used, unsigned i)
{
    uint64_t behind = i + 1 < FL_SHELVES ? used >> (i + 1) << (i + 1) : 0;

    return (unsigned)__builtin_ctzll(behind != 0 ? behind : used);
}

static struct fl_extent *take_from_others(struct fl_region *r, const struct fl_cache *c,
                                          unsigned own, size_t len, unsigned more, int others)
{
    uint64_t used = atomic_load_explicit(&r->shelves.used, memory_order_relaxed);
    struct fl_extent *e = NULL;
    unsigned at = own;

    used &= ~((uint64_t)1 << own);
    for (int i = 0; i < others && e == NULL && used != 0; i++) {
        at = next_used(used, at);
        used &= ~((uint64_t)1 << at);
        e = take_from(&r->shelves.shelf[at], len, more, c);
    }
    return e;
}

/* Bins take turns, so that they thin out evenly. NULL: it is empty. */
static struct fl_extent *take_in_turn(struct fl_shelf *s)
{
    unsigned bin = first_of(s, s->hand % FL_SHELF_BINS, FL_SHELF_BINS - 1);

    bin = bin != FL_SHELF_BINS ? bin : first_of(s, 0, FL_SHELF_BINS - 1);
    if (bin == FL_SHELF_BINS) {
        return NULL;
    }
    s->hand = bin + 1;
    return unlink_at(s, bin, &s->bin[bin]);
}

static void make_room(struct fl_region *r, unsigned own, struct fl_cache *c)
{
    struct fl_shelf *s = &r->shelves.shelf[own];
    size_t most = most_of(r, own);

    if (fl_shelf_bytes_of(s) <= most || !try_hold(s)) {
        return;
    }
    for (int i = 0; i < MAKE_ROOM && fl_shelf_bytes_of(s) > most; i++) {
        struct fl_extent *e = take_in_turn(s);
        if (e != NULL) {
            fl_cache_leave(c, e);
        }
    }
    let_go(s);
    if (!atomic_load(&c->listed)) { /* for those who empty all caches */
        fl_cache_list(r, c);
    }
}

/* From the shelf of the thread's CPU, else from others. */
static struct fl_extent *serve(struct fl_region *r, struct fl_cache *c, size_t len, unsigned more,
                               int others)
{
    unsigned own = own_shelf(c);
    struct fl_extent *e = take_from(&r->shelves.shelf[own], len, more, c);

    e = e != NULL ? e : take_from_others(r, c, own, len, more, others);
    if (e != NULL) {
        atomic_store_explicit(&e->state, FL_EXTENT_LIVE, memory_order_relaxed);
        fl_stats_bump(&c->stats.cache_hits);
        fl_stats_add(&c->stats.hit_bytes, e->len);
    }
    return e;
}

struct fl_extent *fl_shelf_take(struct fl_region *r, struct fl_cache *c, size_t len)
{
    if (!is_short(len) || atomic_load_explicit(&r->shelves.used, memory_order_relaxed) == 0) {
        return NULL;
    }
    struct fl_extent *e = serve(r, c, len, c->exact ? 0 : pages_of(len) / NEAR, OTHERS);
    if (e == NULL) {
        make_room(r, own_shelf(c), c);
    }
    return e;
}

struct fl_extent *fl_shelf_take_longer(struct fl_region *r, struct fl_cache *c, size_t len)
{
    bool may = is_short(len) && !c->exact;

    return may ? serve(r, c, len, pages_of(len) / NEAR_AT_NEED, FL_SHELVES) : NULL;
}

void fl_shelf_look(struct fl_cache *c)
{
    uint64_t now = fl_sys.now_ns();

    c->uses_shelves = now - c->missed_ns < FAST_NS;
    c->missed_ns = now;
}

static uint64_t all_used(const struct fl_region *r)
{
    return atomic_load(&r->shelves.used);
}

/* Takes the lowest number out of `set`; there is one. */
static unsigned take_number(uint64_t *set)
{
    unsigned i = (unsigned)__builtin_ctzll(*set);

    *set &= *set - 1;
    return i;
}

size_t fl_shelf_bytes(const struct fl_region *r)
{
    size_t bytes = 0;

    for (uint64_t used = all_used(r); used != 0;) {
        bytes += fl_shelf_bytes_of(&r->shelves.shelf[take_number(&used)]);
    }
    return bytes;
}

size_t fl_shelf_blocks(const struct fl_region *r)
{
    size_t blocks = 0;

    for (uint64_t used = all_used(r); used != 0;) {
        const struct fl_shelf *s = &r->shelves.shelf[take_number(&used)];
        blocks += atomic_load_explicit(&s->blocks, memory_order_relaxed);
    }
    return blocks;
}

/* Bytes that may wait in all. */
static size_t most_of_all(const struct fl_region *r)
{
    size_t from = r->config.shelf_from != 0 ? r->config.shelf_from : use_least;
    bool may = r->stats.in_use >= from && !fl_region_is_scarce(r) &&
               !atomic_load_explicit(&r->tight, memory_order_relaxed);

    return may ? r->stats.in_use / SHARE : 0;
}

/* Shares are equal; what the others leave of theirs the fullest may have. */
void fl_shelf_resize(struct fl_region *r)
{
    size_t all = most_of_all(r), n = 0, sum = 0, fullest = 0;
    unsigned lead = 0;

    for (uint64_t used = all_used(r); used != 0; n++) {
        unsigned i = take_number(&used);
        size_t bytes = fl_shelf_bytes_of(&r->shelves.shelf[i]);
        sum += bytes;
        lead = bytes > fullest ? i : lead;
        fullest = fl_max(bytes, fullest);
    }
    size_t share = fl_min(all / fl_max(n, 1), most_of_one);
    size_t left = all - fl_min(all, sum - fullest);
    atomic_store_explicit(&r->shelves.most, share, memory_order_relaxed);
    atomic_store_explicit(&r->shelves.lead, lead, memory_order_relaxed);
    atomic_store_explicit(&r->shelves.lead_most, fl_max(share, fl_min(left, most_of_one)),
                          memory_order_relaxed);
    fl_region_note_peak(r);
}

/* Out of the shelf, into a chain. */
static struct fl_extent *take_aged(struct fl_region *r, struct fl_shelf *s, uint32_t age,
                                   struct fl_extent *chain)
{
    for (unsigned bin = 0; (bin = first_of(s, bin, FL_SHELF_BINS - 1)) != FL_SHELF_BINS; bin++) {
        struct fl_extent **link = &s->bin[bin];
        while (*link != NULL) {
            if (!fl_extent_is_aged(r, *link, age)) {
                link = &(*link)->next;
                continue;
            }
            struct fl_extent *e = unlink_at(s, bin, link);
            e->next = chain;
            chain = e;
        }
        if (bin + 1 == FL_SHELF_BINS) {
            break;
        }
    }
    return chain;
}

size_t fl_shelf_give_chain(struct fl_region *r, struct fl_extent *e)
{
    struct fl_extent *run = NULL;
    size_t n = 0;

    for (struct fl_extent *next; e != NULL; e = next, n++) {
        next = e->next;
        e->unreclaimable = e->len;
        fl_region_count_given(r, e);
        run = fl_fit_join(r, run, e);
    }
    if (run != NULL) {
        (void)fl_fit_insert(r, run);
    }
    return n;
}

size_t fl_shelf_drain(struct fl_region *r, uint32_t age)
{
    size_t n = 0;

    for (uint64_t used = all_used(r); used != 0;) {
        struct fl_shelf *s = &r->shelves.shelf[take_number(&used)];
        if (fl_shelf_bytes_of(s) != 0 && try_hold(s)) {
            struct fl_extent *chain = take_aged(r, s, age, NULL);
            let_go(s);
            n += fl_shelf_give_chain(r, chain);
        }
    }
    return n;
}

size_t fl_shelf_drain_some(struct fl_region *r, size_t most)
{
    uint64_t used = all_used(r);
    size_t n = 0;

    for (unsigned at = r->shelves.turn; used != 0 && n < most; used &= ~((uint64_t)1 << at)) {
        struct fl_extent *chain = NULL, *e;
        at = next_used(used, at);
        struct fl_shelf *s = &r->shelves.shelf[at];
        if (fl_shelf_bytes_of(s) == 0 || !try_hold(s)) {
            continue;
        }
        r->shelves.turn = at;
        for (size_t i = n; i < most && (e = take_in_turn(s)) != NULL; i++) {
            e->next = chain;
            chain = e;
        }
        let_go(s);
        n += fl_shelf_give_chain(r, chain);
    }
    return n;
}

bool fl_shelf_has_some(struct fl_region *r)
{
    for (uint64_t used = all_used(r); used != 0;) {
        struct fl_shelf *s = &r->shelves.shelf[take_number(&used)];
        if (!try_hold(s)) {
            return true;
        }
        bool some = fl_shelf_bytes_of(s) != 0;
        let_go(s);
        if (some) {
            return true;
        }
    }
    return false;
}

void fl_shelf_fork_lock(struct fl_region *r)
{
    held = 0;
    for (uint64_t used = all_used(r); used != 0;) {
        unsigned i = take_number(&used);
        held |= (uint64_t)hold(&r->shelves.shelf[i]) << i;
    }
}

void fl_shelf_fork_parent(struct fl_region *r)
{
    while (held != 0) {
        let_go(&r->shelves.shelf[take_number(&held)]);
    }
}

void fl_shelf_fork_child(struct fl_region *r)
{
    for (uint64_t lost = all_used(r) & ~held; lost != 0;) {
        struct fl_shelf *s = &r->shelves.shelf[take_number(&lost)];
        memset(s, 0, sizeof *s); /* the thread that changed it is not here */
    }
    fl_shelf_fork_parent(r);
}
