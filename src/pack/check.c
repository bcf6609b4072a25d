/* Is a layout right? Shares nothing with the methods but the sorting: goes through births and
 * deaths, and keeps what lives in the order of offsets; what is born fits between its two
 * neighbours. */
#include "pack/run.h"

#include <string.h>

/* Of buffers, those that live and have a size. */
struct times {
    uint32_t *born, *died; /* in the order of birth, and of death */
    uint32_t n;
};

/* Of those that live, in the order of offsets, how many lie below it. */
static uint32_t below(const struct fl_pack_buffer *b, const uint32_t *live, uint32_t n,
                      uint64_t offset)
{
    uint32_t a = 0;

    while (a < n) {
        uint32_t mid = a + (n - a) / 2;
        bool is_below = b[live[mid]].offset < offset;
        a = is_below ? mid + 1 : a;
        n = is_below ? n : mid;
    }
    return a;
}

/* In `room`. False: it is too little. */
static bool sort_by_time(const struct fl_pack_buffer *b, size_t n, struct fl_bump *room,
                         struct times *out)
{
    *out = (struct times){fl_bump_carve(room, n, sizeof *out->born),
                          fl_bump_carve(room, n, sizeof *out->died), 0};
    struct fl_bump rest = *room;
    uint64_t *key = fl_bump_carve(&rest, n, sizeof *key);

    if (rest.is_short) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        out->born[out->n] = out->died[out->n] = i;
        out->n += b[i].size != 0 && b[i].birth < b[i].death;
        key[i] = b[i].birth;
    }
    if (!fl_sort(out->born, key, out->n, rest)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        key[i] = b[i].death;
    }
    return fl_sort(out->died, key, out->n, rest);
}

static bool is_free_of_overlap(const struct fl_pack_buffer *b, const struct times *t,
                               uint32_t *live)
{
    const uint32_t *died = t->died;
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->n; i++) {
        const struct fl_pack_buffer *x = &b[t->born[i]];
        for (; b[*died].death <= x->birth; died++) {
            uint32_t at = below(b, live, n--, b[*died].offset);
            memmove(live + at, live + at + 1, (n - at) * sizeof *live);
        }
        uint32_t at = below(b, live, n, x->offset);
        const struct fl_pack_buffer *low = at > 0 ? &b[live[at - 1]] : NULL;
        if ((low != NULL && low->offset + low->size > x->offset) ||
            (at < n && x->offset + x->size > b[live[at]].offset)) {
            return false;
        }
        memmove(live + at + 1, live + at, (n++ - at) * sizeof *live);
        live[at] = t->born[i];
    }
    return true;
}

bool fl_pack_is_valid(const struct fl_pack_buffer *b, size_t n, uint64_t height, void *scratch,
                      size_t scratch_len)
{
    struct fl_bump room = {scratch, (char *)scratch + scratch_len, n > UINT32_MAX / 4};
    uint32_t *live = fl_bump_carve(&room, n, sizeof *live);
    struct times times;

    for (size_t i = 0; i < n; i++) {
        bool is_live = b[i].size != 0 && b[i].birth < b[i].death;
        if ((b[i].align != 0 && (b[i].offset & (b[i].align - 1)) != 0) ||
            (is_live && (b[i].size > height || b[i].offset > height - b[i].size))) {
            return false;
        }
    }
    return sort_by_time(b, n, &room, &times) && is_free_of_overlap(b, &times, live);
}
