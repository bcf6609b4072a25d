/* PyTorch's private pools. A graph replays with the addresses that it was captured with, so what it
 * allocated, temporaries included, is its own until it is released: a pool of its own, from which
 * nothing goes to other requests or to the driver before.
 *
 * Hooks: begin, end and release of torch::cuda::CUDAPluggableAllocator (PyTorch 2.3 and later),
 * which are function pointers in C++. A pool's number is a std::pair of two integers, in registers
 * as a struct of two is; the filter is the caller's, by reference, and copied here.
 * State: the lists, under `mutex`. It is held over no call of the driver: pools are made and ended
 * without it, and a pool that a call is about is held by its count of users. A begin waits for
 * pools that end: to end one may wait for the whole context, which a capture would not survive.
 * Filters are asked without the mutex: they ask the driver, and throw when that fails. An exception
 * leaves its routing's record behind, and nothing locked. */
#include "gpu/shim/cxx_filter.h"
#include "gpu/shim/shim.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct graph_pool {
    struct graph_pool *next;
    int device;
    struct fl_gpu_torch_id id;
    struct fl_gpu_pool *pool;
    unsigned begun; /* begins that are not released; 0: it goes when nothing is allocated */
    unsigned users; /* calls that are about it: it stays */
};

/* Allocations of streams that the filter lets through, from a begin to its end. In their order. */
struct routing {
    struct routing *next;
    struct graph_pool *to; /* until it is over */
    struct fl_cxx_filter filter;
    unsigned asked; /* requests that ask the filter now: the record stays */
    bool is_over;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t all_ended = PTHREAD_COND_INITIALIZER;
static unsigned ending; /* pools in no list any more, whose end is under way */
static struct graph_pool *pools;
static struct routing *routings;
/* How many are not over; how many there are. Relaxed: the thread that has begun knows. */
static _Atomic unsigned routed, pooled;

static struct graph_pool *find(int device, struct fl_gpu_torch_id id)
{
    struct graph_pool *g = pools;

    while (g != NULL &&
           (g->device != device || g->id.first != id.first || g->id.second != id.second)) {
        g = g->next;
    }
    return g;
}

static struct graph_pool *make(int device, struct fl_gpu_torch_id id)
{
    struct graph_pool *g = calloc(1, sizeof *g);

    if (g == NULL || (g->pool = fl_torch_make(device)) == NULL) {
        free(g);
        return NULL;
    }
    g->device = device;
    g->id = id;
    return g;
}

/* Lock: held. */
static void link_pool(struct graph_pool *g)
{
    g->next = pools;
    pools = g;
    atomic_fetch_add_explicit(&pooled, 1, memory_order_relaxed);
}

/* Lock: held. */
static void unlink_pool(const struct graph_pool *g)
{
    struct graph_pool **at = &pools;

    while (*at != g) {
        at = &(*at)->next;
    }
    *at = g->next;
    atomic_fetch_sub_explicit(&pooled, 1, memory_order_relaxed);
}

/* In no list. False: the driver refuses. Lock: not held. */
static bool end_pool(struct graph_pool *g)
{
    struct fl_gpu *gpu = g->pool->gpu;

    if (fl_gpu_pool_destroy(g->pool) != 0) {
        return false;
    }
    (void)fl_gpu_close(gpu);
    free(g);
    return true;
}

/* The next after `g` (NULL: the first) of the device (-1: of any), held; `g` is let go. NULL: that
 * was the last. Lock: not held. */
static struct graph_pool *walk(struct graph_pool *g, int device)
{
    (void)pthread_mutex_lock(&mutex);
    struct graph_pool *next = g != NULL ? g->next : pools;
    while (next != NULL && device >= 0 && next->device != device) {
        next = next->next;
    }
    if (next != NULL) {
        next->users++;
    }
    if (g != NULL) {
        g->users--;
    }
    (void)pthread_mutex_unlock(&mutex);
    return next;
}

/* In no list. */
static void drop(struct routing *r)
{
    fl_cxx_filter_destroy(&r->filter);
    free(r);
}

/* Its record goes when it is over and no filter is asked. Lock: held. */
static void settle(struct routing *r)
{
    struct routing **at = &routings;

    if (!r->is_over || r->asked != 0) {
        return;
    }
    while (*at != r) {
        at = &(*at)->next;
    }
    *at = r->next;
    drop(r);
}

/* The device's first from `r` on. Lock: held. */
static struct routing *next_of(struct routing *r, int device)
{
    while (r != NULL && (r->is_over || r->to->device != device)) {
        r = r->next;
    }
    return r;
}

/* Routes to the pool of that number, which is `fresh` when there is none yet: that pool. NULL:
 * none, and `fresh` is NULL. With another result `r` is in the list, and may end at once. Lock: not
 * held. */
static const struct graph_pool *begin(struct routing *r, int device, struct fl_gpu_torch_id id,
                                      struct graph_pool *fresh)
{
    struct routing **at = &routings;

