/* A stream of events compared with itself: where the last few were seen before is where the next are expected from. A few may
 * be different, missing or too many. */
#include "plan/learn/detect.h"

enum {
    ASTRAY = 8, /* events that may be different, missing or too many in one place */
    /* Credit, in events that agree; a foreign one costs COST of the kind. */
    CREDIT = 48,
    YOUNG = 64, /* events that repeat */
    VERIFY = 8,
    PROBES = 8, /* places in a turn */
    PROBE_TRIES = 4,
    SEARCH = 24, /* events to either side of where it should be that a lost source is looked for */
    GRACE = 40,  /* and events long */
    EARNED = 24, /* that are followed for each such search */
    SAVED = 6,   /* searches, at most, of what is taken for steps; of another one */
    BACK = 4,    /* events a call */
    BACK_PERIODS = 4, /* looked back to */
    OLDEST = DETECT_RING - 1024,
};

/* Events in a row that agree, and the two are in step again. */
static const uint32_t agree_of[DETECT_KINDS] = {5, 8};
static const int32_t cost_of[DETECT_KINDS] = {6, 20};

#define MULTIPLIER UINT32_C(0x2545f491)
/* to the power of DETECT_CONTEXT, modulo 2^32 */
#define MULTIPLIER_FULL UINT32_C(0xe374c181)
#define GOLDEN UINT32_C(0x9e3779b1)

static FL_INLINE uint32_t mixed(struct detect_event e, enum detect_kind kind)
{
    uint32_t h = ((kind == DETECT_SIZES ? e.size : e.shape) + 1u) * GOLDEN;

    return h ^ (h >> 15);
}

/* Puts `n` where the context's hash says, and returns what was there: the event after which it was last seen; 0: none. */
static FL_INLINE uint32_t put(struct fl_detect *d, enum detect_kind kind, uint32_t hash, uint32_t n)
{
    uint32_t h = hash * GOLDEN, was;
    uint32_t *small = &d->table_0[kind][h >> 23], *middle = &d->table_1[kind][h >> 20],
             *large = &d->table_2[kind][h >> 17];

    if (d->events < DETECT_TABLE_0) {
        was = *small;
        *small = n;
    } else if (d->events < DETECT_TABLE_1) {
        was = *middle != 0 ? *middle : *small;
        *middle = n;
    } else {
        was = *large != 0 || d->events > (uint64_t)2 * DETECT_RING ? *large : *middle;
        *large = n;
    }
    return was;
}

static FL_INLINE bool agree(struct fl_detect *d, enum detect_kind kind, uint32_t a, uint32_t b,
                            unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        if (!detect_same(d, kind, a - i, b - i)) {
            return false;
        }
    }
    return true;
}

/* How far back the table says that the last context was seen before; 0: it does not. It may be wrong: it is looked at once. */
struct seen {
    uint32_t back;
    bool known, right;
};

static FL_INLINE bool was_seen(struct fl_detect *d, enum detect_kind kind, uint32_t n,
                               struct seen *s)
{
    if (!s->known) {
        s->known = true;
        s->right = s->back != 0 && agree(d, kind, n, n - s->back, VERIFY);
    }
    return s->right;
}

/* How far off the source may be after something different: not so far that another turn of a short loop would do. */
static int reach(const struct fl_detect *d, const struct detect_follow *f, uint32_t n, int most)
{
    uint32_t turn = d->period != 0 ? d->period : n - f->source;

    return (int)fl_min(turn / (most == SEARCH ? 4 : 8), (size_t)most);
}

/* Astray for some events, of which `n` is the last: are the last ones in step with the source at another distance? The source
 * stays where it was when they came apart. */
