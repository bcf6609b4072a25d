/* Skyline placement: on the lowest segment of the tops goes the best buffer that lives inside it; where none does, the
 * segment rises to its lower neighbour. About a microsecond a buffer.
 *
 * Buffers stand in a tree in order of birth; a node knows the best rank and the earliest end below it, so that most of what
 * does not fit is never looked at. Segments are known by their first section, and lie in a heap by (height, section). */
#include "pack/run.h"

#include <string.h>

struct node {
    uint32_t rank; /* 0: placed */
    uint32_t end;
};

struct skyline {
    const struct fl_pack_run *r;
    const struct fl_pack_part *p;
    uint32_t n, sections, leaves;
    struct node *tree;     /* the root is 1, the leaves begin at `leaves` */
    uint32_t *of_rank;     /* buffers, from the worst; rank 1 is of_rank[0] */
    uint32_t *first;       /* of each section: the first buffer born in it or later */
    uint32_t *next, *prev; /* of each segment; `sections`: none */
    uint64_t *height;
    uint32_t *heap, *heap_at;
    uint32_t heaped;
};

const char *const fl_pack_key_name[FL_PACK_KEYS] = {
    "skyline, life x size",
    "skyline, hot then life x size",
    "skyline, size",
    "skyline, life",
    "skyline, hot then life",
    "skyline, life x life x size",
    "skyline, size x size x life",
    "skyline, time",
};

/* ---- ranks ---- */

static double first_key(const struct fl_pack_run *r, uint32_t i, unsigned key)
{
    double size = (double)r->size[i], life = (double)(r->end[i] - r->start[i]);
    const struct fl_pack_buffer *b = &r->buffer[r->id[i]];

    switch (key) {
    case 0:
        return life * size;
    case 1:
    case 4:
        return (double)r->hot[i];
    case 2:
        return size;
    case 3:
        return life;
    case 5:
        return life * life * size;
    case 6:
        return size * size * life;
    default:
        return (double)(b->death - b->birth);
    }
}

/* Among equals of the first. */
static double second_key(const struct fl_pack_run *r, uint32_t i, unsigned key)
{
    double size = (double)r->size[i], life = (double)(r->end[i] - r->start[i]);

    switch (key) {
    case 1:
        return life * size;
    case 2:
    case 4:
        return life;
    default:
        return size;
    }
}

static bool rank(struct fl_pack_run *r, struct skyline *s, struct fl_pack_arena a, unsigned key,
                 double blur)
{
    uint64_t *k = fl_pack_carve(&a, s->n, sizeof *k);

    if (k == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        s->of_rank[i] = i;
        k[i] = fl_pack_order_of(second_key(r, s->p->lo + i, key));
    }
    if (!fl_pack_sort(a, s->of_rank, k, s->n)) {
        return false;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        double v = first_key(r, s->p->lo + i, key);
        if (blur != 0) {
            v *= 1 + blur * (double)(fl_pack_random(&r->random) >> 11) * 0x1p-53;
        }
        k[i] = fl_pack_order_of(v);
    }
    return fl_pack_sort(a, s->of_rank, k, s->n);
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
        leaf[b] = (struct node){i + 1, s->r->end[s->p->lo + b] - s->p->from};
    }
    for (size_t i = s->leaves; i-- > 1;) {
        s->tree[i] = join(s->tree[2 * i], s->tree[2 * i + 1]);
    }
}

static void tree_remove(struct skyline *s, uint32_t b)
{
    size_t i = b + s->leaves;

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
    uint32_t stack[40];
    unsigned depth = 0;

    stack[depth++] = i;
    while (depth > 0) {
        i = stack[--depth];
        struct node n = s->tree[i];
        if (n.rank <= best || n.end > end) {
            continue;
        }
        uint32_t b = s->of_rank[n.rank - 1];
        if (s->tree[s->leaves + b].end <= end) {
            best = n.rank;
            continue;
        }
        bool left_is_better = s->tree[2 * (size_t)i].rank == n.rank;
        stack[depth++] = 2 * i + left_is_better;
        stack[depth++] = 2 * i + !left_is_better;
    }
    return best;
}

/* The best rank of what is born in or after section `from` and ends by `to`; 0: none. */
static uint32_t search(const struct skyline *s, uint32_t from, uint32_t to)
{
    uint32_t a = s->first[from] + s->leaves, b = s->first[to] + s->leaves;
    uint32_t best = 0;

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

/* ---- the heap of segments ---- */

static bool is_lower(const struct skyline *s, uint32_t a, uint32_t b)
{
    return s->height[a] < s->height[b] || (s->height[a] == s->height[b] && a < b);
}

static void heap_put(struct skyline *s, uint32_t at, uint32_t seg)
{
    s->heap[at] = seg;
    s->heap_at[seg] = at;
}

static void heap_up(struct skyline *s, uint32_t at)
{
    uint32_t seg = s->heap[at];

    for (; at > 0 && is_lower(s, seg, s->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        heap_put(s, at, s->heap[(at - 1) / 2]);
    }
    heap_put(s, at, seg);
}

static void heap_down(struct skyline *s, uint32_t at)
{
    uint32_t seg = s->heap[at];

    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < s->heaped && is_lower(s, s->heap[child + 1], s->heap[child])) {
            child++;
        }
        if (child >= s->heaped || !is_lower(s, s->heap[child], seg)) {
            break;
        }
        heap_put(s, at, s->heap[child]);
        at = child;
    }
    heap_put(s, at, seg);
}

