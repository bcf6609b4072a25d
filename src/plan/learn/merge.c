/* From recorded steps to the slots of the next: which request is which, how long it lives, what
 * is not to be planned. Offsets are left to pack/.
 *
 * Time is counted in births of the newest step: slot i is born at i, and dies after the last one
 * that was born before its death in any of the steps. Requests come in the same order in all of
 * them, so two slots meet just when they did in one. */
#include "plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

enum { MANY = 4 }; /* steps that tell sizes which vary on their own from those that move together */
enum { BAD_FEW = 3 }; /* requests of a short step that may be none of the newest one's */

struct merge {
    const struct fl_lives *steps;
    size_t nsteps;
    uint32_t *match[FL_MERGE_STEPS]; /* NULL: left out; of the newest: to itself */
    struct fl_slot *slot;
    size_t n;
    struct fl_bump room;
};

/* A step that is longer is left out unseen: too many of its requests are none of the newest
 * step's. */
static size_t most_lives(size_t n)
{
    return n + n / (FL_BAD_PART - 1) + BAD_FEW;
}

size_t fl_merge_scratch(size_t n, size_t nsteps)
{
    return FL_CACHE_LINE + fl_bump_cost(n, sizeof(uint32_t)) * nsteps +
           fl_bump_cost(most_lives(n) + 1, sizeof(uint64_t));
}

/* ---- which request is which ---- */

/* Two requests are taken for one unless they differ by as much as it costs to call both missing:
 * 32 times in size. Where two are not LIKE, up to FL_AHEAD requests of one step or the other are
 * passed over, as many as make the next RUN most alike. */
enum { LIKE = 3, GAP = 6, RUN = 4 };

struct pairing {
    const struct fl_lives *a, *b; /* the newest step and the other */
    int scale;                    /* half octaves by which the other is larger as a whole */
};

/* In half octaves. */
static int log_of(uint64_t size)
{
    int bit = 63 - __builtin_clzll(size | 1);

    return 2 * bit + (bit > 0 ? (int)(size >> (bit - 1)) & 1 : 0);
}

/* Sizes may be the same, or all have moved by the same factor; what other requests there are
 * lengthens a lifetime a little. */
static uint32_t unlike(const struct pairing *t, size_t i, size_t j)
{
    const struct fl_life *a = &t->a->life[i], *b = &t->b->life[j];
    uint64_t la = fl_min(a->death, t->a->end) - a->birth,
             lb = fl_min(b->death, t->b->end) - b->birth;
    uint64_t longer = la > lb ? la - lb : lb - la;
    uint32_t cost = longer == 0 ? 0 : longer <= 2 + la / 8 ? 1 : 3;

    if (a->size != b->size) {
        int apart = log_of(b->size) - log_of(a->size);
        cost += 2 + (uint32_t)fl_min((size_t)abs(apart), (size_t)abs(apart - t->scale));
    }
    return cost;
}

/* How unlike the requests from `i` and `j` on are. */
static uint32_t unlike_run(const struct pairing *t, size_t i, size_t j)
{
    uint32_t cost = 0;

    for (size_t k = 0; k < RUN; k++) {
        bool has_a = i + k < t->a->n, has_b = j + k < t->b->n;
        cost += has_a && has_b ? unlike(t, i + k, j + k) : has_a || has_b ? GAP : 0;
    }
    return cost;
}

/* Passes over what only one of the steps has. */
static void pass_over(const struct pairing *t, size_t *i, size_t *j)
{
    size_t from = *i, at = *j;
    uint32_t least = unlike_run(t, from, at);

    for (uint32_t d = 1; d <= FL_AHEAD; d++) {
        for (unsigned of_a = 0; of_a < 2; of_a++) {
            size_t a = from + (of_a ? d : 0), b = at + (of_a ? 0 : d);
            uint32_t cost = d * GAP + unlike_run(t, a, b);
            if (a <= t->a->n && b <= t->b->n && cost < least) {
                least = cost;
                *i = a;
                *j = b;
            }
        }
    }
}

static int log_of_all(const struct fl_lives *s)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < s->n; i++) {
        sum += s->life[i].size;
    }
    return log_of(sum);
}

/* Which life of `other` is each of the newest step. Returns how many have one. */
static size_t match_step(const struct merge *m, const struct fl_lives *other, uint32_t *match)
{
    struct pairing t = {
        .a = m->steps, .b = other, .scale = log_of_all(other) - log_of_all(m->steps)};
    size_t n = 0;

    fl_assert(other->n <= most_lives(m->n));
    memset(match, 0xff, m->n * sizeof *match); /* NONE */
    for (size_t i = 0, j = 0; i < m->n && j < other->n; i++, j++) {
        if (unlike(&t, i, j) > LIKE) {
            pass_over(&t, &i, &j);
        }
        if (i < m->n && j < other->n && unlike(&t, i, j) < 2 * GAP) {
            match[i] = (uint32_t)j;
            n++;
        }
    }
    return n;
}

