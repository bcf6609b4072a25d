/* Skyline placement: on the lowest segment of the tops goes the best block that lives inside it;
 * where none does, the segment rises to its lower neighbour. About a microsecond a block.
 *
 * Blocks stand in a tree in order of birth; a node knows the best rank and the earliest end
 * below it, so that most of what does not fit is never looked at. Segments are known by their
 * first section, and stand in a tree of their heights. */
#include "pack/run.h"

#include <string.h>

struct node {
    uint32_t rank; /* the best is the highest; 0: placed */
    uint32_t end;
};

struct skyline {
    const struct fl_pack_block *block; /* of the part, and how many */
    uint32_t n, from, sections;
    uint32_t leaves, tops; /* of both trees; the root is 1, the leaves begin there */
    struct node *tree;
    uint32_t *of_rank;     /* blocks, from the worst; rank 1 is of_rank[0] */
    uint32_t *first;       /* of each section: the first block born in it or later */
    uint64_t *low;         /* heights of segments; UINT64_MAX: none begins there */
    uint32_t *next, *prev; /* of each segment; `sections`: none */
};

static uint32_t leaves_for(uint32_t n)
{
    uint32_t leaves = 1;

    while (leaves < n) {
        leaves *= 2;
    }
    return leaves;
}

/* ---- ranks ---- */

/* By lifetime times size, the larger of equals first. */
static bool rank_blocks(struct skyline *s, struct fl_bump room)
{
    uint64_t *k = fl_bump_carve(&room, s->n, sizeof *k);

    for (uint32_t i = 0; i < s->n && k != NULL; i++) {
        s->of_rank[i] = i;
        k[i] = s->block[i].size;
    }
    if (k == NULL || !fl_sort(s->of_rank, k, s->n, room)) {
        return false;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const struct fl_pack_block *b = &s->block[i];
        double value = (double)(b->end - b->start) * (double)b->size;
        memcpy(&k[i], &value,
               sizeof k[i]); /* bits of doubles that are not negative compare alike */
    }
    return fl_sort(s->of_rank, k, s->n, room);
}

/* ---- the tree of what is not placed ---- */

static struct node join(struct node a, struct node b)
{
    return (struct node){a.rank > b.rank ? a.rank : b.rank, a.end < b.end ? a.end : b.end};
}

static void tree_build(struct skyline *s)
{
    struct node *leaf = s->tree + s->leaves;

    for (uint32_t i = 0; i < s->leaves; i++) {
        leaf[i] = (struct node){0, UINT32_MAX};
    }
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t b = s->of_rank[i];
        leaf[b] = (struct node){i + 1, s->block[b].end - s->from};
    }
    for (size_t i = s->leaves; i-- > 1;) {
        s->tree[i] = join(s->tree[2 * i], s->tree[2 * i + 1]);
    }
}

static void tree_remove(struct skyline *s, uint32_t b)
{
    size_t i = b + s->leaves;

    fl_assert(b < s->n && s->tree[i].rank != 0);
    s->tree[i] = (struct node){0, UINT32_MAX};
    while (i > 1) {
        i /= 2;
        struct node was = s->tree[i], is = join(s->tree[2 * i], s->tree[2 * i + 1]);
        if (was.rank == is.rank && was.end == is.end) {
            return;
        }
        s->tree[i] = is;
    }
}

/* The best rank below node `i` that ends by `end`, if it is better than `best`; else `best`. */
static uint32_t search_below(const struct skyline *s, uint32_t i, uint32_t end, uint32_t best)
{
    uint32_t todo[40];
    unsigned n = 0;

    todo[n++] = i;
    while (n > 0) {
        i = todo[--n];
        uint32_t rank = s->tree[i].rank;
        if (rank <= best || s->tree[i].end > end) {
            continue;
        }
        if (s->tree[s->leaves + s->of_rank[rank - 1]].end <= end) {
            best = rank;
            continue;
        }
        fl_assert(n + 2 <= sizeof todo / sizeof todo[0]);
        bool left_is_better = s->tree[2 * (size_t)i].rank == rank;
        todo[n++] = 2 * i + left_is_better;
        todo[n++] = 2 * i + !left_is_better;
    }
    return best;
}

/* The best rank of what is born in or after section `from` and ends by `to`; 0: none. */
static uint32_t search(const struct skyline *s, uint32_t from, uint32_t to)
{
    uint32_t a = s->first[from] + s->leaves, b = s->first[to] + s->leaves;
    uint32_t best = 0;

    fl_assert(from < to && to <= s->sections);
    for (; a < b; a /= 2, b /= 2) {
        if ((a & 1) != 0) {
            best = search_below(s, a++, to, best);
        }
        if ((b & 1) != 0) {
            best = search_below(s, --b, to, best);
        }
    }
    return best;
}

/* ---- segments ---- */

static uint64_t height_of(const struct skyline *s, uint32_t seg)
{
    return s->low[s->tops + seg];
}

static void set_height(struct skyline *s, uint32_t seg, uint64_t height)
{
    size_t i = s->tops + seg;

    s->low[i] = height;
    while (i > 1) {
        i /= 2;
        uint64_t low = fl_min(s->low[2 * i], s->low[2 * i + 1]);
        if (s->low[i] == low) {
            return;
        }
        s->low[i] = low;
    }
}

