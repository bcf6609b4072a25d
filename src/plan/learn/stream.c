/* A stream of events compared with itself. A few may be different, missing or too many. */
#include "plan/learn/stream.h"
#include <string.h>

enum {
    FAR = 12,     /* requests, from which on a distance is compared by and large */
    REACH = 24,   /* events to either side of where it should be that a place is looked for */
    PARTED = 10,  /* events astray, from which on the source is looked for */
    LOST = 50,    /* and after which the track is lost */
    SAMPLES = 16, /* places of a period that are compared */
    TRIES = 4,    /* for each sample: some events are foreign */
    MISSED = 2,   /* samples of a period that may find nothing */
};

/* Events in a row that agree: two places are in step. Shapes are less telling. */
static const uint32_t agree_of[DETECT_KINDS] = {5, 8};

#define MULTIPLIER UINT32_C(0x2545f491)
/* to the power of DETECT_GRAM, modulo 2^32 */
#define MULTIPLIER_FULL UINT32_C(0xe374c181)
#define GOLDEN UINT32_C(0x9e3779b1)

/* The entries that are used when there have been so many events: half as many, a power of two. */
static FL_INLINE uint32_t table_size(uint64_t events)
{
    uint32_t most = (uint32_t)fl_min(events, (size_t)2 * DETECT_TABLE);

    return (uint32_t)fl_max(DETECT_TABLE_FIRST, UINT32_C(1) << 30 >> __builtin_clz(most));
}

/* What is in the smaller table is to be found in either half of the larger one. */
static void grow(struct fl_detect *d)
{
    uint32_t size = table_size(d->events), before = table_size(d->events - 1);

    if (size > before) {
        memcpy(d->table[before], d->table, before * sizeof *d->table);
    }
}

void fl_detect_record(struct fl_detect *d, uint32_t n, struct detect_event e)
{
    uint32_t i = n % DETECT_RING / DETECT_BLOCK;
    bool first = n % DETECT_BLOCK == 0 || d->events == 1;

    d->block[i].low = first ? e.live : (uint32_t)fl_min(d->block[i].low, e.live);
    d->block[i].high = first ? e.live : (uint32_t)fl_max(d->block[i].high, e.live);
    *detect_at(d, n) = e;
    if ((d->events & (d->events - 1)) == 0 && d->events > DETECT_TABLE_FIRST) {
        grow(d);
    }
}

struct detect_span fl_detect_span(struct fl_detect *d, uint32_t first, uint32_t end)
{
    struct detect_span s = {.low = UINT32_MAX, .lowest = first};

    for (uint32_t at = first, step; at != end; at += step) {
        bool whole = at % DETECT_BLOCK == 0 && end - at >= DETECT_BLOCK;
        uint32_t i = at % DETECT_RING / DETECT_BLOCK, live = whole ? 0 : detect_at(d, at)->live;
        uint32_t low = whole ? d->block[i].low : live;
        step = whole ? DETECT_BLOCK : 1;
        s.high = (uint32_t)fl_max(s.high, whole ? d->block[i].high : live);
        s.lowest = low < s.low ? at : s.lowest;
        s.low = (uint32_t)fl_min(s.low, low);
    }
    while (detect_at(d, s.lowest)->live != s.low) { /* within a block */
        s.lowest++;
    }
    return s;
}

/* Is what lies at `a` the same as what lies at `b`? */
static FL_INLINE bool same(struct fl_detect *d, enum detect_kind kind, uint32_t a, uint32_t b)
{
    struct detect_event x = *detect_at(d, a), y = *detect_at(d, b);

    if (kind == DETECT_SIZES && x.size != y.size) {
        return false;
    }
    if (FL_LIKELY(x.shape == y.shape)) {
        return true;
    }
    if ((kind == DETECT_SHAPE && y.shape < FAR) || x.shape >= DETECT_FOREIGN ||
        y.shape >= DETECT_FOREIGN) {
        return false;
    }
    int apart = x.shape > y.shape ? x.shape - y.shape : y.shape - x.shape;
    return apart <= 2 + y.shape / 8;
}

