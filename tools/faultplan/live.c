/* Births and deaths, sorted, and their sum. */
#include "faultplan/live.h"

#include <stdlib.h>

static int compare(const void *a, const void *b)
{
    const struct fl_change *x = a, *y = b;

    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }
    return (int)x->is_birth - (int)y->is_birth;
}

bool fl_live_is(const struct fl_pack_buffer *b)
{
    return b->size != 0 && b->birth < b->death;
}

struct fl_change *fl_live_changes(const struct fl_table *t, size_t *n)
{
    struct fl_change *c = calloc(2 * t->n + 1, sizeof *c);

    *n = 0;
    for (size_t i = 0; c != NULL && i < t->n; i++) {
        const struct fl_pack_buffer *b = &t->buffer[i];
        if (fl_live_is(b)) {
            c[(*n)++] = (struct fl_change){b->birth, b->size, true};
            c[(*n)++] = (struct fl_change){b->death, b->size, false};
        }
    }
    if (c != NULL) {
        qsort(c, *n, sizeof *c, compare);
    }
    return c;
}

uint64_t fl_live_most(const struct fl_change *c, size_t n)
{
    uint64_t live = 0, most = 0;

    for (size_t i = 0; i < n; i++) {
        live = c[i].is_birth ? live + c[i].size : live - c[i].size;
        most = fl_max(most, live);
    }
    return most;
}

bool fl_live_bound(const struct fl_table *t, uint64_t *out)
{
    size_t n;
    struct fl_change *c = fl_live_changes(t, &n);

    if (c == NULL) {
        return false;
    }
    *out = fl_live_most(c, n);
    free(c);
    return true;
}
