#include "base/base.h"

size_t fl_bump_cost(size_t count, size_t width)
{
    return fl_align_up(count * width, FL_CACHE_LINE);
}

void *fl_bump_carve(struct fl_bump *b, size_t count, size_t width)
{
    size_t len = fl_bump_cost(count, width);
    char *p = b->at;

    if (b->is_short || len > (size_t)(b->end - p)) {
        b->is_short = true;
        return NULL;
    }
    b->at += len;
    return p;
}

struct keyed {
    uint64_t key;
    uint32_t value;
};

size_t fl_sort_cost(size_t n)
{
    return 2 * fl_bump_cost(n, sizeof(struct keyed));
}

/* By one byte of the key. */
static void sort_by_byte(const struct keyed *from, struct keyed *to, size_t n, unsigned shift)
{
    size_t at[256] = {0}, sum = 0;

    for (size_t i = 0; i < n; i++) {
        at[from[i].key >> shift & 255]++;
    }
    for (size_t b = 0; b < 256; b++) {
        size_t count = at[b];
        at[b] = sum;
        sum += count;
    }
    for (size_t i = 0; i < n; i++) {
        to[at[from[i].key >> shift & 255]++] = from[i];
    }
}

bool fl_sort(uint32_t *order, const uint64_t *key, size_t n, struct fl_bump room)
{
    struct keyed *from = fl_bump_carve(&room, n, sizeof *from);
    struct keyed *to = fl_bump_carve(&room, n, sizeof *to);
    uint64_t differ = 0;

    if (room.is_short) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        from[i] = (struct keyed){key[order[i]], order[i]};
        differ |= from[i].key ^ from[0].key;
    }
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if ((differ >> shift & 255) != 0) {
            sort_by_byte(from, to, n, shift);
            struct keyed *sorted = to;
            to = from;
            from = sorted;
        }
    }
    for (size_t i = 0; i < n; i++) {
        order[i] = from[i].value;
    }
    return true;
}