static void heap_add(struct skyline *s, uint32_t seg)
{
    heap_put(s, s->heaped++, seg);
    heap_up(s, s->heaped - 1);
}

static void heap_remove(struct skyline *s, uint32_t seg)
{
    uint32_t at = s->heap_at[seg], last = s->heap[--s->heaped];

    if (at < s->heaped) {
        heap_put(s, at, last);
        heap_up(s, at);
        heap_down(s, s->heap_at[last]);
    }
}

/* ---- segments ---- */

static void link_segments(struct skyline *s, uint32_t a, uint32_t b)
{
    s->next[a] = b;
    if (b < s->sections) {
        s->prev[b] = a;
    }
}

/* The segment's height is new: it goes where it belongs in the heap, and is joined with neighbours of its height. */
static void settle(struct skyline *s, uint32_t seg)
{
    uint32_t next = s->next[seg];

    heap_up(s, s->heap_at[seg]);
    heap_down(s, s->heap_at[seg]);
    if (next < s->sections && s->height[next] == s->height[seg]) {
        heap_remove(s, next);
        link_segments(s, seg, s->next[next]);
    }
    uint32_t prev = seg > 0 ? s->prev[seg] : seg;
    if (seg > 0 && s->height[prev] == s->height[seg]) {
        heap_remove(s, seg);
        link_segments(s, prev, s->next[seg]);
    }
}

/* Nothing that is left fits on it: what lies on a higher neighbour too will. */
static void raise(struct skyline *s, uint32_t seg)
{
    uint64_t to = UINT64_MAX;

    if (seg > 0) {
        to = s->height[s->prev[seg]];
    }
    if (s->next[seg] < s->sections && s->height[s->next[seg]] < to) {
        to = s->height[s->next[seg]];
    }
    s->height[seg] = to;
    settle(s, seg);
}

/* Sections [from, to) of segment `seg` rise to `top`. */
static void stack_on(struct skyline *s, uint32_t seg, uint32_t from, uint32_t to, uint64_t top)
{
    uint32_t next = s->next[seg];

    if (to < next) {
        s->height[to] = s->height[seg];
        link_segments(s, to, next);
        heap_add(s, to);
        next = to;
    }
    if (from > seg) {
        s->height[from] = top;
        heap_add(s, from);
        link_segments(s, seg, from);
    }
    link_segments(s, from, next);
    s->height[from] = top;
    settle(s, from);
}

/* ---- all together ---- */

static bool carve(struct skyline *s, struct fl_pack_arena *a)
{
    s->leaves = 1;
    while (s->leaves < s->n) {
        s->leaves *= 2;
    }
    s->tree = fl_pack_carve(a, 2 * (size_t)s->leaves, sizeof *s->tree);
    s->of_rank = fl_pack_carve(a, s->n, sizeof *s->of_rank);
    s->first = fl_pack_carve(a, (size_t)s->sections + 1, sizeof *s->first);
    s->next = fl_pack_carve(a, s->sections, sizeof *s->next);
    s->prev = fl_pack_carve(a, s->sections, sizeof *s->prev);
    s->height = fl_pack_carve(a, s->sections, sizeof *s->height);
    s->heap = fl_pack_carve(a, s->sections, sizeof *s->heap);
    s->heap_at = fl_pack_carve(a, s->sections, sizeof *s->heap_at);
    return s->tree != NULL && s->of_rank != NULL && s->first != NULL && s->next != NULL &&
           s->prev != NULL && s->height != NULL && s->heap != NULL && s->heap_at != NULL;
}

static void begin_segments(struct skyline *s)
{
    const uint64_t *floor = s->r->floor + s->p->from;
    uint32_t last = 0;

    for (uint32_t i = 0; i < s->sections; i++) {
        uint64_t height = floor[i] > s->p->floor ? floor[i] : s->p->floor;
        if (i > 0 && height == s->height[last]) {
            continue;
        }
        s->height[i] = height;
        s->prev[i] = last;
        s->next[last] = i;
        heap_add(s, i);
        last = i;
    }
    s->next[last] = s->sections;

    uint32_t b = 0;
    for (uint32_t i = 0; i <= s->sections; i++) {
        while (b < s->n && s->r->start[s->p->lo + b] - s->p->from < i) {
            b++;
        }
        s->first[i] = b;
    }
}

uint64_t fl_pack_skyline(struct fl_pack_run *r, const struct fl_pack_part *p, unsigned key,
                         double blur, uint64_t limit, bool must)
{
    struct skyline s = {.r = r, .p = p, .n = p->hi - p->lo, .sections = p->to - p->from};
    struct fl_pack_arena a = r->arena;
    uint64_t height = 0;

    if (!carve(&s, &a) || !rank(r, &s, a, key, blur)) {
        return UINT64_MAX;
    }
    tree_build(&s);
    begin_segments(&s);
    for (uint32_t left = s.n; left > 0;) {
        uint32_t seg = s.heap[0];
        uint32_t best = search(&s, seg, s.next[seg]);
        if (best == 0) {
            raise(&s, seg);
            continue;
        }
        uint32_t b = s.of_rank[best - 1], i = p->lo + b;
        uint64_t offset = (s.height[seg] + r->mask[i]) & ~r->mask[i], top = offset + r->size[i];
        if (top >= limit || (fl_pack_spend(r, 1) && !must)) {
            return UINT64_MAX;
        }
        r->offset[i] = offset;
        height = top > height ? top : height;
        tree_remove(&s, b);
        stack_on(&s, seg, r->start[i] - p->from, r->end[i] - p->from, top);
        left--;
    }
    return height;
}
