/* Requests of large blocks: this thread's cache, else the region, else the next allocator. */
#include "alloc/internal.h"
#include "alloc/own.h"

#include <errno.h>
#include <string.h>

FL_COLD void fl_call_worker_now(bool may_allocate)
{
    if (fl_route.worker != NULL && !fl_region_busy()) {
        int saved = errno;
        fl_worker_call(fl_route.worker, may_allocate);
        errno = saved;
    }
}

/* Not what ages elsewhere: a planned request leaves nothing that does. */
static void call_for_plan(void)
{
    if (FL_UNLIKELY(atomic_load_explicit(&fl_plan_calls, memory_order_relaxed)) &&
        !fl_region_busy()) {
        atomic_store(&fl_plan_calls, false);
        atomic_store(&fl_route.region->wants_worker, true);
        fl_call_worker(true);
    }
}

void fl_tell(struct fl_extent *e, size_t align)
{
    if (e != NULL && (fl_plan_wants & FL_PLAN_WATCH) != 0) {
        fl_plan_saw(e, align);
        call_for_plan();
    }
    if (e != NULL && (fl_plan_wants & FL_PLAN_SAMPLE) != 0) {
        e->sample = (uint16_t)fl_profile_saw(e->len);
    }
}

_Static_assert(FL_CACHED_MOST < FL_ROUND, "no block of a round length is in a cache");

/* A hit is counted by so many, and then more is looked at. */
static void after_hit(struct fl_cache *c, size_t len)
{
    fl_call_worker(true);
    if (!fl_cache_look_is_due(c)) {
        return;
    }
    fl_note_hits();
    if (FL_UNLIKELY(fl_cache_has_nodes(c))) {
        fl_cache_recall(fl_route.region, c, len);
    }
}

static FL_APART struct fl_extent *from_depot(struct fl_cache *c, size_t len)
{
    c->exact = (fl_plan_wants & FL_PLAN_WATCH) != 0;
    struct fl_extent *e = fl_depot_take(fl_route.region, c, len);

    if (e != NULL) {
        after_hit(c, len);
    }
    return e;
}

static bool has_depot(const struct fl_cache *c, size_t align, enum fl_request_kind kind)
{
    bool home = c != NULL && (!fl_cache_has_nodes(c) || fl_cache_is_home(c));
    bool plain = align <= fl_page.base; /* no cache serves the rest */

    return home && plain && kind != FL_REQUEST_CALLOC;
}

static struct fl_extent *take(struct fl_cache *c, size_t len, size_t align,
                              enum fl_request_kind kind)
{
    struct fl_extent *e = has_depot(c, align, kind) ? from_depot(c, len) : NULL;

    if (e == NULL) {
        e = fl_region_take(fl_route.region, c, len, fl_max(align, fl_page.base),
                           kind == FL_REQUEST_CALLOC);
        fl_call_worker(true);
        fl_tell_next();
    }
    return e;
}

/* Apart: what is made of it has the stack that the request had. */
static FL_APART struct fl_extent *tell(struct fl_extent *e, size_t align, int saved)
{
    fl_tell(e, align);
    errno = saved;
    return e;
}

/* The end of a request that was served with `e`, or with NULL was not. */
static FL_INLINE struct fl_extent *told(struct fl_extent *e, size_t align, int saved)
{
    if (FL_UNLIKELY((fl_plan_wants & (FL_PLAN_WATCH | FL_PLAN_SAMPLE)) != 0)) {
        return tell(e, align, saved);
    }
    errno = saved;
    return e;
}

FL_COLD struct fl_extent *fl_from_region(size_t len, size_t align, enum fl_request_kind kind)
{
    int saved = errno;
    struct fl_extent *e = NULL;

    if (FL_UNLIKELY(fl_plan_wants < fl_plan_always)) { /* it has come here without a cache */
        fl_plan_thread_begins();
    }
    /* A signal handler that interrupted us goes to the next allocator, and so do other threads
     * during a fork. */
    if (!fl_region_is_closed(fl_route.region)) {
        e = take(fl_thread_cache(), len, align, kind);
    }
    return told(e, align, saved);
}

