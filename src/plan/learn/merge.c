/* From recorded steps to the slots of the next: which request is which, how long it lives, what
 * is not to be planned. What is left to others: matching (match.c), the order of events
 * (order.c), offsets (pack/). */
#include "plan/learn/merge.h"

#include <errno.h>

enum { MANY = 4 }; /* steps that tell sizes which vary on their own from those that move together */

struct merge {
    const struct fl_lives *steps;
    size_t nsteps;
    uint32_t *match[FL_MERGE_STEPS]; /* NULL: left out; of the newest: to itself */
    struct fl_slot *slot;
    size_t n;
    struct fl_bump room;
};

/* A step that is longer is left out unseen: more than a quarter of its requests are none of the
 * newest step's. */
static size_t most_lives(size_t n)
{
    return n + n / 3 + 1;
}

size_t fl_merge_scratch(size_t n, size_t nsteps)
{
    size_t most = most_lives(n);

    return FL_CACHE_LINE + fl_bump_cost(n, sizeof(uint32_t)) * nsteps +
           fl_max(fl_order_scratch(most), fl_match_scratch(n));
}

static bool is_step(const struct fl_lives *s)
{
    uint64_t sum = 0;

    if (s->n >= FL_MERGE_MOST || s->end < s->begin || s->end - s->begin >= UINT64_MAX / 8) {
        return false;
    }
    for (size_t i = 0; i < s->n; i++) {
        const struct fl_life *l = &s->life[i], *before = i > 0 ? l - 1 : NULL;
        if (l->birth < s->begin || l->birth > s->end || l->death < l->birth || l->size >> 47 != 0 ||
            l->asked > l->size || (l->align & (l->align - 1)) != 0 ||
            __builtin_add_overflow(sum, 2 * l->size, &sum)) {
            return false;
        }
        if (before != NULL && (before->thread > l->thread ||
                               (before->thread == l->thread &&
                                (before->index >= l->index || before->birth > l->birth)))) {
            return false;
        }
    }
    return true;
}

/* The slot's life in a step; NULL: it has none. */
static const struct fl_life *life_of(const struct merge *m, size_t step, size_t slot)
{
    const uint32_t *match = m->match[step];

    if (match == NULL || match[slot] == FL_MERGE_NONE) {
        return NULL;
    }
    return &m->steps[step].life[match[slot]];
}

static int match_all(struct merge *m, struct fl_merged *out)
{
    size_t left_out = 0;

    for (size_t j = 0; j < m->nsteps; j++) {
        const struct fl_lives *s = &m->steps[j];
        size_t most = fl_max(m->n, s->n), matched = 0;
        m->match[j] = fl_bump_carve(&m->room, m->n, sizeof *m->match[j]);
        if (j == 0) {
            for (size_t i = 0; i < m->n; i++) {
                m->match[0][i] = (uint32_t)i;
            }
            continue;
        }
        if (s->n <= most_lives(m->n)) {
            matched = fl_match_steps(&m->steps[0], s, m->match[j], m->room);
        }
        out->differing += matched != most;
        if (most - matched > most / 4) {
            m->match[j] = NULL;
            left_out++;
            out->left_out |= 1u << j;
        }
    }
    return left_out > (m->nsteps - 1) / 2 ? -EAGAIN : 0;
}

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
            kind = (enum fl_slot_kind)fl_max(kind, FL_SLOT_CROSSING);
        } else if (l->death > m->steps[j].end) {
            bool twice = l->death > asked_again(m, j, slot, l);
            kind = (enum fl_slot_kind)fl_max(kind, twice ? FL_SLOT_DOUBLED : FL_SLOT_CROSSING);
        }
    }
    /* What the newest step's block comes to may not be known yet: the older ones are asked
     * first. */
    never += newest_never && (seen == 1 || never > 0);
    bool kept = 2 * never > seen || (2 * never == seen && newest_never);
    return kept ? FL_SLOT_KEPT : kind;
}

