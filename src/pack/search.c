/* Depth first over canonical layouts below a given height. Where a search goes wrong near its root it goes wrong for good, so
 * that many short ones are made, from different orders, each round longer than the one before. */
#include "pack/search.h"

#include <string.h>

/* ---- one dive ---- */

static bool carve(struct fl_search *s)
{
    struct fl_pack_arena *a = &s->arena;
    size_t n = s->n, sections = s->sections;

    s->item = fl_pack_carve(a, n, sizeof *s->item);
    s->place = fl_pack_carve(a, n, sizeof *s->place);
    s->twin = fl_pack_carve(a, n, sizeof *s->twin);
    s->left = fl_pack_carve(a, sections + 1, sizeof *s->left);
    s->cross = fl_pack_carve(a, sections + 1, sizeof *s->cross);
    s->least = fl_pack_carve(a, n, sizeof *s->least);
    s->witness = fl_pack_carve(a, sections + 1, sizeof *s->witness);
    s->node = fl_pack_carve(a, n + 2, sizeof *s->node);
    s->problem = fl_pack_carve(a, 2 * n + 2, sizeof *s->problem);
    s->key = fl_pack_carve(a, 3 * n, sizeof *s->key);
    s->sorted = fl_pack_carve(a, n, sizeof *s->sorted);
    if (s->item == NULL || s->place == NULL || s->twin == NULL || s->left == NULL ||
        s->cross == NULL || s->least == NULL || s->witness == NULL || s->node == NULL ||
        s->problem == NULL || s->key == NULL || s->sorted == NULL) {
        return false;
    }
    size_t check = s->r->n * 80 + (size_t)16 * FL_KIB, room = (size_t)(a->end - a->at);
    if (room < check + 4 * n * sizeof *s->trail) {
        return false;
    }
    s->trail_room = (uint32_t)fl_min((room - check) / sizeof *s->trail, n * (n + 8));
    s->trail = fl_pack_carve(a, s->trail_room, sizeof *s->trail);
    return s->trail != NULL;
}

/* Nothing is placed. */
static void begin(struct fl_search *s)
{
    const struct fl_pack_run *r = s->r;
    const struct fl_pack_part *p = s->p;

    memset(s->left, 0, (s->sections + 1) * sizeof *s->left);
    memset(s->cross, 0, (s->sections + 1) * sizeof *s->cross);
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t b = p->lo + i;
        struct fl_item x = {.size = r->size[b],
                            .start = r->start[b] - p->from,
                            .end = r->end[b] - p->from,
                            .id = i,
                            .low = p->floor};
        for (uint32_t k = x.start; k < x.end; k++) {
            uint64_t floor = r->floor[p->from + k];
            x.low = floor > x.low ? floor : x.low;
            s->left[k] += x.size;
            s->cross[k] += k > x.start;
            s->witness[k] = i;
        }
        x.low = (x.low + r->mask[b]) & ~r->mask[b];
        s->item[i] = x;
        s->place[i] = i;
    }
    s->depth = s->problems = s->trail_len = 0;
    s->is_cut = false;
}

/* The one before that has the same life, size and alignment. Buffers stand in order of birth, so it is not far. */
static void find_twins(struct fl_search *s)
{
    const struct fl_pack_run *r = s->r;

    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t b = s->p->lo + i;
        s->twin[i] = UINT32_MAX;
        for (uint32_t c = b; c-- > s->p->lo && r->start[c] == r->start[b];) {
            if (r->end[c] == r->end[b] && r->size[c] == r->size[b] && r->mask[c] == r->mask[b]) {
                s->twin[i] = c - s->p->lo;
                break;
            }
        }
    }
}

/* Goes on with the next problem that the last try of the node on top left. */
static bool open_next(struct fl_search *s)
{
    struct fl_node *node = &s->node[s->depth - 1];
    struct fl_problem q = s->problem[node->part];
    bool is_other = node->parts - node->problems > 1;

    node->part++;
    if (is_other) {
        fl_node_rank(s, q, false);
    }
    return fl_node_open(s, q, node->last_offset, is_other ? 0 : node->last_rank);
}

