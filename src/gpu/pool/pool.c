/* The pools' public calls. What is usual is here: the lock, a set, a block. */
#include "gpu/pool/pool.h"

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
    struct fl_pool_block *b = fl_block_take(p, s, len, fl_set_is_small(p, len));

    fl_assert(fl_pool_is_locked(p));
    if (b != NULL) {
        fl_block_used(p, b, requested);
        p->s.hits++;
        p->s.served_pool_bytes += len;
    }
    return b;
}

static FL_APART int alloc_slowly(struct fl_gpu_pool *p, size_t size, size_t len,
                                 struct fl_stream_name name, uint64_t *out)
{
    struct fl_pool_stream *s;
    struct fl_pool_block *b = NULL;
    struct fl_gpu_guard g;
    bool captures = false, unasked = false;
    int rc = fl_pool_enter_light(p, &g);

    if (rc != 0) {
        return rc;
    }
    rc = fl_stream_see(p, name, &captures, &s);
    if (rc == 0) {
        fl_lock_acquire(&p->lock);
        b = len <= p->max_direct ? hit(p, s, len, size) : NULL;
        unasked = s->lasts;
        fl_lock_release(&p->lock);
    }
    if (rc == 0 && b == NULL) {
        fl_gpu_relax(&g);
        bool captured = unasked ? fl_stream_is_capturing(p, s) : captures;
        rc = fl_fallback_alloc(p, s, captured, len, size, &b);
    }
    if (rc == 0) {
        fl_assert(b->state == FL_BLOCK_USED && b->len >= len);
        *out = b->address;
        fl_lock_acquire(&p->lock);
        b->in_graph = captures && p->is_blind;
        fl_lock_release(&p->lock);
    }
    fl_pool_leave(p, &g);
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
    if (pool->is_pinned) {
        stream = FL_GPU_HOST; /* only the host's order counts */
    } else if (FL_UNLIKELY(stream == FL_GPU_HOST)) {
        return fl_gpu_fail(-EINVAL, "memory of a device is a stream's, not FL_GPU_HOST's");
    }
    const struct fl_stream_name name = fl_stream_named(pool, stream);
    size_t len = pool->strategy->round(pool, size);
    fl_assert(len >= size);
    if (len <= pool->max_direct) {
        fl_lock_acquire(&pool->lock);
        struct fl_pool_stream *s = fl_stream_lasting(pool, name);
        struct fl_pool_block *b = s != NULL ? hit(pool, s, len, size) : NULL;
        uint64_t address = b != NULL ? b->address : 0;
        fl_lock_release(&pool->lock);
        if (FL_LIKELY(b != NULL)) {
            *out = address;
            return 0;
        }
    }
    return alloc_slowly(pool, size, len, name, out);
}

/* ---- free ---- */

/* The stamps of a block that is about to end: of the other streams that use it, and of `s`. */
static uint64_t stamp_users(struct fl_gpu_pool *p, struct fl_pool_stream *s,
                            struct fl_pool_use *uses)
{
    fl_assert(fl_pool_is_locked(p));
    for (struct fl_pool_use *u = uses; u != NULL; u = u->next) {
        u->stamp = fl_stream_stamp(p, u->stream);
    }
    return fl_stream_stamp(p, s);
}

/* After that events for it, in transit: on `s`, if it is there (`live`: and not captured) and does
 * not last, and on the other streams. 0; -EINPROGRESS: one is captured; else a refusal. Lock: held,
 * given up for the driver. */
static int cover_users(struct fl_gpu_pool *p, struct fl_pool_stream *s,
                       const struct fl_pool_use *uses, bool live)
{
    int told = 0, rc;

    fl_assert(fl_pool_is_locked(p));
    for (const struct fl_pool_use *u = uses; u != NULL; u = u->next) {
        if (!u->stream->is_gone && u->stream->covered < u->stamp) {
            rc = fl_stream_cover(p, u->stream, true);
            told = told == 0 || rc == -EINPROGRESS ? rc : told;
        }
    }
    rc = live && !s->lasts && !s->is_gone ? fl_stream_cover(p, s, false) : 0;
    return told == 0 || rc == -EINPROGRESS ? rc : told;
}

