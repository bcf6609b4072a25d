/* Lifetimes to offsets: which method runs when, and what becomes of its layouts.
 *
 * First every part by the skyline: that layout is given out at once. Then, on the tallest part,
 * what takes longer. All of it ends as soon as no layout can be lower. */
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

/* ---- layouts ---- */

/* The part that makes the layout as tall as it is. */
static struct fl_pack_part *tallest(const struct fl_pack_run *r)
{
    struct fl_pack_part *t = r->part;

    for (struct fl_pack_part *p = r->part; p < r->part + r->parts; p++) {
        t = p->height > t->height ? p : t;
    }
    return t;
}

/* No layout need be lower. Bounds of parts rise as the search shows a height to be too low. */
static uint64_t goal_of(const struct fl_pack_run *r)
{
    uint64_t goal = r->target;

    for (const struct fl_pack_part *p = r->part; p < r->part + r->parts; p++) {
        goal = fl_max(goal, p->bound);
    }
    return goal;
}

static void publish(struct fl_pack_run *r, uint64_t height)
{
    for (const struct fl_pack_block *b = r->block; b < r->block + r->count; b++) {
        r->buffer[b->id].offset = b->best << r->shift;
    }
    r->found.height = height;
    r->found.by = r->by;
    if (!fl_pack_is_valid(r->buffer, r->n, height << r->shift, r->room.at,
                          (size_t)(r->room.end - r->room.at))) {
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
    uint64_t height = tallest(r)->height;

    if (height < r->found.height) {
        publish(r, height);
    }
}

void fl_pack_keep(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t height)
{
    if (height < p->height) {
        take(r, p, height);
        publish_lower(r);
    }
}

/* ---- the methods ---- */

static bool construct(struct fl_pack_run *r)
{
    for (struct fl_pack_part *p = r->part; p < r->part + r->parts; p++) {
        uint64_t height = fl_pack_skyline(r, p, 0, UINT64_MAX);
        if (height == UINT64_MAX) {
            return false;
        }
        take(r, p, height);
    }
    r->by = "skyline";
    publish_lower(r);
    return true;
}

/* Skylines that are blurred at random, for so much work; once at least. */
static void blur(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t goal, uint64_t cost)
{
    uint64_t until = r->budget.cost + cost;

    do {
        uint64_t height = fl_pack_skyline(r, p, fl_pack_random(r), p->height);
        r->by = "skyline, blurred";
        fl_pack_keep(r, p, height);
    } while (!r->budget.is_over && p->height > goal && r->budget.cost < until);
}

enum { FEW = 500 }; /* so few blocks are better searched than blurred */

static void improve(struct fl_pack_run *r)
{
    for (;;) {
        struct fl_pack_part *p = tallest(r);
        uint64_t goal = goal_of(r);
        uint32_t n = p->hi - p->lo;
        if (r->budget.is_over || p->height <= goal) {
            return;
        }
        if (p->limit[0] == 0 && n >= FEW) { /* it is new */
            blur(r, p, goal, 32 * (uint64_t)n);
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