static FL_INLINE bool agree(struct fl_detect *d, enum detect_kind kind, uint32_t a, uint32_t b,
                            uint32_t n)
{
    uint32_t i = 0;

    while (i < n && same(d, kind, a - i, b - i)) {
        i++;
    }
    return i == n;
}

static FL_INLINE uint32_t mixed(struct detect_event e, enum detect_kind kind)
{
    uint32_t h = ((kind == DETECT_SIZES ? e.size : e.shape) + 1u) * GOLDEN;

    return h ^ (h >> 15);
}

static FL_INLINE uint32_t seen(struct fl_detect *d, enum detect_kind kind, uint32_t n)
{
    d->hash[kind] = d->hash[kind] * MULTIPLIER + mixed(*detect_at(d, n), kind);
    if (d->events <= DETECT_GRAM) {
        return 0;
    }
    d->hash[kind] -= MULTIPLIER_FULL * mixed(*detect_at(d, n - DETECT_GRAM), kind);
    uint32_t h = d->hash[kind] * GOLDEN;
    if (h >> 30 != 0) {
        return 0;
    }
    uint32_t *entry = &d->table[h >> 16 & (table_size(d->events) - 1)][kind], was = *entry;
    *entry = h << 16 | (uint16_t)n;
    uint32_t back = (uint16_t)(n - was);
    bool found = was >> 16 == (uint16_t)h && back <= DETECT_OLDEST && back < n - d->start;
    return found ? back : 0;
}

void fl_detect_seen(struct fl_detect *d, uint32_t n, uint32_t back[static DETECT_KINDS])
{
    back[DETECT_SIZES] = seen(d, DETECT_SIZES, n);
    back[DETECT_SHAPE] = seen(d, DETECT_SHAPE, n);
}

bool fl_detect_agree(struct fl_detect *d, enum detect_kind kind, uint32_t a, uint32_t b)
{
    return agree(d, kind, a, b, DETECT_GRAM);
}

/* How many events before `n` the last few are the same, about `back`, give or take `reach`: the
 * nearest to it; 0: nowhere. */
static uint32_t place(struct fl_detect *d, enum detect_kind kind, uint32_t n, uint32_t back,
                      uint32_t reach)
{
    for (uint32_t i = 0; i <= 2 * reach; i++) {
        uint32_t b = (i & 1) != 0 ? back - (i + 1) / 2 : back + i / 2;
        if (agree(d, kind, n, n - b, agree_of[kind])) {
            return b;
        }
    }
    return 0;
}

bool fl_detect_repeats(struct fl_detect *d, enum detect_kind kind, uint32_t n, uint32_t back,
                       uint32_t len)
{
    uint32_t reach = (uint32_t)fl_min(REACH, back / 8), missed = 0;
    uint32_t stride = (uint32_t)fl_min(len, back) / SAMPLES + 1;

    for (uint32_t i = 0; i < len / stride && missed <= MISSED; i++) {
        uint32_t here = 0;
        for (uint32_t k = 0; k < TRIES && here == 0; k++) {
            here = place(d, kind, n - i * stride - k * agree_of[DETECT_SHAPE], back, reach);
        }
        back = here != 0 ? here : back; /* foreign events add up */
        missed = (i % SAMPLES != 0 ? missed : 0) + (here == 0);
    }
    return missed <= MISSED;
}

bool fl_detect_follow(struct fl_detect *d, uint32_t n)
{
    struct detect_track *t = &d->track;

    if (FL_LIKELY(t->astray == 0 && same(d, t->kind, n, t->source))) {
        t->source++;
        return true;
    }
    t->astray++; /* the source stays where they parted */
    if (t->astray >= PARTED) {
        uint32_t back = n - (t->source + t->astray - 1);
        uint32_t reach = (uint32_t)fl_min(fl_min(t->astray, t->period / 8), REACH);
        uint32_t here = place(d, t->kind, n, back, reach);
        if (here != 0) {
            t->source = n - here + 1;
            t->astray = 0;
        }
    }
    return t->astray < LOST && n - t->source < DETECT_OLDEST;
}