    (void)pthread_mutex_lock(&mutex);
    while (ending != 0) {
        (void)pthread_cond_wait(&all_ended, &mutex);
    }
    struct graph_pool *to = find(device, id);
    if (to == NULL && fresh != NULL) {
        link_pool(fresh);
        to = fresh;
    }
    if (to != NULL) {
        to->begun++;
        r->to = to;
        while (*at != NULL) {
            at = &(*at)->next;
        }
        *at = r;
        atomic_fetch_add_explicit(&routed, 1, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&mutex);
    return to;
}

void fl_gpu_torch_begin_allocate_to_pool(int device, struct fl_gpu_torch_id id, const void *filter)
{
    struct routing *r;

    if (fl_gpu_is_forked() || (r = calloc(1, sizeof *r)) == NULL) {
        return;
    }
    bool copied = fl_cxx_filter_copy(&r->filter, filter);
    const struct graph_pool *to = copied ? begin(r, device, id, NULL) : NULL;
    struct graph_pool *fresh = copied && to == NULL ? make(device, id) : NULL;
    if (fresh != NULL) {
        to = begin(r, device, id, fresh);
    }
    if (to == NULL) {
        drop(r); /* the device's pool then, which holds what it frees of a captured stream */
    }
    if (fresh != NULL && to != fresh && !end_pool(fresh)) { /* another thread was first */
        (void)pthread_mutex_lock(&mutex);
        link_pool(fresh); /* refused: it ends with the next */
        (void)pthread_mutex_unlock(&mutex);
    }
}

void fl_gpu_torch_end_allocate_to_pool(int device, struct fl_gpu_torch_id id)
{
    if (fl_gpu_is_forked()) {
        return;
    }
    (void)pthread_mutex_lock(&mutex);
    const struct graph_pool *g = find(device, id);
    struct routing *r = g != NULL ? next_of(routings, device) : NULL;
    while (r != NULL && r->to != g) {
        r = next_of(r->next, device);
    }
    if (r != NULL) {
        r->is_over = true;
        atomic_fetch_sub_explicit(&routed, 1, memory_order_relaxed);
        settle(r);
    }
    (void)pthread_mutex_unlock(&mutex);
}

/* One that is released, empty and in no call's hands; out of its list. Not while something is
 * captured, perhaps. NULL: there is none. Lock: held. */
static struct graph_pool *take_idle(int device)
{
    struct graph_pool *g = atomic_load_explicit(&routed, memory_order_relaxed) == 0 ? pools : NULL;

