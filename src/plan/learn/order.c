/* The order of events in recorded steps, made one order.
 *
 * Every step has its own. A step's order is laid along the newest one's by a map that keeps it: a place for each event, none
 * before that of an earlier event. A slot is then born at the earliest place that any step's map has for its birth, and dies after
 * the latest for its death: whatever map, what lived at once in that step does so in the result. Of all maps the one is
 * taken that lengthens lives by the fewest bytes times places: isotonic regression with one-sided costs, by the method
 * of Rote, Isotonic Regression by Dynamic Programming, SOSA 2019: a heap holds where the cost bends. */
#include "plan/learn/merge.h"

#include <string.h>

struct event {
    uint64_t key;
    uint32_t id; /* twice the life or slot, one more for a birth */
};

struct bend {
    uint64_t weight;
    uint32_t place;
};

/* Deaths come before births of the same time, but not before their own. */
static uint64_t birth_key(const struct fl_lives *s, const struct fl_life *l)
{
    return (l->birth - s->begin) * 4 + 1;
}

static uint64_t death_key(const struct fl_lives *s, const struct fl_life *l)
{
    return (l->death - s->begin) * 4 + (l->death == l->birth ? 2 : 0);
}

size_t fl_order_scratch(size_t most)
{
    return fl_bump_cost(2 * most, sizeof(struct event)) * 2 +
           fl_bump_cost(2 * most, sizeof(struct bend)) + fl_bump_cost(2 * most, sizeof(uint32_t));
}

/* By key, a byte a pass. Returns which of the two arrays has the result. */
static struct event *sort(struct event *e, struct event *other, size_t n)
{
    uint64_t differ = 0;

    for (size_t i = 1; i < n; i++) {
        differ |= e[i].key ^ e[0].key;
    }
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t at[256] = {0}, sum = 0;
        if ((differ >> shift & 255) == 0) {
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            at[e[i].key >> shift & 255]++;
        }
        for (size_t b = 0; b < 256; b++) {
            size_t count = at[b];
            at[b] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++) {
            other[at[e[i].key >> shift & 255]++] = e[i];
        }
        struct event *t = e;
        e = other;
        other = t;
    }
    return e;
}

uint64_t fl_order_newest(const struct fl_lives *newest, struct fl_slot *slot, struct fl_bump room)
{
    struct event *e = fl_bump_carve(&room, 2 * newest->n, sizeof *e);
    struct event *other = fl_bump_carve(&room, 2 * newest->n, sizeof *e);
    size_t n = 0;

    for (size_t i = 0; i < newest->n; i++) {
        const struct fl_life *l = &newest->life[i];
        e[n++] = (struct event){birth_key(newest, l), (uint32_t)(2 * i + 1)};
        if (l->death <= newest->end) {
            e[n++] = (struct event){death_key(newest, l), (uint32_t)(2 * i)};
        }
    }
    e = sort(e, other, n);
    for (size_t i = 0; i < newest->n; i++) {
        slot[i].death = n;
    }
    for (size_t i = 0; i < n; i++) {
        struct fl_slot *s = &slot[e[i].id / 2];
        *(e[i].id % 2 != 0 ? &s->birth : &s->death) = i;
    }
    return n;
}

