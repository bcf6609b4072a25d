/* Carries populated huge pages from one place of the window to another.
 *
 * Three rungs, found by trying and never climbed again: UFFDIO_MOVE; mremap(2), which moves the
 * maps too and leaves the kernel with more of them, so it is used so often and no more; nothing
 * at all. State: struct fl_mover; its lock is held while anything moves, and the thread's signals
 * wait, so that no child of fork(2) gets a descriptor of ours. */
#include "pages/pages.h"

#include <errno.h>

enum { REMAPS_MOST = 4096 }; /* of some 65,000 maps that a process may have */
/* Bytes from which on glibc's malloc maps each block, so that its realloc calls mremap(2): the most
 * that M_MMAP_THRESHOLD comes to by itself. Source: mallopt(3). */
static const size_t libc_maps_from = (size_t)32 << 20;
enum { TRIES = 64 }; /* EAGAIN without progress: another thread changes the maps */

void fl_move_start(struct fl_pages *p, enum fl_move_method best, struct fl_range trial)
{
    /* mremap would leave a hole in the reserved span, in which anything may be mapped */
    bool plain = best == FL_METHOD_REMAP && p->window->reserved;

    fl_assert(trial.len == 0 || trial.len == 2 * fl_page.base);
    p->move.best = best;
    p->move.trial = trial;
    atomic_store_explicit(&p->move.method, plain ? FL_METHOD_NONE : best, memory_order_relaxed);
}

static enum fl_move_method method_below(const struct fl_pages *p)
{
    return p->move.best == FL_METHOD_MOVE && !p->window->reserved ? FL_METHOD_REMAP
                                                                  : FL_METHOD_NONE;
}

/* What refuses for good, and not for want of memory or descriptors. */
static bool is_final(int rc)
{
    return rc == -ENOSYS || rc == -EPERM || rc == -EACCES || rc == -EINVAL;
}

static bool begin(struct fl_pages *p, struct fl_move *m)
{
    fl_assert(fl_lock_is_busy(&p->move.lock) && m->method != FL_METHOD_NONE);
    if (m->method == FL_METHOD_MOVE) {
        int rc = fl_sys.move_begin(m->to, &m->fd);
        if (rc == 0) {
            return true;
        }
        if (!is_final(rc)) {
            return false;
        }
        m->method = method_below(p);
        atomic_store_explicit(&p->move.method, m->method, memory_order_relaxed);
        atomic_store_explicit(&p->move.refusal, rc, memory_order_relaxed);
    }
    return m->method == FL_METHOD_REMAP && p->move.remaps < REMAPS_MOST;
}

static void release(struct fl_pages *p, const struct fl_move *m)
{
    fl_assert(fl_lock_is_busy(&p->move.lock) && fl_is_busy());
    fl_lock_release(&p->move.lock);
    fl_signals_restore(m->blocked);
    fl_busy_end();
}

static bool begin_by_method(struct fl_pages *p, struct fl_move *m, struct fl_range to,
                            unsigned zone)
{
    fl_assert(to.len != 0 && (to.base | to.len) % fl_page.base == 0);
    *m = (struct fl_move){.to = to,
                          .zone = zone,
                          .method = atomic_load_explicit(&p->move.method, memory_order_relaxed)};
    if (m->method == FL_METHOD_NONE || fl_sys_is_confined()) {
        return false;
    }
    fl_busy_begin();
    m->blocked = fl_signals_block();
    fl_lock_acquire(&p->move.lock);
    if (begin(p, m)) {
        return true;
    }
    release(p, m);
    return false;
}

bool fl_move_begin(struct fl_pages *p, struct fl_move *m, struct fl_range to, unsigned zone)
{
    fl_move_prove(p);
    return begin_by_method(p, m, to, zone);
}

void fl_move_end(struct fl_pages *p, struct fl_move *m)
{
    fl_assert(fl_lock_is_busy(&p->move.lock));
    if (m->method == FL_METHOD_MOVE) {
        fl_sys.move_end(m->fd, m->to);
    }
    release(p, m);
}

