/* Brings pages into memory before they are touched: by madvise, with help where there is much; in
 * base pages while the kernel would have to compact memory for huge ones. See populate.h. */
#include "pages/pages.h"

#include <errno.h>

/* ns a huge page (the kernel clears one in 0.1 ms; the host of a virtual machine may need 4 to
 * find it), and ns to go without. */
static const uint64_t slow_from = 16000000, backoff_for = 1000000000;
/* ns; a thread that lost its processor for a while is no sign of it */
static const uint64_t slow_least = 250000000;
static const size_t share_from = (size_t)128 << 20; /* bytes: below it helpers do not pay */

/* One write a base page: what kernels without MADV_POPULATE_WRITE leave. In the request's own part
 * alone: the rest may be another thread's block by now, which has made it unreadable. It must
 * change nothing: what has moved there is kept. */
static void populate_by_touch(struct fl_range range)
{
    fl_assert((range.base | range.len) % fl_page.base == 0);
    for (uintptr_t addr = range.base; addr < fl_range_end(range); addr += fl_page.base) {
        char none = 0;           /* a page that is not there reads as 0: then 0 is written */
        char *at = (char *)addr; /* NOLINT(performance-no-int-to-ptr) */
        (void)__atomic_compare_exchange_n(at, &none, 0, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    }
}

/* When one call began: by the clock, and by the processor's time that the thread had. */
struct pace {
    uint64_t now, own;
};

static struct pace begin_pace(const struct fl_pages *p)
{
    return (struct pace){fl_sys.now_ns(), p->huge ? fl_sys.own_ns() : 0};
}

/* The kernel compacts memory to make a huge page, in the caller's time: it may take a second for
 * one. Then base pages do for a while, and the worker makes huge pages of them when no thread
 * waits. No sign of it is time that the thread spent without a processor. */
static void note_pace(struct fl_pages *p, size_t len, struct pace began)
{
    uint64_t now = fl_sys.now_ns(), most = fl_max(len / fl_page.huge * slow_from, slow_least);

    if (p->huge && now - began.now > most && fl_sys.own_ns() - began.own > most / 2) {
        atomic_store_explicit(&p->pace.backoff_until, now + backoff_for, memory_order_relaxed);
        __atomic_fetch_add(&p->stats->compactions, 1, __ATOMIC_RELAXED);
        atomic_store_explicit(&p->pace.left_base, true, memory_order_relaxed);
        atomic_store(p->pace.wants_worker, true);
    }
}

bool fl_populate_backs_off(const struct fl_pages *p)
{
    uint64_t until = atomic_load_explicit(&p->pace.backoff_until, memory_order_relaxed);

    return until != 0 && fl_sys.now_ns() < until;
}

int fl_populate_pieces(struct fl_pages *p, struct fl_range range, struct fl_range own, size_t step)
{
    int rc = 0;

    fl_assert(step != 0 && step % fl_page.base == 0);
    for (size_t done = 0; done < range.len && rc == 0; done += step) {
        struct fl_range piece = {range.base + done, fl_min(step, range.len - done)};
        struct pace began = begin_pace(p);
        rc = p->by_touch ? -EINVAL : fl_sys.populate(piece);
        if (rc == -EINVAL || rc == -ENOSYS) {
            populate_by_touch(fl_range_common(piece, own));
            rc = 0;
        }
        note_pace(p, piece.len, began);
    }
    return rc;
}

/* In base pages, yet advised as before: so that the maps stay one, and the worker may collapse
 * what is here. */
static int populate_base_pages(struct fl_pages *p, struct fl_range range, struct fl_range own)
{
    fl_assert(p->huge && fl_range_common(range, own).len <= range.len);
    (void)fl_sys.advise(range, FL_ADVICE_NO_HUGE);
    int rc = fl_populate_pieces(p, range, own, fl_populate_piece);
    (void)fl_sys.advise(range, FL_ADVICE_HUGE);
    return rc;
}

/* In pieces: while one is filled, a call that maps waits for it, and with it each that wants
 * the region lock. */
int fl_populate_by(struct fl_pages *p, struct fl_range range, struct fl_range own, size_t step,
                   unsigned helpers)
{
    int rc = 0;
    size_t done = 0;

    fl_assert(step != 0 && (range.base | range.len) % fl_page.base == 0);
    if (fl_populate_backs_off(p)) {
        return populate_base_pages(p, range, own);
    }
    if (range.len >= share_from && !p->by_touch) {
        struct pace began = begin_pace(p);
        rc = fl_sys.populate_shared(range, helpers);
        note_pace(p, range.len, began);
        if (rc != -EINVAL && rc != -ENOSYS) {
            return rc;
        }
        rc = 0;
    }
    for (; done < range.len && rc == 0 && !fl_populate_backs_off(p); done += step) {
        struct fl_range piece = {range.base + done, fl_min(step, range.len - done)};
        rc = fl_populate_pieces(p, piece, own, step);
    }
    if (done < range.len && rc == 0) {
        rc = populate_base_pages(p, (struct fl_range){range.base + done, range.len - done}, own);
    }
    return rc;
}

int fl_populate(struct fl_pages *p, struct fl_range range, size_t step)
{
    return fl_populate_by(p, range, range, step, FL_POPULATE_HELPERS);
}
