/* Lifetimes to offsets: which method runs when, and what becomes of its layouts.
 *
 * First every part by one skyline key: that layout is given out at once. Then what can stay of
 * an earlier one, the other key, and, on the parts that make their bands tall, what takes
 * longer. All of it ends as soon as no layout can be lower. */
#include "pack/run.h"

#include <errno.h>
#include <string.h>

enum { LOOK_AT_CLOCK = 64 }; /* so many microseconds, roughly, between */

bool fl_pack_spend(struct fl_pack_run *r, uint32_t cost)
{
    r->budget.cost += cost;
    r->budget.unlooked += cost;
    if (r->budget.cost >= r->budget.end_cost) {
        r->budget.is_over = true;
    }
    if (r->budget.unlooked >= LOOK_AT_CLOCK && r->budget.end_ns != 0) {
        r->budget.unlooked = 0;
        r->budget.is_over |= r->how->now_ns() >= r->budget.end_ns;
    }
    return r->budget.is_over;
}

/* splitmix64 (Steele, Lea, Flood 2014). */
double fl_pack_random(struct fl_pack_run *r)
{
    uint64_t z = (r->random += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (double)((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

uint64_t fl_pack_order_of(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

/* ---- bands ---- */

/* The parts of one zone. */
struct band {
    struct fl_pack_part *part, *end, *tallest;
    uint64_t bound;
};

static struct band band_at(const struct fl_pack_run *r, struct fl_pack_part *part)
{
    struct band b = {part, part, part, 0};

    do {
        b.tallest = b.end->height > b.tallest->height ? b.end : b.tallest;
        b.bound = fl_max(b.bound, b.end->bound);
        b.end++;
    } while (b.end < r->part + r->parts && !b.end->is_first);
    return b;
}

/* What the band's parts need not be lower than: the bound, or so high that the whole comes to
 * the target. */
static uint64_t goal_of(const struct fl_pack_run *r, const struct band *b)
{
    uint64_t others = r->found.height - fl_min(r->found.height, b->tallest->height);

    return fl_max(b->bound, r->target - fl_min(r->target, others));
}

/* The floor of the next band, above one that ends at `top`. */
static uint64_t floor_above(const struct fl_pack_run *r, uint64_t top)
{
    return (top + r->align - 1) & ~(r->align - 1);
}

/* The height of all bands, each on the one before; `floor`: that of the last one. UINT64_MAX:
 * some part has no layout. */
static uint64_t stack_bands(const struct fl_pack_run *r, uint64_t *floor)
{
    uint64_t top = 0;

    for (struct fl_pack_part *p = r->part; p < r->part + r->parts;) {
        struct band b = band_at(r, p);
        if (b.tallest->height == UINT64_MAX) {
            return UINT64_MAX;
        }
        *floor = floor_above(r, top);
        top = *floor + b.tallest->height;
        p = b.end;
    }
    return top;
}

/* ---- layouts ---- */

/* Gives out the best of each part, `height` in all. False: that is no layout. */
static bool give_out(struct fl_pack_run *r, uint64_t height)
{
    uint64_t floor = 0;

    for (struct fl_pack_part *p = r->part; p < r->part + r->parts;) {
        struct band band = band_at(r, p);
        for (uint32_t i = p->lo; i < band.end[-1].hi; i++) {
            r->buffer[r->block[i].id].offset = (floor + r->block[i].best) << r->shift;
        }
        floor = floor_above(r, floor + band.tallest->height);
        p = band.end;
    }
    r->found.height = height;
    r->found.by = r->by;
    return fl_pack_is_valid(r->buffer, r->n, height << r->shift, r->room.at,
                            (size_t)(r->room.end - r->room.at));
}

static void publish(struct fl_pack_run *r, uint64_t height)
{
    if (!give_out(r, height)) {
        r->found.is_wrong = true;
        r->budget.is_over = true;
    } else if (r->how->better != NULL) {
        r->how->better(r->how->arg, height << r->shift);
    }
}

static void take(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t height)
{
    for (uint32_t i = p->lo; i < p->hi; i++) {
        r->block[i].best = r->block[i].offset;
    }
    p->height = height;
}

static void publish_lower(struct fl_pack_run *r)
{
    uint64_t floor = 0, all = stack_bands(r, &floor);

    if (all < r->found.height) {
        publish(r, all);
    }
}

void fl_pack_keep(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t height)
{
    if (height < p->height) {
        take(r, p, height);
        publish_lower(r);
    }
}

static void try_key(struct fl_pack_run *r, struct fl_pack_part *p, unsigned key, double blur)
{
    uint64_t height = fl_pack_skyline(r, p, key, blur, p->height);

    r->by = fl_pack_key_name[key];
    fl_pack_keep(r, p, height);
}

/* The offsets of before become the best layout of each part. False: they are none. */
static bool take_up(struct fl_pack_run *r)
{
    uint64_t floor = 0, top = 0;

    for (struct fl_pack_part *p = r->part; p < r->part + r->parts; p++) {
        uint64_t height = 0;
        floor = p->is_first ? floor_above(r, top) : floor;
        for (struct fl_pack_block *b = r->block + p->lo; b < r->block + p->hi; b++) {
            uint64_t bytes = r->buffer[b->id].previous;
            b->offset = (bytes >> r->shift) - floor;
            if (bytes >= (uint64_t)1 << 62 || bytes >> r->shift < floor) {
                return false;
            }
            height = fl_max(height, b->offset + b->size);
        }
        take(r, p, height);
        top = fl_max(top, floor + height);
    }
    r->by = "the earlier layout";
    return give_out(r, top);
}

/* ---- the methods ---- */

static bool construct(struct fl_pack_run *r)
{
    if (!take_up(r)) {
        r->found.height = UINT64_MAX;
        for (uint32_t i = 0; i < r->parts; i++) {
            r->part[i].height = UINT64_MAX;
        }
    }
    if (r->found.height <= r->target) {
        return true;
    }
    for (struct fl_pack_part *p = r->part; p < r->part + r->parts; p++) {
        uint64_t height = fl_pack_skyline(r, p, 0, 0, p->height);
        if (height < p->height) {
            take(r, p, height);
        }
    }
    r->by = fl_pack_key_name[0];
    publish_lower(r);
    return r->found.height != UINT64_MAX;
}

/* Offsets of before, where they make nothing taller. Not in zones, which may have no gaps. */
static void stay(struct fl_pack_run *r)
{
    struct fl_pack_part *last = r->part + r->parts - 1, *p = last;
    uint64_t floor = 0;
    bool any = false;

    if (r->buffer[r->block[last->lo].id].zone != 0) {
        return;
    }
    (void)stack_bands(r, &floor);
    for (; !r->budget.is_over; p--) {
        uint64_t height = fl_pack_stay(r, p, floor, p->height + 1);
        if (height != UINT64_MAX) {
            take(r, p, height);
            any = true;
        }
        if (p->is_first) {
            break;
        }
    }
    if (any) {
        r->by = "the earlier layout";
        publish(r, stack_bands(r, &floor));
    }
}

/* Skylines by keys that are blurred at random, for so much work; once at least. */
static void blur(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t goal, uint64_t cost)
{
    uint64_t until = r->budget.cost + cost;

    do {
        unsigned key = (unsigned)(fl_pack_random(r) * FL_PACK_KEYS);
        try_key(r, p, key, fl_pack_random(r));
    } while (!r->budget.is_over && p->height > goal && r->budget.cost < until);
}

/* A part that makes its band too tall: of several the one on which least was spent. NULL: none. */
static struct fl_pack_part *next_part(const struct fl_pack_run *r, uint64_t *goal)
{
    struct fl_pack_part *best = NULL;

    for (struct fl_pack_part *p = r->part; p < r->part + r->parts;) {
        struct band b = band_at(r, p);
        struct fl_pack_part *t = b.tallest;
        uint64_t g = goal_of(r, &b);
        if (t->height > g &&
            (best == NULL || t->work[0] + t->work[1] < best->work[0] + best->work[1])) {
            best = t;
            *goal = g;
        }
        p = b.end;
    }
    return best;
}

enum { FEW = 500 }; /* so few blocks are better searched than blurred */

static void improve(struct fl_pack_run *r)
{
    struct fl_pack_part *p;
    uint64_t goal;

    while (!r->budget.is_over && (p = next_part(r, &goal)) != NULL) {
        uint32_t n = p->hi - p->lo;
        if (p->limit[0] == 0) { /* it is new */
            try_key(r, p, 1, 0);
            if (n >= FEW) {
                blur(r, p, goal, 32 * (uint64_t)n);
            }
        }
        uint64_t before = r->budget.cost;
        fl_pack_search(r, p, goal);
        blur(r, p, goal, (r->budget.cost - before) / (n < FEW ? 20 : 2));
    }
}

/* ---- all together ---- */

/* From the bound up to a layout. False: scratch. */
static bool run(struct fl_pack_run *r)
{
    const struct fl_pack_how *how = r->how;
    bool has_budget = (how->budget_ns | how->budget_cost) != 0;
    uint64_t end_ns = how->budget_ns != 0 ? how->now_ns() + how->budget_ns : 0;

    r->target = fl_max(r->bound, how->capacity >> r->shift);
    r->random = how->seed;
    if (!construct(r)) {
        return false;
    }
    /* The first layout counts, but nothing ends it. */
    r->budget.end_ns = end_ns;
    r->budget.end_cost = how->budget_cost != 0 ? how->budget_cost : UINT64_MAX;
    stay(r);
    if (has_budget) {
        improve(r);
    }
    return true;
}

size_t fl_pack_scratch(size_t n)
{
    return n * 256 + (size_t)64 * FL_KIB;
}

int fl_pack(struct fl_pack_buffer *b, size_t n, const struct fl_pack_how *how,
            struct fl_pack_result *out)
{
    struct fl_pack_run r = {
        .how = how,
        .buffer = b,
        .n = n,
        .room = {how->scratch, (char *)how->scratch + how->scratch_len, false},
        .found.height = UINT64_MAX,
        .budget.end_cost = UINT64_MAX,
        .found.by = "nothing to place",
    };

    *out = (struct fl_pack_result){0};
    if (n > UINT32_MAX / 4 || how->scratch_len < fl_pack_scratch(n)) {
        return -ENOMEM;
    }
    int rc = fl_pack_setup(&r);
    if (rc != 0) {
        return rc;
    }
    if (r.count != 0 && !run(&r)) {
        return -ENOMEM;
    }
    if (r.found.is_wrong) {
        return -EDOM;
    }
    out->bound = r.bound << r.shift;
    out->height = r.count != 0 ? r.found.height << r.shift : 0;
    out->by = r.found.by;
    return 0;
}