static void make_slot(const struct merge *m, size_t i)
{
    struct fl_slot *s = &m->slot[i];
    const struct fl_life *newest = &m->steps[0].life[i];

    *s = (struct fl_slot){.thread = newest->thread,
                          .index = newest->index,
                          .least = newest->asked,
                          .kind = kind_of(m, i),
                          .offset = {FL_PACK_NONE, FL_PACK_NONE}};
    for (size_t j = 0; j < m->nsteps; j++) {
        const struct fl_life *l = life_of(m, j, i);
        if (l != NULL) {
            s->size = fl_max(s->size, l->size);
            s->least = fl_min(s->least, l->asked);
            s->most = fl_max(s->most, l->asked);
            s->align = fl_max(s->align, l->align);
            s->zone = l->zone != 0 ? l->zone : s->zone;
        }
    }
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
static void leave_varying(const struct merge *m, unsigned percent, struct fl_merged *out)
{
    size_t used = 0;

    for (size_t j = 0; j < m->nsteps; j++) {
        if (m->match[j] != NULL) {
            out->largest = fl_max(out->largest, fl_order_peak(&m->steps[j], NULL, m->room));
            used++;
        }
    }
    uint64_t all = fl_order_peak(&m->steps[0], m->slot, m->room);
    if (used < MANY || all <= out->largest + out->largest / 100 * percent) {
        return;
    }
    for (size_t i = 0; i < m->n; i++) {
        if (m->slot[i].kind <= FL_SLOT_DOUBLED && m->slot[i].zone == 0 && varies(m, i)) {
            m->slot[i].kind = FL_SLOT_VARIES;
        }
    }
}

void fl_merge_zones(struct fl_slot *slot, size_t n, uint64_t horizon)
{
    for (struct fl_slot *s = slot; s < slot + n; s++) {
        if (s->zone != 0 && s->kind <= FL_SLOT_DOUBLED) {
            s->kind = FL_SLOT_DOUBLED;
        }
        if (s->kind == FL_SLOT_CROSSING || s->kind == FL_SLOT_DOUBLED) {
            s->birth = 0;
            s->death = horizon;
        }
    }
}

static void place_in_time(const struct merge *m, struct fl_merged *out)
{
    out->horizon = fl_order_newest(&m->steps[0], m->slot, m->room);
    for (size_t j = 1; j < m->nsteps; j++) {
        if (m->match[j] != NULL) {
            fl_order_cover(&m->steps[j], m->match[j], m->slot, m->n, m->room);
        }
    }
    fl_merge_zones(m->slot, m->n, out->horizon);
}

int fl_merge(const struct fl_lives *steps, size_t nsteps, unsigned percent, struct fl_slot *slot,
             struct fl_merged *out, void *scratch, size_t scratch_len)
{
    uintptr_t at = fl_align_up((uintptr_t)scratch, FL_CACHE_LINE);
    struct merge m = {.steps = steps, .nsteps = nsteps, .slot = slot};

    *out = (struct fl_merged){0};
    if (nsteps == 0 || nsteps > FL_MERGE_STEPS) {
        return -EINVAL;
    }
    for (size_t j = 0; j < nsteps; j++) {
        if (!is_step(&steps[j])) {
            return -EINVAL;
        }
    }
    m.n = out->n = steps[0].n;
    if (scratch_len < fl_merge_scratch(m.n, nsteps)) {
        return -ENOMEM;
    }
    m.room = (struct fl_bump){(char *)at, (char *)scratch + scratch_len, false};
    int rc = match_all(&m, out);
    if (rc != 0) {
        return rc;
    }
    for (size_t i = 0; i < m.n; i++) {
        make_slot(&m, i);
    }
    leave_varying(&m, percent, out);
    place_in_time(&m, out);
    return 0;
}

/* A zone's places in even steps lie below those in odd ones. */
static uint32_t zone_at(const struct fl_slot *s, size_t parity)
{
    return s->zone != 0 ? 2 * s->zone - 1 + (uint32_t)parity : 0;
}

size_t fl_merge_buffers(const struct fl_slot *slot, size_t n, struct fl_pack_buffer *b,
                        uint32_t *back, uint64_t granule, uint64_t huge_from, uint64_t huge)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        const struct fl_slot *s = &slot[i];
        uint64_t unit = huge > granule && s->size >= huge_from ? huge : granule;
        size_t places = s->kind == FL_SLOT_DOUBLED ? 2 : s->kind <= FL_SLOT_DOUBLED ? 1 : 0;
        for (size_t p = 0; p < places; p++) {
            back[count] = (uint32_t)(2 * i + p);
            b[count++] = (struct fl_pack_buffer){.size = fl_align_up(s->size, unit),
                                                 .align = fl_max(s->align, unit),
                                                 .birth = s->birth,
                                                 .death = s->death,
                                                 .previous = s->offset[p],
                                                 .zone = zone_at(s, p),
                                                 .offset = FL_PACK_NONE};
        }
    }
    return count;
}
