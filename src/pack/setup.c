/* From buffers to blocks, sections, parts and the bound. */
#include "pack/run.h"

#include <errno.h>
#include <string.h>

/* Of a buffer: as many bytes as a process has addresses for. */
static const uint64_t most_bytes = (uint64_t)1 << 47;

static bool lives(const struct fl_pack_buffer *b)
{
    return b->size != 0 && b->birth < b->death;
}

static uint64_t align_of(const struct fl_pack_buffer *b)
{
    return b->align == 0 ? 1 : b->align;
}

static int look_at_input(struct fl_pack_run *r)
{
    uint64_t sum = 0, aligns = 0;

    for (size_t i = 0; i < r->n; i++) {
        struct fl_pack_buffer *b = &r->buffer[i];
        if (b->death < b->birth || b->size >= most_bytes || align_of(b) > most_bytes ||
            !fl_is_pow2(align_of(b))) {
            return -EINVAL;
        }
        if (!lives(b)) {
            b->offset = 0;
            continue;
        }
        sum += b->size + 2 * align_of(b);
        if (sum >= (uint64_t)1 << 62) {
            return -EINVAL;
        }
        aligns |= align_of(b);
        r->count++;
    }
    r->shift = aligns == 0 ? 0 : (unsigned)__builtin_ctzll(aligns);
    return 0;
}

/* Walks through births and deaths in order, deaths first at equal times. */
static void find_sections(struct fl_pack_run *r, const uint32_t *by_death)
{
    uint32_t died = 0;
    bool after_death = true;

    for (uint32_t i = 0; i < r->count; i++) {
        uint64_t birth = r->buffer[r->block[i].id].birth;
        while (died < i && r->buffer[r->block[by_death[died]].id].death <= birth) {
            r->block[by_death[died++]].end = r->sections;
            after_death = true;
        }
        r->sections += after_death;
        after_death = false;
        r->block[i].start = r->sections - 1;
    }
    for (; died < r->count; died++) {
        r->block[by_death[died]].end = r->sections;
    }
    fl_assert(died == r->count && r->sections <= r->count);
}

static struct fl_pack_block block_of(const struct fl_pack_run *r, uint32_t id)
{
    const struct fl_pack_buffer *b = &r->buffer[id];
    uint64_t unit_mask = ((uint64_t)1 << r->shift) - 1;

    return (struct fl_pack_block){
        .size = (b->size + unit_mask) >> r->shift, .mask = (align_of(b) >> r->shift) - 1, .id = id};
}

static bool make_blocks(struct fl_pack_run *r)
{
    r->block = fl_bump_carve(&r->room, r->count, sizeof *r->block);
    struct fl_bump room = r->room;
    uint32_t *order = fl_bump_carve(&room, r->count, sizeof *order), n = 0;
    uint64_t *key = fl_bump_carve(&room, r->n, sizeof *key);

    if (room.is_short) {
        return false;
    }
    for (size_t i = 0; i < r->n; i++) {
        key[i] = r->buffer[i].birth;
        if (lives(&r->buffer[i])) {
            order[n++] = (uint32_t)i;
        }
    }
    fl_assert(n == r->count);
    if (!fl_sort(order, key, n, room)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        r->block[i] = block_of(r, order[i]);
        key[i] = r->buffer[order[i]].death;
        order[i] = i;
    }
    if (!fl_sort(order, key, n, room)) {
        return false;
    }
    find_sections(r, order);
    return true;
}

/* A part begins where no block before reaches. */
static bool make_parts(struct fl_pack_run *r)
{
    uint32_t reach = 0;

    r->part = fl_bump_carve(&r->room, r->count, sizeof *r->part);
    if (r->part == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < r->count; i++) {
        const struct fl_pack_block *b = &r->block[i];
        if (b->start >= reach) {
            r->part[r->parts++] = (struct fl_pack_part){.lo = i, .from = b->start};
        }
        fl_assert(r->parts != 0 && b->start < b->end);
        reach = (uint32_t)fl_max(reach, b->end);
        r->part[r->parts - 1].hi = i + 1;
        r->part[r->parts - 1].to = reach;
    }
    /* there are fewer parts than blocks */
    r->room.at = (char *)r->part + fl_bump_cost(r->parts, sizeof *r->part);
    return true;
}

/* The most that lives at once. */
static bool find_bound(struct fl_pack_run *r)
{
    struct fl_bump room = r->room;
    uint64_t *change = fl_bump_carve(&room, (size_t)r->sections + 1, sizeof *change);
    uint64_t live = 0;

    if (change == NULL) {
        return false;
    }
    memset(change, 0, (r->sections + 1) * sizeof *change);
    for (const struct fl_pack_block *b = r->block; b < r->block + r->count; b++) {
        change[b->start] += b->size;
        change[b->end] -= b->size;
    }
    for (uint32_t s = 0; s < r->sections; s++) {
        live += change[s];
        fl_assert((int64_t)live >= 0);
        r->bound = fl_max(r->bound, live);
    }
    return true;
}

int fl_pack_setup(struct fl_pack_run *r)
{
    int rc = look_at_input(r);

    if (rc != 0) {
        return rc;
    }
    return make_blocks(r) && make_parts(r) && find_bound(r) ? 0 : -ENOMEM;
}
