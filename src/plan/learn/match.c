/* Which request of one step is which of another: edit distance in a band that follows the best
 * path. */
#include "plan/learn/merge.h"

#include <stdlib.h>

/* Two requests are taken for one unless they differ by more than it costs to call both missing: 32
 * times in size. */
enum { BAND = 32, GAP = 6, FAR = 1 << 30, DIAGONAL = 0, MISSING = 1, INSERTED = 2 };

/* Of a row of the table, two bits a place: how the best path comes there. A row is a prefix of the
 * newest step's requests, a place one of the other's; the band's first is `base`. */
struct row {
    uint64_t from;
    uint32_t base;
};

/* One thread's requests. */
struct table {
    const struct fl_life *a, *b; /* in the newest step and the other, and how many */
    size_t na, nb;
    uint64_t a_end, b_end; /* of the steps */
    int scale;             /* half octaves by which the other step is larger as a whole */
    struct row *row;       /* na + 1 */
    uint32_t cost[2][BAND];
};

size_t fl_match_scratch(size_t newest)
{
    return fl_bump_cost(newest + 1, sizeof(struct row));
}

/* In half octaves. */
static int log_of(uint64_t size)
{
    int bit = 63 - __builtin_clzll(size | 1);

    return 2 * bit + (bit > 0 ? (int)(size >> (bit - 1)) & 1 : 0);
}

/* Sizes may be the same, or all have moved by the same factor; what other requests there are
 * lengthens a lifetime a little. */
static uint32_t unlike(const struct table *t, const struct fl_life *a, const struct fl_life *b)
{
    uint64_t la = fl_min(a->death, t->a_end) - a->birth, lb = fl_min(b->death, t->b_end) - b->birth;
    uint64_t longer = la > lb ? la - lb : lb - la;
    uint32_t cost = longer == 0 ? 0 : longer <= 2 + la / 8 ? 1 : 3;

    if (a->size != b->size) {
        int apart = log_of(b->size) - log_of(a->size);
        cost += 2 + (uint32_t)fl_min((size_t)abs(apart), (size_t)abs(apart - t->scale));
    }
    return cost;
}

/* Row i at places base .. base + BAND of the other step, from the row before it. */
static void fill_row(struct table *t, size_t i)
{
    const uint32_t *up = t->cost[(i - 1) % 2];
    uint32_t *cost = t->cost[i % 2];
    size_t base = t->row[i].base, shift = base - t->row[i - 1].base;
    uint64_t from = 0;

    for (size_t k = 0; k < BAND; k++) {
        size_t j = base + k, d = k + shift;
        uint32_t best = FAR, by = DIAGONAL;
        if (j <= t->nb) {
            if (d >= 1 && d <= BAND && up[d - 1] < FAR) {
                best = up[d - 1] + unlike(t, &t->a[i - 1], &t->b[j - 1]);
            }
            if (d < BAND && up[d] + GAP < best) {
                best = up[d] + GAP;
                by = MISSING;
            }
            if (k > 0 && cost[k - 1] + GAP < best) {
                best = cost[k - 1] + GAP;
                by = INSERTED;
            }
        }
        cost[k] = best;
        from |= (uint64_t)by << (2 * k);
    }
    t->row[i].from = from;
}

/* Where the next row's band begins: with the best place of this one in its middle. */
static uint32_t next_base(const struct table *t, size_t i)
{
    const uint32_t *cost = t->cost[i % 2];
    size_t best = BAND / 2 - 1; /* where it was, unless another is better */

    for (size_t k = 0; k < BAND; k++) {
        if (cost[k] < cost[best]) {
            best = k;
        }
    }
    size_t base = t->row[i].base, ahead = best + 1 > BAND / 2 - 1 ? best + 1 - (BAND / 2 - 1) : 0;
    /* at the start the path is in the band's lower half: the band waits for it */
    return (uint32_t)fl_min(base + fl_min(ahead, BAND / 2), t->nb);
}

static void fill(struct table *t)
{
    t->row[0] = (struct row){0, 0};
    for (uint32_t k = 0; k < BAND; k++) {
        t->cost[0][k] = k <= t->nb ? k * GAP : FAR;
        t->row[0].from |= (uint64_t)INSERTED << (2 * k);
    }
    for (size_t i = 1; i <= t->na; i++) {
        t->row[i].base = i == 1 ? 0 : next_base(t, i - 1);
        fill_row(t, i);
    }
}

/* From the last row back. `match` gets numbers of the other step's lives, of which `first` is the
 * thread's first. Returns how many have one. */
static size_t trace(const struct table *t, uint32_t *match, size_t first)
{
    const uint32_t *cost = t->cost[t->na % 2];
    size_t i = t->na, base = t->row[i].base, j = base, least = SIZE_MAX, n = 0;

    for (size_t k = 0; k < BAND && base + k <= t->nb; k++) {
        size_t whole = cost[k] + (t->nb - base - k) * GAP;
        if (cost[k] < FAR && whole <= least) {
            least = whole;
            j = base + k;
        }
    }
    while (i > 0) {
        uint64_t by = t->row[i].from >> (2 * (j - t->row[i].base)) & 3;
        if (by == INSERTED) {
            j--;
            continue;
        }
        match[--i] = by == DIAGONAL ? (uint32_t)(first + --j) : FL_MERGE_NONE;
        n += by == DIAGONAL;
    }
    return n;
}

static int log_of_all(const struct fl_life *life, size_t n)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < n; i++) {
        sum += life[i].size;
    }
    return log_of(sum);
}

static size_t thread_end(const struct fl_lives *s, size_t from)
{
    size_t to = from;

    while (to < s->n && s->life[to].thread == s->life[from].thread) {
        to++;
    }
    return to;
}

size_t fl_match_steps(const struct fl_lives *newest, const struct fl_lives *other, uint32_t *match,
                      struct fl_bump room)
{
    struct table t = {.a_end = newest->end, .b_end = other->end};
    size_t n = 0, b = 0, b_end = 0;

    t.row = fl_bump_carve(&room, newest->n + 1, sizeof *t.row);
    for (size_t a = 0, a_end; a < newest->n; a = a_end) {
        uint32_t thread = newest->life[a].thread;
        a_end = thread_end(newest, a);
        for (b = b_end; b < other->n && other->life[b].thread < thread; b++) {
        }
        b_end = b < other->n && other->life[b].thread == thread ? thread_end(other, b) : b;
        t.a = newest->life + a;
        t.b = other->life + b;
        t.na = a_end - a;
        t.nb = b_end - b;
        t.scale = log_of_all(t.b, t.nb) - log_of_all(t.a, t.na);
        fill(&t);
        n += trace(&t, match + a, b);
    }
    return n;
}
