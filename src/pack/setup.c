/* From buffers to what the methods work on: sections, parts, loads and the lower bound. */
#include "pack/run.h"

#include <errno.h>
#include <string.h>

static const uint64_t most_bytes = (uint64_t)1 << 47;

static bool lives(const struct fl_pack_buffer *b)
{
    return b->size != 0 && b->birth < b->death;
}

static int look_at_input(struct fl_pack_run *r)
{
    uint64_t sum = 0;
    unsigned shift = 64;

    for (size_t i = 0; i < r->n; i++) {
        struct fl_pack_buffer *b = &r->buffer[i];
        uint64_t align = b->align == 0 ? 1 : b->align;
        if (b->death < b->birth || b->size >= most_bytes || align > most_bytes ||
            !fl_is_pow2(align)) {
            return -EINVAL;
        }
        if (!lives(b)) {
            b->offset = 0;
            continue;
        }
        sum += b->size + 2 * align;
        if (sum >= (uint64_t)1 << 62) {
            return -EINVAL;
        }
        unsigned zeros = (unsigned)__builtin_ctzll(align);
        shift = zeros < shift ? zeros : shift;
        r->count++;
    }
    r->shift = shift == 64 ? 0 : shift;
    return 0;
}

static bool carve_buffers(struct fl_pack_run *r)
{
    struct fl_pack_arena *a = &r->arena;

    r->id = fl_pack_carve(a, r->count, sizeof *r->id);
    r->start = fl_pack_carve(a, r->count, sizeof *r->start);
    r->end = fl_pack_carve(a, r->count, sizeof *r->end);
    r->size = fl_pack_carve(a, r->count, sizeof *r->size);
    r->mask = fl_pack_carve(a, r->count, sizeof *r->mask);
    r->hot = fl_pack_carve(a, r->count, sizeof *r->hot);
    r->offset = fl_pack_carve(a, r->count, sizeof *r->offset);
    r->best = fl_pack_carve(a, r->count, sizeof *r->best);
    return r->id != NULL && r->start != NULL && r->end != NULL && r->size != NULL &&
           r->mask != NULL && r->hot != NULL && r->offset != NULL && r->best != NULL;
}

/* Walks through births and deaths, each in order; deaths first at equal times. `start` and `end` are by `id`, in order of
 * birth. `by_death` holds places in that order. */
static void find_sections(struct fl_pack_run *r, const uint32_t *by_death)
{
    uint32_t died = 0;
    bool after_death = true;

    r->sections = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        uint64_t birth = r->buffer[r->id[i]].birth;
        for (; r->buffer[r->id[by_death[died]]].death <= birth; died++) {
            r->end[by_death[died]] = r->sections;
            after_death = true;
        }
        r->sections += after_death;
        after_death = false;
        r->start[i] = r->sections - 1;
    }
    for (; died < r->count; died++) {
        r->end[by_death[died]] = r->sections;
    }
}

/* Puts what has been found in order of zone; what has none comes last, to lie above. */
static bool sort_by_zone(struct fl_pack_run *r, uint32_t *order, uint64_t *key)
{
    struct fl_pack_arena a = r->arena;
    uint32_t *copy = fl_pack_carve(&a, r->count, sizeof *copy);

    for (uint32_t i = 0; i < r->count; i++) {
        key[i] = r->buffer[r->id[i]].zone - (uint64_t)1;
        order[i] = i;
    }
    if (copy == NULL || !fl_pack_sort(a, order, key, r->count)) {
        return false;
    }
    uint32_t *const field[] = {r->id, r->start, r->end};
    for (unsigned f = 0; f < 3; f++) {
        memcpy(copy, field[f], r->count * sizeof *copy);
        for (uint32_t i = 0; i < r->count; i++) {
            field[f][i] = copy[order[i]];
        }
    }
    return true;
}

static bool order_buffers(struct fl_pack_run *r)
{
    struct fl_pack_arena a = r->arena, kept = r->arena;
    uint64_t *key = fl_pack_carve(&a, r->n, sizeof *key);
    uint32_t *order = fl_pack_carve(&a, r->count, sizeof *order);
    uint32_t n = 0;

    if (key == NULL || order == NULL) {
        return false;
    }
    for (size_t i = 0; i < r->n; i++) {
        key[i] = r->buffer[i].birth;
        if (lives(&r->buffer[i])) {
            r->id[n++] = (uint32_t)i;
        }
    }
    if (!fl_pack_sort(a, r->id, key, n)) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        key[i] = r->buffer[r->id[i]].death;
        order[i] = i;
    }
    if (!fl_pack_sort(a, order, key, n)) {
        return false;
    }
    find_sections(r, order);
    r->arena = a;
    bool is_sorted = sort_by_zone(r, order, key);
    r->arena = kept;
    for (uint32_t i = 0; i < n; i++) {
        const struct fl_pack_buffer *b = &r->buffer[r->id[i]];
        uint64_t unit_mask = ((uint64_t)1 << r->shift) - 1;
        r->size[i] = (b->size + unit_mask) >> r->shift;
        r->mask[i] = ((b->align == 0 ? 1 : b->align) >> r->shift) - 1;
    }
    return is_sorted;
}

