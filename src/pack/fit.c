/* First fit: buffers in some order, each at the lowest offset at which nothing that is placed is in its way. Each looks at
 * all that are placed: for small parts only. And what can stay of an earlier layout: the buffers that still do not overlap
 * there are placed first. */
#include "pack/run.h"

struct fit {
    struct fl_pack_run *r;
    const struct fl_pack_part *p;
    uint32_t *order;  /* buffers of the part */
    uint32_t *placed; /* in order of offset */
    uint32_t n;       /* of `placed` */
    uint64_t height;
};

static bool carve(struct fit *f, struct fl_pack_arena *a, uint64_t **key)
{
    uint32_t n = f->p->hi - f->p->lo;

    f->order = fl_pack_carve(a, n, sizeof *f->order);
    f->placed = fl_pack_carve(a, n, sizeof *f->placed);
    *key = fl_pack_carve(a, n, sizeof **key);
    return f->order != NULL && f->placed != NULL && *key != NULL;
}

static uint64_t floor_of(const struct fit *f, uint32_t i)
{
    uint64_t floor = f->p->floor;

    for (uint32_t s = f->r->start[i]; s < f->r->end[i]; s++) {
        floor = f->r->floor[s] > floor ? f->r->floor[s] : floor;
    }
    return floor;
}

/* The lowest offset from `at` on. */
static uint64_t lowest(const struct fit *f, uint32_t i, uint64_t at)
{
    const struct fl_pack_run *r = f->r;

    for (uint32_t k = 0; k < f->n; k++) {
        uint32_t x = f->placed[k];
        if (r->start[x] >= r->end[i] || r->end[x] <= r->start[i]) {
            continue;
        }
        uint64_t offset = (at + r->mask[i]) & ~r->mask[i], top = r->offset[x] + r->size[x];
        if (r->offset[x] >= offset + r->size[i]) {
            break;
        }
        at = top > at ? top : at;
    }
    return (at + r->mask[i]) & ~r->mask[i];
}

static void place(struct fit *f, uint32_t i, uint64_t offset)
{
    struct fl_pack_run *r = f->r;
    uint32_t at = f->n++;

    for (; at > 0 && r->offset[f->placed[at - 1]] > offset; at--) {
        f->placed[at] = f->placed[at - 1];
    }
    f->placed[at] = i;
    r->offset[i] = offset;
    f->height = offset + r->size[i] > f->height ? offset + r->size[i] : f->height;
}

/* Places f->order[0 .. n) from the last on. False: time is over, or it comes too high. */
static bool place_all(struct fit *f, uint32_t n, uint64_t limit)
{
    while (n > 0 && f->height < limit && !fl_pack_spend(f->r, 1 + n / 512)) {
        uint32_t i = f->order[--n];
        place(f, i, lowest(f, i, floor_of(f, i)));
    }
    return n == 0 && f->height < limit;
}

uint64_t fl_pack_first_fit(struct fl_pack_run *r, const struct fl_pack_part *p, unsigned by,
                           uint64_t limit)
{
    struct fit f = {.r = r, .p = p};
    struct fl_pack_arena a = r->arena;
    uint64_t *key;
    uint32_t n = p->hi - p->lo;

    if (n > FL_PACK_FIT_MOST || !carve(&f, &a, &key)) {
        return UINT64_MAX;
    }
    for (uint32_t i = 0; i < n; i++) {
        double size = (double)r->size[p->lo + i];
        double life = (double)(r->end[p->lo + i] - r->start[p->lo + i]);
        f.order[i] = i;
        key[i] = fl_pack_order_of(by == 0 ? size : by == 1 ? life : size * life);
    }
    if (!fl_pack_sort(a, f.order, key, n)) {
        return UINT64_MAX;
    }
    for (uint32_t i = 0; i < n; i++) {
        f.order[i] += p->lo;
    }
    return place_all(&f, n, limit) ? f.height : UINT64_MAX;
}

/* An offset of before that can be used at all, in units; UINT64_MAX: none. */
static uint64_t previous_of(const struct fit *f, uint32_t i)
{
    const struct fl_pack_run *r = f->r;
    uint64_t bytes = r->buffer[r->id[i]].previous, offset = bytes >> r->shift;

    if (bytes == FL_PACK_NONE || offset << r->shift != bytes || (offset & r->mask[i]) != 0 ||
        bytes >= (uint64_t)1 << 62 || offset < floor_of(f, i)) {
        return UINT64_MAX;
    }
    return offset;
}

/* In order of their offset of before, what does not overlap there; then the others, the largest first. */
uint64_t fl_pack_stay(struct fl_pack_run *r, const struct fl_pack_part *p, uint64_t limit)
{
    struct fit f = {.r = r, .p = p};
    struct fl_pack_arena a = r->arena;
    uint64_t *key;
    uint32_t n = p->hi - p->lo, stay = 0, move = 0;

    if (n > FL_PACK_STAY_MOST || !carve(&f, &a, &key)) {
        return UINT64_MAX;
    }
    for (uint32_t i = 0; i < n; i++) {
        f.order[i] = i;
        key[i] = previous_of(&f, p->lo + i);
        stay += key[i] != UINT64_MAX;
    }
    if (stay == 0 || !fl_pack_sort(a, f.order, key, n)) {
        return UINT64_MAX;
    }
    for (uint32_t k = 0; k < n && !fl_pack_spend(r, 1 + n / 512); k++) {
        uint32_t i = p->lo + f.order[k];
        uint64_t offset = key[f.order[k]];
        if (offset != UINT64_MAX && lowest(&f, i, offset) == offset) {
            place(&f, i, offset);
        } else {
            f.order[move++] = f.order[k];
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        key[i] = r->size[p->lo + i];
    }
    if (r->is_over || !fl_pack_sort(a, f.order, key, move)) {
        return UINT64_MAX;
    }
    for (uint32_t i = 0; i < move; i++) {
        f.order[i] += p->lo;
    }
    return place_all(&f, move, limit) ? f.height : UINT64_MAX;
}
