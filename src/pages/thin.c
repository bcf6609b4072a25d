/* Huge pages that hold next to nothing. See thin.h.
 *
 * No thread can look at a page for zeros and drop it without a race against who writes to it. The
 * kernel can: where it splits a huge page, from Linux 6.12 on, it puts its page of zeros in the
 * place of each base page that is zero, while nothing is mapped there. Advice for a part of a huge
 * page splits it. Files of the kernel's are open under the lock of looks: see residency.c. Source:
 * mm/migrate.c, try_to_map_unused_to_zeropage; madvise(2), MADV_COLD. */
#include "pages/pages.h"

#include <errno.h>

enum { SAMPLES = 32 }; /* base pages of a huge page that tell whether it is full */

/* One question to the kernel, under the lock of looks. */
struct ask {
    struct fl_range range, part;
    size_t step, bytes;
    unsigned most;
    struct fl_filled filled;
};

static int ask(struct fl_pages *p, struct ask *a, int (*of)(struct ask *a))
{
    int rc = -EAGAIN;

    /* With a table of its own it needs no lock for its descriptors, and no thread waits for it. */
    if (fl_thread == FL_THREAD_APART) {
        return of(a);
    }
    fl_busy_begin();
    if (fl_lock_acquire_unless_forking(&p->asking)) {
        rc = of(a);
        fl_lock_release(&p->asking);
    }
    fl_busy_end();
    return rc;
}

static int huge_of(struct ask *a)
{
    return fl_sys.huge(a->range, &a->part, 1);
}

static int filled_of(struct ask *a)
{
    return fl_sys.filled(a->range, a->step, a->most, &a->filled);
}

static int touched_of(struct ask *a)
{
    return fl_sys.touched(a->range, &a->part, 1);
}

static int bytes_of(struct ask *a)
{
    return fl_sys.present(a->range, &a->bytes);
}

uintptr_t fl_thin_next(struct fl_pages *p, struct fl_range range)
{
    struct ask a = {.range = range};

    fl_assert((range.base | range.len) % fl_page.huge == 0);
    return range.len != 0 && ask(p, &a, huge_of) > 0 ? a.part.base : 0;
}

static bool look(struct fl_pages *p, struct fl_range range, size_t step, unsigned most,
                 struct fl_filled *out)
{
    struct ask a = {.range = range, .step = step, .most = most};
    bool told = ask(p, &a, filled_of) == 0;

    *out = a.filled;
    fl_assert(!told || out->n <= most);
    return told;
}

bool fl_thin_filled(struct fl_pages *p, uintptr_t page, struct fl_filled *out)
{
    return look(p, fl_huge_of(page), fl_page.base, FL_THIN_FEW + 1, out);
}

bool fl_thin_stays(struct fl_pages *p, const struct fl_filled *had)
{
    struct fl_range huge = fl_huge_of(had->first);
    struct fl_range before = {had->first - fl_page.base, fl_page.base};
    struct fl_range behind = {had->last + fl_page.base, fl_page.base};
    struct fl_filled now = {0, 0, 0};

    fl_assert(had->n != 0 && had->first <= had->last && had->last < fl_range_end(huge));
    return (before.base < huge.base || (look(p, before, fl_page.base, 1, &now) && now.n == 0)) &&
           (behind.base == fl_range_end(huge) ||
            (look(p, behind, fl_page.base, 1, &now) && now.n == 0));
}

bool fl_thin_is_full(struct fl_pages *p, uintptr_t page)
{
    struct fl_filled some;

    return !look(p, fl_huge_of(page), fl_page.huge / SAMPLES, SAMPLES / 4, &some) ||
           some.n >= SAMPLES / 4;
}

bool fl_thin_is_filling(struct fl_pages *p, struct fl_range range, uintptr_t *out)
{
    struct ask a = {.range = range};

    *out = 0;
    if (range.len == 0 || ask(p, &a, touched_of) <= 0) {
        return false;
    }
    *out = fl_align_down(a.part.base, fl_page.huge);
    a.range = fl_huge_of(*out);
    return ask(p, &a, bytes_of) == 0 && a.bytes >= fl_page.huge / 4;
}

enum fl_thin_given fl_thin_give(struct fl_pages *p, uintptr_t page)
{
    struct ask a = {.range = fl_huge_of(page)};

    fl_assert(page % fl_page.base == 0);
    fl_purge_split((struct fl_range){page, fl_page.base});
    if (fl_thin_next(p, a.range) != 0) {
        return FL_THIN_HELD;
    }
    return ask(p, &a, bytes_of) == 0 && a.bytes == fl_page.huge ? FL_THIN_NOT_BACK : FL_THIN_GIVEN;
}
