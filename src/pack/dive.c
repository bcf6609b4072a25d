/* Depth first over canonical layouts below a given height.
 *
 * Blocks are placed in order of offset, each at the lowest offset that what is placed below
 * allows: every layout can be brought into that form without growing. A node is a set of blocks
 * that are not placed (a *problem*) and the offset it has come to. The items of a problem lie
 * side by side in `item`; one that is placed goes behind the others, so that the way back need
 * not restore the order. Where nothing that is left crosses some time, what is left falls apart
 * into several problems. */
#include "pack/run.h"

#include <string.h>

struct item {
    uint64_t low; /* the lowest offset it can have yet; UINT64_MAX: placed */
    uint64_t size, mask;
    uint32_t start, end; /* sections, from the part's first */
    uint64_t least;      /* the lowest offset that it can have in the end */
    uint32_t rank;       /* who is tried first at equal offsets: 1, 2, ... */
    uint32_t block;
};

struct problem {
    uint32_t lo, hi;   /* items */
    uint32_t from, to; /* sections that hold all of theirs */
};

struct node {
    struct problem problem;
    uint64_t highest;  /* offset that can do */
    uint64_t offset;   /* of what was tried last, or of what the node before tried */
    uint32_t rank;     /* likewise: nothing lower in order of (offset, rank) is tried any more */
    uint32_t trail;    /* its length when the node began */
    uint32_t problems; /* likewise */
    uint32_t next,
        after; /* problems that the last try left: [next, after) are still to be solved */
};

struct trail {
    uint64_t low; /* before */
    uint32_t rank;
};

struct dive {
    struct fl_pack_run *r;
    uint32_t n, sections;
    uint64_t capacity;
    uint64_t limit; /* placements that are left */

    struct item *item;
    uint32_t *place; /* of each rank: its item */
    uint64_t *left;  /* of each section: bytes that are not placed */
    uint32_t *cross; /* of each section: items that live in it and in the one before, not placed */
    uint32_t *witness; /* of each section: a rank that can lie low enough; a guess */
    struct node *node;
    struct problem *problem; /* stack */
    struct trail *trail;
    uint32_t depth, problems, trail_len, trail_room;
    bool is_cut; /* not everything was looked at; what is placed is not known any more */
};

static bool carve(struct dive *d, struct fl_bump *room)
{
    size_t n = d->n, sections = d->sections;

    d->item = fl_bump_carve(room, n, sizeof *d->item);
    d->place = fl_bump_carve(room, n + 1, sizeof *d->place);
    d->left = fl_bump_carve(room, sections, sizeof *d->left);
    d->cross = fl_bump_carve(room, sections, sizeof *d->cross);
    d->witness = fl_bump_carve(room, sections, sizeof *d->witness);
    d->node = fl_bump_carve(room, n + 2, sizeof *d->node);
    d->problem = fl_bump_carve(room, 2 * n + 2, sizeof *d->problem);
    if (room->is_short) {
        return false;
    }
    d->trail_room =
        (uint32_t)fl_min((size_t)(room->end - room->at) / sizeof *d->trail, n * (n + 8));
    d->trail = (struct trail *)room->at;
    return d->trail_room >= 4 * n;
}

/* The tallest crowd during its lifetime first, then the longest lifetime, then the largest. */
static bool sort_items(struct dive *d, const struct fl_pack_block *block, double noise,
                       uint32_t *order, struct fl_bump room)
{
    uint64_t *life = fl_bump_carve(&room, d->n, sizeof *life);
    uint64_t *crowd = fl_bump_carve(&room, d->n, sizeof *crowd);

    for (uint32_t i = 0; i < d->n && !room.is_short; i++) {
        const struct fl_pack_block *b = &block[i];
        double sections = b->end - b->start + (double)b->size * 0x1p-48;
        uint64_t most = 0;
        for (uint32_t k = b->start; k < b->end; k++) {
            most = fl_max(most, d->left[k - block[0].start]);
        }
        if (noise != 0) {
            sections *= 1 + noise * (2 * fl_pack_random(d->r) - 1);
        }
        order[i] = i;
        life[i] = ~fl_pack_order_of(sections);
        crowd[i] = ~most;
    }
    return !room.is_short && fl_sort(order, life, d->n, room) && fl_sort(order, crowd, d->n, room);
}

