/* Is a layout right? Shares nothing with the methods but the sorting: goes through births and
 * deaths, and keeps what lives in the order of offsets; what is born fits between its two
 * neighbours. */
#include "pack/run.h"

#include <string.h>

struct check {
    const struct fl_pack_buffer *buffer;
    size_t n;
    uint32_t *order; /* those that live and have a size, and how many */
    uint32_t lives;
    uint64_t *key;
    struct fl_bump room;
};

static bool begin(struct check *c)
{
    c->order = fl_bump_carve(&c->room, c->n, sizeof *c->order);
    c->key = fl_bump_carve(&c->room, c->n, sizeof *c->key);
    for (size_t i = 0; i < c->n && !c->room.is_short; i++) {
        const struct fl_pack_buffer *b = &c->buffer[i];
        c->key[i] = b->death;
        if (b->size != 0 && b->birth < b->death) {
            c->order[c->lives++] = (uint32_t)i;
        }
    }
    return !c->room.is_short && fl_sort(c->order, c->key, c->lives, c->room);
}

/* Of those that live, in the order of offsets, how many lie below it. */
static uint32_t below(const struct check *c, const uint32_t *live, uint32_t n, uint64_t offset)
{
    uint32_t a = 0;

    while (a < n) {
        uint32_t mid = a + (n - a) / 2;
        bool is_below = c->buffer[live[mid]].offset < offset;
        a = is_below ? mid + 1 : a;
        n = is_below ? n : mid;
    }
    return a;
}

/* False: it overlaps with one that lives. */
static bool put(const struct check *c, uint32_t *live, uint32_t *n, uint32_t i)
{
    const struct fl_pack_buffer *b = &c->buffer[i];
    uint32_t at = below(c, live, *n, b->offset);
    const struct fl_pack_buffer *low = at > 0 ? &c->buffer[live[at - 1]] : NULL;

    if ((low != NULL && low->offset + low->size > b->offset) ||
        (at < *n && b->offset + b->size > c->buffer[live[at]].offset)) {
        return false;
    }
    memmove(live + at + 1, live + at, (*n - at) * sizeof *live);
    live[at] = i;
    ++*n;
    return true;
}

/* `order` is by death. */
static bool is_free_of_overlap(struct check *c)
{
    struct fl_bump room = c->room;
    uint32_t *born = fl_bump_carve(&room, c->lives, sizeof *born);
    uint32_t *live = fl_bump_carve(&room, c->lives, sizeof *live), n = 0, died = 0;

    for (size_t i = 0; i < c->n; i++) {
        c->key[i] = c->buffer[i].birth;
    }
    if (room.is_short) {
        return false;
    }
    memcpy(born, c->order, c->lives * sizeof *born);
    if (!fl_sort(born, c->key, c->lives, room)) {
        return false;
    }
    for (uint32_t i = 0; i < c->lives; i++) {
        for (; c->buffer[c->order[died]].death <= c->key[born[i]]; died++) {
            uint32_t at = below(c, live, n--, c->buffer[c->order[died]].offset);
            memmove(live + at, live + at + 1, (n - at) * sizeof *live);
        }
        if (!put(c, live, &n, born[i])) {
            return false;
        }
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
    return n <= UINT32_MAX / 4 && begin(&c) && is_free_of_overlap(&c);
}
