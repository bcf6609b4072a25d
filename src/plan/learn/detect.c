/* Where one thread's steps end, from its large requests alone.
 *
 * Where the last tokens, a gram, came before (stream.c), what lies between is looked at. It is a
 * step when
 * D1  it repeats for its own length, and for longer where it is short or was no step before;
 * D2  as much is live at its end as at its beginning: layers of one step repeat, but hold on to
 *     what they made;
 * D3  the live bytes rise nearly as far in it as they have for long: an optimizer's loop holds on
 *     to nothing, but is low;
 * D4  it is no repetition of something shorter: a gram is found where it came last;
 * D5  it asks for blocks of several sizes.
 * The micro-step of an accumulated gradient is all that until the optimizer comes: a period that
 * ends after few repetitions must repeat more often before it is believed again, and meanwhile the
 * longer one around it is found. A step ends where the fewest bytes are live. */
#include "plan/learn/stream.h"
#include <string.h>

enum {
    SHORTEST = 16, /* events */
    LONGEST = DETECT_RING / 2 - 1024,
    AT_LEAST = 32,        /* events that must repeat, of sizes */
    AT_LEAST_SHAPE = 128, /* and of shapes, which are alike more easily */
    VARIED = 5,      /* tokens that D5 asks for: three sizes, or two and their frees and one more */
    PAUSE = 16,      /* events, at least, from one look to the next */
    PAUSE_PART = 64, /* and this part of what is looked at: what is doubted may be long */
    OFTEN = 8,       /* steps: what ends after so many was a phase of the program */
    WINDOW = 8192,   /* events, at least, over which D3 is judged */
    LEFT_PART = 32,  /* D2: the part of the rise that may be left, by foreign requests, say */
    ROUNDING = 15,   /* and in units of 4 KiB: less than any large request */
    LIVE_SHIFT = 12, /* to such units */
    FOLLOWED = 1024, /* what repeats for so many events may be a step */
    PAGE = 4096,
};

static uint32_t apart(uint32_t a, uint32_t b)
{
    return a > b ? a - b : b - a;
}

/* D1: events that must repeat; as many as the ring has at most. */
static uint32_t enough(const struct fl_detect *d, enum detect_kind kind, uint32_t period)
{
    size_t need = fl_max(period, kind == DETECT_SIZES ? AT_LEAST : AT_LEAST_SHAPE);

    for (int i = 0; i < DETECT_DOUBTS; i++) { /* nor is it believed as several in a row */
        uint32_t one = d->doubt[i].period, times = one != 0 ? (period + one / 2) / one : 0;
        if (times != 0 && apart(period, times * one) <= 2 + times * one / 16) {
            need = fl_max(need, (size_t)d->doubt[i].need * one);
        }
    }
    return (uint32_t)fl_min(need, DETECT_OLDEST - period);
}

/* D2 and D3. Where sizes vary from step to step, so does the level at any event but the lowest. */
static bool is_level_and_high(struct fl_detect *d, enum detect_kind kind, uint32_t n,
                              uint32_t period)
{
    size_t window = fl_max(fl_min(WINDOW, n - d->since), (size_t)2 * period);
    struct detect_span last = fl_detect_span(d, n + 1 - period, n + 1),
                       before = fl_detect_span(d, n + 1 - 2 * period, n + 1 - period),
                       all = fl_detect_span(d, n + 1 - (uint32_t)window, n + 1);
    uint32_t rise = last.high - last.low;
    size_t most = fl_max(ROUNDING, rise / LEFT_PART);
    unsigned tenths = kind == DETECT_SIZES ? 9 : 5;

    return apart(last.low, before.low) <= most &&
           apart(detect_at(d, n)->live, detect_at(d, n - period)->live) <=
               (kind == DETECT_SIZES ? most : rise / 4) &&
           rise > 0 && (uint64_t)rise * 10 >= (uint64_t)(all.high - last.low) * tenths;
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
        if (k == count) {
            seen[count++] = size;
        }
    }
    return count == VARIED;
}

/* D1 to D3, D5. Shapes are for what has other sizes each time; the rest is found by its sizes. */
static bool is_step(struct fl_detect *d, enum detect_kind kind, uint32_t n, uint32_t period)
{
    uint32_t run = enough(d, kind, period);

    return n - d->start >= run + period && is_varied(d, n, period) &&
           is_level_and_high(d, kind, n, period) && fl_detect_repeats(d, kind, n, period, run) &&
           !(kind == DETECT_SHAPE && fl_detect_repeats(d, DETECT_SIZES, n, period, period));
}

/* The step that `period` is: under foreign requests what came two or three steps ago may be found
 * before the last one is. */
