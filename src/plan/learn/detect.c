/* Where one thread's steps end, from its large requests alone.
 *
 * A step is a stretch of events that comes again (detect_follow.c). Of what comes again it must be so that
 * D1  it does for nearly its own length, and for longer where it is short;
 * D2  as much is live at its end as at its beginning: layers of one step repeat, but hold on to what they made;
 * D3  the live bytes rise nearly as far in it as they have for long: an optimizer's loop holds on to nothing, but is low;
 * D4  it is no repetition of something shorter;
 * D5  it asks for blocks of several sizes.
 * The micro-step of an accumulated gradient is all that until the optimizer comes: a period that ends after few repetitions
 * must repeat more often before it is believed again, and meanwhile the longer one around it is found. One that was followed
 * for long is a phase of the program; when it comes back it is known at once. A step ends where the fewest bytes are live. */
#include "plan/learn/detect.h"
#include <string.h>

enum {
    SHORTEST = 16, /* events */
    CERTAIN = 64,  /* a period of so many need not come a third time */
    VARIED =
        5, /* different tokens that D5 asks for: requests of three sizes, or two and their frees and one */
    NEARBY = 4,
    FRESH = 8,           /* events that D4 asks for */
    AT_LEAST = 40,       /* events that must repeat */
    GONE = 64,           /* events, at least, in which the source was lost before that is said */
    KNOWN = 48,          /* events after which what was followed for long is known again */
    OFTEN = 12,          /* repetitions: what ends after so many is a phase of the program */
    WINDOW = 8192,       /* events, at least, over which D3 is judged */
    WINDOW_PERIODS = 64, /* and periods */
    SETTLING = 4,        /* steps after the lock in which a better place to end may be found */
    OLDEST = DETECT_RING - 1024,
    LIVE_SHIFT = 12,
    FOLLOWED = 1024,      /* what is followed for as long may be a step */
    FOLLOWED_PERIODS = 4, /* and after so many of them it would have been one */
};

struct range {
    uint32_t low, high;
    uint32_t lowest; /* the event before which `low` is live; of several the first */
};

static void widen(struct fl_detect *d, struct range *r, uint32_t event)
{
    uint32_t live = detect_at(d, event)->live;

    if (live < r->low) {
        r->low = live;
        r->lowest = event;
    }
    r->high = (uint32_t)fl_max(r->high, live);
}

/* Over the events from `first` up to `end`, which are in the ring. Cost: a load a block. */
static struct range range_of(struct fl_detect *d, uint32_t first, uint32_t end)
{
    struct range r = {.low = UINT32_MAX, .lowest = first};
    uint32_t at = first, block = UINT32_MAX;

    for (; at != end && at % DETECT_BLOCK != 0; at++) {
        widen(d, &r, at);
    }
    for (; end - at >= DETECT_BLOCK; at += DETECT_BLOCK) {
        uint32_t i = at % DETECT_RING / DETECT_BLOCK;
        r.high = (uint32_t)fl_max(r.high, d->block[i].high);
        if (d->block[i].low < r.low) {
            r.low = d->block[i].low;
            block = at;
        }
    }
    if (block != UINT32_MAX) {
        for (r.lowest = block; detect_at(d, r.lowest)->live != r.low; r.lowest++) {
        }
    }
    for (; at != end; at++) {
        widen(d, &r, at);
    }
    return r;
}

static void record(struct fl_detect *d, uint32_t n, struct detect_event e)
{
    uint32_t i = n % DETECT_RING / DETECT_BLOCK;

    if (n % DETECT_BLOCK == 0 || d->events == 1) {
        d->block[i].low = e.live;
        d->block[i].high = e.live;
    }
    d->block[i].low = (uint32_t)fl_min(d->block[i].low, e.live);
    d->block[i].high = (uint32_t)fl_max(d->block[i].high, e.live);
    d->peak = (uint32_t)fl_max(d->peak, e.live);
    *detect_at(d, n) = e;
}

/* About the same length. */
static bool alike(uint32_t a, uint32_t b)
{
    return (a > b ? a - b : b - a) <= 2 + b / 16;
}

