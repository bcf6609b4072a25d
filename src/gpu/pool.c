/* The pools' public calls. What is usual is here: the lock, a set, a block. */
#include "gpu/pool.h"
#include "gpu/planned.h"

#include <errno.h>

enum { SIZE_SHIFT_MOST = 47 };

static FL_INLINE bool may_go_on(const struct fl_gpu_pool *p)
{
    return FL_LIKELY(p != NULL && !fl_gpu_is_forked() && !fl_pool_is_shut(p));
}

/* ---- alloc ---- */

/* Lock: held. */
static struct fl_pool_block *hit(struct fl_gpu_pool *p, struct fl_pool_stream *s, size_t len,
                                 size_t requested)
{
    struct fl_pool_block *b = fl_block_take(p, s, len);

    if (b != NULL) {
        b->tag = fl_gpu_tag_now();
        b->reused = true;
        fl_block_used(p, b, requested);
        p->s.hits++;
        p->s.served_pool_bytes += len;
        fl_learn_alloc(p, b, s);
        fl_pool_note(p);
    }
    return b;
}

int fl_pool_stream_of(struct fl_gpu_pool *p, void *stream, struct fl_pool_stream **out)
{
    int rc = 0;

    fl_lock_acquire(&p->lock);
    *out = fl_stream_find(p, stream);
    while (*out == NULL && rc == 0) {
        fl_lock_release(&p->lock);
        rc = fl_stream_make(p, stream);
        fl_lock_acquire(&p->lock);
        *out = fl_stream_find(p, stream);
    }
    fl_lock_release(&p->lock);
    return rc;
}

/* Streams that may be destroyed unsaid are looked at again. */
static int known_stream(struct fl_gpu_pool *p, void *stream, struct fl_pool_stream **out)
{
    struct fl_gpu_guard g;
    int rc = fl_pool_stream_of(p, stream, out);

    if (rc != 0 || p->o.events != FL_GPU_EVENTS_EAGER) {
        return rc;
    }
    rc = fl_pool_enter(p, &g);
    if (rc != 0) {
        return rc;
    }
    bool right = fl_stream_verify(p, *out);
    fl_pool_leave(p, &g);
    return right ? 0 : fl_pool_stream_of(p, stream, out);
}

static FL_APART int alloc_slowly(struct fl_gpu_pool *p, size_t size, size_t len, void *stream,
                                 uint64_t *out)
{
    struct fl_pool_stream *s;
    struct fl_pool_block *b = NULL;
    int rc = known_stream(p, stream, &s);

    if (rc != 0) {
        return rc;
    }
    if (len <= p->max_direct) {
        fl_lock_acquire(&p->lock);
        b = hit(p, s, len, size);
        if (b != NULL) {
            *out = b->address;
        }
        fl_lock_release(&p->lock);
    }
    if (b != NULL) {
        return 0;
    }
    rc = fl_ladder_alloc(p, s, len, size, &b);
    if (rc == 0) {
        *out = b->address;
        fl_lock_acquire(&p->lock);
        b->tag = fl_gpu_tag_now();
        fl_learn_alloc(p, b, s);
        fl_pool_note(p);
        fl_lock_release(&p->lock);
    }
    return rc;
}

int fl_gpu_pool_alloc(struct fl_gpu_pool *pool, size_t size, void *stream, uint64_t *out)
{
    if (!may_go_on(pool) || out == NULL) {
        return out == NULL ? fl_gpu_fail(-EINVAL, "nowhere to put an address")
                           : fl_pool_refuse(pool);
    }
    if (size - 1 >= (size_t)1 << SIZE_SHIFT_MOST) {
        if (size != 0) {
            return fl_gpu_fail(-ENOMEM, "no device has so much memory");
        }
        size = 1;
    }
    if (pool->plan != NULL && fl_planned_take(pool, size, stream, out)) {
        return 0;
    }
    size_t len = pool->strategy->round(pool, size);
    if (len <= pool->max_direct && pool->o.events == FL_GPU_EVENTS_LAZY) {
        fl_lock_acquire(&pool->lock);
        struct fl_pool_stream *s = fl_stream_find(pool, stream);
        struct fl_pool_block *b = s != NULL ? hit(pool, s, len, size) : NULL;
        uint64_t address = b != NULL ? b->address : 0;
        fl_lock_release(&pool->lock);
        if (FL_LIKELY(b != NULL)) {
            *out = address;
            return 0;
        }
    }
    return alloc_slowly(pool, size, len, stream, out);
}

/* ---- free ---- */

/* Whatever has been submitted is done with the block, or will be before the driver gives it to anybody else. Lock: held, given up for the
 * driver. */
