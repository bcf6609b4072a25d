/* How a detector does on a stream whose steps are marked. */
#include "plan/stream.h"
#include <stdlib.h>
#include <string.h>

enum { PHASE = 5 /* steps of one kind, at least */ };

/* What the thread did, event by event, and what was said before it. */
struct told {
    uint64_t live; /* before the event */
    uint32_t mark; /* steps marked before it */
    uint8_t says;
    bool locked; /* after it */
};

struct run {
    struct fl_detect *d;
    struct told *told;
    size_t n;
    uint64_t live;
    uint32_t requests, marks;
    uint32_t *index; /* of each block, among the thread's requests */
};

static void tell(struct run *r, bool alloc, size_t size, uint32_t arg)
{
    struct told *t = &r->told[r->n++];

    *t = (struct told){.live = r->live, .mark = r->marks};
    if (alloc) {
        t->says = (uint8_t)fl_detect_alloc(r->d, size, arg, r->live);
        r->requests++;
        r->live += size;
    } else {
        t->says = (uint8_t)fl_detect_free(r->d, size, arg, r->live);
        r->live -= arg != UINT32_MAX ? size : 0;
    }
    t->locked = fl_detect_period(r->d) != 0;
}

static void show(struct run *r, const struct stream_event *e, unsigned thread)
{
    if (e->kind == STREAM_MARK) {
        r->marks++;
    } else if (e->thread != thread) {
        r->live -= e->kind == STREAM_FOREIGN && e->owner == thread ? e->size : 0;
    } else if (e->kind < STREAM_FREE) {
        r->index[e->block] = r->requests;
        tell(r, true, e->size, e->kind);
    } else {
        tell(r, false, e->size,
             e->kind == STREAM_FREE ? r->requests - 1 - r->index[e->block] : UINT32_MAX);
    }
}

/* Where each marked step begins among the events told. */
static size_t *beginnings(const struct run *r)
{
    size_t *at = calloc(r->marks + 2, sizeof *at);

    for (size_t i = 0; at != NULL && i < r->n; i++) {
        for (uint32_t m = r->told[i].mark; m > 0 && at[m] == 0; m--) {
            at[m] = i;
        }
    }
    if (at == NULL) {
        abort();
    }
    at[r->marks + 1] = r->n;
    return at;
}

static bool alike(size_t a, size_t b)
{
    return (a > b ? a - b : b - a) * 5 <= b;
}

/* From where the fewest bytes are live in the marked step around `i`. */
static size_t distance_to_least(const struct run *r, const size_t *at, size_t i)
{
    size_t first = at[r->told[i].mark], end = at[r->told[i].mark + 1], best = SIZE_MAX;
    uint64_t least = UINT64_MAX, most = 0;

    for (size_t k = first; k < end; k++) {
        least = fl_min(least, r->told[k].live);
        most = fl_max(most, r->told[k].live);
    }
    for (size_t k = first; k < end; k++) {
        if (r->told[k].live <= least + (most - least) / 1000) {
            best = fl_min(best, k > i ? k - i : i - k);
        }
    }
    return best;
}

/* In marked steps. */
static double place(const struct run *r, const size_t *at, size_t i)
{
    uint32_t m = r->told[i].mark;

    return m + (double)(i - at[m]) / (double)(at[m + 1] - at[m]);
}

/* What was locked from `i` on, until it was lost: returns where. */
static size_t judge_lock(const struct run *r, const size_t *at, size_t i, struct judged *out)
{
    size_t last = 0, said = 0, first = i;
    bool wrong = false;

    for (; i < r->n && r->told[i].says != FL_DETECT_LOST; i++) {
        if (r->told[i].says == FL_DETECT_STEP) {
            double gap = last != 0 ? place(r, at, i) - place(r, at, last) : 1;
            wrong = wrong || gap < 0.7 || gap > 1.3 || r->told[i].mark == 0;
            if (r->told[i].mark > 0 && r->told[i].mark < r->marks) {
                out->astray = (unsigned)fl_max(out->astray, distance_to_least(r, at, i));
            }
            last = i;
            said++;
        }
    }
    /* Taken up, and lost before two steps had been, with more of the same to come. */
    wrong = wrong || (said < 2 && i < r->n && r->told[first].mark + 4 < r->marks);
    out->wrong += wrong;
    return i;
}

static void judge_phase(const struct run *r, const size_t *at, uint32_t m, uint32_t end,
                        struct judged *out)
{
    double length = (double)(at[end] - at[m]) / (end - m), late = end - m;
    size_t said = 0;

    for (size_t i = at[m]; i < at[end]; i++) {
        if (r->told[i].locked && late == end - m) {
            late = (double)(i - at[m]) / length;
        }
        if (!r->told[i].locked) {
            late = i + 1 < at[end] ? end - m : late;
        }
        said += r->told[i].says == FL_DETECT_STEP;
    }
    out->right += (double)said + 1 >= (double)(end - m) - late - 1 && late < end - m;
    out->first = out->phases++ == 0 ? late : out->first;
    out->worst = late > out->worst ? late : out->worst;
}

struct judged stream_judge(const struct stream *s, struct fl_detect *d, unsigned thread)
{
    struct run r = {.d = d, .told = calloc(s->n + 1, sizeof *r.told)};
    struct judged out = {.events = 0};

    r.index = calloc(s->blocks + 1, sizeof *r.index);
    if (r.told == NULL || r.index == NULL) {
        abort();
    }
    for (size_t i = 0; i < s->n; i++) {
        show(&r, &s->event[i], thread);
    }
    size_t *at = beginnings(&r);
    for (size_t i = 0; i < r.n; i++) {
        out.said += r.told[i].says == FL_DETECT_STEP;
        out.lost += r.told[i].says == FL_DETECT_LOST;
    }
    for (size_t i = 0; i < r.n; i++) {
        if (r.told[i].locked) {
            i = judge_lock(&r, at, i, &out);
        }
    }
    for (uint32_t m = 1, end; m < r.marks; m = end) {
        size_t length = at[m + 1] - at[m];
        for (end = m + 1; end < r.marks && alike(at[end + 1] - at[end], length); end++) {
        }
        if (end - m >= PHASE) {
            judge_phase(&r, at, m, end, &out);
        }
    }
    out.events = (unsigned)r.n;
    out.steps = r.marks;
    out.period = fl_detect_period(d);
    free(at);
    free(r.told);
    free(r.index);
    return out;
}
