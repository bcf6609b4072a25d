/* Lifetimes to offsets: which method runs when, and what becomes of its layouts.
 *
 * First every part by one skyline key: that layout is given out at once. Then the other keys, and, on the part that is the
 * tallest at the time, what takes longer. All of it ends as soon as no layout can be lower.
 * With zones all this happens a second time, zone by zone, each with its share of the time. */
#include "pack/run.h"

#include <errno.h>
#include <stdatomic.h>

static const size_t most_scratch = (size_t)64 * FL_MIB;

enum { LOOK_AT_CLOCK = 64 }; /* so many microseconds, roughly, between */

bool fl_pack_spend(struct fl_pack_run *r, uint32_t cost)
{
    r->work++;
    r->cost += cost;
    r->unlooked += cost;
    if (r->work >= r->end_work || r->cost >= r->end_cost) {
        r->is_over = true;
    }
    if (r->unlooked >= LOOK_AT_CLOCK && !r->is_over) {
        r->unlooked = 0;
        const struct fl_pack_how *how = r->how;
        r->is_over = (r->end_ns != 0 && how->now_ns() >= r->end_ns) ||
                     (how->stop != NULL && atomic_load_explicit(how->stop, memory_order_relaxed));
    }
    return r->is_over;
}

/* ---- groups: the parts of one zone ---- */

struct group {
    uint32_t from, to; /* parts */
    uint32_t zone;
    bool is_last;
};

static uint32_t zone_of(const struct fl_pack_run *r, uint32_t part)
{
    return r->buffer[r->id[r->part[part].lo]].zone;
}

static struct group group_at(const struct fl_pack_run *r, uint32_t part)
{
    struct group g = {.from = part, .to = part, .zone = zone_of(r, part)};

    while (g.to < r->parts && zone_of(r, g.to) == g.zone) {
        g.to++;
    }
    g.is_last = g.to == r->parts;
    return g;
}

static uint32_t count_groups(const struct fl_pack_run *r)
{
    uint32_t n = 0;

    for (uint32_t at = 0; at < r->parts; n++) {
        at = group_at(r, at).to;
    }
    return n;
}

static uint32_t tallest(const struct fl_pack_run *r, struct group g)
{
    uint32_t best = g.from;

    for (uint32_t i = g.from; i < g.to; i++) {
        if (r->part[i].height > r->part[best].height) {
            best = i;
        }
    }
    return best;
}

/* Of the group and of what zones lie below. */
static uint64_t height_of(const struct fl_pack_run *r, struct group g)
{
    uint64_t height = r->part[tallest(r, g)].height;

    return height > r->below ? height : r->below;
}

/* Where the group's parts stand: a zone on top of the one before, all else on what zones there are. */
static bool begin(struct fl_pack_run *r, struct group g, uint64_t band)
{
    r->below = band;
    for (uint32_t i = g.from; i < g.to; i++) {
        r->part[i].floor = g.zone != 0 ? band : 0;
        r->part[i].height = UINT64_MAX;
    }
    if (g.zone == 0 && g.from != 0) {
        return fl_pack_floors(r, r->part[g.from].lo);
    }
    for (uint32_t s = 0; g.from == 0 && s < r->sections; s++) {
        r->floor[s] = 0;
    }
    return true;
}

/* ---- layouts ---- */

/* The best of each part is all there is to know of it: out with it, checked. */
static void publish(struct fl_pack_run *r, uint64_t height)
{
    for (uint32_t i = 0; i < r->count; i++) {
        r->buffer[r->id[i]].offset = r->best[i] << r->shift;
    }
    r->height = height;
    r->found_by = r->by;
    if (!fl_pack_is_valid(r->buffer, r->n, height << r->shift, r->arena.at,
                          (size_t)(r->arena.end - r->arena.at))) {
        r->is_wrong = true;
        r->is_over = true;
    } else if (r->how->better != NULL) {
        r->how->better(r->how->arg, height << r->shift);
    }
}