static uint32_t run_that_convinces(const struct fl_detect *d, enum detect_kind kind,
                                   uint32_t period)
{
    size_t few = kind == DETECT_SIZES ? 2 : 8;
    size_t need = period >= CERTAIN ? period - period / 8 : fl_max(few * period, AT_LEAST);

    for (int i = 0; i < DETECT_PHASES; i++) { /* nor is it believed as several in a row */
        uint32_t one = d->doubt[i].period, times = one != 0 ? (period + one / 2) / one : 0;
        if (times != 0 && alike(period, times * one)) {
            need = fl_max(need, (size_t)d->doubt[i].need * one);
        }
    }
    return (uint32_t)need;
}

static void lock(struct fl_detect *d, enum detect_kind kind, uint32_t period)
{
    struct detect_follow *f = &d->follow[kind];

    d->kind = kind;
    d->period = period;
    d->steps = 0;
    d->old = 0;
    d->silent = false;
    d->began = f->from;
    f->credit = DETECT_CREDIT;
    f->found = 0;
    d->follow[kind ^ 1].following = false;
    d->follow[kind ^ 1].gone = 0;
}

/* Is the source in a phase that was followed for long? Then it goes on from there. */
static bool knows_phase(struct fl_detect *d, enum detect_kind kind, uint32_t n)
{
    struct detect_follow *f = &d->follow[kind];

    for (int i = 0; i < DETECT_PHASES; i++) {
        struct detect_phase *p = &d->phase[i];
        uint32_t first = p->bound - p->period;
        if (p->period == 0 || p->kind != kind) {
            continue;
        }
        if (n - first > OLDEST) {
            p->period = 0;
            continue;
        }
        if (f->source - first > p->end - first || n + 1 - f->from < fl_min(p->period, p->need)) {
            continue;
        }
        lock(d, kind, p->period);
        if (f->source - first > p->period) {
            f->source -= p->period;
        }
        d->target = p->bound;
        d->old = 2;
        d->steps = OFTEN;
        d->need = p->need;
        p->period = 0;
        return true;
    }
    return false;
}

/* D3. Where sizes vary from step to step the highest level does, too. */
static bool is_high(enum detect_kind kind, struct range last, uint64_t high, uint64_t highest)
{
    unsigned tenths = kind == DETECT_SIZES ? 9 : 5;

    return last.high > last.low && (high - last.low) * 10 >= (highest - last.low) * tenths;
}

/* Was this size asked for, or freed, about a period before as well? What is foreign was not. */
static bool comes_again(struct fl_detect *d, uint32_t event, uint32_t period)
{
    uint16_t size = detect_at(d, event)->size;

    for (uint32_t i = 0; i <= 2 * NEARBY; i++) {
        if (detect_at(d, event - period - NEARBY + i)->size == size) {
            return true;
        }
    }
    return false;
}

/* D5, of up to 64 events of the period. */
static bool is_varied(struct fl_detect *d, uint32_t n, uint32_t period)
{
    uint16_t seen[VARIED];
    unsigned count = 0, stride = period / 64 + 1;

    for (uint32_t i = 0; i < period && count < VARIED; i += stride) {
        uint16_t size = detect_at(d, n - i)->size;
        unsigned k = 0;
        while (k < count && seen[k] != size) {
            k++;
        }
        if (k == count && comes_again(d, n - i, period)) {
            seen[count++] = size;
        }
    }
    return count == VARIED;
}

/* The last `period` events, and before them `run` less that, repeat what came before. `balance`: what they have left live. */
static bool accept(struct fl_detect *d, enum detect_kind kind, uint32_t n, uint32_t period,
                   uint32_t run, int32_t balance)
{
    if (period < SHORTEST || period > DETECT_LONGEST ||
        (uint32_t)(balance < 0 ? -balance : balance) > fl_max(DETECT_ROUNDING, d->peak / 10000) ||
        run < run_that_convinces(d, kind, period) || (int32_t)(n - d->check) < 0) {
        return false;
    }
    size_t kept = fl_min((uint32_t)d->events - 1 - d->start, OLDEST);
    size_t window = fl_min(fl_max((size_t)WINDOW_PERIODS * period, WINDOW), kept);
    uint32_t matched = (uint32_t)fl_min((size_t)run + period, kept);
    window = fl_max(matched, fl_min(window, n - d->since));
    struct range last = range_of(d, n + 1 - period, n + 1);
    uint32_t high = range_of(d, n + 1 - matched, n + 1).high,
             highest = range_of(d, n + 1 - (uint32_t)window, n + 1).high;
    d->check = n + period / 8 + 8;
    if (!is_high(kind, last, high, highest) || !is_varied(d, n, period) ||
        fl_detect_divide(d, kind, n, period)) {
        return false;
    }
    lock(d, kind, period);
    d->bound = last.lowest;
    d->target = last.lowest;
    return true;
}