/* As fl_stream_wait, for the caller, until no other thread has the event. Lock: likewise. */
static int wait_for(struct fl_gpu_pool *p, struct fl_pool_stream *s, uint64_t stamp)
{
    int rc;

    while ((rc = fl_stream_wait(p, NULL, s, stamp)) == -EAGAIN && !fl_pool_is_shut(p)) {
        fl_lock_release(&p->lock);
        (void)fl_call(SYS_sched_yield);
        fl_lock_acquire(&p->lock);
    }
    return rc;
}

/* Whatever has been submitted is done with the block, or will be before the driver gives it to
 * another thread. Lock: held, given up for the driver. */
static int wait_for_users(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_block *b)
{
    if (!p->is_pinned) {
        return 0; /* cuMemFree waits by itself */
    }
    bool has_gone = s->is_gone && s != &p->streams.host;
    uint64_t stamp = stamp_users(p, s, b->use);
    int rc = cover_users(p, s, b->use, true);
    for (struct fl_pool_use *u = b->use; u != NULL && rc == 0; u = u->next) {
        rc = wait_for(p, u->stream, u->stamp);
    }
    rc = rc == 0 ? wait_for(p, s, stamp) : rc;
    rc = rc == -EPERM && has_gone ? fl_stream_sync_all(p) : rc;
    return rc == -EPERM || rc == -EAGAIN ? -EBUSY : rc;
}

static int return_used(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_block *b)
{
    struct fl_pool_block shell = {.use = b->use};
    size_t requested = b->requested;
    int rc = wait_for_users(p, s, b);

    fl_assert(fl_pool_is_locked(p) && b->state == FL_BLOCK_TRANSIT);
    if (rc != 0) {
        return rc;
    }
    fl_block_unused(p, b);
    fl_lock_release(&p->lock);
    rc = fl_chunk_return(p, b);
    fl_lock_acquire(&p->lock);
    if (rc != 0) {
        fl_block_used(p, b, requested);
        p->s.allocs--;
        p->s.frees--;
    } else {
        fl_use_drop(&shell);
    }
    return rc;
}

/* A block in transit, a chunk of its own, goes back to the driver; with anything but 0 it is in use
 * again. `s` freed it. Lock: not held. */
static int give_back(struct fl_gpu_pool *p, struct fl_pool_stream *s, struct fl_pool_block *b)
{
    struct fl_gpu_guard g;
    int rc = fl_pool_enter(p, &g);
    bool entered = rc == 0;

    fl_assert(b->chunk->is_direct);
    fl_lock_acquire(&p->lock);
    if (entered) {
        rc = return_used(p, s, b);
    }
    if (rc != 0) {
        fl_block_assign(b, NULL, 0);
        b->state = FL_BLOCK_USED;
    }
    fl_lock_release(&p->lock);
    if (entered) {
        fl_pool_leave(p, &g);
    }
    return rc;
}

/* Lock: held. `captured`: a graph may use it whenever it runs. */
static FL_INLINE void end_block(struct fl_gpu_pool *p, struct fl_pool_stream *s,
                                struct fl_pool_block *b, uint64_t stamp, bool captured)
{
    fl_assert(fl_pool_is_locked(p));
    fl_assert(b->state == FL_BLOCK_USED || b->state == FL_BLOCK_TRANSIT);
    fl_block_unused(p, b);
    b->state = FL_BLOCK_TRANSIT;
    fl_block_assign(b, s, stamp);
    if (FL_UNLIKELY(captured && !p->is_graph)) {
        b->waits_own = true;
        b->stamp = FL_POOL_HELD;
        fl_collect_dispose(p, b);
    } else if (FL_UNLIKELY(p->freed.at != 0)) {
        if (fl_collect_add(p, b)) {
            fl_collect_batch(p, false);
        }
    } else if (FL_LIKELY(b->use == NULL && p->o.gc_fast)) {
        fl_block_put(p, b);
    } else {
        b->waits_own = !p->o.gc_fast;
        fl_collect_dispose(p, b);
    }
}

/* The stream that the block, in transit, was taken on, or, if nothing is known of that any more,
 * limbo. The block names it, so that its record stays. */