void fl_pack_keep(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t height)
{
    if (height >= p->height) {
        return;
    }
    for (uint32_t i = p->lo; i < p->hi; i++) {
        r->best[i] = r->offset[i];
    }
    p->height = height;
    if (!r->is_whole) {
        return;
    }
    uint64_t all = height_of(r, group_at(r, r->last_group));
    if (all < r->height) {
        publish(r, all);
    }
}

static void try_key(struct fl_pack_run *r, struct fl_pack_part *p, unsigned key, double blur,
                    bool must)
{
    r->by = fl_pack_key_name[key];
    fl_pack_keep(r, p, fl_pack_skyline(r, p, key, blur, p->height, must));
}

static bool construct(struct fl_pack_run *r, struct group g, bool must)
{
    for (uint32_t i = g.from; i < g.to; i++) {
        try_key(r, &r->part[i], 0, 0, must);
        if (r->part[i].height == UINT64_MAX) {
            return false;
        }
    }
    return true;
}

/* ---- the search for better ones ---- */

/* What a layout of the group need not be lower than. */
static uint64_t goal_of(const struct fl_pack_run *r, struct group g)
{
    uint64_t goal = g.is_last ? r->target : 0;

    if (g.is_last && r->below > goal) {
        goal = r->below;
    }
    for (uint32_t i = g.from; i < g.to; i++) {
        uint64_t bound = r->part[i].floor + r->part[i].bound;
        goal = bound > goal ? bound : goal;
    }
    return goal;
}

/* The addresses of before, where they make nothing taller. Not in zones: there may be no gaps. */
static void stay(struct fl_pack_run *r, struct group g)
{
    bool was_whole = r->is_whole, has_stayed = false;

    if (g.zone != 0) {
        return;
    }
    r->is_whole = false;
    r->by = "the earlier layout";
    for (uint32_t i = g.from; i < g.to && !r->is_over; i++) {
        struct fl_pack_part *p = &r->part[i];
        uint64_t height = fl_pack_stay(r, p, p->height + 1);
        if (height <= p->height) {
            p->height = UINT64_MAX;
            fl_pack_keep(r, p, height);
            has_stayed = true;
        }
    }
    r->is_whole = was_whole;
    if (has_stayed && was_whole && height_of(r, g) <= r->height) {
        publish(r, height_of(r, g));
    }
}

static void try_all_keys(struct fl_pack_run *r, struct group g, uint64_t goal)
{
    static const char *const fit[] = {"first fit, size", "first fit, life",
                                      "first fit, life x size"};

    while (r->key < FL_PACK_KEYS + 3 && !r->is_over) {
        unsigned key = r->key++;
        for (uint32_t i = g.from; i < g.to && !r->is_over; i++) {
            struct fl_pack_part *p = &r->part[i];
            if (p->height <= goal) {
                continue;
            }
            if (key < FL_PACK_KEYS) {
                try_key(r, p, key, 0, false);
            } else {
                r->by = fit[key - FL_PACK_KEYS];
                fl_pack_keep(r, p, fl_pack_first_fit(r, p, key - FL_PACK_KEYS, p->height));
            }
        }
    }
}

enum { FEW = 500 }; /* so few buffers are better searched than blurred */

/* Skylines by keys that are changed at random, for so much work; once at least. A try of the search costs a look at each
 * buffer of the part, a placement here about as much as a hundred such. */
static void blur(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t goal, uint64_t work)
{
    uint64_t until = r->work + work;

    do {
        unsigned key = (unsigned)(fl_pack_random(&r->random) % FL_PACK_KEYS);
        double most = 0.05 * (double)(1 + fl_pack_random(&r->random) % 20);
        try_key(r, p, key, most, false);
    } while (!r->is_over && p->height > goal && r->work < until);
}

static void improve(struct fl_pack_run *r, struct group g)
{
    uint64_t goal = goal_of(r, g);

    try_all_keys(r, g, goal);
    while (!r->is_over) {
        uint32_t at = tallest(r, g);
        struct fl_pack_part *p = &r->part[at];
        if (p->height <= goal || p->height <= p->floor + p->bound) {
            return;
        }
        uint32_t n = p->hi - p->lo;
        if (r->hunt.part != at && n >= FEW) {
            blur(r, p, goal, 32 * (uint64_t)n);
        }
        uint64_t before = r->work;
        fl_pack_search(r, at, &r->hunt, goal);
        blur(r, p, goal, (r->work - before) * n / (n < FEW ? 1000 : 100));
    }
}