/* A block from the region; NULL when it has none. errno is kept. */
static FL_INLINE void *block_from_region(size_t n, size_t align, enum fl_request_kind kind)
{
    if (FL_UNLIKELY(fl_harden.on)) {
        return fl_harden_take(n, align, kind);
    }
    struct fl_extent *e = fl_from_region(fl_extent_len(n), align, kind);
    return e != NULL ? fl_block(e) : NULL;
}

static FL_COLD void *from_region_or_next(size_t n, size_t align, enum fl_request_kind kind)
{
    void *p = block_from_region(n, align, kind);

    return p != NULL ? p : fl_from_next(n, align, kind);
}

static FL_INLINE struct fl_extent *from_plan(size_t len, size_t align)
{
    if ((fl_plan_wants & FL_PLAN_REPLAY) == 0) {
        return NULL;
    }
    struct fl_extent *e = fl_plan_take(len, align);
    call_for_plan();
    if (e != NULL && !fl_region_is_closed(fl_route.region)) { /* others age with what serves them */
        fl_region_age_alone(fl_route.region);
    }
    return e;
}

struct fl_extent *fl_from_plan(size_t len)
{
    int saved = errno;
    struct fl_extent *e = from_plan(len, fl_page.base);

    fl_tell(e, fl_page.base);
    errno = saved;
    return e;
}

static FL_APART struct fl_extent *from_cache(size_t len)
{
    return fl_from_cache(len);
}

/* The thread's steps are learned, or served and it is not what was expected next; or there is a
 * profile. errno is kept. */
static FL_INLINE struct fl_extent *from_step(size_t len, size_t align)
{
    int saved = errno;
    struct fl_extent *e = from_plan(len, align);

    if (e == NULL && align <= fl_page.base) {
        e = from_cache(len);
    }
    return told(e, align, saved);
}

/* errno is kept. */
static FL_COLD void *clear_hollow(struct fl_extent *e)
{
    int saved = errno;

    fl_region_clear(fl_route.region, e);
    errno = saved;
    return fl_block(e);
}

/* Up to malloc_usable_size(3), which programs rely on: in glibc no byte of that is an old one. */
static FL_INLINE void *zeroed(struct fl_extent *e)
{
    return FL_LIKELY(e->left == 0) ? fl_libc.memset(fl_block(e), 0, e->len) : clear_hollow(e);
}

/* All of a request of a thread with steps, or with a profile. */
static FL_APART void *in_step(size_t n, size_t align, enum fl_request_kind kind)
{
    struct fl_extent *e = from_step(fl_extent_len(n), align);

    if (e == NULL) {
        return from_region_or_next(n, align, kind);
    }
    return kind == FL_REQUEST_CALLOC ? zeroed(e) : fl_block(e);
}

/* Now and then a hit is more than that. */
static FL_APART void *note_hit(struct fl_cache *c, struct fl_extent *e)
{
    after_hit(c, e->len);
    return fl_block(e);
}

/* One node, and no plan watches the thread. */
static FL_INLINE struct fl_extent *from_own_depot(size_t len)
{
    struct fl_cache *c = fl_my_cache;
    struct fl_extent *e = c != NULL ? fl_depot_take_same(fl_route.region, c, len) : NULL;

    if (e != NULL) {
        after_hit(c, len);
    }
    return e;
}

static FL_APART void *malloc_unplanned(size_t n)
{
    size_t len = fl_route_ready() ? fl_extent_len(n) : 0;

    if (FL_UNLIKELY(len == 0)) {
        return fl_from_next(n, fl_page.base, FL_REQUEST_MALLOC);
    }
    if (FL_UNLIKELY(fl_plan_cursor != NULL)) {
        return in_step(n, fl_page.base, FL_REQUEST_MALLOC);
    }
    struct fl_extent *e = fl_from_cache(len);
    e = e != NULL ? e : from_own_depot(len);
    return FL_LIKELY(e != NULL) ? fl_block(e)
                                : from_region_or_next(n, fl_page.base, FL_REQUEST_MALLOC);
}

static FL_COLD void *malloc_anew(struct fl_extent *e, size_t n)
{
    fl_region_defer(fl_route.region, e);
    return malloc_unplanned(n);
}

/* By far the most requests that do not come to the next allocator end here: the thread has a cache,
 * so all is up, and a slot has such a block. */