/* What a period leaves live without what is no repetition: known each time that one has been followed, `whole` says that the
 * first one has; until then what there is of it. */
static int32_t weighed(struct detect_follow *f, uint32_t n, bool whole, int32_t plain)
{
    if (f->weighed == 0 || (int32_t)(f->source - 1 - f->weighed) >= 0) {
        f->balance = plain - (f->skipped - f->skipped_then);
        if (f->weighed != 0 || whole) {
            f->weighed = n;
            f->skipped_then = f->skipped;
        }
    }
    return f->balance;
}

static void consider(struct fl_detect *d, enum detect_kind kind, uint32_t n)
{
    struct detect_follow *f = &d->follow[kind];
    uint32_t live = detect_at(d, n)->live;

    if (f->following && f->astray == 0) {
        uint32_t period = n + 1 - f->source, run = n + 1 - f->from;
        if (run >= KNOWN && knows_phase(d, kind, n)) {
            return;
        }
        if (d->doubted != 0 && n - d->lost < d->doubted && alike(period, d->doubted)) {
            d->doubt[(d->next_doubt - 1) % DETECT_PHASES].period = 0;
            d->doubted = 0;
        }
        int32_t plain = (int32_t)(live - detect_at(d, f->source - 1)->live), balance = plain;
        if (kind == DETECT_SIZES) {
            balance = weighed(f, n, run >= period, plain);
        }
        if (run >= period - period / 8 && f->fresh >= FRESH &&
            (accept(d, kind, n, period, run, plain) || accept(d, kind, n, period, run, balance))) {
            return;
        }
    }
    if (f->near != 0 && f->near_run >= f->near && f->near_run + DETECT_CONTEXT >= AT_LEAST &&
        accept(d, kind, n, f->near, f->near_run + DETECT_CONTEXT,
               (int32_t)(live - detect_at(d, n - f->near)->live))) {
        f->following = true;
        f->gone = 0;
        f->source = n + 1 - f->near;
        f->astray = 0;
        f->from = n - f->near_run;
        d->began = f->from;
    }
}

/* The source has come to where a step ends. The event that comes is `n`. */
static void end_step(struct fl_detect *d, uint32_t n)
{
    struct detect_follow *f = &d->follow[d->kind];
    uint32_t past = f->source - d->target, now = n - past;

    d->steps++;
    if (d->old == 2) {
        f->source -= d->period;
        d->old = 1;
        d->bound = now;
        return;
    }
    d->old = 0;
    d->period = now - d->bound;
    f->source = d->bound + past;
    d->target = now;
    if (d->steps <= SETTLING) {
        struct range r = range_of(d, d->bound, now);
        uint32_t live = detect_at(d, now)->live;
        if (r.low < live && live - r.low > d->peak / 1000) {
            d->target = r.lowest;
            d->silent = r.lowest - d->bound < d->period / 2;
        }
    }
    d->bound = d->target;
}

/* What was followed does not go on. */
static void lose(struct fl_detect *d, uint32_t n)
{
    uint32_t repetitions = (n - d->began) / d->period + 1;

    if (d->steps >= OFTEN) {
        bool old = d->old != 0;
        d->phase[d->next_phase++ % DETECT_PHASES] =
            (struct detect_phase){d->period, old ? d->target : d->bound, old ? d->target : n - GONE,
                                  d->old == 2 ? 2 * d->need : KNOWN, d->kind};
        d->since = n;
    } else {
        struct detect_doubt doubt = {d->period, repetitions + 2};
        d->doubt[d->next_doubt++ % DETECT_PHASES] = doubt;
        d->lost = n;
        d->doubted = d->period;
    }
    d->period = 0;
}

void fl_detect_doubt(struct fl_detect *d, uint32_t period, uint32_t steps)
{
    if (period != 0) {
        d->doubt[d->next_doubt++ % DETECT_PHASES] = (struct detect_doubt){period, 2 * steps + 2};
    }
}

void fl_detect_go_on(struct fl_detect *d)
{
    d->start = d->since = d->check = (uint32_t)d->events;
    d->doubted = d->period = 0;
    memset(d->phase, 0, sizeof d->phase);
    for (int kind = 0; kind < DETECT_KINDS; kind++) {
        uint32_t hash = d->follow[kind].hash; /* of events that are in the ring still */
        d->follow[kind] = (struct detect_follow){.hash = hash};
    }
}

