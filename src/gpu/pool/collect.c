/* What has been freed and is not to be had yet: garbage, which is reclaimed in batches, and what is
 * pending, which waits for streams.
 *
 * Source of the batches: PaddlePaddle's garbage collector (eager_delete_tensor_gb,
 * memory_fraction_of_eager_deletion, fast_eager_deletion_mode). */
#include "gpu/pool/pool.h"

#include <stdlib.h>

static void drop_one(struct fl_pool_use **at)
{
    struct fl_pool_use *u = *at;

    fl_assert(u->stream->uses != 0);
    *at = u->next;
    u->stream->uses--;
    free(u);
}

void fl_use_drop(struct fl_pool_block *b)
{
    while (b->use != NULL) {
        drop_one(&b->use);
    }
}

void fl_collect_dispose(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    fl_assert(fl_pool_is_locked(p));
    fl_assert(b->state != FL_BLOCK_FREE && b->state != FL_BLOCK_USED);
    /* A stream is in order after itself. */
    for (struct fl_pool_use **at = &b->use; *at != NULL && !p->is_pinned;) {
        if ((*at)->stream == b->stream) {
            drop_one(at);
        } else {
            at = &(*at)->next;
        }
    }
    b->waits_own = b->waits_own && b->stream->safe < b->stamp;
    if (b->use == NULL && !b->waits_own) {
        fl_block_put(p, b);
        return;
    }
    for (struct fl_pool_use *u = b->use; u != NULL; u = u->next) {
        u->stream->awaited++;
    }
    b->stream->awaited += b->waits_own;
    b->state = FL_BLOCK_PENDING;
    fl_list_append(&p->freed.pending, b);
}

static bool is_done(const struct fl_pool_block *b)
{
    const struct fl_pool_use *u = b->use;

    while (u != NULL && u->stream->safe >= u->stamp) {
        u = u->next;
    }
    return u == NULL && (!b->waits_own || b->stream->safe >= b->stamp);
}

void fl_collect_pending(struct fl_gpu_pool *p)
{
    for (struct fl_pool_block *b = p->freed.pending.first, *next; b != NULL; b = next) {
        next = b->newer;
        fl_assert(b->state == FL_BLOCK_PENDING);
        if (!is_done(b)) {
            continue;
        }
        for (struct fl_pool_use *u = b->use; u != NULL; u = u->next) {
            fl_assert(u->stream->awaited != 0);
            u->stream->awaited--;
        }
        b->stream->awaited -= b->waits_own;
        b->waits_own = false;
        fl_use_drop(b);
        fl_list_remove(&p->freed.pending, b);
        fl_block_put(p, b);
    }
}

void fl_collect_release_held(struct fl_gpu_pool *p)
{
    fl_assert(fl_pool_is_locked(p));
    for (struct fl_pool_block *b = p->freed.pending.first; b != NULL; b = b->newer) {
        b->stamp = b->stamp == FL_POOL_HELD ? 0 : b->stamp;
    }
    fl_collect_pending(p);
}

bool fl_collect_add(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    fl_assert(fl_pool_is_locked(p) && b->state == FL_BLOCK_TRANSIT);
    b->state = FL_BLOCK_GARBAGE;
    fl_list_append(&p->freed.garbage, b);
    p->freed.garbage_bytes += b->len;
    return p->freed.garbage_bytes >= p->freed.at;
}

/* ---- a batch, largest first ---- */

/* Two lists by `newer`, each in order; of what is as large the first's come first. */
static struct fl_pool_block *merged(struct fl_pool_block *a, struct fl_pool_block *b)
{
    struct fl_pool_block *first = NULL, **end = &first;

    while (a != NULL && b != NULL) {
        struct fl_pool_block **from = a->len >= b->len ? &a : &b;
        *end = *from;
        end = &(*from)->newer;
        *from = *end;
    }
    *end = a != NULL ? a : b;
    return first;
}

/* Runs of 1, 2, 4, ... blocks, each merged with its like as soon as there are two. */
static struct fl_pool_block *sorted(struct fl_pool_block *list)
{
    struct fl_pool_block *run[64] = {NULL}, *all = NULL;
    unsigned top = 0;

    while (list != NULL) {
        struct fl_pool_block *b = list;
        unsigned i = 0;
        list = list->newer;
        b->newer = NULL;
        for (; run[i] != NULL; i++) {
            b = merged(run[i], b);
            run[i] = NULL;
        }
        fl_assert(i < sizeof run / sizeof run[0]);
        run[i] = b;
        top = i > top ? i : top;
    }
    for (unsigned i = 0; i <= top; i++) {
        all = merged(run[i], all);
    }
    return all;
}

void fl_collect_batch(struct fl_gpu_pool *p, bool all)
{
    double fraction = all ? 1 : p->o.gc_fraction;
    double enough = fraction * (double)p->freed.garbage_bytes;
    size_t reclaimed = 0;

    fl_assert(fl_pool_is_locked(p));
    if (fraction <= 0 || p->freed.garbage.first == NULL) {
        return;
    }
    struct fl_pool_block *b = p->freed.garbage.first, *next;
    p->freed.garbage = (struct fl_pool_list){NULL, NULL};
    for (b = fraction < 1 ? sorted(b) : b; b != NULL; b = next) {
        next = b->newer;
        fl_assert(b->state == FL_BLOCK_GARBAGE);
        if (fraction < 1 && (double)reclaimed >= enough) {
            fl_list_append(&p->freed.garbage, b);
            continue;
        }
        reclaimed += b->len;
        b->waits_own |= !p->o.gc_fast;
        fl_collect_dispose(p, b);
    }
    fl_assert(reclaimed <= p->freed.garbage_bytes);
    p->freed.garbage_bytes -= reclaimed;
    p->s.gc_batches++;
    p->s.gc_bytes += reclaimed;
}
