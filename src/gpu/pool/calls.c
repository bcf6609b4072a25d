/* What is done with blocks that are allocated, beside freeing them; and what pools are asked for by
 * hand. */
#include "gpu/pool/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int fl_pool_not_here(void)
{
    return fl_gpu_fail(-ENOENT, "not an address of this pool that is allocated");
}

int fl_pool_refuse(const struct fl_gpu_pool *p)
{
    if (p == NULL) {
        return fl_gpu_fail(-EINVAL, "no pool");
    }
    if (fl_gpu_is_forked()) {
        return fl_gpu_fail(-ECHILD, "the pool is another process's");
    }
    return fl_pool_is_shut(p) ? fl_gpu_fail(-ESHUTDOWN, "the driver or the pool's context has gone")
                              : 0;
}

/* How a user's call that talks to the driver begins. */
static int admit(struct fl_gpu_pool *p, struct fl_gpu_guard *g)
{
    int rc = fl_pool_refuse(p);

    return rc != 0 ? rc : fl_pool_enter(p, g);
}

struct fl_pool_block *fl_pool_find_used(const struct fl_gpu_pool *p, uint64_t address)
{
    struct fl_pool_block *b = fl_table_find(&p->table, address);

    fl_assert(fl_pool_is_locked(p) && (b == NULL || b->address == address));
    return b != NULL && b->state == FL_BLOCK_USED ? b : NULL;
}

/* ---- what a block is used for ---- */

int fl_gpu_pool_inplace(struct fl_gpu_pool *pool, uint64_t address, size_t size)
{
    int rc = fl_pool_refuse(pool);

    if (rc != 0) {
        return rc;
    }
    fl_lock_acquire(&pool->lock);
    struct fl_pool_block *b = fl_pool_find_used(pool, address);
    bool fits = b != NULL && size <= b->len && b->use == NULL;
    if (fits) {
        pool->s.requested_bytes += size - b->requested;
        b->requested = size;
        pool->s.inplace++;
    }
    fl_lock_release(&pool->lock);
    if (b == NULL) {
        return fl_pool_not_here();
    }
    return fits ? 0 : fl_gpu_fail(-EBUSY, "the block is too small, or another stream uses it");
}

/* How a call about a stream begins: the name depends on the caller's context. */
static int name_stream(struct fl_gpu_pool *p, void *stream, struct fl_stream_name *out)
{
    int rc = fl_pool_refuse(p);

    rc = rc == 0 ? fl_stream_check(stream) : rc;
    if (rc == 0) {
        *out = fl_stream_named(p, stream);
    }
    return rc;
}

static int use(struct fl_gpu_pool *p, uint64_t address, struct fl_pool_stream *s)
{
    struct fl_pool_use *u = calloc(1, sizeof *u);

    if (u == NULL) {
        return fl_gpu_fail(-ENOMEM, "no memory for a stream's use");
    }
    fl_lock_acquire(&p->lock);
    struct fl_pool_block *b = fl_pool_find_used(p, address);
    const struct fl_pool_use *there = b != NULL ? b->use : NULL;
    while (there != NULL && there->stream != s) {
        there = there->next;
    }
    if (b != NULL && there == NULL) {
        u->stream = s;
        u->next = b->use;
        b->use = u;
        s->uses++;
        u = NULL;
    }
    fl_lock_release(&p->lock);
    free(u);
    return b != NULL ? 0 : fl_pool_not_here();
}

int fl_gpu_pool_record_stream(struct fl_gpu_pool *pool, uint64_t address, void *stream)
{
    struct fl_pool_stream *s;
    struct fl_stream_name name;
    struct fl_gpu_guard g;
    bool captures;
    int rc = name_stream(pool, stream, &name);

    if (rc != 0) {
        return rc;
    }
    fl_lock_acquire(&pool->lock);
    s = fl_stream_lasting(pool, name);
    fl_lock_release(&pool->lock);
    if (s != NULL) { /* it needs no call, and stays */
        return use(pool, address, s);
    }
    rc = fl_pool_enter_light(pool, &g);
    if (rc != 0) {
        return rc;
    }
    rc = fl_stream_see(pool, name, &captures, &s);
    rc = rc == 0 ? use(pool, address, s) : rc;
    fl_pool_leave(pool, &g);
    return rc;
}

int fl_gpu_pool_stream_lasts(struct fl_gpu_pool *pool, void *stream)
{
    struct fl_pool_stream *s;
    struct fl_stream_name name;
    struct fl_gpu_guard g;
    bool captures;
    int rc = name_stream(pool, stream, &name);

    rc = rc == 0 ? fl_pool_enter_light(pool, &g) : rc;
    if (rc != 0) {
        return rc;
    }
    rc = fl_stream_see(pool, name, &captures, &s);
    rc = rc == 0 && captures ? fl_gpu_fail(-EINPROGRESS, "the stream is being captured") : rc;
    if (rc == 0 && (uintptr_t)stream != FL_STREAM_PER_THREAD) { /* that is each thread's own */
        fl_lock_acquire(&pool->lock);
        s->lasts = true;
        fl_lock_release(&pool->lock);
    }
    fl_pool_leave(pool, &g);
    return rc;
}

