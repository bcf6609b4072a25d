/* Chunks: memory of the driver's, taken and given back.
 *
 * What gives device memory back waits for the whole device: the pool does so when it is asked to,
 * or when nothing else is left. */
#include "gpu/pool/pool.h"

#include <errno.h>
#include <stdlib.h>

/* ---- the driver ---- */

/* Whole huge pages of our own, which are cheaper to pin and as cheap to copy from; the driver's
 * where that is refused, and for what is small. */
static int ask_pinned(struct fl_gpu_pool *p, struct fl_pool_chunk *c)
{
    struct fl_pin how = {.node = p->o.numa_node, .fork = FL_PIN_APART};
    void *base = NULL;
    int rc = -ENOTSUP;

    if (c->len >= fl_page.huge) {
        rc = fl_pinned_take(&c->pinned, p->gpu, c->len, &how, false);
        c->address = c->pinned.range.base;
    }
    if (rc == 0 || rc == -ENOMEM || rc == -ESHUTDOWN) {
        return rc;
    }
    c->pinned = (struct fl_pinned){.chunk = 0};
    rc = fl_pool_status(p, fl_cuda.cuMemHostAlloc(&base, c->len, FL_CU_MEMHOSTALLOC_PORTABLE),
                        "cuMemHostAlloc", c->len);
    c->address = (uintptr_t)base;
    return rc;
}

static int ask(struct fl_gpu_pool *p, struct fl_pool_chunk *c)
{
    fl_CUdeviceptr address = 0;

    if (p->is_pinned) {
        return ask_pinned(p, c);
    }
    int rc = fl_pool_status(p, fl_cuda.cuMemAlloc(&address, c->len), "cuMemAlloc", c->len);
    c->address = address;
    return rc;
}

/* What is refused is the caller's still, and may be given again. */
static int tell_pinned(struct fl_gpu_pool *p, struct fl_pool_chunk *c)
{
    struct fl_pinned before = c->pinned;

    if (before.range.len == 0) {
        return fl_pool_status(p, fl_cuda.cuMemFreeHost((void *)(uintptr_t)c->address),
                              "cuMemFreeHost", c->len);
    }
    int rc = fl_pinned_give(&c->pinned);
    if (rc != 0) {
        c->pinned = before;
    }
    return rc;
}

static int tell(struct fl_gpu_pool *p, struct fl_pool_chunk *c)
{
    return p->is_pinned ? tell_pinned(p, c)
                        : fl_pool_status(p, fl_cuda.cuMemFree(c->address), "cuMemFree", c->len);
}

static void remember(struct fl_gpu_pool *p, int rc)
{
    if (rc == -ESHUTDOWN) {
        atomic_store_explicit(&p->is_shut, true, memory_order_relaxed);
    }
}

/* In the device's account, before the driver has a say; and out of it. */
static int book(struct fl_gpu_pool *p, size_t len)
{
    return p->is_pinned ? 0 : fl_gpu_account_take(p->gpu, len);
}

static void unbook(struct fl_gpu_pool *p, size_t len)
{
    if (!p->is_pinned) {
        fl_gpu_account_give(p->gpu, len);
    }
}

static int from_driver(struct fl_gpu_pool *p, struct fl_pool_chunk *c)
{
    fl_assert(!fl_lock_is_held(FL_RANK_RUNTIME, 1) && c->len != 0);
    int rc = book(p, c->len);
    if (rc != 0) {
        return rc;
    }
    uint64_t start = fl_sys.now_ns();
    rc = ask(p, c);
    uint64_t end = fl_sys.now_ns();

    if (rc != 0) {
        unbook(p, c->len);
    }
    remember(p, rc);
    fl_gpu_note_call(FL_TIMELINE_GPU_TAKE, start, c->len);
    fl_lock_acquire(&p->lock);
    p->s.driver_allocs += rc == 0;
    p->s.driver_ns += end - start;
    fl_lock_release(&p->lock);
    return rc;
}