/* Nothing is placed. */
static bool begin(struct dive *d, const struct fl_pack_part *p, double noise, struct fl_bump room)
{
    const struct fl_pack_block *block = d->r->block + p->lo;
    uint32_t *order = fl_bump_carve(&room, d->n, sizeof *order);

    memset(d->left, 0, d->sections * sizeof *d->left);
    memset(d->cross, 0, d->sections * sizeof *d->cross);
    for (const struct fl_pack_block *b = block; b < block + d->n; b++) {
        for (uint32_t k = b->start - p->from; k < b->end - p->from; k++) {
            d->left[k] += b->size;
            d->cross[k] += k > b->start - p->from;
        }
    }
    if (order == NULL || !sort_items(d, block, noise, order, room)) {
        return false;
    }
    for (uint32_t i = 0; i < d->n; i++) {
        const struct fl_pack_block *b = &block[order[i]];
        d->item[i] = (struct item){.size = b->size,
                                   .mask = b->mask,
                                   .start = b->start - p->from,
                                   .end = b->end - p->from,
                                   .rank = i + 1,
                                   .block = p->lo + order[i]};
        d->place[i + 1] = i;
        for (uint32_t k = d->item[i].start; k < d->item[i].end; k++) {
            d->witness[k] = i + 1;
        }
    }
    return true;
}

/* ---- is there room? ---- */

static bool meet(const struct item *a, const struct item *b)
{
    return a->start < b->end && b->start < a->end;
}

static bool is_after(const struct item *x, const struct node *node)
{
    return x->low > node->offset || (x->low == node->offset && x->rank > node->rank);
}

/* Where the node has come past an item, that can only lie on one that is still to be placed:
 * finds from where on each can begin in the end. False: one has nothing left to lie on, or no
 * room there. */
static bool find_least(struct dive *d, struct problem q, const struct node *node)
{
    for (uint32_t i = q.lo; i < q.hi; i++) {
        struct item *x = &d->item[i];
        if (is_after(x, node)) {
            x->least = x->low;
            continue;
        }
        x->least = UINT64_MAX;
        for (uint32_t k = q.lo; k < q.hi; k++) {
            const struct item *y = &d->item[k];
            if (k != i && meet(x, y)) {
                x->least = fl_min(x->least, fl_max(y->low, node->offset) + y->size);
            }
        }
        if (x->least == UINT64_MAX || x->least + x->size > d->capacity) {
            return false;
        }
    }
    return true;
}

/* Each section in which something is left needs one item that can begin low enough for all of
 * them to fit. */
static bool has_room(struct dive *d, struct problem q)
{
    for (uint32_t i = q.from; i < q.to; i++) {
        uint64_t most = d->capacity - d->left[i];
        const struct item *guess = &d->item[d->place[d->witness[i]]];
        uint32_t found = q.lo;
        if (d->left[i] == 0 || (guess->low != UINT64_MAX && guess->least <= most)) {
            continue;
        }
        for (; found < q.hi; found++) {
            const struct item *x = &d->item[found];
            if (x->start <= i && x->end > i && x->least <= most) {
                break;
            }
        }
        if (found == q.hi) {
            return false;
        }
        d->witness[i] = d->item[found].rank;
    }
    return true;
}

/* A node for `q`, from (offset, rank) on. False: it can have no layout. */
static bool open_node(struct dive *d, struct problem q, uint64_t offset, uint32_t rank)
{
    uint64_t most = 0;

    for (uint32_t i = q.from; i < q.to; i++) {
        most = fl_max(most, d->left[i]);
    }
    if (most > d->capacity || offset > d->capacity - most) {
        return false;
    }
    d->node[d->depth++] = (struct node){
        .problem = q,
        .highest = d->capacity - most,
        .offset = offset,
        .rank = rank,
        .trail = d->trail_len,
        .problems = d->problems,
    };
    return true;
}

/* ---- placing ---- */

static void swap_items(struct dive *d, uint32_t a, uint32_t b)
{
    struct item x = d->item[a];

    d->item[a] = d->item[b];
    d->item[b] = x;
    d->place[d->item[a].rank] = a;
    d->place[x.rank] = b;
}

static void set_low(struct dive *d, struct item *x, uint64_t low)
{
    if (d->trail_len == d->trail_room) {
        d->is_cut = true;
        return;
    }
    d->trail[d->trail_len++] = (struct trail){x->low, x->rank};
    x->low = low;
}

/* Takes item `i` out of the problem and puts it as low as it can lie; what lives with it lies
 * above. */
static void put(struct dive *d, struct node *node, struct problem *q, uint32_t i)
{
    swap_items(d, i, --q->hi);
    struct item *x = &d->item[q->hi];
    uint64_t top = x->low + x->size;

    d->r->block[x->block].offset = x->low;
    node->offset = x->low;
    node->rank = x->rank;
    set_low(d, x, UINT64_MAX);
    for (uint32_t k = x->start; k < x->end; k++) {
        d->left[k] -= x->size;
        d->cross[k] -= k > x->start;
    }
    for (uint32_t k = q->lo; k < q->hi; k++) {
        struct item *y = &d->item[k];
        if (meet(x, y)) {
            uint64_t low = (top + y->mask) & ~y->mask;
            if (low > y->low) {
                set_low(d, y, low);
            }
        }
    }
}

