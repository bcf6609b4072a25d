/* What a request tries in turn when the pool has nothing at hand for it: other streams' frees, the
 * driver, garbage, waiting for other streams, idle chunks. Each has its counter. */
#include "gpu/pool/pool.h"

#include <errno.h>
#include <limits.h>

static const uint64_t patience_ns = 1000000000;

int fl_pool_enter_light(struct fl_gpu_pool *p, struct fl_gpu_guard *g)
{
    if (fl_pool_is_shut(p)) {
        return fl_gpu_fail(-ESHUTDOWN, "the driver or the pool's context has gone");
    }
    int rc = fl_gpu_make_current(p->gpu, g);
    if (rc == 0) {
        fl_lock_acquire(&p->lock);
        p->wait.driver_calls++;
        fl_lock_release(&p->lock);
    } else if (rc == -ESHUTDOWN) {
        atomic_store_explicit(&p->is_shut, true, memory_order_relaxed);
    }
    return rc;
}

int fl_pool_enter(struct fl_gpu_pool *p, struct fl_gpu_guard *g)
{
    int rc = fl_pool_enter_light(p, g);

    if (rc == 0) {
        fl_gpu_relax(g);
    }
    return rc;
}

void fl_pool_leave(struct fl_gpu_pool *p, struct fl_gpu_guard *g)
{
    fl_lock_acquire(&p->lock);
    fl_assert(p->wait.driver_calls != 0);
    p->wait.driver_calls--;
    if (g->relaxed) {
        fl_pool_given(p);
    }
    fl_lock_release(&p->lock);
    fl_gpu_leave(g);
}

void fl_pool_wake(struct fl_gpu_pool *p)
{
    fl_assert(fl_pool_is_locked(p) && p->wait.waiting != 0);
    (void)fl_sys.wake(&p->wait.given, INT_MAX);
}

int fl_pool_status(struct fl_gpu_pool *p, fl_CUresult code, const char *call, size_t bytes)
{
    int rc = code == FL_CUDA_SUCCESS ? 0 : fl_cuda_status(code, call, bytes);

    if (rc == -ESHUTDOWN) {
        atomic_store_explicit(&p->is_shut, true, memory_order_relaxed);
    }
    return rc;
}

void fl_fallback_settle(struct fl_gpu_pool *p, struct fl_pool_stream *s, bool others)
{
    fl_assert(fl_pool_is_locked(p));
    for (struct fl_pool_stream *t = p->streams.first; t != NULL && !fl_pool_is_shut(p);
         t = t->next) {
        bool foreign = p->is_pinned || (t != s && others);
        if (foreign) {
            fl_stream_release(p, t);
        }
        if (t->awaited == 0 && !(foreign && t->free.first != NULL)) {
            continue;
        }
        (void)fl_stream_ask(p, t);
    }
    fl_collect_pending(p);
}

/* ---- a request on its way ---- */

struct fallback {
    struct fl_gpu_pool *p;
    struct fl_pool_stream *s;
    size_t len, requested;
    bool slab; /* its memory comes from slabs; */
    bool any;  /* or, better than none, from wherever there is some */
    struct fl_pool_block *got;
};

static struct fl_pool_block *find(const struct fallback *c)
{
    struct fl_pool_block *b = fl_block_take(c->p, c->s, c->len, c->slab);

    return b != NULL || !c->any ? b : fl_block_take(c->p, c->s, c->len, !c->slab);
}

/* Lock: held. */
static bool take(struct fallback *c)
{
    fl_assert(fl_pool_is_locked(c->p));
    c->got = find(c);
    if (c->got == NULL && fl_block_join(c->p, c->s)) {
        c->got = find(c);
    }
    if (c->got != NULL) {
        fl_block_used(c->p, c->got, c->requested);
        c->p->s.hits++;
        c->p->s.served_pool_bytes += c->len;
    }
    return c->got != NULL;
}

static bool ask(struct fallback *c)
{
    fl_lock_acquire(&c->p->lock);
    fl_fallback_settle(c->p, c->s, true);
    bool done = take(c);
    fl_lock_release(&c->p->lock);
    return done;
}

/* The taker's stream is there now: what it freed, or has from others that it waits for, and no
 * event covers yet others may have some day. Lock: held. */
static void seen(struct fallback *c)
{
    fl_assert(fl_pool_is_locked(c->p));
    if (!c->s->lasts && c->s->covered < c->s->stamped) {
        (void)fl_stream_cover(c->p, c->s, true);
    }
}

/* The taker's stream waits for all others that have anything. */
static bool wait_for_others(struct fallback *c)
{
    struct fl_gpu_pool *p = c->p;
    bool done = false;

    fl_lock_acquire(&p->lock);
    for (struct fl_pool_stream *t = p->streams.first; t != NULL && !done && !fl_pool_is_shut(p);
         t = t->next) {
        if ((t == c->s && !p->is_pinned) || t->free.first == NULL) {
            continue;
        }
        uint64_t upto = t->lasts ? t->stamped : t->covered;
        done = fl_stream_wait(p, c->s, t, upto) == 0 && take(c);
    }
    seen(c);
    fl_lock_release(&p->lock);
    return done;
}

