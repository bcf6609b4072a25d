/* From an address to its block: open addressing, never more than half full; and the records, which
 * come in slabs. */
#include "gpu/pool/pool.h"

#include <stdlib.h>

enum { SLAB = 64, FIRST_SHIFT = 8 };

struct fl_pool_slab {
    struct fl_pool_slab *next;
    struct fl_pool_block block[SLAB];
};

static size_t home(const struct fl_gpu_pool *p, uint64_t address)
{
    return (size_t)(((address >> 5) * UINT64_C(0x9e3779b97f4a7c15)) >> p->entry_shift);
}

static size_t entries(const struct fl_gpu_pool *p)
{
    return p->entry == NULL ? 0 : (size_t)1 << (64 - p->entry_shift);
}

struct fl_pool_block *fl_table_find(const struct fl_gpu_pool *p, uint64_t address)
{
    size_t mask = entries(p) - 1;

    if (p->entry == NULL) {
        return NULL;
    }
    for (size_t i = home(p, address); p->entry[i].block != NULL; i = (i + 1) & mask) {
        if (p->entry[i].address == address) {
            return p->entry[i].block;
        }
    }
    return NULL;
}

void fl_table_insert(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    size_t mask = entries(p) - 1, i = home(p, b->address);

    fl_assert(entries(p) >= 2 * p->records && fl_table_find(p, b->address) == NULL);
    while (p->entry[i].block != NULL) {
        i = (i + 1) & mask;
    }
    p->entry[i] = (struct fl_pool_entry){b->address, b};
}

void fl_table_remove(struct fl_gpu_pool *p, const struct fl_pool_block *b)
{
    size_t mask = entries(p) - 1, hole = home(p, b->address);

    while (p->entry[hole].block != b) {
        fl_assert(p->entry[hole].block != NULL);
        hole = (hole + 1) & mask;
    }
    /* What was pushed past the hole moves back into it. */
    for (size_t i = (hole + 1) & mask; p->entry[i].block != NULL; i = (i + 1) & mask) {
        if (((i - home(p, p->entry[i].address)) & mask) >= ((i - hole) & mask)) {
            p->entry[hole] = p->entry[i];
            hole = i;
        }
    }
    p->entry[hole].block = NULL;
}

static bool make_room(struct fl_gpu_pool *p)
{
    size_t n = entries(p);

    if (n >= 2 * (p->records + SLAB)) {
        return true;
    }
    size_t want = n == 0 ? (size_t)1 << FIRST_SHIFT : 2 * n;
    struct fl_pool_entry *old = p->entry, *fresh = calloc(want, sizeof *fresh);
    if (fresh == NULL) {
        return false;
    }
    p->entry = fresh;
    p->entry_shift = n == 0 ? 64 - FIRST_SHIFT : p->entry_shift - 1;
    for (size_t i = 0; i < n; i++) {
        if (old[i].block != NULL) {
            fl_table_insert(p, old[i].block);
        }
    }
    free(old);
    return true;
}

static bool more_records(struct fl_gpu_pool *p)
{
    struct fl_pool_slab *slab = make_room(p) ? calloc(1, sizeof *slab) : NULL;

    if (slab == NULL) {
        return false;
    }
    slab->next = p->slabs;
    p->slabs = slab;
    p->records += SLAB;
    for (int i = SLAB - 1; i >= 0; i--) {
        fl_record_put(p, &slab->block[i]);
    }
    return true;
}

struct fl_pool_block *fl_record_get(struct fl_gpu_pool *p)
{
    if (p->spare == NULL && !more_records(p)) {
        return NULL;
    }
    struct fl_pool_block *b = p->spare;
    p->spare = b->right;
    *b = (struct fl_pool_block){.len = 0};
    return b;
}

void fl_record_put(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    fl_assert(b->stream == NULL);
    b->right = p->spare;
    p->spare = b;
}

void fl_records_free(struct fl_gpu_pool *p)
{
    for (struct fl_pool_slab *s = p->slabs, *next; s != NULL; s = next) {
        next = s->next;
        free(s);
    }
    free(p->entry);
}