/* Takes back what was placed since the trail was `len` long. */
static void undo(struct dive *d, uint32_t len)
{
    while (d->trail_len > len) {
        struct trail t = d->trail[--d->trail_len];
        struct item *x = &d->item[d->place[t.rank]];
        if (x->low == UINT64_MAX) {
            for (uint32_t k = x->start; k < x->end; k++) {
                d->left[k] += x->size;
                d->cross[k] += k > x->start;
            }
        }
        x->low = t.low;
    }
}

/* What is left, cut at each time that nothing crosses: the items of a stretch come to lie side
 * by side. */
static void push_problems(struct dive *d, struct problem q)
{
    uint32_t from = q.from, lo = q.lo;

    for (uint32_t i = q.from + 1; i <= q.to && lo < q.hi; i++) {
        uint32_t at = lo;
        if (i < q.to && (d->cross[i] != 0 || d->left[i - 1] == 0)) {
            continue;
        }
        for (uint32_t k = lo; k < q.hi; k++) {
            if (d->item[k].end <= i) {
                swap_items(d, k, at++);
            }
        }
        if (lo < at) {
            d->problem[d->problems++] = (struct problem){lo, at, from, i};
        }
        lo = at;
        from = i;
    }
}

/* ---- candidates ---- */

/* The item that comes next in order of (offset, rank); UINT32_MAX: none that makes sense. What
 * could lie wholly below a candidate would have come before. */
static uint32_t candidate(const struct dive *d, const struct node *node)
{
    uint64_t highest = node->highest;
    const struct item *best = NULL;

    for (uint32_t i = node->problem.lo; i < node->problem.hi; i++) {
        const struct item *x = &d->item[i];
        highest = fl_min(highest, x->low + x->size - 1);
        if (is_after(x, node) &&
            (best == NULL || x->low < best->low || (x->low == best->low && x->rank < best->rank))) {
            best = x;
        }
    }
    return best != NULL && best->low <= highest ? (uint32_t)(best - d->item) : UINT32_MAX;
}

/* Counts a placement. True: stop. */
static bool spend(struct dive *d)
{
    d->is_cut |= fl_pack_spend(d->r, 1 + d->n / 64) || d->limit-- == 0;
    return d->is_cut;
}

/* Places the node's next candidate and pushes the problems that are left. False: there is no
 * candidate. One after which some section is too full is passed over. */
static bool try_next(struct dive *d, struct node *node)
{
    while (!spend(d)) {
        uint32_t i = candidate(d, node);
        if (i == UINT32_MAX) {
            return false;
        }
        struct problem q = node->problem;
        put(d, node, &q, i);
        if (d->is_cut) {
            return false;
        }
        if (find_least(d, q, node) && has_room(d, q)) {
            node->next = d->problems;
            push_problems(d, q);
            node->after = d->problems;
            return true;
        }
        undo(d, node->trail);
    }
    return false;
}

/* Goes on from the node on top until the first one is solved, or has no candidate left. */
static bool solve(struct dive *d)
{
    bool is_solved = false;

    while (d->depth > 0 && !d->is_cut) {
        struct node *node = &d->node[d->depth - 1];
        if (!is_solved) {
            undo(d, node->trail);
            d->problems = node->problems;
            if (!try_next(d, node)) {
                d->depth--;
                continue;
            }
        }
        is_solved = node->next == node->after;
        if (is_solved) {
            d->depth--;
        } else {
            (void)open_node(d, d->problem[node->next++], node->offset, node->rank);
        }
    }
    return is_solved && !d->is_cut;
}

enum fl_dive_end fl_pack_dive(struct fl_pack_run *r, const struct fl_pack_part *p,
                              uint64_t capacity, double noise, uint64_t limit)
{
    struct dive d = {.r = r,
                     .n = p->hi - p->lo,
                     .sections = p->to - p->from,
                     .capacity = capacity,
                     .limit = limit};
    struct fl_bump room = r->room;
    struct problem all = {0, d.n, 0, d.sections};

    if (!carve(&d, &room) || !begin(&d, p, noise, room)) {
        return FL_DIVE_CUT;
    }
    if (open_node(&d, all, 0, 0) && solve(&d)) {
        return FL_DIVE_FOUND;
    }
    return d.is_cut ? FL_DIVE_CUT : FL_DIVE_NONE;
}