    while (g != NULL && (g->device != device || g->begun != 0 || g->users != 0 ||
                         atomic_load_explicit(&g->pool->occupied, memory_order_relaxed) != 0)) {
        g = g->next;
    }
    if (g != NULL) {
        unlink_pool(g);
        ending++;
    }
    return g;
}

/* True: a pool has ended. Lock: held, given up for the driver. */
static bool reap(int device)
{
    struct graph_pool *g, *refused = NULL;
    bool any = false;

    while ((g = take_idle(device)) != NULL) {
        (void)pthread_mutex_unlock(&mutex);
        bool ended = end_pool(g);
        (void)pthread_mutex_lock(&mutex);
        ending--;
        any = any || ended;
        if (!ended) {
            g->next = refused;
            refused = g;
        }
    }
    while ((g = refused) != NULL) {
        refused = g->next;
        link_pool(g);
    }
    if (ending == 0) {
        (void)pthread_cond_broadcast(&all_ended);
    }
    return any;
}

void fl_gpu_torch_release_pool(int device, struct fl_gpu_torch_id id)
{
    if (fl_gpu_is_forked()) {
        return;
    }
    (void)pthread_mutex_lock(&mutex);
    struct graph_pool *g = find(device, id);
    if (g != NULL && g->begun > 0) {
        g->begun--;
        (void)reap(device);
    }
    (void)pthread_mutex_unlock(&mutex);
}

bool fl_torch_graph_reap(int device)
{
    bool any = false;

    if (atomic_load_explicit(&pooled, memory_order_relaxed) != 0) {
        (void)pthread_mutex_lock(&mutex);
        any = reap(device);
        (void)pthread_mutex_unlock(&mutex);
    }
    return any;
}

/* The private pool that `stream` allocates from now, held; NULL: none. */
static struct graph_pool *route(int device, void *stream)
{
    struct graph_pool *found = NULL;

    if (FL_LIKELY(atomic_load_explicit(&routed, memory_order_relaxed) == 0) ||
        fl_gpu_is_forked()) { /* the mutex may be a parent's thread's */
        return NULL;
    }
    (void)pthread_mutex_lock(&mutex);
    struct routing *r = next_of(routings, device), *next;
    for (; r != NULL && found == NULL; r = next) {
        r->asked++;
        (void)pthread_mutex_unlock(&mutex);
        bool passes = fl_cxx_filter_passes(&r->filter, stream);
        (void)pthread_mutex_lock(&mutex);
        found = passes && !r->is_over ? r->to : NULL;
        next = next_of(r->next, device);
        r->asked--;
        settle(r);
    }
    if (found != NULL) {
        found->users++;
    }
    (void)pthread_mutex_unlock(&mutex);
    return found;
}

static void let_go(struct graph_pool *g)
{
    (void)pthread_mutex_lock(&mutex);
    g->users--;
    (void)pthread_mutex_unlock(&mutex);
}

bool fl_torch_graph_routes(int device, void *stream)
{
    struct graph_pool *g = route(device, stream);

    if (g != NULL) {
        let_go(g);
    }
    return g != NULL;
}

int fl_torch_graph_take(int device, size_t size, void *stream, uint64_t *out)
{
    struct graph_pool *g = route(device, stream);
    int rc = -ENOENT;

    if (g != NULL) {
        rc = fl_gpu_pool_alloc(g->pool, size, stream, out);
        let_go(g);
    }
    return rc;
}

int fl_torch_graph_free(int device, uint64_t address, void *stream)
{
    struct graph_pool *g = NULL;
    int rc = -ENOENT;

    if (FL_LIKELY(atomic_load_explicit(&pooled, memory_order_relaxed) == 0)) {
        return rc;
    }
    while ((g = walk(g, device)) != NULL) {
        rc = rc == -ENOENT ? fl_pool_free(g->pool, address, stream, false) : rc;
    }
    if (rc == 0) {
        (void)fl_torch_graph_reap(device);
    }
    return rc;
}

int fl_torch_graph_record(uint64_t address, void *stream)
{
    struct graph_pool *g = NULL;
    int rc = -ENOENT;

    if (atomic_load_explicit(&pooled, memory_order_relaxed) == 0) {
        return rc;
    }
    while ((g = walk(g, -1)) != NULL) {
        rc = rc == -ENOENT ? fl_gpu_pool_record_stream(g->pool, address, stream) : rc;
    }
    return rc;
}
