/* What huge pages of a new block say of it.
 *
 * The worker looks at some of them, twice. What held next to nothing but zeros, and nothing more
 * beside it a moment later, is thin: what is written from one end to the other, by however many
 * threads, has gone on by then. Zeros alone are no evidence: they may have been written. Enough of
 * such pages, and next to none that is full, speak for a block; so do several blocks of its kind
 * that have one.
 * State: the members `seen` of slots, and r->thin; the worker's alone. */
#include "region/jobs/evidence.h"

#include <string.h>

enum {
    ENOUGH = 4,         /* samples that make a block thin, */
    ENOUGH_OF_KIND = 6, /* or so many blocks of its kind with one, and no full one; */
    OWN_COUNTS = 3,     /* one that is thin by itself counts for so many of these */
    FEW_SLOTS = 8,      /* with more a block has one sample at a time */
    FULL_SHARE = 4,     /* of a thin one's, the part that may be full */
    LAST_FEW = 32,      /* looks that count */
    SKIP_MOST = 32,     /* looks that are left out where a block teaches nothing new */
    WEIGHED = 16,       /* looks at a thin block that say whether it fills, */
    FILLING = 12        /* and those of them that found it filling */
};

struct fl_range fl_evidence_rest(const struct fl_thin_seen *k, struct fl_range range)
{
    uintptr_t from = fl_max(k->cursor, range.base), end = fl_range_end(range);

    return (struct fl_range){from, from < end ? end - from : 0};
}

static uint8_t *evidence_of(struct fl_thin *t, const struct fl_thin_view *v)
{
    return &t->evidence[fl_left_kind(v->len)];
}

static void count(uint8_t *n)
{
    *n = (uint8_t)(*n + (*n < UINT8_MAX));
}

static void rest_longer(struct fl_thin_seen *k)
{
    k->rest = (uint8_t)fl_min(2u * k->rest + 1, SKIP_MOST);
}

static void note_full(struct fl_thin *t, struct fl_thin_seen *k, const struct fl_thin_view *v)
{
    count(&k->full);
    *evidence_of(t, v) /= 2;
    rest_longer(k);
}

static void note_thin(struct fl_thin *t, struct fl_thin_seen *k, const struct fl_thin_view *v)
{
    if (k->thin == 0) {
        count(evidence_of(t, v));
    }
    count(&k->thin);
    k->rest = 0;
}

/* The samples of the last look once more. */
static void judge(struct fl_region *r, struct fl_thin_seen *k, const struct fl_thin_view *v)
{
    for (int i = 0; i < FL_THIN_SAMPLES; i++) {
        if (k->sample[i].n != 0 && fl_thin_stays(&r->pages, &k->sample[i])) {
            note_thin(&r->thin, k, v);
        }
        k->sample[i].n = 0;
    }
    if (k->thin + k->full >= LAST_FEW) {
        k->thin /= 2;
        k->full /= 2;
    }
}

/* Looks at the next huge page, for the i-th sample. False: no more are to be looked at. */
static bool pick_one(struct fl_region *r, struct fl_thin_seen *k, const struct fl_thin_view *v,
                     unsigned *i)
{
    uintptr_t page = fl_thin_next(&r->pages, fl_evidence_rest(k, v->around));
    struct fl_filled f = {0, 0, 0};
    bool told = page != 0 && fl_thin_filled(&r->pages, page, &f);

    fl_assert(*i < FL_THIN_SAMPLES);
    k->cursor = page != 0 ? page + fl_page.huge : v->around.base;
    r->thin.picks -= page != 0;
    if (told && f.n > FL_THIN_FEW) {
        note_full(&r->thin, k, v);
        return false;
    }
    if (told && f.n != 0) {
        k->sample[(*i)++] = f;
    }
    return told;
}

/* Others, until one is full: zeros alone say nothing. */
static void pick(struct fl_region *r, struct fl_thin_seen *k, const struct fl_thin_view *v)
{
    unsigned most = r->thin.used > FEW_SLOTS ? 1 : FL_THIN_SAMPLES, n = 0, tried = 0;
    bool more = true;

    while (more && n < most && tried < 2 * most && r->thin.picks != 0) {
        more = pick_one(r, k, v, &n);
        tried++;
    }
    if (more && n == 0 && tried != 0) {
        rest_longer(k);
    }
}

/* A kind of which much is watched is thin from then on until its evidence goes. */
void fl_evidence_count_kinds(struct fl_thin *t)
{
    size_t of_kind[FL_LEFT_KINDS] = {0};

    fl_assert(t->used <= FL_THIN_SLOTS);
    for (const struct fl_thin_slot *s = t->slot; s < t->slot + t->used; s++) {
        if (s->e != NULL) {
            of_kind[fl_left_kind(s->len)] += s->len;
        }
    }
    for (unsigned i = 0; i < FL_LEFT_KINDS; i++) {
        bool much = of_kind[i] >= FL_THIN_LEAST, shown = t->evidence[i] >= ENOUGH_OF_KIND;
        uint64_t bit = (uint64_t)1 << i;
        t->thin_kinds = shown ? t->thin_kinds | (much ? bit : 0) : t->thin_kinds & ~bit;
    }
}

void fl_evidence_gather(struct fl_region *r, struct fl_thin_seen *k, const struct fl_thin_view *v)
{
    judge(r, k, v);
    pick(r, k, v);
    k->skip = k->rest;
}

bool fl_evidence_is_pending(const struct fl_thin_seen *k)
{
    bool any = false;

    for (int i = 0; i < FL_THIN_SAMPLES; i++) {
        any |= k->sample[i].n != 0;
    }
    return any;
}

bool fl_evidence_is_own(const struct fl_thin_seen *k, const struct fl_thin_view *v)
{
    return v->len >= FL_THIN_OWN_FROM && k->thin >= ENOUGH && k->full <= k->thin / FULL_SHARE;
}

void fl_evidence_note_own(struct fl_region *r, const struct fl_thin_view *v)
{
    for (int i = 1; i < OWN_COUNTS; i++) { /* its first thin page counted, too */
        count(evidence_of(&r->thin, v));
    }
}

bool fl_evidence_is_kind_thin(const struct fl_thin *t, size_t len)
{
    return (t->thin_kinds >> fl_left_kind(len) & 1) != 0;
}

bool fl_evidence_is_of_kind(struct fl_region *r, const struct fl_thin_seen *k,
                            const struct fl_thin_view *v)
{
    return k->full == 0 && fl_evidence_is_kind_thin(&r->thin, v->len);
}

bool fl_evidence_is_scarce(const struct fl_thin_seen *k)
{
    return k->rest == SKIP_MOST;
}

bool fl_evidence_fills(struct fl_region *r, struct fl_thin_seen *k, const struct fl_thin_view *v)
{
    uintptr_t page = 1;

    for (int i = 0; i < FL_THIN_SAMPLES && page != 0; i++) {
        bool filling = fl_thin_is_filling(&r->pages, fl_evidence_rest(k, v->range), &page);
        k->cursor = page != 0 ? page + fl_page.huge : v->range.base;
        if (page != 0) {
            count(filling ? &k->full : &k->thin);
        }
    }
    bool fills = k->full >= FILLING;
    if (fills) {
        *evidence_of(&r->thin, v) = 0;
    }
    if (k->full + k->thin >= WEIGHED) {
        k->full = k->thin = 0;
        rest_longer(k);
    }
    k->skip = k->rest;
    return fills;
}