/* ---- all together ---- */

/* The first layout, whatever it takes. */
static bool pass_first(struct fl_pack_run *r)
{
    uint64_t band = 0;

    for (uint32_t at = 0; at < r->parts;) {
        struct group g = group_at(r, at);
        if (!begin(r, g, band) || !construct(r, g, true)) {
            return false;
        }
        band = height_of(r, g);
        r->last_group = at;
        at = g.to;
    }
    publish(r, band);
    return true;
}

/* Of what time and work is left, the share of one of `groups`. */
static void share(struct fl_pack_run *r, uint32_t groups)
{
    const struct fl_pack_how *how = r->how;

    r->is_over = r->is_wrong;
    r->end_work = how->budget_work == 0 ? UINT64_MAX : how->budget_work;
    r->end_ns = r->deadline_ns;
    if (groups > 1 && r->end_work > r->work && how->budget_work != 0) {
        r->end_work = r->work + (r->end_work - r->work) / groups;
    }
    r->end_cost = how->budget_cost == 0 ? UINT64_MAX : how->budget_cost;
    if (groups > 1 && r->end_cost > r->cost && how->budget_cost != 0) {
        r->end_cost = r->cost + (r->end_cost - r->cost) / groups;
    }
    if (groups > 1 && r->end_ns != 0) {
        uint64_t now = how->now_ns();
        r->end_ns = now < r->end_ns ? now + (r->end_ns - now) / groups : r->end_ns;
    }
}

/* Zone by zone from the bottom, for where one ends the next begins. */
static void pass_better(struct fl_pack_run *r, uint32_t groups)
{
    uint64_t band = 0;

    for (uint32_t at = 0; at < r->parts; groups--) {
        struct group g = group_at(r, at);
        share(r, groups);
        r->is_whole = false;
        if (at != r->last_group || at != 0) {
            if (!begin(r, g, band) || !construct(r, g, false)) {
                return;
            }
            if (g.is_last && height_of(r, g) < r->height) {
                publish(r, height_of(r, g));
            }
        }
        r->is_whole = g.is_last;
        r->hunt.part = UINT32_MAX;
        r->key = 1;
        stay(r, g);
        improve(r, g);
        band = height_of(r, g);
        at = g.to;
    }
}

/* The height of the layout that `offset` is; UINT64_MAX: it is none. */
static uint64_t as_given(struct fl_pack_run *r)
{
    uint64_t height = 0;

    for (uint32_t i = 0; i < r->count; i++) {
        uint64_t offset = r->buffer[r->id[i]].offset;
        uint64_t top = (offset >> r->shift) + r->size[i];
        if (offset >= (uint64_t)1 << 62) {
            return UINT64_MAX;
        }
        height = top > height ? top : height;
    }
    return fl_pack_is_valid(r->buffer, r->n, height << r->shift, r->arena.at,
                            (size_t)(r->arena.end - r->arena.at))
               ? height
               : UINT64_MAX;
}

/* The same, of the layout of before. */
static uint64_t as_before(struct fl_pack_run *r)
{
    for (uint32_t i = 0; i < r->count; i++) {
        struct fl_pack_buffer *b = &r->buffer[r->id[i]];
        b->offset = b->previous;
    }
    return as_given(r);
}

/* The layout so far is the best of each part; what is searched is what lies above all zones. False: it is none, or scratch. */
static bool take_up(struct fl_pack_run *r, struct group *g)
{
    uint64_t band = 0, all = as_given(r);

    for (uint32_t i = 0; i < r->count && all != UINT64_MAX; i++) {
        r->best[i] = r->buffer[r->id[i]].offset >> r->shift;
    }
    for (*g = group_at(r, 0); !g->is_last; *g = group_at(r, g->to)) {
        for (uint32_t i = r->part[g->from].lo; i < r->part[g->to - 1].hi; i++) {
            band = fl_max(band, r->best[i] + r->size[i]);
        }
    }
    if (all == UINT64_MAX || !begin(r, *g, band)) {
        return false;
    }
    for (uint32_t k = g->from; k < g->to; k++) {
        r->part[k].height = 0;
        for (uint32_t i = r->part[k].lo; i < r->part[k].hi; i++) {
            r->part[k].height = fl_max(r->part[k].height, r->best[i] + r->size[i]);
        }
    }
    r->height = all;
    r->last_group = g->from;
    r->is_whole = true;
    r->found_by = "the layout so far";
    return true;
}