static void find_step(struct fl_detect *d, struct detect_follow *f, enum detect_kind kind,
                      uint32_t n)
{
    uint32_t astray = f->astray, enough = agree_of[kind];

    if (astray < enough) {
        return;
    }
    for (int i = 0; i <= 2 * reach(d, f, n, ASTRAY); i++) {
        int shift = (i & 1) != 0 ? -(i + 1) / 2 : i / 2; /* 0, -1, 1, -2, 2 ... */
        uint32_t at = f->source + astray - 1 + (uint32_t)shift;
        if ((shift < 0 && astray < enough + (uint32_t)-shift) || n - at - 1 > OLDEST ||
            !agree(d, kind, n, at, enough)) {
            continue;
        }
        uint32_t lost = (uint32_t)fl_max(astray - enough, (size_t)(shift < 0 ? -shift : shift));
        f->credit -= cost_of[kind] * (int32_t)fl_max(lost, 1);
        f->skipped +=
            (int32_t)(detect_at(d, n - enough + 1)->live - detect_at(d, n + 1 - astray)->live);
        f->following = f->credit >= 0;
        if (f->following) {
            f->source = at + 1;
            f->astray = 0;
        }
        return;
    }
    /* Little is lost where little has been followed. */
    f->following = astray < enough + (n - f->from < YOUNG ? 2 : ASTRAY);
}

/* The source was lost. Is what comes now still to be found about where it should be? */
static void look_for_source(struct fl_detect *d, struct detect_follow *f, enum detect_kind kind,
                            uint32_t n)
{
    uint32_t gone = n - f->gone;

    if (gone < VERIFY) {
        return;
    }
    for (int i = 0; i <= 2 * reach(d, f, n, SEARCH); i++) {
        int shift = (i & 1) != 0 ? -(i + 1) / 2 : i / 2;
        uint32_t at = f->source + gone + (uint32_t)shift;
        if (n - at - 1 <= OLDEST && agree(d, kind, n, at, VERIFY)) {
            f->skipped +=
                (int32_t)(detect_at(d, n - VERIFY + 1)->live - detect_at(d, f->gone)->live);
            f->source = at + 1;
            f->astray = 0;
            f->credit = CREDIT;
            f->following = true;
            f->found += EARNED;
            f->gone = 0;
            return;
        }
    }
    f->gone = gone < GRACE ? f->gone : 0;
}

static void follow_on(struct fl_detect *d, struct detect_follow *f, enum detect_kind kind,
                      uint32_t n)
{
    if (n - f->source > OLDEST) {
        f->following = false;
    } else if (f->astray == 0 && detect_same(d, kind, n, f->source)) {
        f->source++;
        f->credit += f->credit < DETECT_CREDIT;
        return;
    } else {
        f->astray++;
        find_step(d, f, kind, n);
    }
    if (!f->following) {
        uint32_t saved = (d->period != 0 ? SAVED : 1) * EARNED;
        f->found = f->found == 0 || n - f->found > saved ? n - saved : f->found;
        bool worth = n - f->found >= EARNED && (d->period != 0 || n - f->from >= YOUNG);
        f->gone = worth ? n + 1 - f->astray : 0;
    }
}

static void begin(struct detect_follow *f, uint32_t n, uint32_t was)
{
    f->following = true;
    f->source = was + 1;
    f->from = n;
    f->from_source = was;
    f->from_ends = false;
    f->astray = 0;
    f->credit = CREDIT;
    f->from_credit = CREDIT;
    f->skipped = 0;
    f->skipped_then = 0;
    f->weighed = 0;
    f->found = n;
    f->gone = 0;
    f->fresh = 1;
}

/* `seen`: how far back the table says that the context of `n` was seen, which may be wrong; 0: it does not. */
static FL_INLINE void find_near(struct fl_detect *d, struct detect_follow *f, enum detect_kind kind,
                                uint32_t n, struct seen *seen)
{
    bool goes_on = f->near != 0 && detect_same(d, kind, n, n - f->near);

    if (goes_on && !(seen->back != 0 && seen->back < f->near && was_seen(d, kind, n, seen))) {
        f->near_run++;
        return;
    }
    f->near = was_seen(d, kind, n, seen) ? seen->back : 0;
    f->near_run = 0;
}

/* Nothing is followed: may what was seen `back` events ago be? What is taken for steps is not given up for another before it
 * is lost, and what is looked for only for what is much longer. */
static FL_INLINE bool may_begin(const struct fl_detect *d, const struct detect_follow *f,
                                uint32_t n, uint32_t back)
{
    return d->period == 0 && (f->gone == 0 || back > 2 * (n - f->source));
}

