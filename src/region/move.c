/* Carries populated huge pages from one place of the window to another.
 *
 * Three rungs, found by trying and never climbed again: UFFDIO_MOVE; mremap(2), which moves the maps too and leaves the kernel with
 * more of them, so it is used so often and no more; nothing at all.
 * State: r->rung, r->remaps; r->moving, held while anything moves, so that no child of fork(2) gets a descriptor of ours. */
#include "region/internal.h"

#include <errno.h>

enum { REMAPS_MOST = 4096 }; /* of some 65,000 maps that a process may have */
/* Bytes from which on glibc's malloc maps each block, so that its realloc calls mremap(2): the most
 * that M_MMAP_THRESHOLD comes to by itself. Source: mallopt(3). */
static const size_t libc_maps_from = (size_t)32 << 20;
enum { TRIES = 64 }; /* EAGAIN without progress: another thread changes the maps */

static enum fl_rung rung_below(const struct fl_region *r)
{
    return r->config.rung == FL_RUNG_MOVE && !r->space.window.reserved ? FL_RUNG_REMAP
                                                                       : FL_RUNG_PLAIN;
}

/* What refuses for good, and not for want of memory or descriptors. */
static bool is_final(int rc)
{
    return rc == -ENOSYS || rc == -EPERM || rc == -EACCES || rc == -EINVAL;
}

static bool begin(struct fl_region *r, struct fl_move *m)
{
    if (m->rung == FL_RUNG_MOVE) {
        int rc = fl_sys.move_begin(m->to, &m->fd);
        if (rc == 0) {
            return true;
        }
        if (!is_final(rc)) {
            return false;
        }
        m->rung = rung_below(r);
        atomic_store_explicit(&r->rung, m->rung, memory_order_relaxed);
        atomic_store_explicit(&r->rung_refusal, rc, memory_order_relaxed);
    }
    return m->rung == FL_RUNG_REMAP && r->remaps < REMAPS_MOST;
}

static bool begin_by_rung(struct fl_region *r, struct fl_move *m, struct fl_range to, unsigned zone)
{
    *m = (struct fl_move){
        .to = to, .zone = zone, .rung = atomic_load_explicit(&r->rung, memory_order_relaxed)};
    if (m->rung == FL_RUNG_PLAIN || fl_sys_is_confined()) {
        return false;
    }
    fl_region_enter();
    fl_lock_acquire(&r->moving);
    if (begin(r, m)) {
        return true;
    }
    fl_lock_release(&r->moving);
    fl_region_leave();
    return false;
}

bool fl_move_begin(struct fl_region *r, struct fl_move *m, struct fl_range to, unsigned zone)
{
    fl_region_prove(r);
    return begin_by_rung(r, m, to, zone);
}

void fl_move_end(struct fl_region *r, struct fl_move *m)
{
    if (m->rung == FL_RUNG_MOVE) {
        fl_sys.move_end(m->fd, m->to);
    }
    fl_lock_release(&r->moving);
    fl_region_leave();
}

static size_t by_uffd(const struct fl_move *m, struct fl_range from, uintptr_t to)
{
    size_t done = 0, most = from.len;

    for (int tries = 0; done < from.len && tries < TRIES;) {
        size_t moved = 0;
        struct fl_range piece = {from.base + done, fl_min(most, from.len - done)};
        int rc = fl_sys.move_pages(m->fd, piece, to + done, &moved);
        done += moved;
        if (rc == -EINVAL && most > fl_page.huge) {
            most = fl_page.huge; /* it may lie in more than one map */
        } else if (rc != 0 && rc != -EAGAIN) {
            break;
        }
        tries = moved != 0 ? 0 : tries + 1;
    }
    return done;
}

int fl_move_map(struct fl_region *r, struct fl_range from, uintptr_t to, unsigned zone)
{
    struct fl_range target = {to, from.len};
    int rc = fl_sys.remap(from, to);

    if (rc != 0) {
        (void)fl_zone_commit(r, target, r->config.huge, zone); /* -EEXIST: it is there still */
    }
    return rc;
}

static bool is_of_stock(const struct fl_region *r, struct fl_range range)
{
    return range.base - r->stock.span.all.base < r->stock.span.all.len;
}

/* Lock: moving. */
static size_t by_remap(struct fl_region *r, struct fl_range from, uintptr_t to, unsigned zone)
{
    if (r->remaps >= REMAPS_MOST || fl_move_map(r, from, to, zone) != 0) {
        return 0;
    }
    /* As the other way leaves it: mapped, with nothing in it; and what the stock's was told. */
    if (fl_sys.map_at(from) == 0) {
        fl_zone_mapped(r, from, zone);
        if (is_of_stock(r, from)) {
            fl_stock_advise(from);
        }
    }
    (void)fl_sys.advise((struct fl_range){to, from.len}, FL_ADVICE_FORK);
    if (r->config.huge && fl_holes_is_split(r, from.base)) { /* as a block is that has such pages */
        (void)fl_sys.advise((struct fl_range){to, from.len}, FL_ADVICE_HUGE);
    }
    if (is_of_stock(r, from)) {
        (void)fl_sys.advise((struct fl_range){to, from.len}, FL_ADVICE_DUMP);
    }
    r->remaps++;
    return from.len;
}

