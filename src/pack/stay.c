/* What can stay of an earlier layout: blocks that still do not overlap there are placed first,
 * the others by first fit, the largest first. Each looks at all that are placed: for small parts
 * only. */
#include "pack/run.h"

enum { MOST = 10000 };

struct fit {
    struct fl_pack_run *r;
    struct fl_pack_block *block; /* of the part */
    uint32_t *placed;            /* in order of offset */
    uint32_t n;                  /* of `placed` */
    uint64_t height;
};

/* The lowest offset of the block from `at` on. */
static uint64_t lowest(const struct fit *f, const struct fl_pack_block *b, uint64_t at)
{
    at = (at + b->mask) & ~b->mask;
    for (uint32_t k = 0; k < f->n; k++) {
        const struct fl_pack_block *x = &f->block[f->placed[k]];
        if (x->offset >= at + b->size) {
            break;
        }
        if (x->start < b->end && b->start < x->end) {
            at = (fl_max(at, x->offset + x->size) + b->mask) & ~b->mask;
        }
    }
    return at;
}

static void place(struct fit *f, uint32_t i, uint64_t offset)
{
    struct fl_pack_block *b = &f->block[i];
    uint32_t at = f->n++;

    for (; at > 0 && f->block[f->placed[at - 1]].offset > offset; at--) {
        f->placed[at] = f->placed[at - 1];
    }
    f->placed[at] = i;
    b->offset = offset;
    f->height = fl_max(f->height, offset + b->size);
}

/* Where the block was, from the floor; UINT64_MAX: nowhere where it can be. */
static uint64_t previous_of(const struct fit *f, const struct fl_pack_block *b, uint64_t floor)
{
    uint64_t bytes = f->r->buffer[b->id].previous, offset = bytes >> f->r->shift;

    if (bytes >= (uint64_t)1 << 62 || offset << f->r->shift != bytes || offset < floor ||
        ((offset - floor) & b->mask) != 0) {
        return UINT64_MAX;
    }
    return offset - floor;
}

/* Places those that can stay; the others are order[0 .. returned). */
static uint32_t place_staying(struct fit *f, uint32_t *order, const uint64_t *previous, uint32_t n)
{
    uint32_t moving = 0;

    for (uint32_t k = 0; k < n && !fl_pack_spend(f->r, 1 + n / 512); k++) {
        uint32_t i = order[k];
        if (previous[i] != UINT64_MAX && lowest(f, &f->block[i], previous[i]) == previous[i]) {
            place(f, i, previous[i]);
        } else {
            order[moving++] = i;
        }
    }
    return moving;
}

uint64_t fl_pack_stay(struct fl_pack_run *r, const struct fl_pack_part *p, uint64_t floor,
                      uint64_t limit)
{
    struct fit f = {.r = r, .block = r->block + p->lo};
    struct fl_bump room = r->room;
    uint32_t n = p->hi - p->lo;
    uint32_t *order = fl_bump_carve(&room, n, sizeof *order);
    uint64_t *key = fl_bump_carve(&room, n, sizeof *key);
    bool any = false;

    f.placed = fl_bump_carve(&room, n, sizeof *f.placed);
    if (n > MOST || room.is_short) {
        return UINT64_MAX;
    }
    for (uint32_t i = 0; i < n; i++) {
        order[i] = i;
        key[i] = previous_of(&f, &f.block[i], floor);
        any |= key[i] != UINT64_MAX;
    }
    if (!any || !fl_sort(order, key, n, room)) {
        return UINT64_MAX;
    }
    uint32_t moving = place_staying(&f, order, key, n);
    for (uint32_t i = 0; i < n; i++) {
        key[i] = f.block[i].size;
    }
    if (r->budget.is_over || !fl_sort(order, key, moving, room)) {
        return UINT64_MAX;
    }
    while (moving > 0 && f.height < limit && !fl_pack_spend(r, 1 + n / 512)) {
        uint32_t i = order[--moving];
        place(&f, i, lowest(&f, &f.block[i], 0));
    }
    return moving == 0 && f.height < limit ? f.height : UINT64_MAX;
}
