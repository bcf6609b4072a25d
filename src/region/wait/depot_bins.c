/* See depot_bins.h. */
#include "region/state/lock.h"
#include "region/wait/depot_bins.h"
#include "region/state/counts.h"

enum { TRIES = 1000, WORD_BITS = 64 };

bool fl_depot_try_hold(struct fl_depot *d)
{
    if (atomic_load_explicit(&d->word, memory_order_relaxed) != 0) {
        return false;
    }
    fl_region_enter();
    /* Sequentially consistent: comes after what a tick has raised, or is seen by its look. */
    if (atomic_exchange(&d->word, 1) == 0) {
        return true;
    }
    fl_region_leave();
    return false;
}

void fl_depot_let_go(struct fl_depot *d)
{
    fl_assert(atomic_load_explicit(&d->word, memory_order_relaxed) == 1);
    /* release: pairs with the exchange of the next holder */
    atomic_store_explicit(&d->word, 0, memory_order_release);
    fl_region_leave();
}

bool fl_depot_hold(struct fl_depot *d)
{
    for (int i = 0; i < TRIES; i++) {
        if (fl_depot_try_hold(d)) {
            return true;
        }
        fl_cpu_relax();
    }
    return false;
}

static uint64_t word_of(const struct fl_depot *d, unsigned i)
{
    return atomic_load_explicit(&d->some[i], memory_order_relaxed);
}

/* Less, where they are negative. */
static void add(struct fl_depot *d, size_t bytes, uint32_t blocks)
{
    fl_assert((intptr_t)(fl_depot_bytes_of(d) + bytes) >= 0);
    atomic_store_explicit(&d->bytes, fl_depot_bytes_of(d) + bytes, memory_order_relaxed);
    atomic_store_explicit(&d->blocks,
                          atomic_load_explicit(&d->blocks, memory_order_relaxed) + blocks,
                          memory_order_relaxed);
}

static void mark(struct fl_depot *d, unsigned bin, bool some)
{
    uint64_t bit = (uint64_t)1 << bin % WORD_BITS, was = word_of(d, bin / WORD_BITS);

    atomic_store_explicit(&d->some[bin / WORD_BITS], some ? was | bit : was & ~bit,
                          memory_order_relaxed);
}

void fl_depot_push(struct fl_depot *d, struct fl_extent *e)
{
    unsigned bin = fl_depot_bin(e->len);

    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED && bin < FL_DEPOT_BINS);
    e->next = d->bin[bin];
    if (d->bin[bin] == NULL) {
        mark(d, bin, true);
    }
    d->bin[bin] = e;
    add(d, e->len, 1);
}

/* `link` leads to it: the bin, or the one before it. */
static struct fl_extent *unlink_at(struct fl_depot *d, unsigned bin, struct fl_extent **link)
{
    struct fl_extent *e = *link;

    *link = e->next;
    add(d, -e->len, -1u);
    if (d->bin[bin] == NULL) {
        mark(d, bin, false);
    }
    return e;
}

struct fl_extent *fl_depot_pop(struct fl_depot *d, unsigned bin)
{
    return unlink_at(d, bin, &d->bin[bin]);
}

unsigned fl_depot_first(const struct fl_depot *d, unsigned from, unsigned to)
{
    for (unsigned i = from / WORD_BITS; i <= to / WORD_BITS; i++) {
        uint64_t some = word_of(d, i) &
                        (i == from / WORD_BITS ? ~(uint64_t)0 << from % WORD_BITS : ~(uint64_t)0);
        if (some != 0) {
            unsigned bin = i * WORD_BITS + (unsigned)__builtin_ctzll(some);
            return bin <= to ? bin : FL_DEPOT_BINS;
        }
    }
    return FL_DEPOT_BINS;
}

/* Bins take turns, so that they thin out evenly. NULL: it is empty. */
static struct fl_extent *take_in_turn(struct fl_depot *d)
{
    unsigned bin = fl_depot_first(d, d->hand % FL_DEPOT_BINS, FL_DEPOT_BINS - 1);

    fl_assert(atomic_load_explicit(&d->word, memory_order_relaxed) != 0);
    bin = bin != FL_DEPOT_BINS ? bin : fl_depot_first(d, 0, FL_DEPOT_BINS - 1);
    if (bin == FL_DEPOT_BINS) {
        return NULL;
    }
    d->hand = bin + 1;
    return fl_depot_pop(d, bin);
}

struct fl_extent *fl_depot_take_some(struct fl_depot *d, size_t n, size_t most)
{
    struct fl_extent *chain = NULL, *e;

    fl_assert(atomic_load_explicit(&d->word, memory_order_relaxed) != 0);
    while (n-- != 0 && fl_depot_bytes_of(d) > most && (e = take_in_turn(d)) != NULL) {
        e->next = chain;
        chain = e;
    }
    return chain;
}

struct fl_extent *fl_depot_take_aged(const struct fl_region *r, struct fl_depot *d, uint32_t age)
{
    struct fl_extent *chain = NULL;

    fl_assert(fl_region_is_locked(r));
    for (unsigned bin = 0; (bin = fl_depot_first(d, bin, FL_DEPOT_BINS - 1)) != FL_DEPOT_BINS;
         bin++) {
        struct fl_extent **link = &d->bin[bin];
        while (*link != NULL) {
            if (!fl_extent_is_aged(r, *link, age)) {
                link = &(*link)->next;
                continue;
            }
            struct fl_extent *e = unlink_at(d, bin, link);
            e->next = chain;
            chain = e;
        }
        if (bin + 1 == FL_DEPOT_BINS) {
            break;
        }
    }
    return chain;
}