static int to_driver(struct fl_gpu_pool *p, struct fl_pool_chunk *c)
{
    uint64_t start = fl_sys.now_ns();
    int rc = tell(p, c);
    uint64_t end = fl_sys.now_ns();

    fl_assert(!fl_lock_is_held(FL_RANK_RUNTIME, 1));
    if (rc == 0) {
        unbook(p, c->len);
    }
    remember(p, rc);
    fl_gpu_note_call(FL_TIMELINE_GPU_GIVE, start, c->len);
    fl_lock_acquire(&p->lock);
    p->s.driver_frees += rc == 0;
    p->s.implicit_syncs++;
    p->s.driver_ns += end - start;
    fl_lock_release(&p->lock);
    return rc;
}

/* ---- records ---- */

static void link_chunk(struct fl_gpu_pool *p, struct fl_pool_chunk *c)
{
    fl_assert(fl_pool_is_locked(p) && c->first != NULL && c->len != 0);
    c->previous = NULL;
    c->next = p->chunks.first;
    if (c->next != NULL) {
        c->next->previous = c;
    }
    p->chunks.first = c;
}

static void unlink_chunk(struct fl_gpu_pool *p, struct fl_pool_chunk *c)
{
    fl_assert(fl_pool_is_locked(p));
    fl_assert((c->previous != NULL ? c->previous->next : p->chunks.first) == c);
    p->chunks.idle_from = p->chunks.idle_from == c ? c->next : p->chunks.idle_from;
    *(c->previous != NULL ? &c->previous->next : &p->chunks.first) = c->next;
    if (c->next != NULL) {
        c->next->previous = c->previous;
    }
}

static void note_held(struct fl_gpu_pool *p)
{
    uint64_t held = p->s.occupied_bytes + p->s.free_bytes;

    if (held > p->s.held_peak_bytes) {
        p->s.held_peak_bytes = held;
    }
}

static void forget(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    struct fl_pool_chunk *c = b->chunk;

    fl_assert(b == c->first && b->len == c->len && p->s.free_bytes >= c->len);
    fl_block_assign(b, NULL, 0);
    unlink_chunk(p, c);
    p->s.free_bytes -= c->len;
    fl_record_put(&p->table, b);
    free(c);
}

/* ---- growth ---- */

/* What is to be there before the driver is asked: records, and room below the limit. */
static int prepare(struct fl_gpu_pool *p, size_t len, size_t room, size_t *want,
                   struct fl_pool_chunk **c, struct fl_pool_block **b)
{
    size_t held = p->s.occupied_bytes + p->s.free_bytes + p->chunks.coming;
    size_t most = p->o.limit != 0 ? p->o.limit : SIZE_MAX;

    fl_assert(fl_pool_is_locked(p));
    if (held > most || len > most - held) {
        (void)fl_gpu_fail(-ENOMEM, "the pool's limit is reached");
        return -ENOMEM;
    }
    /* Whole units, so that what is split off the end has an address of its own. */
    *want = fl_max(len, fl_min(*want, fl_min(most - held, room)) & ~(size_t)(FL_POOL_UNIT - 1));
    *c = calloc(1, sizeof **c);
    *b = *c != NULL ? fl_record_get(&p->table) : NULL;
    if (*b == NULL) {
        free(*c);
        (void)fl_gpu_fail(-ENOMEM, "no memory for a block's record");
        return -ENOMEM;
    }
    p->chunks.coming += *want;
    fl_assert(*want >= len);
    return 0;
}

static struct fl_pool_block *admit(struct fl_gpu_pool *p, struct fl_pool_stream *s,
                                   struct fl_pool_chunk *c, struct fl_pool_block *b, size_t len)
{
    fl_assert(fl_pool_is_locked(p) && c->len >= len);
    b->address = c->address;
    b->len = c->len;
    b->chunk = c;
    b->state = FL_BLOCK_TRANSIT;
    c->first = b;
    link_chunk(p, c);
    fl_table_insert(&p->table, b);
    if (!c->is_direct) {
        atomic_store_explicit(&p->has_grown, true, memory_order_relaxed);
    }
    p->s.free_bytes += c->len;
    note_held(p);
    if (!p->is_pinned) {
        fl_block_assign(b, s, 0); /* the rest is this stream's, and needs no wait */
    }
    return fl_block_carve(p, b, len);
}