/* Lock: held, given up for the driver. */
static int retire(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    fl_assert(fl_pool_is_locked(p));
    (void)fl_stream_stamp(p, s); /* so much must have run before what it uses is free */
    int rc = fl_stream_cover(p, s, true);

    if (rc == 0 && !s->is_gone) {
        fl_stream_leave(p, s);
    }
    return rc;
}

int fl_gpu_pool_stream_retire(struct fl_gpu_pool *pool, void *stream)
{
    struct fl_pool_stream *s, *captured;
    struct fl_stream_name name;
    struct fl_gpu_guard g;
    bool captures;
    int rc = name_stream(pool, stream, &name);

    rc = rc == 0 ? fl_pool_enter(pool, &g) : rc;
    if (rc != 0) {
        return rc;
    }
    rc = fl_stream_see(pool, name, &captures, &s);
    fl_lock_acquire(&pool->lock);
    rc = rc == 0 ? retire(pool, s) : rc;
    if (rc == 0 && (captured = fl_stream_of_captures(pool, name)) != NULL) {
        rc = retire(pool, captured);
    }
    fl_lock_release(&pool->lock);
    fl_pool_leave(pool, &g);
    return rc;
}

int fl_gpu_pool_trim(struct fl_gpu_pool *pool, size_t keep, size_t *out_released)
{
    struct fl_gpu_guard g;
    size_t released = 0;
    int rc = admit(pool, &g);

    if (rc != 0) {
        return rc;
    }
    fl_lock_acquire(&pool->lock);
    fl_collect_batch(pool, true);
    fl_lock_release(&pool->lock);
    rc = fl_chunk_trim(pool, keep, &released);
    fl_pool_leave(pool, &g);
    if (out_released != NULL) {
        *out_released = released;
    }
    return rc;
}

int fl_gpu_pool_collect(struct fl_gpu_pool *pool)
{
    struct fl_gpu_guard g;
    int rc = admit(pool, &g);

    if (rc != 0) {
        return rc;
    }
    fl_lock_acquire(&pool->lock);
    fl_collect_batch(pool, true);
    fl_fallback_settle(pool, NULL, false);
    fl_lock_release(&pool->lock);
    fl_pool_leave(pool, &g);
    return 0;
}

/* ---- whose ---- */

/* The block that has `address`, in use. Lock: held. */
static const struct fl_pool_block *find_in(const struct fl_pool_chunk *c, uint64_t address)
{
    const struct fl_pool_block *b = c->first;

    fl_assert(b->before == NULL && b->address == c->address);
    while (b != NULL && address - b->address >= b->len) {
        b = b->after;
    }
    return b != NULL && b->state == FL_BLOCK_USED ? b : NULL;
}

/* Lock: held. */
static bool find(struct fl_gpu_pool *p, uint64_t address, struct fl_gpu_block *out)
{
    const struct fl_pool_chunk *c = p->chunks.first;
    const struct fl_pool_block *b;

    fl_assert(fl_pool_is_locked(p));
    while (c != NULL && address - c->address >= c->len) {
        c = c->next;
    }
    if (c == NULL) {
        return false;
    }
    out->base = c->address;
    out->base_bytes = c->len;
    if ((b = find_in(c, address)) == NULL) {
        return false;
    }
    out->address = b->address;
    out->bytes = b->len;
    out->requested_bytes = b->requested;
    return true;
}

int fl_gpu_pool_find(struct fl_gpu_pool *pool, uint64_t address, struct fl_gpu_block *out)
{
    size_t size = out == NULL ? 0 : (size_t)out->size;
    int rc = fl_pool_refuse(pool);

    if (rc != 0) {
        return rc;
    }
    if (size < sizeof out->size || size > sizeof *out) {
        return fl_gpu_fail(-EINVAL, "fl_gpu_pool_find: nowhere to put it, or size is not set");
    }
    struct fl_gpu_block all = {
        .size = size, .device = pool->gpu->ordinal, .target = pool->o.target};
    fl_lock_acquire(&pool->lock);
    bool found = find(pool, address, &all);
    fl_lock_release(&pool->lock);
    if (!found) {
        return fl_pool_not_here();
    }
    memcpy(out, &all, size);
    return 0;
}

struct fl_gpu_pool *fl_gpu_owner(uint64_t address, struct fl_gpu_block *out)
{
    struct fl_gpu_block block = {.size = sizeof block};
    const struct fl_gpu_track *t;
    struct fl_gpu_pool *found = NULL;

    if (fl_gpu_is_forked() || !fl_gpu_tracks_acquire(false, &t)) {
        return NULL;
    }
    for (; t != NULL && found == NULL; t = t->next) {
        if (t->kind == FL_GPU_TRACK_POOL && t->owner != NULL &&
            fl_gpu_pool_find(t->owner, address, out != NULL ? out : &block) == 0) {
            found = t->owner;
        }
    }
    fl_gpu_tracks_release();
    return found;
}

int fl_gpu_pool_reset_peaks(struct fl_gpu_pool *pool)
{
    int rc = fl_pool_refuse(pool);

    if (rc != 0 && rc != -ESHUTDOWN) {
        return rc;
    }
    fl_lock_acquire(&pool->lock);
    struct fl_gpu_pool_stats *s = &pool->s;
    s->occupied_peak_bytes = s->occupied_bytes;
    s->held_peak_bytes = s->occupied_bytes + s->free_bytes;
    fl_lock_release(&pool->lock);
    return 0;
}
