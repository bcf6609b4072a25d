/* Blocks within chunks: split, merged, taken, put back. */
#include "gpu/pool/pool.h"

#include <stdlib.h>

void fl_block_assign(struct fl_pool_block *b, struct fl_pool_stream *s, uint64_t stamp)
{
    if (b->stream != NULL) {
        fl_assert(b->stream->blocks != 0);
        b->stream->blocks--;
    }
    b->stream = s;
    b->stamp = stamp;
    if (s != NULL) {
        s->blocks++;
        b->by = s->number;
    }
}

static void enter_set(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    struct fl_pool_stream *s = b->stream;

    fl_assert(fl_pool_is_locked(p) && fl_block_is_sound(b));
    fl_assert(b->state != FL_BLOCK_FREE && b->state != FL_BLOCK_USED);
    b->state = FL_BLOCK_FREE;
    if (s != NULL && b->stamp <= s->safe) {
        fl_list_prepend(&s->free, b);
    } else if (s != NULL) { /* by stamp: what is had first stands first */
        fl_list_insert(&s->free, b);
    }
    fl_set_insert(p, b);
}

void fl_block_withdraw(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    fl_assert(fl_pool_is_locked(p) && b->state == FL_BLOCK_FREE && fl_block_is_sound(b));
    fl_set_remove(p, b);
    if (b->stream != NULL) {
        fl_list_remove(&b->stream->free, b);
    }
    b->state = FL_BLOCK_TRANSIT;
}

/* `upper` goes on as a part of `lower`. Both out of their sets. */
static void absorb(struct fl_gpu_pool *p, struct fl_pool_block *lower, struct fl_pool_block *upper)
{
    fl_assert(lower->after == upper && lower->address + lower->len == upper->address);
    fl_assert(lower->state != FL_BLOCK_FREE && upper->state != FL_BLOCK_FREE);
    lower->len += upper->len;
    lower->after = upper->after;
    if (upper->after != NULL) {
        upper->after->before = lower;
    }
    fl_table_remove(&p->table, upper);
    fl_block_assign(upper, NULL, 0);
    fl_record_put(&p->table, upper);
    fl_assert(fl_block_is_sound(lower));
}

static bool may_merge(const struct fl_pool_block *neighbour, const struct fl_pool_stream *s)
{
    return neighbour != NULL && neighbour->state == FL_BLOCK_FREE && neighbour->stream == s;
}

/* With the neighbours that are free on `s`: `b`, or what it has become a part of. Right, then
 * left. */
static struct fl_pool_block *merge(struct fl_gpu_pool *p, struct fl_pool_block *b,
                                   const struct fl_pool_stream *s)
{
    if (may_merge(b->after, s)) {
        struct fl_pool_block *n = b->after;
        b->stamp = n->stamp > b->stamp ? n->stamp : b->stamp;
        fl_block_withdraw(p, n);
        absorb(p, b, n);
    }
    if (may_merge(b->before, s)) {
        struct fl_pool_block *n = b->before;
        uint64_t stamp = n->stamp > b->stamp ? n->stamp : b->stamp;
        uint64_t by = b->by;
        fl_block_withdraw(p, n);
        fl_block_assign(n, b->stream, stamp);
        n->by = by;
        absorb(p, n, b);
        return n;
    }
    return b;
}

void fl_block_put(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    bool is_safe = b->stream != NULL && b->stamp <= b->stream->safe;

    fl_assert(fl_pool_is_locked(p) && b->use == NULL && !b->waits_own);
    if (is_safe && (p->is_pinned || b->stream == &p->streams.host)) {
        fl_block_assign(b, NULL, 0);
    }
    if (!p->strategy->is_binned) {
        b = merge(p, b, b->stream);
    }
    enter_set(p, b);
}

/* A new block between `b`, which keeps the lower `len` bytes, and the next. NULL: no memory for
 * it. */
static struct fl_pool_block *split(struct fl_gpu_pool *p, struct fl_pool_block *b, size_t len)
{
    struct fl_pool_block *upper = fl_record_get(&p->table);

    fl_assert(len != 0 && len < b->len);
    if (upper == NULL) {
        return NULL;
    }
    upper->address = b->address + len;
    upper->len = b->len - len;
    upper->chunk = b->chunk;
    upper->before = b;
    upper->after = b->after;
    upper->by = b->by;
    upper->state = FL_BLOCK_TRANSIT;
    if (b->after != NULL) {
        b->after->before = upper;
    }
    b->after = upper;
    b->len = len;
    fl_table_insert(&p->table, upper);
    fl_assert(fl_block_is_sound(b) && fl_block_is_sound(upper));
    return upper;
}

/* Of a free block: its lower or upper end, and the rest stays where it was among the free. */
static struct fl_pool_block *take_part(struct fl_gpu_pool *p, struct fl_pool_block *b, size_t len)
{
    struct fl_pool_stream *s = b->stream;
    size_t rest = b->len - len;