int fl_chunk_grow(struct fl_gpu_pool *p, struct fl_pool_stream *s, size_t len, size_t requested,
                  bool exact, struct fl_pool_block **out)
{
    struct fl_pool_chunk *c = NULL;
    struct fl_pool_block *b = NULL;
    size_t want = len;
    bool direct = false;
    int rc = p->strategy->growth(p, len, &want, &direct);

    if (rc != 0) {
        return rc;
    }
    want = exact ? len : want;
    size_t room = p->is_pinned ? SIZE_MAX : fl_gpu_account_room(p->gpu);
    fl_lock_acquire(&p->lock);
    rc = prepare(p, len, room, &want, &c, &b);
    fl_lock_release(&p->lock);
    if (rc != 0) {
        return rc;
    }
    c->len = want;
    c->is_direct = direct;
    c->is_slab = fl_set_is_small(p, len);
    rc = from_driver(p, c);
    fl_lock_acquire(&p->lock);
    fl_assert(p->chunks.coming >= want);
    p->chunks.coming -= want;
    if (rc == 0) {
        *out = admit(p, s, c, b, len);
        (*out)->by = s->number;
        fl_block_used(p, *out, requested);
        p->s.served_api_bytes += len;
        fl_assert((*out)->len >= len && (*out)->state == FL_BLOCK_USED);
    } else {
        fl_record_put(&p->table, b);
        free(c);
    }
    fl_lock_release(&p->lock);
    return rc;
}

/* ---- back ---- */

int fl_chunk_return(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    fl_assert(!fl_lock_is_held(FL_RANK_RUNTIME, 1));
    fl_assert(b->state == FL_BLOCK_TRANSIT && b == b->chunk->first && b->len == b->chunk->len);
    /* Before: the driver may give another thread the address at once. */
    fl_lock_acquire(&p->lock);
    fl_table_remove(&p->table, b);
    fl_lock_release(&p->lock);
    int rc = to_driver(p, b->chunk);
    fl_lock_acquire(&p->lock);
    if (rc == 0) {
        forget(p, b);
    } else {
        fl_table_insert(&p->table, b);
    }
    fl_lock_release(&p->lock);
    return rc;
}

/* The next chunk that is one free block and may go; its block is in transit. */
static struct fl_pool_block *take_idle(struct fl_gpu_pool *p, size_t keep)
{
    struct fl_pool_chunk *c;

    fl_assert(fl_pool_is_locked(p));
    while ((c = p->chunks.idle_from) != NULL && p->s.free_bytes > keep) {
        struct fl_pool_block *b = c->first;
        p->chunks.idle_from = c->next;
        /* Nothing waits for copies from what is unregistered; cuMemFree waits for kernels. */
        if (b->len == c->len && b->state == FL_BLOCK_FREE && (!p->is_pinned || b->stream == NULL)) {
            fl_block_withdraw(p, b);
            return b;
        }
    }
    return NULL;
}

/* All that is safe becomes one where it touches. Lock: held. */
static void put_together(struct fl_gpu_pool *p)
{
    fl_assert(fl_pool_is_locked(p));
    fl_collect_pending(p);
    for (struct fl_pool_stream *s = p->streams.first; s != NULL; s = s->next) {
        fl_stream_release(p, s);
    }
    for (struct fl_pool_stream *s = p->streams.first; s != NULL; s = s->next) {
        (void)fl_block_join(p, s);
    }
}

int fl_chunk_trim(struct fl_gpu_pool *p, size_t keep, size_t *out_released)
{
    struct fl_pool_block *b;
    int rc = 0;

    fl_assert(!fl_lock_is_held(FL_RANK_RUNTIME, 1));
    *out_released = 0;
    if (p->is_graph) { /* graphs use it whenever they run */
        return 0;
    }
    fl_lock_acquire(&p->lock);
    if (p->s.free_bytes > keep) {
        rc = fl_stream_drain(p);
    }
    put_together(p);
    p->chunks.idle_from = p->chunks.first;
    while (rc == 0 && (b = take_idle(p, keep)) != NULL) {
        size_t len = b->len;
        fl_lock_release(&p->lock);
        rc = fl_chunk_return(p, b);
        fl_lock_acquire(&p->lock);
        if (rc != 0) {
            fl_block_put(p, b);
        } else {
            *out_released += len;
        }
    }
    p->s.trims += *out_released != 0;
    fl_lock_release(&p->lock);
    return rc;
}