static FL_INLINE void *malloc_cached(struct fl_cache *c, size_t n)
{
    size_t len = fl_align_up(n, fl_page.base);
    struct fl_extent *e = FL_LIKELY(len < FL_ROUND) ? fl_cache_take_slot(c, len) : NULL;

    if (e == NULL) {
        return malloc_unplanned(n);
    }
    if (FL_UNLIKELY(e->len != len)) {
        return malloc_anew(e, n);
    }
    fl_assert(fl_extent_state(e) == FL_EXTENT_CACHED);
    atomic_store_explicit(&e->state, FL_EXTENT_LIVE, memory_order_relaxed);
    fl_stats_bump(&c->stats.cache_hits);
    fl_stats_add(&c->stats.hit_bytes, len);
    return FL_UNLIKELY(fl_cache_look_is_due(c) || atomic_load(&fl_route.region->wants_worker))
               ? note_hit(c, e)
               : fl_block(e);
}

void *fl_malloc_large(size_t n)
{
    struct fl_cursor *t = fl_plan_cursor;
    struct fl_cache *c = fl_my_cache;

    if (FL_LIKELY(t == NULL)) {
        return FL_LIKELY(c != NULL) ? malloc_cached(c, n) : malloc_unplanned(n);
    }
    struct fl_extent *e = fl_plan_take_next(t, n);
    return FL_LIKELY(e != NULL) ? fl_block(e) : malloc_unplanned(n);
}

void *fl_calloc_large(size_t n)
{
    struct fl_extent *e = fl_plan_cursor != NULL ? fl_plan_take_next(fl_plan_cursor, n) : NULL;

    if (e != NULL) {
        return fl_libc.memset(fl_block(e), 0, e->len);
    }
    size_t len = fl_route_ready() ? fl_extent_len(n) : 0;
    if (FL_UNLIKELY(len == 0)) {
        return fl_from_next(n, fl_page.base, FL_REQUEST_CALLOC);
    }
    if (FL_UNLIKELY(fl_plan_cursor != NULL)) {
        return in_step(n, fl_page.base, FL_REQUEST_CALLOC);
    }
    e = fl_from_cache(len);
    return e != NULL ? zeroed(e) : from_region_or_next(n, fl_page.base, FL_REQUEST_CALLOC);
}

static FL_APART void *memalign_unplanned(size_t align, size_t n)
{
    size_t len = fl_route_ready() ? fl_extent_len(n) : 0;

    if (FL_UNLIKELY(len == 0)) {
        return fl_from_next(n, align, FL_REQUEST_ALIGNED);
    }
    if (FL_UNLIKELY(fl_plan_cursor != NULL)) {
        return in_step(n, align, FL_REQUEST_ALIGNED);
    }
    struct fl_extent *e = align <= fl_page.base ? fl_from_cache(len) : NULL;
    return FL_LIKELY(e != NULL) ? fl_block(e) : from_region_or_next(n, align, FL_REQUEST_ALIGNED);
}

void *fl_memalign_large(size_t align, size_t n)
{
    struct fl_cursor *t = fl_plan_cursor;

    if (FL_LIKELY(t == NULL || align > FL_GRANULE)) {
        return memalign_unplanned(align, n);
    }
    struct fl_extent *e = fl_plan_take_next(t, n);
    return FL_LIKELY(e != NULL) ? fl_block(e) : memalign_unplanned(align, n);
}

static FL_APART int posix_memalign_long(void **out, size_t align, size_t n)
{
    void *p = fl_memalign_large(align, n);

    if (p == NULL) {
        return errno = ENOMEM;
    }
    *out = p;
    return 0;
}

int fl_posix_memalign_large(void **out, size_t align, size_t n)
{
    struct fl_cursor *t = fl_plan_cursor;

    if (FL_LIKELY(t == NULL || align > FL_GRANULE)) {
        return posix_memalign_long(out, align, n);
    }
    struct fl_extent *e = fl_plan_take_next(t, n);
    if (FL_UNLIKELY(e == NULL)) {
        return posix_memalign_long(out, align, n);
    }
    *out = fl_block(e);
    return 0;
}

FL_COLD _Noreturn void fl_die(const char *call, const void *p)
{
    char line[160];
    struct fl_text t = fl_text_on(line, sizeof line);

    fl_text_str(&t, call);
    fl_text_str(&t, " of a pointer that is not a live block (freed twice, or never allocated): ");
    fl_text_hex(&t, (uintptr_t)p);
    fl_fatal(line);
}
