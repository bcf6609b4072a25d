#include "gpu/pool_fixture.h"

/* ---- check ---- */

struct sums {
    size_t used, other, blocks;
};

static bool check_chunk(struct fl_gpu_pool *p, const struct fl_pool_chunk *c, struct sums *sum)
{
    uint64_t at = c->address;
    const struct fl_pool_block *before = NULL;

    for (struct fl_pool_block *b = c->first; b != NULL; before = b, b = b->after) {
        bool both = before != NULL && before->state == FL_BLOCK_FREE && b->state == FL_BLOCK_FREE;
        if (b->address != at || b->len == 0 || b->chunk != c || b->before != before ||
            fl_table_find(&p->table, at) != b || (both && before->stream == b->stream)) {
            return false;
        }
        *(b->state == FL_BLOCK_USED ? &sum->used : &sum->other) += b->len;
        sum->blocks++;
        at += b->len;
    }
    return at == c->address + c->len;
}

static bool check_list(const struct fl_pool_list *l, enum fl_block_state state,
                       const struct fl_pool_stream *s)
{
    const struct fl_pool_block *older = NULL;

    for (const struct fl_pool_block *b = l->first; b != NULL; older = b, b = b->newer) {
        if (b->state != state || b->older != older || (s != NULL && b->stream != s)) {
            return false;
        }
    }
    return l->last == older;
}

bool pool_check(struct fl_gpu_pool *p)
{
    struct sums sum = {0, 0, 0};
    size_t listed = 0;
    bool right = true;

    fl_lock_acquire(&p->lock);
    for (const struct fl_pool_chunk *c = p->chunks.first; c != NULL && right; c = c->next) {
        right = check_chunk(p, c, &sum);
    }
    for (const struct fl_pool_stream *s = p->streams.first; s != NULL && right; s = s->next) {
        right = check_list(&s->free, FL_BLOCK_FREE, s);
    }
    for (size_t i = 0; p->table.entry != NULL && i < (size_t)1 << (64 - p->table.shift); i++) {
        listed += p->table.entry[i].block != NULL;
    }
    right = right && check_list(&p->freed.pending, FL_BLOCK_PENDING, NULL) &&
            check_list(&p->freed.garbage, FL_BLOCK_GARBAGE, NULL) && listed == sum.blocks &&
            sum.used == p->s.occupied_bytes && sum.other == p->s.free_bytes;
    fl_lock_release(&p->lock);
    return right;
}

/* ---- pools ---- */

struct fl_gpu_pool_options pool_options(enum fl_gpu_strategy strategy)
{
    return (struct fl_gpu_pool_options){
        .size = sizeof(struct fl_gpu_pool_options),
        .strategy = strategy,
        .target = FL_GPU_DEVICE,
        .page = 4096,
        .large_round = MIB(2),
        .linear_cutoff = 24,
        .reserve_percent = 5,
        .fraction = 0.92,
        .gc_fraction = 1,
        .gc_fast = true,
        .chunk = 1, /* as large as the request */
        .numa_node = -1,
    };
}

struct fl_gpu_pool *pool_with(const struct fl_gpu_pool_options *o)
{
    struct fl_gpu_pool *p = NULL;

    if (fl_gpu_pool_create(gpu, o, &p) != 0) {
        fail_msg("no pool: %s", fl_gpu_error());
    }
    return p;
}

struct fl_gpu_pool *pool_of(enum fl_gpu_strategy strategy)
{
    struct fl_gpu_pool_options o = pool_options(strategy);

    return pool_with(&o);
}

size_t pool_records(const struct fl_gpu_pool *p)
{
    size_t n = 0;

    for (const struct fl_pool_stream *s = p->streams.first; s != NULL; s = s->next) {
        n++;
    }
    return n;
}

void pool_end(struct fl_gpu_pool *p)
{
    assert_true(pool_check(p));
    int rc = fl_gpu_pool_destroy(p);
    if (rc != 0) {
        fail_msg("the pool does not end: %d, %s", rc, fl_gpu_error());
    }
}

uint64_t pool_take(struct fl_gpu_pool *p, size_t size, void *stream)
{
    uint64_t address = 0;
    int rc = fl_gpu_pool_alloc(p, size, stream, &address);

    if (rc != 0) {
        fail_msg("no %zu bytes: %d, %s", size, rc, fl_gpu_error());
    }
    assert_int_not_equal(address, 0);
    return address;
}

void pool_give(struct fl_gpu_pool *p, uint64_t address, void *stream)
{
    int rc = fl_gpu_pool_free(p, address, stream);

    if (rc != 0) {
        fail_msg("not freed: %d, %s", rc, fl_gpu_error());
    }
}

struct fl_gpu_pool_stats pool_stats(struct fl_gpu_pool *p)
{
    struct fl_gpu_pool_stats s = {.size = sizeof s};

    assert_true(pool_check(p));
    assert_int_equal(fl_gpu_pool_stats(p, &s), 0);
    return s;
}

uint64_t pool_held(struct fl_gpu_pool *p)
{
    struct fl_gpu_pool_stats s = pool_stats(p);

    return s.occupied_bytes + s.free_bytes;
}
