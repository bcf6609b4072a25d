/* Blocks and chunks of a pool, the table that leads to them, and free ones by size. Included by
 * pool.h, which has P1 to P4 and says what the lock is. */
#ifndef FL_GPU_POOL_BLOCK_H
#define FL_GPU_POOL_BLOCK_H

#include "gpu/host/host.h"

struct fl_gpu_pool;
struct fl_pool_stream;

enum fl_block_state {
    FL_BLOCK_FREE,
    FL_BLOCK_USED,
    FL_BLOCK_TRANSIT, /* in the hands of one thread, which talks to the driver */
    FL_BLOCK_PENDING, /* freed; waits for its streams */
    FL_BLOCK_GARBAGE, /* freed; waits for the collector */
};

/* Another stream's use of a block. */
struct fl_pool_use {
    struct fl_pool_use *next;
    struct fl_pool_stream *stream;
    uint64_t stamp; /* since it was freed */
};

struct fl_pool_block {
    uint64_t address;
    size_t len;
    enum fl_block_state state;
    bool waits_own;                /* pending: for its own stream too */
    size_t requested;              /* used: before rounding */
    bool in_graph;                 /* used: taken while its stream was captured */
    struct fl_pool_stream *stream; /* freed: on which; NULL: safe for all */
    uint64_t stamp;
    uint64_t by; /* number of the stream that has it, or freed it last; 0: none has */
    struct fl_pool_use *use;
    struct fl_pool_chunk *chunk;
    struct fl_pool_block *before, *after; /* in the chunk */
    struct fl_pool_block *older,
        *newer; /* in the list of the stream, of what is pending, of garbage */
    struct fl_pool_block *left, *right; /* tree: smaller, larger */
};

struct fl_pool_chunk {
    struct fl_pool_chunk *next, *previous;
    uint64_t address;
    size_t len;
    struct fl_pool_block *first;
    bool is_direct;          /* goes back when it is freed */
    bool is_slab;            /* of small blocks, which have sets of their own */
    struct fl_pinned pinned; /* range.len 0: the driver's own allocation */
};

struct fl_pool_list {
    struct fl_pool_block *first, *last;
};

struct fl_pool_entry {
    uint64_t address;
    struct fl_pool_block *block; /* NULL: nothing here */
};

/* From an address to its block, and the records of blocks: table.c. */
struct fl_pool_table {
    struct fl_pool_entry *entry;
    unsigned shift; /* 64 - log2 of entries */
    size_t records; /* blocks there is room for */
    struct fl_pool_slab *slabs;
    struct fl_pool_block *spare;
};

/* P1, as far as one block tells. */
static inline bool fl_block_is_sound(const struct fl_pool_block *b)
{
    const struct fl_pool_block *l = b->before, *r = b->after;

    return b->len != 0 && (l == NULL || (l->address + l->len == b->address && l->after == b)) &&
           (r == NULL || (b->address + b->len == r->address && r->before == b));
}

/* ---- table.c ---- */

struct fl_pool_block *fl_table_find(const struct fl_pool_table *t, uint64_t address);
void fl_table_insert(struct fl_pool_table *t, struct fl_pool_block *b);
void fl_table_remove(struct fl_pool_table *t, const struct fl_pool_block *b);
/* A record, zero, with room in the table; NULL: no memory. */
struct fl_pool_block *fl_record_get(struct fl_pool_table *t);
void fl_record_put(struct fl_pool_table *t, struct fl_pool_block *b);
void fl_records_free(struct fl_pool_table *t);

/* ---- free_blocks.c ---- */

void fl_list_append(struct fl_pool_list *l, struct fl_pool_block *b);
void fl_list_prepend(struct fl_pool_list *l, struct fl_pool_block *b);
/* Behind all whose stamps are not later. */
void fl_list_insert(struct fl_pool_list *l, struct fl_pool_block *b);
void fl_list_remove(struct fl_pool_list *l, struct fl_pool_block *b);
void fl_list_replace(struct fl_pool_list *l, struct fl_pool_block *old, struct fl_pool_block *b);
/* Into and out of the set of b->stream. */
void fl_set_insert(struct fl_gpu_pool *p, struct fl_pool_block *b);
void fl_set_remove(struct fl_gpu_pool *p, struct fl_pool_block *b);
/* What serves `len`: the smallest that is as large, of those the lowest; binned, of that very
 * size. `slab`: of slabs, else of other chunks. NULL: none. It stays in the set. */
struct fl_pool_block *fl_set_find(struct fl_gpu_pool *p, struct fl_pool_stream *s, size_t len,
                                  bool slab);
/* ---- block.c ---- */

/* Names the stream that freed `b`; NULL: no stream need be asked. */
void fl_block_assign(struct fl_pool_block *b, struct fl_pool_stream *s, uint64_t stamp);
/* A block in transit becomes free, in the set of its stream, with its neighbours where it may
 * (S7). */
void fl_block_put(struct fl_gpu_pool *p, struct fl_pool_block *b);
/* Out of its set and list: in transit. */
void fl_block_withdraw(struct fl_gpu_pool *p, struct fl_pool_block *b);
/* Of what `s` may have at once: `len` bytes, in use; `slab` as above. NULL: nothing. */
struct fl_pool_block *fl_block_take(struct fl_gpu_pool *p, struct fl_pool_stream *s, size_t len,
                                    bool slab);
/* A new chunk's only block: its `len` bytes for use, the rest is put. */
struct fl_pool_block *fl_block_carve(struct fl_gpu_pool *p, struct fl_pool_block *b, size_t len);
/* What `s` freed and what is free for all become one where they touch. True: something did. */
bool fl_block_join(struct fl_gpu_pool *p, struct fl_pool_stream *s);
/* Bytes and peaks of a block that begins or ends to be used. */
void fl_block_used(struct fl_gpu_pool *p, struct fl_pool_block *b, size_t requested);
void fl_block_unused(struct fl_gpu_pool *p, struct fl_pool_block *b);

#endif