static int match_all(struct merge *m)
{
    size_t left_out = 0;

    for (size_t j = 0; j < m->nsteps; j++) {
        const struct fl_lives *s = &m->steps[j];
        size_t most = fl_max(m->n, s->n), matched = 0;
        m->match[j] = fl_bump_carve(&m->room, m->n, sizeof *m->match[j]);
        fl_assert(!m->room.is_short);
        if (s->n <= most_lives(m->n)) {
            matched = match_step(m, s, m->match[j]);
        }
        if (most - matched > fl_max(BAD_FEW, most / FL_BAD_PART)) {
            m->match[j] = NULL;
            left_out++;
        }
    }
    return left_out > (m->nsteps - 1) / 2 ? -EAGAIN : 0;
}

/* The slot's life in a step; NULL: it has none. */
static const struct fl_life *life_of(const struct merge *m, size_t step, size_t slot)
{
    const uint32_t *match = m->match[step];

    if (match == NULL || match[slot] == NONE) {
        return NULL;
    }
    return &m->steps[step].life[match[slot]];
}

/* ---- slots ---- */

/* When is the same request made again, after a life that outlasts step j? By the step after it,
 * if that follows at once, else as if that were like it. */
static uint64_t asked_again(const struct merge *m, size_t j, size_t slot, const struct fl_life *l)
{
    const struct fl_lives *s = &m->steps[j];

    if (j > 0) {
        const struct fl_life *next = life_of(m, j - 1, slot);
        uint64_t begin = m->steps[j - 1].begin;
        if (next != NULL && begin >= s->end && begin - s->end <= (s->end - s->begin) / 2) {
            return next->birth;
        }
    }
    return s->end + (l->birth - s->begin);
}

static enum fl_slot_kind kind_of(const struct merge *m, size_t slot)
{
    enum fl_slot_kind kind = FL_SLOT_PLANNED;
    size_t seen = 0, never = 0;
    bool newest_never = m->steps[0].life[slot].death == FL_LIFE_NEVER;

    for (size_t j = 0; j < m->nsteps; j++) {
        const struct fl_life *l = life_of(m, j, slot);
        if (l == NULL) {
            continue;
        }
        seen++;
        if (l->death == FL_LIFE_NEVER) {
            never += j > 0;
            kind = (enum fl_slot_kind)fl_max(kind, FL_SLOT_SPANS_STEPS);
        } else if (l->death > m->steps[j].end) {
            bool twice = l->death > asked_again(m, j, slot, l);
            kind = (enum fl_slot_kind)fl_max(kind,
                                             twice ? FL_SLOT_DOUBLE_BUFFERED : FL_SLOT_SPANS_STEPS);
        }
    }
    /* What the newest step's block comes to may not be known yet: the older ones are asked
     * first. */
    fl_assert(seen != 0 && never <= seen);
    never += newest_never && (seen == 1 || never > 0);
    bool kept = 2 * never > seen || (2 * never == seen && newest_never);
    return kept ? FL_SLOT_KEPT : kind;
}

static void make_slot(const struct merge *m, size_t i)
{
    struct fl_slot *s = &m->slot[i];

    *s = (struct fl_slot){.least = m->steps[0].life[i].asked,
                          .kind = kind_of(m, i),
                          .birth = i,
                          .death = i + 1,
                          .offset = {FL_PACK_NONE, FL_PACK_NONE}};
    for (size_t j = 0; j < m->nsteps; j++) {
        const struct fl_life *l = life_of(m, j, i);
        if (l != NULL) {
            s->size = fl_max(s->size, fl_max(l->size, l->asked)); /* a late free may write there */
            s->least = fl_min(s->least, l->asked);
            s->most = fl_max(s->most, l->asked);
            s->align = fl_max(s->align, l->align);
            s->zone = l->zone != 0 ? l->zone : s->zone;
        }
    }
    s->kind = s->align > FL_GRANULE ? FL_SLOT_KEPT : s->kind;
}

/* ---- lifetimes ---- */

static size_t born_before(const struct fl_lives *s, uint64_t time)
{
    size_t a = 0, b = s->n;

    while (a < b) {
        size_t mid = a + (b - a) / 2;
        a = s->life[mid].birth < time ? mid + 1 : a;
        b = s->life[mid].birth < time ? b : mid;
    }
    return a;
}