static uint32_t divided(struct fl_detect *d, enum detect_kind kind, uint32_t n, uint32_t period)
{
    for (uint32_t by = 3; by > 1; by--) {
        uint32_t one = period / by;
        if (one >= 4 * SHORTEST && fl_detect_repeats(d, kind, n, one, period) &&
            is_step(d, kind, n, one)) {
            return one;
        }
    }
    return period;
}

/* The last events came `period` before `n` as well. Is that a step? */
static void consider(struct fl_detect *d, enum detect_kind kind, uint32_t n, uint32_t period)
{
    if (period < SHORTEST || period > LONGEST || (int32_t)(n - d->next_look[kind]) < 0 ||
        !fl_detect_agree(d, kind, n, n - period)) {
        return;
    }
    if (period >= FOLLOWED) {
        d->far = (struct detect_far){n, period, kind};
    }
    d->next_look[kind] = n + PAUSE + enough(d, kind, period) / PAUSE_PART;
    if (!is_step(d, kind, n, period)) {
        return;
    }
    period = divided(d, kind, n, period);
    uint32_t begin = n + 1 - period;
    d->track = (struct detect_track){.period = period,
                                     .kind = kind,
                                     .source = begin,
                                     .target = fl_detect_span(d, begin, n + 1).lowest};
}

/* What was taken for steps does not go on. */
static void lose(struct fl_detect *d, uint32_t n)
{
    if (d->track.steps >= OFTEN) {
        d->since = n - d->track.astray;
    } else {
        d->doubt[d->next_doubt++ % DETECT_DOUBTS] =
            (struct detect_doubt){d->track.period, d->track.steps + 4};
    }
    d->track.period = 0;
}

void fl_detect_doubt(struct fl_detect *d, uint32_t period, uint32_t steps)
{
    if (period != 0) {
        d->doubt[d->next_doubt++ % DETECT_DOUBTS] = (struct detect_doubt){period, 2 * steps + 2};
    }
}

void fl_detect_go_on(struct fl_detect *d)
{
    d->start = d->since = (uint32_t)d->events;
    d->far.back = 0;
    d->track.period = 0;
}

static enum fl_detect_says event(struct fl_detect *d, struct detect_event e)
{
    uint32_t n = (uint32_t)++d->events;
    struct detect_track *t = &d->track;
    enum fl_detect_says says = FL_DETECT_NOTHING;

    fl_detect_record(d, n, e);
    if (t->period != 0 && t->astray == 0 && (int32_t)(t->source - t->target) >= 0) {
        says = FL_DETECT_STEP;
        t->period = n - t->target;
        t->target = n;
        t->steps++;
    }
    if (t->period != 0 && !fl_detect_follow(d, n)) {
        says = FL_DETECT_LOST;
        lose(d, n);
    }
    uint32_t back[DETECT_KINDS];
    fl_detect_seen(d, n, back);
    if (back[DETECT_SIZES] != 0 && (t->period == 0 || t->kind == DETECT_SHAPE)) {
        consider(d, DETECT_SIZES, n, back[DETECT_SIZES]); /* sizes say more than shapes */
    }
    if (back[DETECT_SHAPE] != 0 && t->period == 0) {
        consider(d, DETECT_SHAPE, n, back[DETECT_SHAPE]);
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
    return d->track.period;
}

/* What repeats for its own length has been considered, and is none. */
bool fl_detect_follows(struct fl_detect *d)
{
    struct detect_far f = d->far;
    uint32_t old = (uint32_t)d->events - f.at, reach = DETECT_OLDEST - f.back;
    bool long_ago = f.back == 0 || old >= f.back || old + FOLLOWED > reach;

    return d->track.period != 0 ||
           (!long_ago && fl_detect_repeats(d, f.kind, f.at, f.back, FOLLOWED) &&
            (old + f.back > reach || !fl_detect_repeats(d, f.kind, f.at, f.back, f.back)));
}

uint32_t fl_detect_events(const struct fl_detect *d)
{
    return (uint32_t)d->events;
}

size_t fl_detect_size(void)
{
    return fl_align_up(sizeof(struct fl_detect), PAGE);
}

_Static_assert((int)FL_DETECT_ALL == (int)DETECT_RING, "the ring is what is used last");

void fl_detect_used(const struct fl_detect *d, uint32_t events,
                    struct fl_range out[static FL_DETECT_PARTS])
{
    size_t n = fl_min(events, DETECT_RING), ring = offsetof(struct fl_detect, ring),
           entries = fl_max(fl_min(n / 2, DETECT_TABLE), DETECT_TABLE_FIRST);

    out[0] = (struct fl_range){(uintptr_t)d, fl_align_up(ring + n * sizeof *d->ring, PAGE)};
    out[1] = (struct fl_range){(uintptr_t)d->table, fl_align_up(entries * sizeof *d->table, PAGE)};
}
