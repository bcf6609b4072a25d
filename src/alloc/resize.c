/* realloc: in place, by moving pages, by copying; and how long a block is. */
#include "alloc/internal.h"

#include <errno.h>
#include <string.h>

enum { MAPPED_FROM = 32 * FL_MIB }; /* glibc's DEFAULT_MMAP_THRESHOLD_MAX, of 64 bits */

size_t fl_usable_ours(const void *p)
{
    if (FL_UNLIKELY(fl_harden.on)) {
        return fl_harden_usable(p);
    }
    const struct fl_extent *e = fl_region_find(fl_route.region, (uintptr_t)p);
    if (e == NULL) {
        fl_die("malloc_usable_size", p);
    }
    return e->len;
}

static void *any_malloc(size_t n)
{
    return n >= fl_route.threshold ? fl_malloc_large(n) : fl_route.next.malloc(n);
}

/* The old block's bytes go to `q`, and it is released. */
static void *hand_over(void *q, void *p, size_t old_len, size_t n)
{
    fl_assert(q != p);
    (void)fl_libc.memcpy(q, p, fl_min(old_len, n));
    if (fl_is_ours(p)) {
        fl_free_ours(p);
    } else {
        fl_route.next.free(p);
    }
    return q;
}

/* A new block with the old one's bytes. NULL: the old one is untouched. */
static FL_APART void *move_block(void *p, size_t old_len, size_t n)
{
    void *q = any_malloc(n);

    return q != NULL ? hand_over(q, p, old_len, n) : NULL;
}

static bool is_served(void)
{
    return (fl_plan_wants & FL_PLAN_REPLAY) != 0;
}

/* What a step asks for must not depend on what lies behind a block: while the step is watched or
 * served, a block that grows by more than a quarter is a new request. */
static bool stays(const struct fl_extent *e, size_t len)
{
    bool of_a_step = e->life != 0 || e->content == FL_CONTENT_INNER || is_served();

    return !of_a_step || len <= e->len + e->len / 4;
}

static bool resize_in_place(struct fl_extent *e, size_t len)
{
    bool done = len == e->len, same = done;

    fl_assert(fl_extent_is_live(e) && len != 0 && len % fl_page.base == 0);
    if (!done && e->content == FL_CONTENT_INNER) {
        done = stays(e, len) && fl_plan_resize(e, len);
    } else if (!done && !fl_region_is_closed(fl_route.region)) {
        done = stays(e, len) && fl_region_resize(fl_route.region, e, len);
    }
    if (done && e->life != 0) {
        fl_plan_saw_resize(e);
    }
    if (done && !same && (fl_plan_wants & FL_PLAN_SAMPLE) != 0) {
        fl_tell_end(0, 0, e->sample); /* for the profile it is another block now */
        e->sample = (uint16_t)fl_profile_saw(len);
    }
    fl_assert(!done || (fl_extent_is_live(e) && e->len >= len));
    return done;
}

/* Elsewhere, its pages moved; NULL: not possible, or not worth it. */
static void *move_pages(struct fl_extent *e, size_t len)
{
    uint64_t noted = e->noted;
    uint32_t life = e->life, watcher = e->watcher, sample = e->sample;

    fl_assert(fl_extent_is_live(e));
    if (e->content == FL_CONTENT_INNER || fl_region_is_closed(fl_route.region)) {
        return NULL;
    }
    e->noted = 0;
    struct fl_extent *moved = fl_region_move(fl_route.region, e, len);
    if (moved == NULL) {
        e->noted = noted;
        return NULL;
    }
    fl_assert(fl_extent_is_live(moved) && moved->len >= len);
    /* a step's block that is elsewhere now: both are there for a moment */
    fl_tell(moved, fl_page.base);
    fl_tell_end(life, watcher, sample);
    return fl_block(moved);
}

/* A block that cannot stay where it is, in a step that is served: a request of the step. Without a
 * place in the plan its pages move, where they can, and else it is copied. NULL: not to be had,
 * which move_block finds once more. */
static void *move_in_step(struct fl_extent *e, void *p, size_t len, size_t n)
{
    fl_assert(fl_block(e) == p);
    struct fl_extent *to = fl_from_plan(len);
    void *q = to != NULL ? fl_block(to) : move_pages(e, len);

    if (q != NULL && to == NULL) {
        return q;
    }
    if (q == NULL) {
        to = fl_from_region(len, fl_page.base, FL_REQUEST_MALLOC);
        q = to != NULL ? fl_block(to) : fl_route.next.malloc(n);
    }
    return q != NULL ? hand_over(q, p, fl_usable_ours(p), n) : NULL;
}

static void *realloc_ours(void *p, size_t n)
{
    struct fl_extent *e =
        fl_harden.on ? fl_harden_find(p) : fl_region_find(fl_route.region, (uintptr_t)p);

    if (e == NULL) {
        fl_die("realloc", p);
    }
    if (n == 0) {
        fl_free_ours(p);
        return NULL;
    }
    if (n > PTRDIFF_MAX) {
        return fl_no_memory();
    }
    fl_assert(fl_extent_is_live(e) && (fl_harden.on || fl_block(e) == p));
    size_t len = fl_extent_len(n);
    if (len != 0 && !fl_harden.on) { /* a hardened block always moves */
        int saved = errno;
        void *q = resize_in_place(e, len) ? p
                  : is_served()           ? move_in_step(e, p, len, n)
                                          : move_pages(e, len);
        errno = saved;
        if (q != NULL) {
            return q;
        }
    }
    return move_block(p, fl_usable_ours(p), n);
}

static void *next_realloc(void *p, size_t n)
{
    void *q = fl_route.next.realloc(p, n);

    return q != NULL || n == 0 ? q : fl_no_memory();
}

/* In a confined process large blocks are the next allocator's, too. glibc's realloc would mremap
 * one, which the filter may kill for: without us glibc may have learned to keep blocks of that
 * length in its heap, but none of 32 MiB or more. Shorter ones are copied, with room for what grows
 * bit by bit: the room is not touched, so it takes no memory. */
static FL_COLD void *realloc_confined(void *p, size_t n)
{
    size_t had = fl_route.next.usable_size(p);

    if (had >= MAPPED_FROM) {
        return next_realloc(p, n);
    }
    if (n > had) {
        int saved = errno;
        void *q = any_malloc(fl_max(n, fl_min(n + n / 2, MAPPED_FROM - FL_MIB / 16)));
        if (q != NULL) {
            return hand_over(q, p, had, n);
        }
        errno = saved;
    }
    return n <= had && n >= had / 2 ? p : move_block(p, had, n);
}

void *fl_realloc_any(void *p, size_t n)
{
    bool usual = fl_route_ready();

    if (p == NULL && usual) {
        return any_malloc(n);
    }
    if (fl_is_ours(p)) {
        return realloc_ours(p, n);
    }
    if (!usual || n > PTRDIFF_MAX || n < fl_route.threshold || fl_route.next.usable_size == NULL ||
        fl_route.next.foreign_sizes) {
        return next_realloc(p, n);
    }
    return fl_sys_is_confined() ? realloc_confined(p, n)
                                : move_block(p, fl_route.next.usable_size(p), n);
}

void *fl_libc_realloc(void *p, size_t n)
{
    bool ours = fl_is_ours(p);

    if (!fl_route_ready() || (ours && (n == 0 || n >= fl_route.threshold))) {
        return fl_realloc_any(p, n);
    }
    void *q = fl_route.next.libc_realloc(ours ? NULL : p, n);
    return ours && q != NULL ? hand_over(q, p, fl_usable_ours(p), n) : q;
}