static int taker_of(struct fl_gpu_pool *p, struct fl_pool_block *b, struct fl_pool_stream **out)
{
    fl_lock_acquire(&p->lock);
    *out = fl_stream_numbered(p, b->by);
    *out = *out != NULL ? *out : fl_stream_limbo(p);
    if (*out != NULL) {
        fl_block_assign(b, *out, 0);
    }
    fl_lock_release(&p->lock);
    return *out != NULL ? 0 : fl_gpu_fail(-ENOMEM, "no memory for a stream's record");
}

/* A block in transit whose stream is known: the driver's again, or the pool's. Events come first,
 * while the streams are there; then the block ends. */
static void end_with_events(struct fl_gpu_pool *p, struct fl_pool_stream *s,
                            struct fl_pool_block *b, bool live, bool captured)
{
    fl_lock_acquire(&p->lock);
    uint64_t stamp = stamp_users(p, s, b->use);
    /* Of a captured stream no event can be had. */
    int rc = cover_users(p, s, b->use, live && !captured);
    end_block(p, s, b, stamp, captured || rc == -EINPROGRESS);
    fl_lock_release(&p->lock);
}

/* Is one of the other streams that use `b`, in transit, being captured? Lock: not held. */
static bool is_used_in_capture(struct fl_gpu_pool *p, const struct fl_pool_block *b)
{
    bool captured = false;

    for (const struct fl_pool_use *u = b->use; u != NULL && !captured; u = u->next) {
        fl_lock_acquire(&p->lock);
        bool is_there = !u->stream->is_gone;
        fl_lock_release(&p->lock);
        captured = is_there && fl_stream_is_capturing(p, u->stream);
    }
    return captured;
}

/* `b` is in transit. The driver is called only where there is something to ask or to record. */
static FL_APART int free_slowly(struct fl_gpu_pool *p, struct fl_pool_block *b,
                                struct fl_stream_name name, bool live)
{
    struct fl_pool_stream *s;
    struct fl_gpu_guard g;
    bool captured = false, direct = b->chunk->is_direct;
    bool asks = (live && name.handle != FL_GPU_HOST) || b->use != NULL;
    int rc = asks ? fl_pool_enter_light(p, &g) : 0, entered = asks && rc == 0;

    fl_assert(b->state == FL_BLOCK_TRANSIT && !fl_lock_is_held(FL_RANK_RUNTIME, 1));
    if (rc == 0) {
        rc = live ? fl_stream_see(p, name, &captured, &s) : taker_of(p, b, &s);
    }
    if (rc == 0 && direct && !captured) { /* of others events will tell, if it stays here */
        captured = is_used_in_capture(p, b);
    }
    bool kept = captured || b->in_graph;
    bool back = rc == 0 && direct && !kept;
    if (rc == 0 && !back) {
        end_with_events(p, s, b, live, kept);
    } else if (rc != 0) {
        fl_lock_acquire(&p->lock);
        b->state = FL_BLOCK_USED;
        fl_lock_release(&p->lock);
    }
    rc = back ? give_back(p, s, b) : rc; /* the record of `s` stays while the pool is entered */
    if (entered) {
        fl_pool_leave(p, &g);
    }
    return rc;
}

int fl_pool_free(struct fl_gpu_pool *p, uint64_t address, void *stream, bool live)
{
    if (!may_go_on(p)) {
        return fl_pool_refuse(p);
    }
    const struct fl_stream_name name = fl_stream_named(p, stream);
    fl_lock_acquire(&p->lock);
    struct fl_pool_block *b = fl_pool_find_used(p, address);
    struct fl_pool_stream *s = fl_stream_lasting(p, name);
    if (b == NULL) {
        fl_lock_release(&p->lock);
        return fl_pool_not_here();
    }
    bool named = s != NULL && (live || s->number == b->by);
    if (FL_UNLIKELY(!named || b->use != NULL || b->chunk->is_direct || b->in_graph)) {
        b->state = FL_BLOCK_TRANSIT;
        fl_lock_release(&p->lock);
        return free_slowly(p, b, name, live);
    }
    end_block(p, s, b, fl_stream_stamp(p, s), false);
    fl_lock_release(&p->lock);
    return 0;
}

int fl_gpu_pool_free(struct fl_gpu_pool *pool, uint64_t address, void *stream)
{
    return fl_pool_free(pool, address, stream, true);
}
