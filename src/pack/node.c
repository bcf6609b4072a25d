/* One node of the depth-first search: who comes next, what that does to the others, whether they can still fit. */
#include "pack/search.h"

/* ---- ranks ---- */

static double blurred(struct fl_search *s, double v)
{
    if (s->noise == 0) {
        return v;
    }
    double u = (double)(fl_pack_random(&s->r->random) >> 11) * 0x1p-53;
    return v * (1 + s->noise * (2 * u - 1));
}

/* The three keys of an item in the order in which they count; more comes first. */
static void keys_of(struct fl_search *s, const struct fl_item *x, double k[3])
{
    uint64_t most = 0;

    for (uint32_t i = x->start; i < x->end; i++) {
        most = s->left[i] > most ? s->left[i] : most;
    }
    double hot = (double)most, life = blurred(s, (double)(x->end - x->start));
    double area = blurred(s, (double)(x->end - x->start) * (double)x->size);
    switch (s->order) {
    case 0:
        k[0] = hot, k[1] = life, k[2] = area;
        break;
    case 1:
        k[0] = life, k[1] = area, k[2] = hot;
        break;
    default:
        k[0] = hot, k[1] = area, k[2] = life;
        break;
    }
}

static void push_trail(struct fl_search *s, uint32_t id, enum fl_trail_kind kind, uint64_t was)
{
    if (s->trail_len < s->trail_room) {
        s->trail[s->trail_len++] = (struct fl_trail){.was = was, .id = id, .kind = kind};
    } else {
        s->is_cut = true;
    }
}

/* Ascending by the three keys; the best is last. */
static void sort_items(struct fl_search *s, uint32_t n)
{
    for (unsigned k = 3; k-- > 0;) {
        (void)fl_pack_sort(s->arena, s->sorted, s->key + k * (size_t)s->n, n);
    }
}

void fl_node_rank(struct fl_search *s, struct fl_problem q, bool is_root)
{
    uint32_t n = q.hi - q.lo;

    for (uint32_t i = 0; i < n; i++) {
        double k[3];
        keys_of(s, &s->item[q.lo + i], k);
        for (unsigned f = 0; f < 3; f++) {
            s->key[f * (size_t)s->n + i] = fl_pack_order_of(k[f]);
        }
        s->sorted[i] = i;
    }
    sort_items(s, n);
    for (uint32_t i = 0; i < n; i++) {
        struct fl_item *x = &s->item[q.lo + s->sorted[i]];
        if (!is_root) {
            push_trail(s, x->id, FL_TRAIL_RANK, x->rank);
        }
        x->rank = n - i;
    }
}

/* ---- is there room? ---- */

/* Where the search has come past an item, it can only lie on one that is still to be placed: finds from where on each can
 * begin in the end. False: one has nothing left to lie on, or no room there. */
static bool find_least(struct fl_search *s, struct fl_problem q, uint64_t at, uint32_t at_rank)
{
    for (uint32_t i = q.lo; i < q.hi; i++) {
        const struct fl_item *x = &s->item[i];
        s->least[x->id] = x->low;
        if (x->low > at || (x->low == at && x->rank > at_rank)) {
            continue;
        }
        uint64_t least = UINT64_MAX;
        for (uint32_t k = q.lo; k < q.hi; k++) {
            const struct fl_item *y = &s->item[k];
            if (k == i || y->start >= x->end || y->end <= x->start) {
                continue;
            }
            uint64_t top = (y->low > at ? y->low : at) + y->size;
            least = top < least ? top : least;
        }
        if (least == UINT64_MAX || least + x->size > s->capacity) {
            return false;
        }
        s->least[x->id] = least;
    }
    return true;
}

/* Each section in which something is left needs one item that can begin low enough for all of them to fit. */
static bool has_room(struct fl_search *s, struct fl_problem q)
{
    for (uint32_t i = q.from; i < q.to; i++) {
        if (s->left[i] == 0) {
            continue;
        }
        uint64_t most = s->capacity - s->left[i];
        uint32_t guess = s->witness[i];
        if (s->item[s->place[guess]].low != UINT64_MAX && s->least[guess] <= most) {
            continue;
        }
        uint32_t found = q.lo;
        for (; found < q.hi; found++) {
            const struct fl_item *x = &s->item[found];
            if (x->start <= i && x->end > i && s->least[x->id] <= most) {
                break;
            }
        }
        if (found == q.hi) {
            return false;
        }
        s->witness[i] = s->item[found].id;
    }
    return true;
}

bool fl_node_open(struct fl_search *s, struct fl_problem q, uint64_t at, uint32_t at_rank)
{
    uint64_t most = 0;

    for (uint32_t i = q.from; i < q.to; i++) {
        most = s->left[i] > most ? s->left[i] : most;
    }
    if (most > s->capacity || at > s->capacity - most) {
        return false;
    }
    s->node[s->depth++] = (struct fl_node){
        .problem = q,
        .at = at,
        .at_rank = at_rank,
        .last_offset = at,
        .last_rank = at_rank,
        .highest = s->capacity - most,
        .trail = s->trail_len,
        .problems = s->problems,
    };
    return true;
}

/* ---- placing ---- */