/* A heap, the latest place on top. */
static void push(struct bend *heap, size_t *n, struct bend b)
{
    size_t i = (*n)++;

    while (i > 0 && heap[(i - 1) / 2].place < b.place) {
        heap[i] = heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    heap[i] = b;
}

static void pop(struct bend *heap, size_t *n)
{
    struct bend last = heap[--*n];
    size_t i = 0;

    for (;;) {
        size_t c = 2 * i + 1;
        if (c + 1 < *n && heap[c + 1].place > heap[c].place) {
            c++;
        }
        if (c >= *n || heap[c].place <= last.place) {
            break;
        }
        heap[i] = heap[c];
        i = c;
    }
    heap[i] = last;
}

/* Takes `weight` off the top. */
static void drop(struct bend *heap, size_t *n, uint64_t weight)
{
    while (weight > 0) {
        uint64_t part = fl_min(weight, heap[0].weight);
        heap[0].weight -= part;
        weight -= part;
        if (heap[0].weight == 0) {
            pop(heap, n);
        }
    }
}

static size_t planned_events(const struct fl_lives *step, const uint32_t *match,
                             const struct fl_slot *slot, size_t n, struct event *e)
{
    size_t count = 0;

    for (size_t i = 0; i < n; i++) {
        if (slot[i].kind == FL_SLOT_PLANNED && match[i] != FL_MERGE_NONE) {
            const struct fl_life *l = &step->life[match[i]];
            e[count++] = (struct event){birth_key(step, l), (uint32_t)(2 * i + 1)};
            e[count++] = (struct event){death_key(step, l), (uint32_t)(2 * i)};
        }
    }
    return count;
}

void fl_order_cover(const struct fl_lives *step, const uint32_t *match, struct fl_slot *slot,
                    size_t n, struct fl_bump room)
{
    struct event *e = fl_bump_carve(&room, 2 * n, sizeof *e);
    struct event *other = fl_bump_carve(&room, 2 * n, sizeof *e);
    struct bend *heap = fl_bump_carve(&room, 2 * n, sizeof *heap);
    uint32_t *best = fl_bump_carve(&room, 2 * n, sizeof *best);
    size_t events = planned_events(step, match, slot, n, e), bends = 0;

    e = sort(e, other, events);
    /* Up to each event: the place for it that makes those so far cheapest, whatever comes. */
    for (size_t i = 0; i < events; i++) {
        const struct fl_slot *s = &slot[e[i].id / 2];
        uint64_t weight = (s->size >> 12) + 1; /* a size below 2^48: all of them fit in 64 bits */
        if (e[i].id % 2 != 0) {
            push(heap, &bends, (struct bend){weight, (uint32_t)s->birth});
        } else {
            push(heap, &bends, (struct bend){weight, (uint32_t)s->death - 1});
            drop(heap, &bends, weight);
        }
        best[i] = heap[0].place;
    }
    uint32_t place = UINT32_MAX;
    for (size_t i = events; i-- > 0;) {
        struct fl_slot *s = &slot[e[i].id / 2];
        place = (uint32_t)fl_min(place, best[i]);
        if (e[i].id % 2 != 0) {
            s->birth = fl_min(s->birth, place);
        } else {
            s->death = fl_max(s->death, (uint64_t)place + 1);
        }
    }
}

uint64_t fl_order_peak(const struct fl_lives *step, const struct fl_slot *size, struct fl_bump room)
{
    struct event *e = fl_bump_carve(&room, 2 * step->n, sizeof *e);
    struct event *other = fl_bump_carve(&room, 2 * step->n, sizeof *e);
    uint64_t live = 0, peak = 0;
    size_t n = 0;

    for (size_t i = 0; i < step->n; i++) {
        const struct fl_life *l = &step->life[i];
        if (l->death == FL_LIFE_NEVER) {
            continue;
        }
        uint64_t key = death_key(step, l);
        if (l->death > step->end) {
            /* the one of the step before is here until then */
            key = fl_min(l->death - step->end, step->end - step->begin) * 4;
            live += size != NULL ? size[i].size : l->size;
        }
        e[n++] = (struct event){birth_key(step, l), (uint32_t)(2 * i + 1)};
        e[n++] = (struct event){key, (uint32_t)(2 * i)};
    }
    e = sort(e, other, n);
    peak = live;
    for (size_t i = 0; i < n; i++) {
        uint32_t id = e[i].id / 2;
        uint64_t bytes = size != NULL ? size[id].size : step->life[id].size;
        live = e[i].id % 2 != 0 ? live + bytes : live - bytes;
        peak = fl_max(peak, live);
    }
    return peak;
}

uint64_t fl_order_bound(const struct fl_slot *slot, size_t n, uint64_t horizon, struct fl_bump room)
{
    uint64_t *change = fl_bump_carve(&room, horizon + 1, sizeof *change);
    uint64_t live = 0, peak = 0;

    memset(change, 0, (horizon + 1) * sizeof *change);
    for (size_t i = 0; i < n; i++) {
        if (slot[i].kind <= FL_SLOT_DOUBLED) {
            uint64_t bytes = slot[i].size << (slot[i].kind == FL_SLOT_DOUBLED);
            change[slot[i].birth] += bytes;
            change[slot[i].death] -= bytes;
        }
    }
    for (uint64_t at = 0; at < horizon; at++) {
        live += change[at];
        peak = fl_max(peak, live);
    }
    return peak;
}