/* The most that lives at once in buffers [lo, hi), all in sections [from, to); load[0] is that of section `from`. */
static uint64_t find_load(const struct fl_pack_run *r, uint32_t lo, uint32_t hi, uint32_t from,
                          uint32_t to, uint64_t *load)
{
    uint64_t live = 0, most = 0;

    memset(load, 0, (to - from + 1) * sizeof *load);
    for (uint32_t i = lo; i < hi; i++) {
        load[r->start[i] - from] += r->size[i];
        load[r->end[i] - from] -= r->size[i];
    }
    for (uint32_t s = 0; s < to - from; s++) {
        live += load[s];
        load[s] = live;
        most = live > most ? live : most;
    }
    return most;
}

/* tree[len + s] is the load of section s; each inner node has the larger of its children. */
static void find_hot(struct fl_pack_run *r, const struct fl_pack_part *p, uint64_t *tree)
{
    uint32_t len = p->to - p->from;

    for (size_t i = len; i-- > 1;) {
        uint64_t a = tree[2 * i], b = tree[2 * i + 1];
        tree[i] = a > b ? a : b;
    }
    for (uint32_t i = p->lo; i < p->hi; i++) {
        uint32_t a = r->start[i] - p->from + len, b = r->end[i] - p->from + len;
        uint64_t most = 0;
        for (; a < b; a /= 2, b /= 2) {
            if ((a & 1) != 0) {
                most = tree[a] > most ? tree[a] : most;
                a++;
            }
            if ((b & 1) != 0) {
                b--;
                most = tree[b] > most ? tree[b] : most;
            }
        }
        r->hot[i] = most;
    }
}

/* A part ends where none of its buffers reaches the next one's birth, or with its zone. */
static uint32_t find_parts(const struct fl_pack_run *r, struct fl_pack_part *part)
{
    uint32_t n = 0, reach = 0;

    for (uint32_t i = 0; i < r->count; i++) {
        bool is_other = i == 0 || r->start[i] >= reach ||
                        r->buffer[r->id[i]].zone != r->buffer[r->id[i - 1]].zone;
        if (is_other && n > 0 && part != NULL) {
            part[n - 1].hi = i;
            part[n - 1].to = reach;
        }
        if (is_other) {
            if (part != NULL) {
                part[n] = (struct fl_pack_part){.lo = i, .from = r->start[i], .height = UINT64_MAX};
            }
            n++;
            reach = 0;
        }
        reach = r->end[i] > reach ? r->end[i] : reach;
    }
    if (n > 0 && part != NULL) {
        part[n - 1].hi = r->count;
        part[n - 1].to = reach;
    }
    return n;
}

/* Bands of different zones do not overlap, so that their bounds add up. */
static bool find_bounds(struct fl_pack_run *r)
{
    struct fl_pack_arena a = r->arena;
    uint64_t *load = fl_pack_carve(&a, 2 * ((size_t)r->sections + 1), sizeof *load);
    uint64_t bands = 0, band = 0;

    if (load == NULL) {
        return false;
    }
    r->bound = find_load(r, 0, r->count, 0, r->sections, load);
    for (uint32_t i = 0; i < r->parts; i++) {
        struct fl_pack_part *p = &r->part[i];
        p->bound = find_load(r, p->lo, p->hi, p->from, p->to, load + (p->to - p->from));
        find_hot(r, p, load);
        uint32_t zone = r->buffer[r->id[p->lo]].zone;
        if (zone == 0) {
            continue;
        }
        band = p->bound > band ? p->bound : band;
        if (i + 1 == r->parts || r->buffer[r->id[r->part[i + 1].lo]].zone != zone) {
            bands += band;
            band = 0;
        }
    }
    r->bound = bands > r->bound ? bands : r->bound;
    return true;
}

int fl_pack_setup(struct fl_pack_run *r)
{
    int rc = look_at_input(r);

    if (rc != 0) {
        return rc;
    }
    if (!carve_buffers(r) || !order_buffers(r)) {
        return -ENOMEM;
    }
    r->floor = fl_pack_carve(&r->arena, (size_t)r->sections + 1, sizeof *r->floor);
    r->parts = find_parts(r, NULL);
    r->part = fl_pack_carve(&r->arena, r->parts, sizeof *r->part);
    if (r->floor == NULL || r->part == NULL) {
        return -ENOMEM;
    }
    (void)find_parts(r, r->part);
    memset(r->floor, 0, (r->sections + 1) * sizeof *r->floor);
    return find_bounds(r) ? 0 : -ENOMEM;
}

/* From the highest top down, each fills what is not filled of its sections; after[s]: the next that may be open. */
bool fl_pack_floors(struct fl_pack_run *r, uint32_t n)
{
    struct fl_pack_arena a = r->arena;
    uint64_t *top = fl_pack_carve(&a, n, sizeof *top);
    uint32_t *order = fl_pack_carve(&a, n, sizeof *order);
    uint32_t *after = fl_pack_carve(&a, (size_t)r->sections + 1, sizeof *after);

    if (top == NULL || order == NULL || after == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < n; i++) {
        top[i] = r->best[i] + r->size[i];
        order[i] = i;
    }
    if (!fl_pack_sort(a, order, top, n)) {
        return false;
    }
    for (uint32_t s = 0; s <= r->sections; s++) {
        r->floor[s] = 0;
        after[s] = s;
    }
    for (uint32_t i = n; i-- > 0;) {
        uint32_t b = order[i];
        for (uint32_t s = r->start[b];; s++) {
            while (after[s] != s) {
                after[s] = after[after[s]];
                s = after[s];
            }
            if (s >= r->end[b]) {
                break;
            }
            r->floor[s] = top[b];
            after[s] = s + 1;
        }
    }
    return true;
}
