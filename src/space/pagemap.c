/* The pagemap, which leads from an address to a descriptor, and reaches as far as it is used.
 *
 * The pagemap holds a descriptor's index for the first and the last page of each extent, and for
 * the waypoints of a LIVE one. Entries of other pages inside are stale. None is believed: the
 * reader checks base, len and state.
 *
 * Waypoints lead from any page of an extent to its descriptor. Pages have numbers, from the
 * window's start. The first waypoint is the extent's first multiple of FL_WAYPOINT_PAGES; the one
 * after page i is i plus the lowest bit set in i. So each is followed by at least twice as many
 * pages as the one before, and there are log2(pages) at most; a short extent has none. Who goes
 * back page by page to such a multiple, and from there takes the lowest bits off the number, one
 * after the other, comes by the first page or by the waypoint that it lies behind. */
#include "space/space.h"

/* The pagemap is brought into memory as it grows, 1 KiB a MiB of the window, so that later steps
 * take no fault for it; but not for a sparse giant's sake; in strides of an eighth of what is
 * wanted, of 2 MiB at most. */
static const size_t ahead_most = (size_t)4 << 20, ample_share = 8;

static struct fl_extent *descriptor(const struct fl_space *s, uint32_t index)
{
    return &s->descriptor[index];
}

static _Atomic uint32_t *entry(const struct fl_space *s, uintptr_t addr)
{
    return &s->map[(addr - s->base) >> fl_page.shift];
}

static bool has_entry(const struct fl_space *s, uintptr_t addr)
{
    return (addr - s->base) >> fl_page.shift <
           atomic_load_explicit(&s->mapped, memory_order_acquire);
}

/* The descriptor that the pagemap names for the page of `addr`; NULL when it names none. */
static struct fl_extent *look_up(const struct fl_space *s, uintptr_t addr)
{
    struct fl_extent *e;

    return fl_space_look(s, addr, &e) && e != s->descriptor ? e : NULL;
}

void fl_extent_publish_base(struct fl_space *s, const struct fl_extent *e)
{
    fl_assert(fl_extent_is_sound(e) && has_entry(s, e->base));
    atomic_store_explicit(entry(s, e->base), (uint32_t)(e - descriptor(s, 0)),
                          memory_order_relaxed);
}

void fl_extent_publish(struct fl_space *s, struct fl_extent *e)
{
    uint32_t index = (uint32_t)(e - descriptor(s, 0));
    uintptr_t last = e->base + e->len - fl_page.base;

    fl_assert(fl_extent_is_sound(e) && has_entry(s, e->base));
    atomic_store_explicit(entry(s, e->base), index, memory_order_relaxed);
    /* The window's last extent ends beyond the pagemap, where no right neighbour will look. */
    if (has_entry(s, last)) {
        atomic_store_explicit(entry(s, last), index, memory_order_relaxed);
    }
}

static size_t page_of(const struct fl_space *s, uintptr_t addr)
{
    return (addr - s->base) >> fl_page.shift;
}

void fl_extent_lay_waypoints(struct fl_space *s, const struct fl_extent *e)
{
    uint32_t index = (uint32_t)(e - descriptor(s, 0));
    size_t mapped = atomic_load_explicit(&s->mapped, memory_order_relaxed);
    size_t end = fl_min(page_of(s, e->base + e->len), mapped);

    for (size_t i = fl_waypoint_first(page_of(s, e->base)); i < end; i = fl_waypoint_next(i)) {
        atomic_store_explicit(fl_waypoint_entry(s, i), index, memory_order_relaxed);
    }
}

struct fl_extent *fl_extent_at(struct fl_space *s, uintptr_t addr)
{
    struct fl_extent *e = look_up(s, addr);

    if (e != NULL && e->content == FL_CONTENT_INNER) { /* its first page is its first block's */
        e = e->inner->outer;
    }
    return e != NULL && e->base == addr ? e : NULL;
}

/* Others may be changing the descriptor: then its first page does not name it, or it is not the
 * same when looked at again. */
static bool is_around(const struct fl_space *s, uint32_t index, uintptr_t addr)
{
    const struct fl_extent *e = descriptor(s, index);
    uintptr_t base = __atomic_load_n(&e->base, __ATOMIC_RELAXED);
    size_t len = __atomic_load_n(&e->len, __ATOMIC_RELAXED);

    if (index == 0 || addr - base >= len || base < s->first ||
        fl_extent_state(e) == FL_EXTENT_UNUSED) {
        return false;
    }
    return atomic_load_explicit(entry(s, base), memory_order_relaxed) == index &&
           __atomic_load_n(&e->base, __ATOMIC_RELAXED) == base &&
           __atomic_load_n(&e->len, __ATOMIC_RELAXED) == len;
}

/* By that entry. NULL: none. */
static struct fl_extent *named_by(struct fl_space *s, const _Atomic uint32_t *named, uintptr_t page)
{
    uint32_t index = atomic_load_explicit(named, memory_order_relaxed);

    return is_around(s, index, page) ? descriptor(s, index) : NULL;
}