/* The first of the lowest. */
static uint32_t lowest(const struct skyline *s)
{
    size_t i = 1;

    while (i < s->tops) {
        i = s->low[2 * i] == s->low[1] ? 2 * i : 2 * i + 1;
    }
    fl_assert(i - s->tops < s->sections && s->low[i] != UINT64_MAX);
    return (uint32_t)(i - s->tops);
}

/* Segment `b` begins where `a` ends. */
static void link_segments(struct skyline *s, uint32_t a, uint32_t b)
{
    s->next[a] = b;
    if (b < s->sections) {
        s->prev[b] = a;
    }
}

/* Segment `seg`, whose height is new, is joined with neighbours of its height. */
static void join_equal(struct skyline *s, uint32_t seg)
{
    uint32_t next = s->next[seg];
    uint64_t height = height_of(s, seg);

    fl_assert(height != UINT64_MAX);
    if (next < s->sections && height_of(s, next) == height) {
        set_height(s, next, UINT64_MAX);
        link_segments(s, seg, s->next[next]);
    }
    if (seg > 0 && height_of(s, s->prev[seg]) == height) {
        set_height(s, seg, UINT64_MAX);
        link_segments(s, s->prev[seg], s->next[seg]);
    }
}

/* Nothing that is left fits on it: what lies on a higher neighbour too will. */
static void raise(struct skyline *s, uint32_t seg)
{
    uint64_t left = seg > 0 ? height_of(s, s->prev[seg]) : UINT64_MAX;
    uint64_t right = s->next[seg] < s->sections ? height_of(s, s->next[seg]) : UINT64_MAX;

    fl_assert(fl_min(left, right) != UINT64_MAX && fl_min(left, right) > height_of(s, seg));
    set_height(s, seg, fl_min(left, right));
    join_equal(s, seg);
}

/* Sections [from, to) of segment `seg` rise to `top`. */
static void stack_on(struct skyline *s, uint32_t seg, uint32_t from, uint32_t to, uint64_t top)
{
    fl_assert(seg <= from && from < to && to <= s->next[seg] && top > height_of(s, seg));
    if (to < s->next[seg]) {
        set_height(s, to, height_of(s, seg));
        link_segments(s, to, s->next[seg]);
        link_segments(s, seg, to);
    }
    if (from > seg) {
        link_segments(s, from, s->next[seg]);
        link_segments(s, seg, from);
    }
    set_height(s, from, top);
    join_equal(s, from);
}

/* ---- all together ---- */

static bool carve(struct skyline *s, struct fl_bump *room)
{
    fl_assert(s->n != 0 && s->sections != 0);
    s->leaves = leaves_for(s->n);
    s->tops = leaves_for(s->sections);
    s->tree = fl_bump_carve(room, 2 * (size_t)s->leaves, sizeof *s->tree);
    s->of_rank = fl_bump_carve(room, s->n, sizeof *s->of_rank);
    s->first = fl_bump_carve(room, (size_t)s->sections + 1, sizeof *s->first);
    s->low = fl_bump_carve(room, 2 * (size_t)s->tops, sizeof *s->low);
    s->next = fl_bump_carve(room, s->sections, sizeof *s->next);
    s->prev = fl_bump_carve(room, s->sections, sizeof *s->prev);
    return !room->is_short;
}

/* One segment, at the bottom. */
static void begin(struct skyline *s)
{
    memset(s->low, 0xff, 2 * (size_t)s->tops * sizeof *s->low);
    set_height(s, 0, 0);
    s->next[0] = s->sections;
    for (uint32_t i = 0, b = 0; i <= s->sections; i++) {
        while (b < s->n && s->block[b].start - s->from < i) {
            b++;
        }
        s->first[i] = b;
    }
}

uint64_t fl_pack_skyline(struct fl_pack_run *r, const struct fl_pack_part *p)
{
    struct fl_pack_block *block = r->block + p->lo;
    struct skyline s = {
        .block = block, .n = p->hi - p->lo, .from = p->from, .sections = p->to - p->from};
    struct fl_bump room = r->room;
    uint64_t height = 0;

    if (!carve(&s, &room) || !rank_blocks(&s, room)) {
        return UINT64_MAX;
    }
    tree_build(&s);
    begin(&s);
    for (uint32_t left = s.n; left > 0;) {
        uint32_t seg = lowest(&s), best = search(&s, seg, s.next[seg]);
        if (best == 0) {
            raise(&s, seg);
            continue;
        }
        uint32_t i = s.of_rank[best - 1];
        struct fl_pack_block *b = &block[i];
        fl_assert(b->start - p->from >= seg && b->end - p->from <= s.next[seg]);
        b->offset = (height_of(&s, seg) + b->mask) & ~b->mask;
        uint64_t top = b->offset + b->size;
        height = fl_max(height, top);
        tree_remove(&s, i);
        stack_on(&s, seg, b->start - p->from, b->end - p->from, top);
        left--;
    }
    return height;
}
