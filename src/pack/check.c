/* Is a layout right? Shares nothing with the methods but the sorting: buffers are looked at from the lowest offset up, and
 * each must lie at or above whatever was seen at any of the births during its life. */
#include "pack/run.h"

#include <string.h>

struct tops {
    uint32_t len;
    uint64_t *most; /* of all that was put anywhere below the node */
    uint64_t *all;  /* put on all of the node's range */
};

static uint64_t tops_over(const struct tops *t, uint32_t from, uint32_t to)
{
    uint32_t a = from + t->len, b = to + t->len, last = b - 1;
    uint64_t most = 0;

    for (uint32_t i = a; i > 0; i /= 2) {
        most = t->all[i] > most ? t->all[i] : most;
    }
    for (uint32_t i = last; i > 0; i /= 2) {
        most = t->all[i] > most ? t->all[i] : most;
    }
    for (; a < b; a /= 2, b /= 2) {
        if ((a & 1) != 0) {
            most = t->most[a] > most ? t->most[a] : most;
            a++;
        }
        if ((b & 1) != 0) {
            b--;
            most = t->most[b] > most ? t->most[b] : most;
        }
    }
    return most;
}

static void tops_above(struct tops *t, size_t i)
{
    for (i /= 2; i > 0; i /= 2) {
        uint64_t a = t->most[2 * i], b = t->most[2 * i + 1], most = a > b ? a : b;
        t->most[i] = t->all[i] > most ? t->all[i] : most;
    }
}

static void tops_put(struct tops *t, uint32_t from, uint32_t to, uint64_t top)
{
    uint32_t a = from + t->len, b = to + t->len, first = a, last = b - 1;

    for (; a < b; a /= 2, b /= 2) {
        if ((a & 1) != 0) {
            t->most[a] = top > t->most[a] ? top : t->most[a];
            t->all[a] = top > t->all[a] ? top : t->all[a];
            a++;
        }
        if ((b & 1) != 0) {
            b--;
            t->most[b] = top > t->most[b] ? top : t->most[b];
            t->all[b] = top > t->all[b] ? top : t->all[b];
        }
    }
    tops_above(t, first);
    tops_above(t, last);
}

struct sorted {
    uint32_t n;      /* buffers that live and have a size */
    uint32_t *order; /* by offset */
    uint64_t *birth; /* ascending, each once */
    uint32_t births;
    uint64_t *key;
};

static bool sort_buffers(struct fl_pack_arena *a, const struct fl_pack_buffer *b, size_t n,
                         struct sorted *s)
{
    s->order = fl_pack_carve(a, n, sizeof *s->order);
    s->birth = fl_pack_carve(a, n, sizeof *s->birth);
    s->key = fl_pack_carve(a, n, sizeof *s->key);
    if (s->order == NULL || s->birth == NULL || s->key == NULL) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        s->key[i] = b[i].birth;
        if (b[i].size != 0 && b[i].birth < b[i].death) {
            s->order[s->n++] = (uint32_t)i;
        }
    }
    if (!fl_pack_sort(*a, s->order, s->key, s->n)) {
        return false;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t birth = b[s->order[i]].birth;
        if (s->births == 0 || s->birth[s->births - 1] != birth) {
            s->birth[s->births++] = birth;
        }
    }
    for (size_t i = 0; i < n; i++) {
        s->key[i] = b[i].offset;
    }
    return fl_pack_sort(*a, s->order, s->key, s->n);
}

/* How many births come before `time`. */
static uint32_t births_before(const struct sorted *s, uint64_t time)
{
    uint32_t a = 0, b = s->births;

    while (a < b) {
        uint32_t mid = a + (b - a) / 2;
        if (s->birth[mid] < time) {
            a = mid + 1;
        } else {
            b = mid;
        }
    }
    return a;
}

static bool is_free_of_overlap(struct fl_pack_arena a, const struct fl_pack_buffer *b,
                               const struct sorted *s)
{
    struct tops t = {.len = s->births};

    t.most = fl_pack_carve(&a, 2 * (size_t)t.len, sizeof *t.most);
    t.all = fl_pack_carve(&a, 2 * (size_t)t.len, sizeof *t.all);
    if (t.most == NULL || t.all == NULL) {
        return false;
    }
    memset(t.most, 0, 2 * (size_t)t.len * sizeof *t.most);
    memset(t.all, 0, 2 * (size_t)t.len * sizeof *t.all);
    for (uint32_t i = 0; i < s->n; i++) {
        const struct fl_pack_buffer *x = &b[s->order[i]];
        uint32_t from = births_before(s, x->birth), to = births_before(s, x->death);
        if (tops_over(&t, from, to) > x->offset) {
            return false;
        }
        tops_put(&t, from, to, x->offset + x->size);
    }
    return true;
}

/* Zones from the lowest up: no gap inside one but what alignment asks for, and none reaches into the next. */
static bool is_zoned(struct fl_pack_arena a, const struct fl_pack_buffer *b, size_t n,
                     const struct sorted *s)
{
    uint64_t top = 0, below = 0;
    uint32_t zone = 0;

    for (size_t i = 0; i < n; i++) {
        s->key[i] = b[i].zone;
    }
    if (!fl_pack_sort(a, s->order, s->key, s->n)) {
        return false;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        const struct fl_pack_buffer *x = &b[s->order[i]];
        if (x->zone == 0) {
            continue;
        }
        if (x->zone != zone) {
            zone = x->zone;
            below = top;
        } else if (x->offset > top && x->offset - top >= (x->align == 0 ? 1 : x->align)) {
            return false;
        }
        if (x->offset < below) {
            return false;
        }
        top = x->offset + x->size > top ? x->offset + x->size : top;
    }
    return true;
}

bool fl_pack_is_valid(const struct fl_pack_buffer *b, size_t n, uint64_t height, void *scratch,
                      size_t scratch_len)
{
    struct fl_pack_arena a = {scratch, (char *)scratch + scratch_len};
    struct sorted s = {0};

    if (n == 0) {
        return true;
    }
    for (size_t i = 0; i < n; i++) {
        const struct fl_pack_buffer *x = &b[i];
        if (x->align != 0 && (x->offset & (x->align - 1)) != 0) {
            return false;
        }
        bool is_live = x->size != 0 && x->birth < x->death;
        if (is_live && (x->size > height || x->offset > height - x->size)) {
            return false;
        }
    }
    if (n > UINT32_MAX / 4 || !sort_buffers(&a, b, n, &s)) {
        return false;
    }
    return is_free_of_overlap(a, b, &s) && is_zoned(a, b, n, &s);
}