static enum fl_detect_says event(struct fl_detect *d, struct detect_event e)
{
    uint32_t n = (uint32_t)++d->events;
    enum fl_detect_says says = FL_DETECT_NOTHING;

    record(d, n, e);
    if (d->period != 0) {
        struct detect_follow *f = &d->follow[d->kind];
        if (f->following && f->astray == 0 && (int32_t)(f->source - d->target) >= 0) {
            says = d->silent ? FL_DETECT_NOTHING : FL_DETECT_STEP;
            d->silent = false;
            end_step(d, n);
        }
    }
    fl_detect_follow(d, n);
    if (d->period != 0) {
        const struct detect_follow *f = &d->follow[d->kind];
        if (!f->following && f->gone == 0) {
            lose(d, n);
            return FL_DETECT_LOST;
        }
        return says;
    }
    for (int kind = 0; kind < DETECT_KINDS && d->period == 0; kind++) {
        fl_detect_look_back(d, (enum detect_kind)kind, n);
        consider(d, (enum detect_kind)kind, n);
    }
    return says;
}

static uint16_t token(uint64_t v)
{
    return (uint16_t)((v * UINT64_C(0x9e3779b97f4a7c15)) >> 48);
}

static uint32_t pages(uint64_t live)
{
    return (uint32_t)fl_min(live >> LIVE_SHIFT, UINT32_MAX);
}

size_t fl_detect_size(void)
{
    return fl_align_up(sizeof(struct fl_detect), 4096);
}

size_t fl_detect_first(void)
{
    return offsetof(struct fl_detect, ring) + DETECT_TABLE_0 * sizeof(struct detect_event);
}

/* The tables that are used first from one of these events on come whole. */
static struct fl_range table_ahead(const struct fl_detect *d, uint32_t events)
{
    if (events == DETECT_TABLE_0 - FL_DETECT_AHEAD || events == DETECT_TABLE_0) {
        return (struct fl_range){(uintptr_t)d->table_1, sizeof d->table_1};
    }
    return events == DETECT_TABLE_1 - FL_DETECT_AHEAD
               ? (struct fl_range){(uintptr_t)d->table_2, sizeof d->table_2}
               : (struct fl_range){0, 0};
}

void fl_detect_ahead(const struct fl_detect *d, uint32_t events,
                     struct fl_range out[static FL_DETECT_PARTS])
{
    uint32_t from = (events + FL_DETECT_AHEAD) % DETECT_RING;
    bool first_time = events < DETECT_RING;

    out[0] = (struct fl_range){(uintptr_t)&d->ring[from],
                               first_time ? FL_DETECT_AHEAD * sizeof d->ring[0] : 0};
    out[1] = table_ahead(d, events);
}

uint32_t fl_detect_events(const struct fl_detect *d)
{
    return (uint32_t)d->events;
}

bool fl_detect_is_new(const struct fl_detect *d)
{
    return d->events == 0;
}

bool fl_detect_is_beyond_first(const struct fl_detect *d)
{
    return d->events >= DETECT_TABLE_0;
}

enum fl_detect_says fl_detect_alloc(struct fl_detect *d, size_t size, unsigned kind, uint64_t live)
{
    return event(d, (struct detect_event){token(size * 8 + kind % 7),
                                          (uint16_t)(DETECT_ALLOC + (kind & 0xff)), pages(live)});
}

enum fl_detect_says fl_detect_free(struct fl_detect *d, size_t size, uint32_t distance,
                                   uint64_t live)
{
    uint32_t shape =
        distance == UINT32_MAX ? DETECT_FOREIGN : (uint32_t)fl_min(distance, DETECT_FOREIGN - 1);

    return event(d, (struct detect_event){token(size * 8 + 7), (uint16_t)shape, pages(live)});
}

uint32_t fl_detect_period(const struct fl_detect *d)
{
    return d->period;
}

bool fl_detect_follows(const struct fl_detect *d)
{
    uint32_t n = (uint32_t)d->events;
    bool follows = d->period != 0;

    for (int kind = 0; kind < DETECT_KINDS; kind++) {
        const struct detect_follow *f = &d->follow[kind];
        uint32_t period = n + 1 - f->source, run = n - f->from;
        follows = follows || (f->following && run >= FOLLOWED && period >= SHORTEST &&
                              run < FOLLOWED_PERIODS * period);
    }
    return follows;
}