/* A part of a search, from where the last one ended. False: there is nothing to go on from. */
static bool go_on(struct fl_pack_run *r)
{
    const struct fl_pack_how *how = r->how;
    const struct fl_pack_progress *p = how->progress;
    struct group g;

    if (p == NULL || !p->begun || !take_up(r, &g)) {
        return false;
    }
    r->random = p->random;
    r->key = p->key;
    r->hunt = (struct fl_pack_hunt){p->part, {p->limit[0], p->limit[1]}, {p->work[0], p->work[1]}};
    if (p->part < r->parts) {
        r->part[p->part].bound = fl_max(r->part[p->part].bound, p->bound);
    }
    share(r, 1);
    if (g.zone == 0 && (how->budget_ns | how->budget_work | how->budget_cost) != 0) {
        improve(r, g);
    } else {
        stay(r, g);
    }
    return true;
}

static void note_progress(const struct fl_pack_run *r, struct fl_pack_progress *p)
{
    bool has_part = r->hunt.part < r->parts;

    *p = (struct fl_pack_progress){.random = r->random,
                                   .bound = has_part ? r->part[r->hunt.part].bound : 0,
                                   .limit = {r->hunt.limit[0], r->hunt.limit[1]},
                                   .work = {r->hunt.work[0], r->hunt.work[1]},
                                   .part = r->hunt.part,
                                   .key = r->key,
                                   .begun = true,
                                   .done = !r->is_over || r->height <= r->target};
}

/* From the bound up to a layout. False: scratch. */
static bool run(struct fl_pack_run *r)
{
    const struct fl_pack_how *how = r->how;
    uint64_t before, capacity = how->capacity >> r->shift;

    if (how->budget_ns != 0) {
        r->deadline_ns = how->now_ns() + how->budget_ns;
    }
    r->target = capacity > r->bound ? capacity : r->bound;
    if (go_on(r)) {
        return true;
    }
    before = as_before(r);
    if (before > r->target) {
        if (!pass_first(r)) {
            return false;
        }
        if ((how->budget_ns | how->budget_work | how->budget_cost) != 0) {
            pass_better(r, count_groups(r));
        }
    }
    if (before <= r->height && !r->is_wrong && before != UINT64_MAX) {
        r->by = "the earlier layout";
        for (uint32_t i = 0; i < r->count; i++) {
            r->best[i] = r->buffer[r->id[i]].previous >> r->shift;
        }
        publish(r, before);
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
        .arena = {.at = how->scratch},
        .random = how->seed,
        .height = UINT64_MAX,
        .end_work = UINT64_MAX,
        .end_cost = UINT64_MAX,
        .hunt = {.part = UINT32_MAX},
        .key = 1,
        .found_by = "nothing to place",
    };

    *out = (struct fl_pack_result){0};
    if (n > UINT32_MAX / 4 || how->scratch_len < fl_pack_scratch(n)) {
        return -ENOMEM;
    }
    r.arena.end = r.arena.at + fl_min(how->scratch_len, fl_max(fl_pack_scratch(n), most_scratch));
    int rc = fl_pack_setup(&r);
    if (rc != 0) {
        return rc;
    }
    if (r.count != 0 && !run(&r)) {
        return -ENOMEM;
    }
    if (r.is_wrong) {
        return -EDOM;
    }
    if (how->progress != NULL) {
        note_progress(&r, how->progress);
    }
    out->bound = r.bound << r.shift;
    out->height = r.count != 0 ? r.height << r.shift : 0;
    out->by = r.found_by;
    return 0;
}