static int wait_for_users(struct fl_gpu_pool *p, struct fl_pool_stream *s,
                          const struct fl_pool_block *b)
{
    int rc = p->is_pinned || (p->async != NULL && s == NULL) ? -EAGAIN : 0;

    for (struct fl_pool_use *u = p->async != NULL ? b->use : NULL; u != NULL && rc == 0;
         u = u->next) {
        rc = fl_stream_wait(p, s, u->stream, fl_stream_stamp(p, u->stream));
    }
    return rc != 0 ? fl_stream_sync_all(p) : 0; /* cuMemFree waits by itself */
}

static int return_used(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_block *b)
{
    struct fl_pool_block shell = {.use = b->use};
    size_t requested = b->requested;
    int rc = wait_for_users(p, s, b);

    if (rc != 0) {
        return rc;
    }
    fl_block_unused(p, b);
    fl_lock_release(&p->lock);
    rc = fl_chunk_return(p, s, b);
    fl_lock_acquire(&p->lock);
    if (rc != 0) {
        fl_block_used(p, b, requested);
        p->s.allocs--;
        p->s.frees--;
    } else {
        fl_use_drop(&shell);
        fl_pool_tell(p);
    }
    fl_pool_note(p);
    return rc;
}

int fl_pool_give_back(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_block *b)
{
    struct fl_gpu_guard g;
    int rc = fl_pool_enter(p, &g);
    bool entered = rc == 0;

    fl_lock_acquire(&p->lock);
    if (entered) {
        rc = return_used(p, s, b);
    }
    if (rc != 0) {
        b->state = FL_BLOCK_USED;
    }
    fl_lock_release(&p->lock);
    if (entered) {
        fl_pool_leave(p, &g);
    }
    return rc;
}

/* What the driver has to do with a free. Lock: not held. */
static FL_APART void after_free(struct fl_gpu_pool *p, bool cover)
{
    struct fl_gpu_guard g;
    size_t released = 0;

    if (fl_pool_enter(p, &g) != 0) {
        return;
    }
    if (cover) {
        fl_lock_acquire(&p->lock);
        fl_collect_cover(p);
        fl_lock_release(&p->lock);
    }
    if (p->o.free_idle) {
        (void)fl_chunk_trim(p, 0, &released);
    }
    fl_pool_leave(p, &g);
}

/* Lock: held. True: after_free has something to do. */
static FL_INLINE bool end_block(struct fl_gpu_pool *p, struct fl_pool_stream *s,
                                struct fl_pool_block *b)
{
    bool cover = false;

    fl_learn_free(p, b, s);
    fl_block_unused(p, b);
    b->state = FL_BLOCK_TRANSIT;
    fl_block_assign(b, s, fl_stream_stamp(p, s));
    for (struct fl_pool_use *u = b->use; u != NULL; u = u->next) {
        u->stamp = fl_stream_stamp(p, u->stream);
    }
    if (FL_UNLIKELY(p->gc_at != 0)) {
        cover = fl_collect_add(p, b) && fl_collect_batch(p, false);
    } else if (FL_LIKELY(b->use == NULL && !p->is_eager && s->thread == 0)) {
        fl_block_put(p, b);
    } else {
        cover = fl_collect_dispose(p, b);
    }
    fl_pool_note(p);
    fl_pool_tell(p);
    return cover;
}

int fl_gpu_pool_free(struct fl_gpu_pool *pool, uint64_t address, void *stream)
{
    if (!may_go_on(pool)) {
        return fl_pool_refuse(pool);
    }
    if (pool->plan != NULL && fl_planned_owns(pool, address)) {
        return fl_planned_give(pool, address, stream);
    }
    fl_lock_acquire(&pool->lock);
    struct fl_pool_block *b = fl_pool_find_used(pool, address);
    struct fl_pool_stream *s = fl_stream_find(pool, stream);
    while (b != NULL && FL_UNLIKELY(s == NULL)) {
        fl_lock_release(&pool->lock);
        int rc = fl_pool_stream_of(pool, stream, &s);
        if (rc != 0) {
            return rc;
        }
        fl_lock_acquire(&pool->lock);
        s = fl_stream_find(pool, stream);
        b = fl_pool_find_used(pool, address);
    }
    if (b == NULL) {
        fl_lock_release(&pool->lock);
        return fl_pool_not_here();
    }
    if (b->chunk->is_direct) {
        b->state = FL_BLOCK_TRANSIT;
        fl_lock_release(&pool->lock);
        return fl_pool_give_back(pool, s, b);
    }
    bool cover = end_block(pool, s, b);
    fl_lock_release(&pool->lock);
    if (FL_UNLIKELY(cover || pool->o.free_idle)) {
        after_free(pool, cover);
    }
    return 0;
}
