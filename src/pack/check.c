/* Is a layout right? Shares nothing with the methods but the sorting: buffers are looked at from
 * the lowest offset up, and each must lie at or above whatever was seen at any of the births
 * during its lifetime. */
#include "pack/run.h"

#include <string.h>

struct check {
    const struct fl_pack_buffer *buffer;
    size_t n;
    uint32_t *order; /* those that live and have a size, and how many */
    uint32_t lives;
    uint64_t *birth; /* ascending, each once */
    uint32_t births;
    uint64_t *key;
    struct fl_bump room;
};

/* A tree over births: the highest end of what was put anywhere below a node, and on all of its
 * range. */
struct tops {
    uint64_t *most, *all;
    uint32_t from, to; /* births [from, to) of the buffer that is put */
    uint64_t offset, end;
};

/* Puts the buffer on its births, of `births`. False: something there reaches above its offset. */
static bool put(const struct tops *t, uint32_t births)
{
    struct {
        size_t node;
        uint32_t lo, hi; /* its births */
    } todo[2 * 32] = {{1, 0, births}}, at;

    for (unsigned n = 1; n > 0;) {
        at = todo[--n];
        if (t->to <= at.lo || at.hi <= t->from) {
            continue;
        }
        bool is_covered = t->from <= at.lo && at.hi <= t->to;
        if ((is_covered ? t->most[at.node] : t->all[at.node]) > t->offset) {
            return false;
        }
        t->most[at.node] = fl_max(t->most[at.node], t->end);
        if (is_covered) {
            t->all[at.node] = t->end;
            continue;
        }
        uint32_t mid = at.lo + (at.hi - at.lo) / 2;
        todo[n].node = 2 * at.node;
        todo[n].lo = at.lo;
        todo[n++].hi = mid;
        todo[n].node = 2 * at.node + 1;
        todo[n].lo = mid;
        todo[n++].hi = at.hi;
    }
    return true;
}

/* How many births come before `time`. */
static uint32_t births_before(const struct check *c, uint64_t time)
{
    uint32_t a = 0, b = c->births;

    while (a < b) {
        uint32_t mid = a + (b - a) / 2;
        if (c->birth[mid] < time) {
            a = mid + 1;
        } else {
            b = mid;
        }
    }
    return a;
}

static bool begin(struct check *c)
{
    c->order = fl_bump_carve(&c->room, c->n, sizeof *c->order);
    c->birth = fl_bump_carve(&c->room, c->n, sizeof *c->birth);
    c->key = fl_bump_carve(&c->room, c->n, sizeof *c->key);
    if (c->room.is_short) {
        return false;
    }
    for (size_t i = 0; i < c->n; i++) {
        const struct fl_pack_buffer *b = &c->buffer[i];
        c->key[i] = b->birth;
        if (b->size != 0 && b->birth < b->death) {
            c->order[c->lives++] = (uint32_t)i;
        }
    }
    if (!fl_sort(c->order, c->key, c->lives, c->room)) {
        return false;
    }
    for (uint32_t i = 0; i < c->lives; i++) {
        uint64_t birth = c->buffer[c->order[i]].birth;
        if (c->births == 0 || c->birth[c->births - 1] != birth) {
            c->birth[c->births++] = birth;
        }
    }
    return true;
}

/* Leaves `order` by offset. */
static bool is_free_of_overlap(struct check *c)
{
    struct fl_bump room = c->room;
    struct tops t;

    for (size_t i = 0; i < c->n; i++) {
        c->key[i] = c->buffer[i].offset;
    }
    if (!fl_sort(c->order, c->key, c->lives, room)) {
        return false;
    }
    t.most = fl_bump_carve(&room, 4 * (size_t)c->births, sizeof *t.most);
    t.all = fl_bump_carve(&room, 4 * (size_t)c->births, sizeof *t.all);
    if (room.is_short) {
        return false;
    }
    memset(t.most, 0, 4 * (size_t)c->births * sizeof *t.most);
    memset(t.all, 0, 4 * (size_t)c->births * sizeof *t.all);
    for (uint32_t i = 0; i < c->lives; i++) {
        const struct fl_pack_buffer *b = &c->buffer[c->order[i]];
        t.from = births_before(c, b->birth);
        t.to = births_before(c, b->death);
        t.offset = b->offset;
        t.end = b->offset + b->size;
        if (!put(&t, c->births)) {
            return false;
        }
    }
    return true;
}

/* Zones from the lowest up: no gap inside one but what alignment asks for, and none reaches into
 * the next. */
static bool is_zoned(struct check *c)
{
    uint64_t top = 0, below = 0;
    uint32_t zone = 0;

    for (size_t i = 0; i < c->n; i++) {
        c->key[i] = c->buffer[i].zone;
    }
    if (!fl_sort(c->order, c->key, c->lives, c->room)) {
        return false;
    }
    for (uint32_t i = 0; i < c->lives; i++) {
        const struct fl_pack_buffer *b = &c->buffer[c->order[i]];
        if (b->zone == 0) {
            continue;
        }
        if (b->zone != zone) {
            zone = b->zone;
            below = top;
        } else if (b->offset > top && b->offset - top >= fl_max(b->align, 1)) {
            return false;
        }
        if (b->offset < below) {
            return false;
        }
        top = fl_max(top, b->offset + b->size);
    }
    return true;
}

bool fl_pack_is_valid(const struct fl_pack_buffer *b, size_t n, uint64_t height, void *scratch,
                      size_t scratch_len)
{
    struct check c = {.buffer = b, .n = n, .room = {scratch, (char *)scratch + scratch_len, false}};

    for (size_t i = 0; i < n; i++) {
        bool is_live = b[i].size != 0 && b[i].birth < b[i].death;
        if (b[i].align != 0 && (b[i].offset & (b[i].align - 1)) != 0) {
            return false;
        }
        if (is_live && (b[i].size > height || b[i].offset > height - b[i].size)) {
            return false;
        }
    }
    return n <= UINT32_MAX / 4 && begin(&c) && is_free_of_overlap(&c) && is_zoned(&c);
}
