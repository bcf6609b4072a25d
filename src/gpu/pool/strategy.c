/* The strategies: how a request is rounded, by how much the pool grows.
 *
 * Sources: MXNet's pooled storage manager (naive, round), PaddlePaddle's buddy and auto-growth
 * best-fit allocators. */
#include "gpu/pool/pool.h"

#include <errno.h>

enum { UNIT_PINNED = 64 << 10, PINNED_PART = 256 };
/* Measured on recorded steps of training (tests/gpu/traces): chunks of 8 MiB and small blocks apart
 * hold less than chunks as large as each request, and less than PyTorch's 2 and 20 MiB. */
enum { SLAB = 2 << 20, CHUNK = 8 << 20, CHUNKS_LEAST = 64 /* below a limit */ };

static size_t up(size_t v, size_t multiple)
{
    size_t over = v % multiple;

    return over == 0 ? v : v + (multiple - over);
}

/* ---- rounding ---- */

static size_t round_multiple(const struct fl_gpu_pool *p, size_t size)
{
    size_t len = up(size, p->o.page);

    return len > p->o.large_round ? up(len, p->o.large_round) : len;
}

static size_t round_power(const struct fl_gpu_pool *p, size_t size)
{
    size_t cutoff = (size_t)1 << p->o.linear_cutoff;

    if (size > cutoff) {
        return up(size, cutoff);
    }
    return size <= p->o.page ? p->o.page : (size_t)1 << (64 - __builtin_clzl(size - 1));
}

static size_t round_not(const struct fl_gpu_pool *p, size_t size)
{
    (void)p;
    return size;
}

static size_t round_unit(const struct fl_gpu_pool *p, size_t size)
{
    (void)p;
    return (size + FL_POOL_UNIT - 1) & ~(size_t)(FL_POOL_UNIT - 1);
}

static size_t round_buddy(const struct fl_gpu_pool *p, size_t size)
{
    return up(size, p->is_pinned ? UNIT_PINNED : FL_POOL_UNIT);
}

/* ---- growth ---- */

static int grow_exactly(struct fl_gpu_pool *p, size_t len, size_t *out, bool *direct)
{
    *out = len;
    *direct = len > p->max_direct;
    return 0;
}

static int grow_by_chunk(struct fl_gpu_pool *p, size_t len, size_t *out, bool *direct)
{
    size_t least = p->o.chunk;

    if (least == 0 && !p->is_pinned) {
        least = fl_set_is_small(p, len) ? SLAB : CHUNK;
        least = p->o.limit != 0 ? fl_min(least, p->o.limit / CHUNKS_LEAST) : least;
    }
    *out = fl_max(len, round_unit(p, least));
    if (!p->is_pinned) { /* the driver takes so much anyway: the rest is the next request's */
        *out = fl_gpu_cost(*out);
    }
    fl_assert(*out >= len);
    *direct = false;
    return 0;
}

/* What there is: of the device, or of the host's memory. */
static int look(struct fl_gpu_pool *p, size_t *out_free, size_t *out_total)
{
    if (p->is_pinned) {
        struct fl_memory_scratch scratch = {.ranks = 0};
        struct fl_memory m;
        fl_memory_look(&m, &scratch);
        *out_total = fl_sys.memory_total(NULL);
        *out_free = fl_min(m.headroom, *out_total);
        return 0;
    }
    return fl_pool_status(p, fl_cuda.cuMemGetInfo(out_free, out_total), "cuMemGetInfo", 0);
}

/* A chunk by the fraction: of what is free less a twentieth; pinned: of all memory, in small
 * parts. */
static int chunk_by_fraction(struct fl_gpu_pool *p, size_t *out)
{
    size_t available = 0, total = 0;
    int rc = look(p, &available, &total);

    if (p->is_pinned) {
        *out = (size_t)(p->o.fraction * (double)total) / PINNED_PART & ~(size_t)(UNIT_PINNED - 1);
    } else {
        available -= (size_t)(0.05 * (double)available);
        *out = (size_t)(p->o.fraction * (double)available) & ~(size_t)(FL_POOL_UNIT - 1);
    }
    return rc;
}

