/* What the packer takes for granted elsewhere: sorting, random numbers, memory out of the caller's scratch. */
#include "pack/run.h"

#include <string.h>

void *fl_pack_carve(struct fl_pack_arena *a, size_t count, size_t width)
{
    size_t room = (size_t)(a->end - a->at);

    if (width != 0 && count > (room - fl_min(room, 64)) / width) {
        return NULL;
    }
    char *p = a->at;
    a->at += fl_align_up(count * width, 64);
    return p;
}

static void sort_few(uint32_t *order, const uint64_t *key, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        uint32_t v = order[i];
        size_t at = i;
        for (; at > 0 && key[order[at - 1]] > key[v]; at--) {
            order[at] = order[at - 1];
        }
        order[at] = v;
    }
}

/* Where the elements of each value of a digit begin; false: they all have the same. */
static bool begin_of_digits(uint32_t *count, size_t n)
{
    uint32_t sum = 0;

    for (unsigned d = 0; d < 256; d++) {
        if (count[d] == n) {
            return false;
        }
        uint32_t c = count[d];
        count[d] = sum;
        sum += c;
    }
    return true;
}

bool fl_pack_sort(struct fl_pack_arena a, uint32_t *order, const uint64_t *key, size_t n)
{
    if (n <= 48) {
        sort_few(order, key, n);
        return true;
    }
    uint64_t *from = fl_pack_carve(&a, n, sizeof *from), *to = fl_pack_carve(&a, n, sizeof *to);
    uint32_t *from_value = order, *to_value = fl_pack_carve(&a, n, sizeof *to_value);
    uint32_t(*count)[256] = fl_pack_carve(&a, 8, sizeof *count);
    if (from == NULL || to == NULL || to_value == NULL || count == NULL) {
        return false;
    }
    memset(count, 0, 8 * sizeof *count);
    for (size_t i = 0; i < n; i++) {
        uint64_t k = key[order[i]];
        from[i] = k;
        for (unsigned d = 0; d < 8; d++) {
            count[d][k >> 8 * d & 255]++;
        }
    }
    for (unsigned d = 0; d < 8; d++) {
        if (!begin_of_digits(count[d], n)) {
            continue;
        }
        for (size_t i = 0; i < n; i++) {
            uint32_t at = count[d][from[i] >> 8 * d & 255]++;
            to[at] = from[i];
            to_value[at] = from_value[i];
        }
        uint64_t *k = from;
        uint32_t *v = from_value;
        from = to;
        from_value = to_value;
        to = k;
        to_value = v;
    }
    if (from_value != order) {
        memcpy(order, from_value, n * sizeof *order);
    }
    return true;
}

/* splitmix64 (Steele, Lea, Flood 2014). */
uint64_t fl_pack_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

uint64_t fl_pack_order_of(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}
