/* Which heights to look for a layout at. Where a dive goes wrong near its root it goes wrong for
 * good, so that many short ones are made, each round longer than the one before. */
#include "pack/run.h"

enum {
    FEW = 32,    /* so few blocks are looked through to the end */
    MOST = 6000, /* of a part: a node costs a look at each */
};

static const double noise = 0.15;

/* True: there is a layout of at most `height`, and it is kept. */
static bool try_height(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t height, bool blurred,
                       uint64_t limit)
{
    switch (fl_pack_dive(r, p, height, blurred ? noise : 0, limit)) {
    case FL_DIVE_FOUND: {
        uint64_t found = 0;
        for (uint32_t i = p->lo; i < p->hi; i++) {
            found = fl_max(found, r->block[i].offset + r->block[i].size);
        }
        r->by = blurred ? "search, blurred" : "search";
        fl_pack_keep(r, p, found);
        return true;
    }
    case FL_DIVE_NONE:
        p->bound = fl_max(p->bound, height + 1);
        break;
    case FL_DIVE_CUT:
        break;
    }
    return false;
}

/* Short dives, halving what is between the goal and the best. */
static void bisect(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t goal, uint64_t limit)
{
    for (uint64_t low = goal; !r->budget.is_over && p->height > low + 1;) {
        uint64_t mid = low + (p->height - low) / 2;
        if (!try_height(r, p, mid, false, limit)) {
            low = mid;
        }
    }
}

/* Exact dives that soon grow long find what blurred short ones do not, and the other way round:
 * both get the same share. */
void fl_pack_search(struct fl_pack_run *r, struct fl_pack_part *p, uint64_t goal)
{
    uint32_t n = p->hi - p->lo;
    uint64_t limit = n <= FEW ? 4096 : 5 * (uint64_t)n;
    bool is_new = p->limit[0] == 0;

    if (is_new) {
        p->limit[0] = p->limit[1] = limit;
    }
    if (n > MOST || p->height <= goal) {
        return;
    }
    if (is_new && !try_height(r, p, goal, false, limit)) {
        bisect(r, p, goal, limit);
    }
    bool blurred = p->work[1] < p->work[0];
    uint64_t before = r->budget.cost;
    if (p->height > goal && !r->budget.is_over) {
        (void)try_height(r, p, goal, blurred, p->limit[blurred]);
    }
    p->work[blurred] += r->budget.cost - before;
    p->limit[blurred] += p->limit[blurred] / (blurred ? 20 : 2);
}