    fl_assert(b->state == FL_BLOCK_FREE && len < b->len);
    fl_set_remove(p, b);
    struct fl_pool_block *upper = split(p, b, p->strategy->is_tail ? rest : len);
    if (upper == NULL) { /* all of it, then */
        fl_set_insert(p, b);
        fl_block_withdraw(p, b);
        return b;
    }
    if (p->strategy->is_tail) {
        fl_set_insert(p, b);
        return upper;
    }
    upper->state = FL_BLOCK_FREE;
    fl_block_assign(upper, s, b->stamp);
    upper->by = b->by;
    if (s != NULL) {
        fl_list_replace(&s->free, b, upper);
    }
    fl_set_insert(p, upper);
    b->state = FL_BLOCK_TRANSIT;
    return b;
}

struct fl_pool_block *fl_block_take(struct fl_gpu_pool *p, struct fl_pool_stream *s, size_t len,
                                    bool slab)
{
    struct fl_pool_block *b = p->is_pinned ? NULL : fl_set_find(p, s, len, slab);

    fl_assert(fl_pool_is_locked(p) && len != 0);
    if (b == NULL) {
        b = fl_set_find(p, NULL, len, slab);
    }
    if (b == NULL) {
        return NULL;
    }
    if (b->len == len) {
        fl_block_withdraw(p, b);
    } else {
        b = take_part(p, b, len);
    }
    fl_assert(b->state == FL_BLOCK_TRANSIT && b->len >= len);
    if (b->by != 0 && s->number != 0 && b->by != s->number) {
        p->s.cross_stream_hits++;
    }
    fl_block_assign(b, NULL, 0);
    b->by = s->number;
    return b;
}

struct fl_pool_block *fl_block_carve(struct fl_gpu_pool *p, struct fl_pool_block *b, size_t len)
{
    size_t rest = b->len - len;
    struct fl_pool_stream *s = b->stream;
    uint64_t stamp = b->stamp;
    struct fl_pool_block *upper = rest == 0 ? NULL : split(p, b, p->strategy->is_tail ? rest : len);

    fl_assert(fl_pool_is_locked(p) && b->state == FL_BLOCK_TRANSIT && b == b->chunk->first);
    fl_block_assign(b, NULL, 0);
    b->by = 0;
    if (upper == NULL) {
        return b;
    }
    struct fl_pool_block *other = p->strategy->is_tail ? b : upper;
    fl_block_assign(other, s, stamp);
    other->by = upper->by = 0;
    fl_block_put(p, other);
    return p->strategy->is_tail ? upper : b;
}

bool fl_block_join(struct fl_gpu_pool *p, struct fl_pool_stream *s)
{
    bool joined = false;

    fl_assert(fl_pool_is_locked(p));
    if (p->strategy->is_binned || p->is_pinned || s == NULL) {
        return false;
    }
    for (struct fl_pool_block *b = s->free.first, *next; b != NULL; b = next) {
        next = b->newer;
        if (!may_merge(b->after, NULL) && !may_merge(b->before, NULL)) {
            continue;
        }
        fl_block_withdraw(p, b);
        do { /* behind what is the stream's there may be more that is for any stream */
            b = merge(p, b, NULL);
            b = merge(p, b, s);
        } while (may_merge(b->after, NULL) || may_merge(b->before, NULL));
        enter_set(p, b);
        joined = true;
        next =
            s->free.first == b ? b->newer : s->free.first; /* what came next may be a part of it */
    }
    return joined;
}

void fl_block_used(struct fl_gpu_pool *p, struct fl_pool_block *b, size_t requested)
{
    struct fl_gpu_pool_stats *s = &p->s;

    fl_assert(fl_pool_is_locked(p) && b->state == FL_BLOCK_TRANSIT && fl_block_is_sound(b));
    fl_assert(requested <= b->len && s->free_bytes >= b->len);
    b->state = FL_BLOCK_USED;
    b->requested = requested;
    s->occupied_bytes += b->len;
    s->free_bytes -= b->len;
    s->requested_bytes += requested;
    s->allocs++;
    s->occupied_peak_bytes = fl_max(s->occupied_peak_bytes, s->occupied_bytes);
    atomic_store_explicit(&p->occupied, s->occupied_bytes, memory_order_relaxed);
    fl_assert(s->occupied_bytes + s->free_bytes <= s->held_peak_bytes);
}

void fl_block_unused(struct fl_gpu_pool *p, struct fl_pool_block *b)
{
    fl_assert(fl_pool_is_locked(p) && b->state != FL_BLOCK_FREE);
    fl_assert(p->s.occupied_bytes >= b->len && p->s.requested_bytes >= b->requested);
    p->s.occupied_bytes -= b->len;
    p->s.free_bytes += b->len;
    p->s.requested_bytes -= b->requested;
    p->s.frees++;
    fl_pool_given(p);
    atomic_store_explicit(&p->occupied, p->s.occupied_bytes, memory_order_relaxed);
}