static size_t count(struct fl_region *r, size_t moved)
{
    __atomic_fetch_add(&r->stats.move_bytes, moved, __ATOMIC_RELAXED);
    return moved;
}

size_t fl_move_pages(struct fl_region *r, struct fl_move *m, struct fl_range from, uintptr_t to)
{
    uint64_t from_ns = fl_timeline_now();
    size_t moved = m->rung == FL_RUNG_MOVE ? by_uffd(m, from, to) : by_remap(r, from, to, m->zone);

    fl_timeline_span(FL_TIMELINE_MOVE, from_ns, moved);
    return count(r, moved);
}

bool fl_move_may_map(const struct fl_region *r, size_t len)
{
    return !fl_sys_is_confined() || (len >= libc_maps_from && !r->space.window.reserved);
}

size_t fl_move_by_map(struct fl_region *r, struct fl_range from, uintptr_t to, unsigned zone)
{
    fl_region_enter();
    fl_lock_acquire(&r->moving);
    size_t moved = by_remap(r, from, to, zone);
    fl_lock_release(&r->moving);
    fl_region_leave();
    return count(r, moved);
}

/* The first huge pages of `from` of which something is there: {its start, 0} where none is. False:
 * unknown. */
static bool find_touched(struct fl_range from, struct fl_range *out)
{
    struct fl_range part;
    int n = fl_sys.touched(from, &part, 1);

    if (n > 0) {
        uintptr_t end = fl_align_up(fl_range_end(part), fl_page.huge);
        out->base = fl_align_down(part.base, fl_page.huge);
        out->len = end - out->base;
    } else {
        *out = (struct fl_range){fl_range_end(from), 0};
    }
    return n >= 0;
}

size_t fl_move_hollow(struct fl_region *r, struct fl_move *m, struct fl_range from, uintptr_t to)
{
    if (m->rung != FL_RUNG_MOVE) { /* the map moves, whatever is behind it */
        return fl_move_pages(r, m, from, to);
    }
    for (size_t done = 0; done < from.len;) {
        struct fl_range there, rest = {from.base + done, from.len - done};
        if (!find_touched(rest, &there)) {
            there = rest;
        }
        size_t n = there.len != 0 ? fl_move_pages(r, m, there, to + (there.base - from.base)) : 0;
        done = there.base - from.base + n;
        if (n < there.len || there.len == 0) {
            return done;
        }
    }
    return from.len;
}

/* Moves one base page between two that nobody else has. */
static int try_a_move(struct fl_region *r, struct fl_range two)
{
    struct fl_range to = {two.base, fl_page.base};
    char *from = (char *)two.base + fl_page.base; /* NOLINT(performance-no-int-to-ptr) */
    struct fl_move m;
    size_t moved = 0;

    *(volatile char *)from = 1;
    bool begun = begin_by_rung(r, &m, to, 0);
    if (begun) {
        moved = fl_move_pages(r, &m, (struct fl_range){(uintptr_t)from, fl_page.base}, to.base);
        fl_move_end(r, &m);
        __atomic_fetch_sub(&r->stats.move_bytes, moved, __ATOMIC_RELAXED);
    }
    return !begun ? -EAGAIN : moved == fl_page.base ? 0 : -EIO;
}

void fl_region_probe(struct fl_region *r)
{
    /* The last pages of the boot area's huge page, which no block ever gets. Other threads may move
     * pages meanwhile: by the best rung, until they see what it is worth. */
    struct fl_range two = {r->space.first - 2 * fl_page.base, 2 * fl_page.base};

    if (atomic_load_explicit(&r->rung, memory_order_relaxed) != FL_RUNG_MOVE ||
        fl_vspace_commit(&r->space.window, two, false) != 0) {
        return;
    }
    /* Not to be had now (descriptors, memory) is no answer. */
    if (try_a_move(r, two) == -EIO &&
        atomic_load_explicit(&r->rung, memory_order_relaxed) == FL_RUNG_MOVE) {
        atomic_store_explicit(&r->rung, rung_below(r), memory_order_relaxed);
        atomic_store_explicit(&r->rung_refusal, -EIO, memory_order_relaxed);
    }
    (void)fl_vspace_decommit(&r->space.window, two);
}

void fl_region_prove_later(struct fl_region *r)
{
    atomic_store(&r->unproven, true);
}

void fl_region_prove(struct fl_region *r)
{
    if (FL_UNLIKELY(atomic_load_explicit(&r->unproven, memory_order_relaxed)) &&
        !fl_sys_is_confined() && atomic_exchange(&r->unproven, false)) {
        fl_region_probe(r);
    }
}