/* NULL: none that has waypoints. */
static struct fl_extent *by_waypoints(struct fl_space *s, uintptr_t page)
{
    for (size_t i = page_of(s, page), first = page_of(s, s->first); i >= first;
         i = i % FL_WAYPOINT_PAGES != 0 ? i - 1 : i & (i - 1)) {
        const _Atomic uint32_t *waypoint = fl_waypoint_entry(s, i);
        struct fl_extent *e = named_by(s, waypoint, page);
        if (e == NULL && waypoint != &s->map[i]) { /* it may be the first page */
            e = named_by(s, &s->map[i], page);
        }
        if (e != NULL) {
            return e;
        }
    }
    return NULL;
}

/* Page by page: of what is not LIVE. */
static struct fl_extent *by_walk(const struct fl_space *s, uintptr_t page)
{
    for (uintptr_t at = page; at >= s->first; at -= fl_page.base) {
        uint32_t index = atomic_load_explicit(entry(s, at), memory_order_relaxed);
        if (is_around(s, index, page)) {
            return descriptor(s, index);
        }
        if (is_around(s, index, at)) { /* it ends before `page`, where there is none */
            return NULL;
        }
    }
    return NULL;
}

static struct fl_extent *find_around(struct fl_space *s, uintptr_t addr, bool walk)
{
    uintptr_t page = fl_align_down(addr, fl_page.base);

    if (addr < s->first || addr >= fl_range_end(s->window.all) || !has_entry(s, addr)) {
        return NULL;
    }
    struct fl_extent *outer;
    const struct fl_inner *in = fl_inner_around(s, addr, &outer);
    if (in != NULL) { /* its blocks' entries stay as they are */
        return fl_inner_block(in, outer, addr);
    }
    struct fl_extent *e = by_waypoints(s, page);
    return e != NULL || !walk ? e : by_walk(s, page);
}

struct fl_extent *fl_extent_around(struct fl_space *s, uintptr_t addr)
{
    return find_around(s, addr, true);
}

struct fl_extent *fl_extent_in_use_around(struct fl_space *s, uintptr_t addr)
{
    return find_around(s, addr, false);
}

static bool is_free(const struct fl_extent *e, unsigned zone)
{
    return fl_extent_state(e) == FL_EXTENT_FREE && fl_extent_zone(e) == zone;
}

struct fl_extent *fl_extent_free_at(struct fl_space *s, uintptr_t addr, unsigned zone)
{
    struct fl_extent *e = look_up(s, addr);

    return e != NULL && is_free(e, zone) && e->base == addr ? e : NULL;
}

struct fl_extent *fl_extent_free_before(struct fl_space *s, uintptr_t addr, unsigned zone)
{
    struct fl_extent *e = look_up(s, addr - fl_page.base);

    return e != NULL && is_free(e, zone) && e->base + e->len == addr ? e : NULL;
}

void fl_pagemap_populate(struct fl_space *s, struct fl_range window)
{
    struct fl_range all = {s->pagemap.all.base,
                           atomic_load_explicit(&s->mapped, memory_order_acquire) *
                               sizeof(uint32_t)};
    size_t from = (window.base - s->base) >> fl_page.shift, n = window.len >> fl_page.shift;
    struct fl_range part = {all.base + from * sizeof(uint32_t), n * sizeof(uint32_t)};

    fl_assert(window.base >= s->base && (window.base | window.len) % fl_page.base == 0);
    part = fl_range_inner(fl_range_common(part, all), fl_page.base);
    if (part.len != 0) {
        (void)fl_sys.populate(part);
    }
}

int fl_pagemap_reach(struct fl_space *s, uintptr_t end, bool ahead)
{
    /* one entry more: the extent that begins at `end` is published too */
    size_t entries = ((end - s->window.all.base) >> fl_page.shift) + 1;

    fl_assert(end >= s->base && end <= fl_range_end(s->window.all));
    size_t want = fl_min(entries * sizeof(uint32_t), s->pagemap.all.len);
    size_t had = atomic_load_explicit(&s->pagemap.grown, memory_order_relaxed);
    if (want <= had) {
        return 0;
    }
    size_t ample = want + (ahead ? fl_min(want / ample_share, ahead_most / 2) : 0);
    int rc = fl_vspace_grow(&s->pagemap, fl_min(ample, s->pagemap.all.len));
    if (rc != 0) {
        rc = fl_vspace_grow(&s->pagemap, want);
    }
    size_t now = atomic_load_explicit(&s->pagemap.grown, memory_order_relaxed), more = now - had;
    fl_assert(now >= had && (rc != 0 || now >= want) && now <= s->pagemap.all.len);

    if (more != 0) { /* release: a reader of the new bound may read what lies below it */
        atomic_store_explicit(&s->mapped, now / sizeof(uint32_t), memory_order_release);
    }
    if (ahead && more != 0 && more <= ahead_most) { /* a mere saving: it may fail */
        fl_lock_permit_calls(true);
        (void)fl_sys.populate((struct fl_range){s->pagemap.all.base + had, more});
        fl_lock_permit_calls(false);
    }
    return rc;
}