static FL_APART size_t by_uffd(const struct fl_move *m, struct fl_range from, uintptr_t to)
{
    size_t done = 0, most = from.len;

    for (int tries = 0; done < from.len && tries < TRIES;) {
        size_t moved = 0;
        struct fl_range piece = {from.base + done, fl_min(most, from.len - done)};
        int rc = fl_sys.move_pages(m->fd, piece, to + done, &moved);
        done += moved;
        fl_assert(moved <= piece.len);
        if (rc == -EINVAL && most > fl_page.huge) {
            most = fl_page.huge; /* it may lie in more than one map */
        } else if (rc != 0 && rc != -EAGAIN) {
            break;
        }
        tries = moved != 0 ? 0 : tries + 1;
    }
    return done;
}

int fl_move_map(struct fl_pages *p, struct fl_range from, uintptr_t to, unsigned zone)
{
    struct fl_range target = {to, from.len};
    int rc = fl_sys.remap(from, to);

    fl_assert(fl_range_common(from, target).len == 0 && !p->window->reserved);
    if (rc != 0) {
        fl_pages_commit_absent(p, target, zone); /* most often it is there still */
    }
    return rc;
}

static bool is_of_reserve(const struct fl_pages *p, struct fl_range range)
{
    return range.base - p->reserve.span.all.base < p->reserve.span.all.len;
}

/* Lock: moving. */
static size_t by_remap(struct fl_pages *p, struct fl_range from, uintptr_t to, unsigned zone)
{
    fl_assert(fl_lock_is_busy(&p->move.lock));
    if (p->move.remaps >= REMAPS_MOST || fl_move_map(p, from, to, zone) != 0) {
        return 0;
    }
    /* As the other way leaves it: mapped, with nothing in it; and what the reserve's was told. */
    if (fl_sys.map_at(from) == 0) {
        fl_pages_mapped(p, from, zone);
        if (is_of_reserve(p, from)) {
            fl_reserve_advise(from);
        }
    }
    if (fl_sys.advise((struct fl_range){to, from.len}, FL_ADVICE_FORK) == -ENOMEM) {
        /* A handler forked since, and here goes the child on, without it. */
        fl_pages_commit_absent(p, (struct fl_range){to, from.len}, zone);
    }
    if (p->huge &&
        fl_holes_is_split(&p->holes, from.base)) { /* as a block is that has such pages */
        (void)fl_sys.advise((struct fl_range){to, from.len}, FL_ADVICE_HUGE);
    }
    if (is_of_reserve(p, from)) {
        (void)fl_sys.advise((struct fl_range){to, from.len}, FL_ADVICE_DUMP);
    }
    p->move.remaps++;
    fl_assert(p->move.remaps <= REMAPS_MOST);
    return from.len;
}

static size_t count(struct fl_pages *p, size_t moved)
{
    __atomic_fetch_add(&p->stats->move_bytes, moved, __ATOMIC_RELAXED);
    return moved;
}

size_t fl_move_pages(struct fl_pages *p, struct fl_move *m, struct fl_range from, uintptr_t to)
{
    fl_assert(from.len != 0 && (from.base | from.len | to) % fl_page.base == 0);
    fl_assert(to >= m->to.base && to + from.len <= fl_range_end(m->to));
    uint64_t from_ns = fl_timeline_now();
    size_t moved =
        m->method == FL_METHOD_MOVE ? by_uffd(m, from, to) : by_remap(p, from, to, m->zone);
    fl_assert(moved <= from.len);

    fl_timeline_span(FL_TIMELINE_MOVE, from_ns, moved);
    return count(p, moved);
}

bool fl_move_may_map(const struct fl_pages *p, size_t len)
{
    return !fl_sys_is_confined() || (len >= libc_maps_from && !p->window->reserved);
}