static FL_INLINE void follow(struct fl_detect *d, enum detect_kind kind, uint32_t n)
{
    struct detect_follow *f = &d->follow[kind];

    if (f->following) {
        follow_on(d, f, kind, n);
    } else if (f->gone != 0) {
        look_for_source(d, f, kind, n);
    }
    f->hash = f->hash * MULTIPLIER + mixed(*detect_at(d, n), kind);
    if (d->events <= DETECT_CONTEXT) {
        return;
    }
    f->hash -= MULTIPLIER_FULL * mixed(*detect_at(d, n - DETECT_CONTEXT), kind);
    uint32_t was = put(d, kind, f->hash, n);
    bool here = was != 0 && n - was < OLDEST && (int32_t)(was - d->start) > 0;
    struct seen seen = {.back = here ? n - was : 0};
    find_near(d, f, kind, n, &seen);
    if (f->following) {
        f->fresh += !here || n - was + ASTRAY > n - f->source;
    } else if (here && may_begin(d, f, n, n - was) && was_seen(d, kind, n, &seen)) {
        begin(f, n, was);
    }
}

void fl_detect_follow(struct fl_detect *d, uint32_t n)
{
    follow(d, DETECT_SIZES, n);
    follow(d, DETECT_SHAPE, n);
}

/* Around a difference that lies just before where the run begins: how many events to leave out on either side. */
static bool pass_over(struct fl_detect *d, struct detect_follow *f, enum detect_kind kind,
                      uint32_t n)
{
    uint32_t a = f->from - 1, b = f->from_source - 1;

    for (uint32_t c = 1, most = (uint32_t)reach(d, f, n, ASTRAY); c <= most; c++) {
        for (int how = 0; how < 3; how++) {
            uint32_t i = how != 1 ? c : 0, j = how != 2 ? c : 0;
            if (agree(d, kind, a - i, b - j, agree_of[kind])) {
                f->skipped +=
                    (int32_t)(detect_at(d, f->from)->live - detect_at(d, f->from - i)->live);
                f->from -= i;
                f->from_source -= j;
                f->from_credit -= cost_of[kind] * (int32_t)c;
                return f->from_credit >= 0;
            }
        }
    }
    return false;
}

void fl_detect_look_back(struct fl_detect *d, enum detect_kind kind, uint32_t n)
{
    struct detect_follow *f = &d->follow[kind];
    uint32_t oldest = n - d->start > OLDEST ? n - OLDEST : d->start + 1;

    for (int i = 0; i < BACK && f->following && !f->from_ends; i++) {
        if (f->from_source - oldest < 4 * ASTRAY || n - f->from > BACK_PERIODS * (n - f->source)) {
            f->from_ends = true;
        } else if (detect_same(d, kind, f->from - 1, f->from_source - 1)) {
            f->from--;
            f->from_source--;
            f->from_credit += f->from_credit < DETECT_CREDIT;
        } else {
            f->from_ends = !pass_over(d, f, kind, n);
            return;
        }
    }
}

/* How far back, give or take a few events, from about `a` the same is seen; 0: not. */
static uint32_t seen_about(struct fl_detect *d, enum detect_kind kind, uint32_t a, uint32_t back)
{
    for (int i = 0; i <= 2 * SEARCH; i++) {
        int shift = (i & 1) != 0 ? -(i + 1) / 2 : i / 2;
        if (agree(d, kind, a, a - back - (uint32_t)shift, VERIFY)) {
            return back + (uint32_t)shift;
        }
    }
    return 0;
}

bool fl_detect_divide(struct fl_detect *d, enum detect_kind kind, uint32_t n, uint32_t period)
{
    for (uint32_t by = 2; by <= 3 && period / by >= 4 * SEARCH; by++) {
        uint32_t turn = period / by, now = 0;
        unsigned agreed = 0;
        for (uint32_t i = 0; i < PROBES && agreed == i; i++) {
            for (uint32_t k = 0; k < PROBE_TRIES && agreed == i; k++) {
                agreed += seen_about(d, kind, n - turn * i / PROBES - k * VERIFY, turn) != 0;
            }
        }
        if (agreed == PROBES && (now = seen_about(d, kind, n, turn)) != 0) {
            begin(&d->follow[kind], n, n - now);
            return true;
        }
    }
    return false;
}