/* True: a layout of at most s->capacity is in r->offset. Else is_cut says whether there may be one. */
static bool dive(struct fl_search *s, uint64_t limit)
{
    struct fl_problem all = {0, s->n, 0, s->sections};
    bool is_solved = false;

    begin(s);
    fl_node_rank(s, all, true);
    if (!fl_node_open(s, all, 0, 0)) {
        return false;
    }
    s->end_work = s->r->work + limit;
    while (s->depth > 0 && !s->is_cut) {
        struct fl_node *node = &s->node[s->depth - 1];
        if (!is_solved) {
            fl_node_undo(s, node->trail);
            s->problems = node->problems;
            if (fl_pack_spend(s->r, 1 + s->n / 64) || s->r->work >= s->end_work) {
                s->is_cut = true;
            } else if (!fl_node_next(s, node)) {
                s->depth--;
                continue;
            }
        }
        if (node->part == node->parts) {
            is_solved = true;
            s->depth--;
        } else {
            is_solved = false;
            (void)open_next(s);
        }
    }
    return is_solved && !s->is_cut;
}

static uint64_t height_of(const struct fl_pack_run *r, const struct fl_pack_part *p)
{
    uint64_t height = 0;

    for (uint32_t i = p->lo; i < p->hi; i++) {
        uint64_t top = r->offset[i] + r->size[i];
        height = top > height ? top : height;
    }
    return height;
}

/* Looks for a layout of at most `capacity`; keeps it. */
static bool try_height(struct fl_search *s, struct fl_pack_part *p, uint64_t capacity,
                       unsigned order, double noise, uint64_t limit)
{
    static const char *const name[FL_PACK_ORDERS] = {"search, hot first", "search, life first",
                                                     "search, hot then area"};

    s->capacity = capacity;
    s->order = order;
    s->noise = noise;
    if (dive(s, limit)) {
        struct fl_pack_arena kept = s->r->arena;
        s->r->by = name[order];
        s->r->arena = s->arena; /* the check needs some, and the search has not ended */
        fl_pack_keep(s->r, p, height_of(s->r, p));
        s->r->arena = kept;
        return true;
    }
    if (!s->is_cut && capacity >= p->floor + p->bound) {
        p->bound = capacity + 1 - p->floor;
    }
    return false;
}

/* ---- which heights ---- */

enum { FL_FEW = 32 }; /* so few buffers are looked through to the end */

static double unit_random(struct fl_search *s)
{
    return (double)(fl_pack_random(&s->r->random) >> 11) * 0x1p-53;
}

/* Each order once; true: one found a layout. */
static bool try_orders(struct fl_search *s, struct fl_pack_part *p, uint64_t height, double noise,
                       uint64_t limit)
{
    for (unsigned order = 0; order < FL_PACK_ORDERS && !s->r->is_over; order++) {
        if (try_height(s, p, height, order, noise, limit)) {
            return true;
        }
    }
    return false;
}

/* Short dives, halving what is between the goal and the best. */
static void bisect(struct fl_search *s, struct fl_pack_part *p, uint64_t goal, uint64_t limit)
{
    uint64_t low = goal;

    for (unsigned i = 0; i < 10 && !s->r->is_over && p->height > low + 1; i++) {
        uint64_t mid = low + (p->height - low) / 2;
        if (!try_orders(s, p, mid, 0, limit)) {
            low = mid;
        }
    }
}

/* Exact dives that soon grow long find what blurred short ones do not, and the other way round: both get the same work. And
 * one dive somewhere above the goal, for where that is out of reach. */
void fl_pack_search(struct fl_pack_run *r, uint32_t part, struct fl_pack_hunt *h, uint64_t goal)
{
    struct fl_pack_part *p = &r->part[part];
    struct fl_search s = {
        .r = r, .p = p, .n = p->hi - p->lo, .sections = p->to - p->from, .arena = r->arena};
    uint64_t limit = s.n <= FL_FEW ? 4096 : 5 * (uint64_t)s.n;

    if (s.n > FL_PACK_SEARCH_MOST || !carve(&s)) {
        return;
    }
    find_twins(&s);
    if (h->part != part) {
        *h = (struct fl_pack_hunt){.part = part, .limit = {limit, limit}};
        if (!try_orders(&s, p, goal, 0, limit)) {
            bisect(&s, p, goal, limit);
        }
    }
    bool is_blurred = h->work[1] < h->work[0];
    uint64_t before = r->work;
    if (p->height > goal && try_orders(&s, p, goal, is_blurred ? 0.15 : 0, h->limit[is_blurred])) {
        return;
    }
    h->work[is_blurred] += r->work - before;
    h->limit[is_blurred] += h->limit[is_blurred] / (is_blurred ? 20 : 2);
    if (p->height > goal + 1 && !r->is_over) {
        uint64_t height = goal + (uint64_t)((double)(p->height - goal) * unit_random(&s));
        double noise = unit_random(&s) < 0.5 ? 0.15 : 0;
        unsigned order = (unsigned)(fl_pack_random(&r->random) % FL_PACK_ORDERS);
        (void)try_height(&s, p, height, order, noise, limit);
    }
}