size_t fl_move_by_map(struct fl_pages *p, struct fl_range from, uintptr_t to, unsigned zone)
{
    fl_busy_begin();
    fl_lock_acquire(&p->move.lock);
    size_t moved = by_remap(p, from, to, zone);
    fl_lock_release(&p->move.lock);
    fl_busy_end();
    return count(p, moved);
}

/* Of `part` the first huge pages in which something is: {its end, 0} where none is. Where that is
 * unknown, all of it. */
static void narrow_to_touched(struct fl_range *part)
{
    struct fl_range found;
    int n = fl_sys.touched(*part, &found, 1);

    if (n > 0) {
        uintptr_t end = fl_align_up(fl_range_end(found), fl_page.huge);
        part->base = fl_align_down(found.base, fl_page.huge);
        part->len = end - part->base;
    } else if (n == 0) {
        *part = (struct fl_range){fl_range_end(*part), 0};
    }
}

size_t fl_move_hollow(struct fl_pages *p, struct fl_move *m, struct fl_range from, uintptr_t to)
{
    if (m->method != FL_METHOD_MOVE) { /* the map moves, whatever is behind it */
        return fl_move_pages(p, m, from, to);
    }
    uintptr_t at = from.base, end = fl_range_end(from);
    for (size_t n, len = 1; len != 0 && at < end; at += n) {
        struct fl_range part = {at, end - at};
        narrow_to_touched(&part);
        fl_assert(part.base >= at && fl_range_end(part) <= end);
        at = part.base;
        n = part.len != 0 ? fl_move_pages(p, m, part, to + (at - from.base)) : 0;
        len = n == part.len ? n : 0;
    }
    return at - from.base;
}

/* Moves one base page between two that no other thread has. */
static int try_a_move(struct fl_pages *p, struct fl_range two)
{
    struct fl_range to = {two.base, fl_page.base};
    char *from = (char *)two.base + fl_page.base; /* NOLINT(performance-no-int-to-ptr) */
    struct fl_move m;

    fl_assert(two.len == 2 * fl_page.base);
    *(volatile char *)from = 1;
    if (!begin_by_method(p, &m, to, 0)) {
        return -EAGAIN;
    }
    bool tried = m.method == FL_METHOD_MOVE; /* else it fell at the begin */
    size_t moved = tried ? by_uffd(&m, (struct fl_range){(uintptr_t)from, fl_page.base}, to.base)
                         : fl_page.base;
    fl_move_end(p, &m);
    return moved == fl_page.base ? 0 : -EIO;
}

void fl_move_probe(struct fl_pages *p)
{
    /* Other threads may move pages meanwhile: by the best method, until they see what it is
     * worth. */
    struct fl_range two = p->move.trial;

    fl_assert(!fl_lock_is_held(FL_RANK_REGION, FL_SHARDS));
    if (atomic_load_explicit(&p->move.method, memory_order_relaxed) != FL_METHOD_MOVE ||
        fl_vspace_commit(p->window, two, false) != 0) {
        return;
    }
    /* Not to be had now (descriptors, memory) is no answer. */
    if (try_a_move(p, two) == -EIO &&
        atomic_load_explicit(&p->move.method, memory_order_relaxed) == FL_METHOD_MOVE) {
        atomic_store_explicit(&p->move.method, method_below(p), memory_order_relaxed);
        atomic_store_explicit(&p->move.refusal, -EIO, memory_order_relaxed);
    }
    (void)fl_vspace_decommit(p->window, two);
}

void fl_move_prove_later(struct fl_pages *p)
{
    atomic_store(&p->move.unproven, true);
}

void fl_move_prove(struct fl_pages *p)
{
    if (FL_UNLIKELY(atomic_load_explicit(&p->move.unproven, memory_order_relaxed)) &&
        !fl_sys_is_confined() && atomic_exchange(&p->move.unproven, false)) {
        fl_move_probe(p);
    }
}