static void swap_items(struct fl_search *s, uint32_t a, uint32_t b)
{
    struct fl_item x = s->item[a];

    s->item[a] = s->item[b];
    s->item[b] = x;
    s->place[s->item[a].id] = a;
    s->place[x.id] = b;
}

/* Takes item `i` out of the problem and puts it as low as it can lie; what lives with it lies above. */
static void put(struct fl_search *s, struct fl_node *node, struct fl_problem *q, uint32_t i)
{
    swap_items(s, i, --q->hi);
    struct fl_item *x = &s->item[q->hi];
    uint64_t top = x->low + x->size;
    const uint64_t *mask = s->r->mask + s->p->lo;

    s->r->offset[s->p->lo + x->id] = x->low;
    push_trail(s, x->id, FL_TRAIL_PLACED, x->low);
    x->low = UINT64_MAX;
    node->is_open = false;
    for (uint32_t k = x->start; k < x->end; k++) {
        s->left[k] -= x->size;
        if (k > x->start) {
            node->is_open |= --s->cross[k] == 0;
        }
    }
    node->is_alone = true;
    for (uint32_t k = q->lo; k < q->hi; k++) {
        struct fl_item *y = &s->item[k];
        if (y->start >= x->end || y->end <= x->start) {
            continue;
        }
        node->is_alone = false;
        uint64_t m = mask[y->id], low = (top + m) & ~m;
        if (low > y->low) {
            push_trail(s, y->id, FL_TRAIL_LOW, y->low);
            y->low = low;
        }
    }
}

void fl_node_undo(struct fl_search *s, uint32_t len)
{
    while (s->trail_len > len) {
        struct fl_trail t = s->trail[--s->trail_len];
        struct fl_item *x = &s->item[s->place[t.id]];
        if (t.kind == FL_TRAIL_RANK) {
            x->rank = (uint32_t)t.was;
            continue;
        }
        x->low = t.was;
        if (t.kind == FL_TRAIL_PLACED) {
            for (uint32_t k = x->start; k < x->end; k++) {
                s->left[k] += x->size;
                s->cross[k] += k > x->start;
            }
        }
    }
}

/* ---- what is left, in parts that do not see each other ---- */

static void push_problem(struct fl_search *s, struct fl_problem q)
{
    if (q.lo < q.hi) {
        s->problem[s->problems++] = q;
    }
}

/* Cuts the problem at each boundary that nothing crosses: the items of a stretch come to lie side by side. */
static void push_parts(struct fl_search *s, struct fl_problem q)
{
    uint32_t from = q.from, lo = q.lo;

    for (uint32_t i = q.from + 1; i < q.to; i++) {
        if (s->cross[i] != 0 || s->left[i - 1] == 0) {
            continue;
        }
        uint32_t at = lo;
        for (uint32_t k = lo; k < q.hi; k++) {
            if (s->item[k].end <= i) {
                swap_items(s, k, at++);
            }
        }
        push_problem(s, (struct fl_problem){lo, at, from, i});
        lo = at;
        from = i;
    }
    push_problem(s, (struct fl_problem){lo, q.hi, from, q.to});
}

/* ---- candidates ---- */

static bool is_after(const struct fl_item *x, uint64_t offset, uint32_t rank)
{
    return x->low > offset || (x->low == offset && x->rank > rank);
}

/* The item that comes next in order of (offset, rank); UINT32_MAX: none that makes sense. What could lie wholly below a
 * candidate would have come before. */
static uint32_t candidate(const struct fl_search *s, const struct fl_node *node)
{
    uint64_t highest = node->highest, best_low = UINT64_MAX;
    uint32_t best = UINT32_MAX, best_rank = 0;

    for (uint32_t i = node->problem.lo; i < node->problem.hi; i++) {
        const struct fl_item *x = &s->item[i];
        if (x->low + x->size <= highest) {
            highest = x->low + x->size - 1;
        }
        if (x->low > best_low || (x->low == best_low && x->rank > best_rank) ||
            !is_after(x, node->last_offset, node->last_rank)) {
            continue;
        }
        if (s->twin[x->id] != UINT32_MAX && s->item[s->place[s->twin[x->id]]].low != UINT64_MAX) {
            continue;
        }
        best = i;
        best_low = x->low;
        best_rank = x->rank;
    }
    return best_low <= highest ? best : UINT32_MAX;
}

bool fl_node_next(struct fl_search *s, struct fl_node *node)
{
    for (;;) {
        uint32_t i = candidate(s, node);
        if (i == UINT32_MAX || (node->is_tried && node->is_alone)) {
            return false;
        }
        struct fl_problem q = node->problem;
        node->last_offset = s->item[i].low;
        node->last_rank = s->item[i].rank;
        node->is_tried = true;
        put(s, node, &q, i);
        if (s->is_cut) {
            return false;
        }
        if (find_least(s, q, node->last_offset, node->last_rank) && has_room(s, q)) {
            node->part = s->problems;
            if (node->is_open) {
                push_parts(s, q);
            } else {
                push_problem(s, q);
            }
            node->parts = s->problems;
            return true;
        }
        fl_node_undo(s, node->trail);
        if (fl_pack_spend(s->r, 1 + s->n / 64) || s->r->work >= s->end_work) {
            s->is_cut = true;
            return false;
        }
    }
}