/* The slots live as long as in step `j`. */
static void lengthen(const struct merge *m, size_t j)
{
    const struct fl_lives *s = &m->steps[j];
    struct fl_bump room = m->room;
    /* of each number of the step's lives, how many slots are born with the last of them */
    uint32_t *born = fl_bump_carve(&room, s->n + 1, sizeof *born);

    fl_assert(!room.is_short);
    memset(born, 0, (s->n + 1) * sizeof *born);
    for (size_t i = 0; i < m->n; i++) {
        if (m->match[j][i] != NONE) {
            fl_assert(m->match[j][i] < s->n);
            born[m->match[j][i] + 1] = (uint32_t)i + 1;
        }
    }
    for (size_t k = 1; k <= s->n; k++) {
        born[k] = (uint32_t)fl_max(born[k], born[k - 1]);
    }
    for (size_t i = 0; i < m->n; i++) {
        const struct fl_life *l = life_of(m, j, i);
        uint64_t death = l != NULL ? born[born_before(s, l->death)] : 0;
        m->slot[i].death = fl_max(m->slot[i].death, death);
    }
}

/* The most bytes that the step's lives hold at once if the step before was like it; those that are
 * never freed left out. `slot`: whose sizes to take, or NULL. */
static uint64_t peak_of(const struct fl_lives *s, const struct fl_slot *slot, struct fl_bump room)
{
    uint64_t *change = fl_bump_carve(&room, s->n + 1, sizeof *change), live = 0, peak = 0;

    fl_assert(!room.is_short);
    memset(change, 0, (s->n + 1) * sizeof *change);
    for (size_t i = 0; i < s->n; i++) {
        const struct fl_life *l = &s->life[i];
        uint64_t bytes = slot != NULL ? slot[i].size : l->size;
        if (l->death == FL_LIFE_NEVER) {
            continue;
        }
        change[i] += bytes;
        if (l->death <= s->end) {
            change[fl_max(born_before(s, l->death), i + 1)] -= bytes;
        } else { /* the one of the step before is here until then */
            change[0] += bytes;
            change[born_before(s, s->begin + fl_min(l->death - s->end, s->end - s->begin))] -=
                bytes;
        }
    }
    for (size_t i = 0; i < s->n; i++) {
        live += change[i];
        fl_assert((int64_t)live >= 0);
        peak = fl_max(peak, live);
    }
    return peak;
}

/* One that some step does not have varies too. */
static bool varies(const struct merge *m, size_t slot)
{
    for (size_t j = 0; j < m->nsteps; j++) {
        const struct fl_life *l = life_of(m, j, slot);
        if (m->match[j] != NULL && (l == NULL || l->size != m->slot[slot].size)) {
            return true;
        }
    }
    return false;
}

/* Sizes that move together are planned at their largest: that is one step's. If they do not, the
 * largest of each are more than any step needs. */
static void leave_varying(const struct merge *m, uint64_t *largest)
{
    size_t used = 0;

    for (size_t j = 0; j < m->nsteps; j++) {
        if (m->match[j] != NULL) {
            *largest = fl_max(*largest, peak_of(&m->steps[j], NULL, m->room));
            used++;
        }
    }
    uint64_t all = peak_of(&m->steps[0], m->slot, m->room);
    if (used < MANY || all <= FL_ENVELOPE * *largest) {
        return;
    }
    for (size_t i = 0; i < m->n; i++) {
        if (fl_slot_is_planned(&m->slot[i]) && m->slot[i].zone == 0 && varies(m, i)) {
            m->slot[i].kind = FL_SLOT_KEPT;
        }
    }
}

void fl_merge_zones(struct fl_slot *slot, size_t n)
{
    for (struct fl_slot *s = slot; s < slot + n; s++) {
        if (s->zone != 0 && fl_slot_is_planned(s)) {
            s->kind = FL_SLOT_DOUBLE_BUFFERED;
        }
        if (s->kind == FL_SLOT_SPANS_STEPS || s->kind == FL_SLOT_DOUBLE_BUFFERED) {
            s->birth = 0;
            s->death = n;
        }
    }
}

int fl_merge(const struct fl_lives *steps, size_t nsteps, struct fl_slot *slot, uint64_t *largest,
             void *scratch, size_t scratch_len)
{
    struct merge m = {.steps = steps, .nsteps = nsteps, .slot = slot, .n = steps[0].n};
    uintptr_t at = fl_align_up((uintptr_t)scratch, FL_CACHE_LINE);

    fl_assert(nsteps != 0 && nsteps <= FL_MERGE_STEPS);
    *largest = 0;
    if (scratch_len < fl_merge_scratch(m.n, nsteps)) {
        return -ENOMEM;
    }
    m.room = (struct fl_bump){(char *)at, (char *)scratch + scratch_len, false};
    int rc = match_all(&m);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < m.n; i++) {
        make_slot(&m, i);
    }
    leave_varying(&m, largest);
    for (size_t j = 0; j < nsteps; j++) {
        if (m.match[j] != NULL) {
            lengthen(&m, j);
        }
    }
    fl_merge_zones(slot, m.n);
    for (size_t i = 0; i < m.n; i++) {
        fl_assert(slot[i].birth < slot[i].death && slot[i].death <= m.n);
        fl_assert(slot[i].least <= slot[i].most && slot[i].most <= slot[i].size);
    }
    return 0;
}