static int grow_greatly(struct fl_gpu_pool *p, size_t len, size_t *out, bool *direct)
{
    bool again = atomic_load_explicit(&p->has_grown, memory_order_relaxed);
    size_t bytes = again ? p->o.regrow : p->o.initial;
    int rc = 0;

    *direct = len > p->max_direct;
    *out = len;
    if (*direct) {
        return 0;
    }
    if (bytes == 0) {
        rc = chunk_by_fraction(p, &bytes);
    }
    *out = fl_max(len, round_buddy(p, bytes));
    return rc;
}

int fl_strategy_start(struct fl_gpu_pool *p)
{
    size_t first = p->o.initial, later = p->o.regrow, by_fraction = 0;
    int rc = 0;

    p->max_direct = p->strategy->is_direct ? 0 : SIZE_MAX;
    if (p->strategy->growth != grow_greatly) {
        return 0;
    }
    if (first == 0 || later == 0) {
        rc = chunk_by_fraction(p, &by_fraction);
    }
    p->max_direct = fl_max(first != 0 ? first : by_fraction, later != 0 ? later : by_fraction);
    if (p->is_pinned && p->o.limit == 0) {
        p->o.limit = (size_t)(p->o.fraction * (double)fl_sys.memory_total(NULL));
    }
    return rc;
}

/* MXNet: before a part of the device is taken that is to stay free, the whole cache goes back. */
static void keep_reserve(struct fl_gpu_pool *p, size_t len)
{
    size_t left = 0, total = 0, released = 0;

    if (look(p, &left, &total) == 0 &&
        (left <= len || left - len < total * p->o.reserve_percent / 100)) {
        (void)fl_chunk_trim(p, 0, &released);
    }
}

static const struct fl_pool_strategy strategy[] = {
    [FL_GPU_NAIVE] = {.round = round_multiple,
                      .growth = grow_exactly,
                      .before = keep_reserve,
                      .is_binned = true},
    [FL_GPU_ROUND] = {.round = round_power,
                      .growth = grow_exactly,
                      .before = keep_reserve,
                      .is_binned = true},
    [FL_GPU_UNPOOLED] = {.round = round_not, .growth = grow_exactly, .is_direct = true},
    [FL_GPU_NAIVE_BEST_FIT] = {.round = round_buddy, .growth = grow_greatly},
    [FL_GPU_AUTO_GROWTH] = {.round = round_unit,
                            .growth = grow_by_chunk,
                            .is_tail = true,
                            .has_slabs = true},
};

const struct fl_pool_strategy *fl_strategy_get(enum fl_gpu_strategy which)
{
    return which > FL_GPU_AUTO && which <= FL_GPU_AUTO_GROWTH ? &strategy[which] : NULL;
}

int fl_strategy_check(struct fl_gpu_pool_options *o)
{
    bool binned = o->strategy == FL_GPU_NAIVE || o->strategy == FL_GPU_ROUND;

    if (o->strategy == FL_GPU_AUTO) { /* PaddlePaddle's defaults */
        o->strategy = o->target == FL_GPU_PINNED ? FL_GPU_NAIVE_BEST_FIT : FL_GPU_AUTO_GROWTH;
    }
    if (fl_strategy_get(o->strategy) == NULL || o->target > FL_GPU_PINNED) {
        return fl_gpu_fail(-EINVAL, "a pool's option has no such value");
    }
    if (binned && (o->page < 32 || o->page > FL_MIB || o->reserve_percent > 100)) {
        return fl_gpu_fail(-EINVAL, "a pool's page is 32 bytes to 1 MiB, its reserve a percentage");
    }
    if (o->strategy == FL_GPU_ROUND &&
        (!fl_is_pow2(o->page) || o->linear_cutoff < 20 || o->linear_cutoff > 34)) {
        return fl_gpu_fail(-EINVAL, "round: the page is a power of two, the cutoff 20 to 34");
    }
    if (o->strategy == FL_GPU_NAIVE && (o->large_round == 0 || o->large_round > (size_t)1 << 40)) {
        return fl_gpu_fail(-EINVAL, "naive: large sizes are multiples of 1 byte to 1 TiB");
    }
    if (!(o->fraction >= 0 && o->fraction <= 1)) {
        return fl_gpu_fail(-EINVAL, "a fraction is between 0 and 1");
    }
    if (o->gc_gb != o->gc_gb || o->gc_fraction != o->gc_fraction) {
        return fl_gpu_fail(-EINVAL, "what the collector is told is not a number");
    }
    return 0;
}