static bool collect(struct fallback *c)
{
    struct fl_gpu_pool *p = c->p;

    fl_lock_acquire(&p->lock);
    bool any = p->freed.garbage.first != NULL;
    fl_collect_batch(p, true);
    bool done = any && take(c);
    fl_lock_release(&p->lock);
    return done || (any && ask(c));
}

static bool trim(struct fallback *c)
{
    struct fl_gpu_pool *p = c->p;
    size_t released = 0;

    fl_lock_acquire(&p->lock);
    (void)fl_stream_drain(p);
    bool done = take(c);
    fl_lock_release(&p->lock);
    if (!done) {
        (void)fl_chunk_trim(p, 0, &released);
    }
    return done;
}

static int grow(struct fallback *c, bool exact)
{
    return fl_chunk_grow(c->p, c->s, c->len, c->requested, exact, &c->got);
}

static int retry(struct fallback *c)
{
    fl_lock_acquire(&c->p->lock);
    c->p->s.retries++;
    fl_lock_release(&c->p->lock);
    return grow(c, true);
}

static int try_all(struct fallback *c)
{
    if (fl_pool_is_shut(c->p)) {
        return fl_gpu_fail(-ESHUTDOWN, "the driver or the pool's context has gone");
    }
    return collect(c) || ask(c) || wait_for_others(c) || trim(c) ? 0 : retry(c);
}

static uint32_t given(const struct fl_gpu_pool *p)
{
    return atomic_load_explicit(&p->wait.given, memory_order_relaxed);
}

/* Has any been given back since `before`? If not, waits for a thread that does so, by a free or
 * when it leaves the driver, which has in its hands what may be missing; not for ever, for it may
 * wait for this one. Of threads that wait the last one does not. */
static bool more_was_given(struct fl_gpu_pool *p, uint32_t before, uint64_t until_ns)
{
    uint64_t now_ns;

    fl_lock_acquire(&p->lock);
    p->wait.waiting++;
    fl_assert(p->wait.driver_calls >= p->wait.waiting);
    bool waits = p->wait.driver_calls > p->wait.waiting;
    fl_lock_release(&p->lock);
    while ((now_ns = fl_sys.now_ns()) < until_ns && waits && given(p) == before) {
        (void)fl_sys.wait(&p->wait.given, before,
                          until_ns - now_ns); /* a handler may end it early */
    }
    fl_lock_acquire(&p->lock);
    fl_assert(p->wait.waiting != 0);
    p->wait.waiting--;
    fl_lock_release(&p->lock);
    return now_ns < until_ns && given(p) != before;
}

static int out_of_memory(struct fallback *c)
{
    uint64_t until_ns = fl_sys.now_ns() + patience_ns;
    uint32_t before;
    int rc;

    c->any = true;
    do {
        before = given(c->p);
        rc = try_all(c);
    } while (rc == -ENOMEM && more_was_given(c->p, before, until_ns));
    return rc;
}

/* For a captured stream no other is asked or waited for; more memory is none of the
 * graph's. */
static int captured(struct fallback *c)
{
    fl_lock_acquire(&c->p->lock);
    for (struct fl_pool_stream *t = c->p->streams.first; t != NULL; t = t->next) {
        fl_stream_release(c->p, t);
    }
    bool done = c->len <= c->p->max_direct && take(c);
    fl_lock_release(&c->p->lock);
    if (done) {
        return 0;
    }
    int rc = grow(c, false);

    if (rc == -ENOMEM) {
        c->any = true;
        fl_lock_acquire(&c->p->lock);
        rc = take(c) ? 0 : -ENOMEM;
        fl_lock_release(&c->p->lock);
    }
    rc = rc == -ENOMEM ? grow(c, true) : rc;
    return rc != -ENOMEM ? rc
                         : fl_gpu_fail(-EINPROGRESS, "the stream is captured, and there is no more "
                                                     "memory but by waiting for others");
}

static int search(struct fallback *c)
{
    struct fl_gpu_pool *p = c->p;

    fl_lock_acquire(&p->lock);
    seen(c);
    fl_lock_release(&p->lock);
    if (c->len <= p->max_direct && ask(c)) {
        return 0;
    }
    if (p->strategy->before != NULL) {
        p->strategy->before(p, c->len);
    }
    int rc = grow(c, false);
    return rc == -ENOMEM ? out_of_memory(c) : rc;
}

int fl_fallback_alloc(struct fl_gpu_pool *p, struct fl_pool_stream *s, bool captures, size_t len,
                      size_t requested, struct fl_pool_block **out)
{
    struct fallback c = {p, s, len, requested, fl_set_is_small(p, len), false, NULL};
    int rc = captures ? captured(&c) : search(&c);

    fl_assert(len >= requested && !fl_lock_is_held(FL_RANK_RUNTIME, 1));
    if (rc == -EINPROGRESS) {
        fl_lock_acquire(&p->lock);
        p->s.capture_refusals++;
        fl_lock_release(&p->lock);
    }
    fl_assert((rc == 0) == (c.got != NULL));
    *out = c.got;
    return rc;
}
