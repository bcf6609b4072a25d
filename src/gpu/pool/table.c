/* From an address to its block: open addressing, never more than half full; and the records, which
 * come in slabs. */
#include "gpu/pool/pool.h"

#include <stdlib.h>

enum { SLAB = 64, FIRST_SHIFT = 8 };

struct fl_pool_slab {
    struct fl_pool_slab *next;
    struct fl_pool_block block[SLAB];
};

static size_t home(const struct fl_pool_table *t, uint64_t address)
{
    return (size_t)(((address >> 5) * UINT64_C(0x9e3779b97f4a7c15)) >> t->shift);
}

static size_t entries(const struct fl_pool_table *t)
{
    return t->entry == NULL ? 0 : (size_t)1 << (64 - t->shift);
}

struct fl_pool_block *fl_table_find(const struct fl_pool_table *t, uint64_t address)
{
    size_t mask = entries(t) - 1;

    if (t->entry == NULL) {
        return NULL;
    }
    for (size_t i = home(t, address); t->entry[i].block != NULL; i = (i + 1) & mask) {
        if (t->entry[i].address == address) {
            return t->entry[i].block;
        }
    }
    return NULL;
}

void fl_table_insert(struct fl_pool_table *t, struct fl_pool_block *b)
{
    size_t mask = entries(t) - 1, i = home(t, b->address);

    fl_assert(entries(t) >= 2 * t->records && fl_table_find(t, b->address) == NULL);
    while (t->entry[i].block != NULL) {
        i = (i + 1) & mask;
    }
    t->entry[i] = (struct fl_pool_entry){b->address, b};
}

void fl_table_remove(struct fl_pool_table *t, const struct fl_pool_block *b)
{
    size_t mask = entries(t) - 1, hole = home(t, b->address);

    while (t->entry[hole].block != b) {
        fl_assert(t->entry[hole].block != NULL);
        hole = (hole + 1) & mask;
    }
    /* What was pushed past the hole moves back into it. */
    for (size_t i = (hole + 1) & mask; t->entry[i].block != NULL; i = (i + 1) & mask) {
        if (((i - home(t, t->entry[i].address)) & mask) >= ((i - hole) & mask)) {
            t->entry[hole] = t->entry[i];
            hole = i;
        }
    }
    t->entry[hole].block = NULL;
}

static bool make_room(struct fl_pool_table *t)
{
    size_t n = entries(t);

    if (n >= 2 * (t->records + SLAB)) {
        return true;
    }
    size_t want = n == 0 ? (size_t)1 << FIRST_SHIFT : 2 * n;
    struct fl_pool_entry *old = t->entry, *fresh = calloc(want, sizeof *fresh);
    if (fresh == NULL) {
        return false;
    }
    t->entry = fresh;
    t->shift = n == 0 ? 64 - FIRST_SHIFT : t->shift - 1;
    for (size_t i = 0; i < n; i++) {
        if (old[i].block != NULL) {
            fl_table_insert(t, old[i].block);
        }
    }
    free(old);
    return true;
}

static bool more_records(struct fl_pool_table *t)
{
    struct fl_pool_slab *slab = make_room(t) ? calloc(1, sizeof *slab) : NULL;

    if (slab == NULL) {
        return false;
    }
    slab->next = t->slabs;
    t->slabs = slab;
    t->records += SLAB;
    for (int i = SLAB - 1; i >= 0; i--) {
        fl_record_put(t, &slab->block[i]);
    }
    return true;
}

struct fl_pool_block *fl_record_get(struct fl_pool_table *t)
{
    if (t->spare == NULL && !more_records(t)) {
        return NULL;
    }
    struct fl_pool_block *b = t->spare;
    t->spare = b->right;
    *b = (struct fl_pool_block){.len = 0};
    return b;
}

void fl_record_put(struct fl_pool_table *t, struct fl_pool_block *b)
{
    fl_assert(b->stream == NULL);
    b->right = t->spare;
    t->spare = b;
}

void fl_records_free(struct fl_pool_table *t)
{
    for (struct fl_pool_slab *s = t->slabs, *next; s != NULL; s = next) {
        next = s->next;
        free(s);
    }
    free(t->entry);
}
