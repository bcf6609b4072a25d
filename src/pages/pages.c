/* Addresses become memory of a class. */
#include "pages/pages.h"

#include <errno.h>

void fl_pages_start(struct fl_pages *p)
{
    fl_assert(p->window != NULL && p->stats != NULL && p->placing != NULL);
    fl_lock_init(&p->asking, FL_RANK_LOOK);
    fl_lock_init(&p->move.lock, FL_RANK_LEAF);
}

void fl_pages_mapped(const struct fl_pages *p, struct fl_range part, unsigned zone)
{
    fl_assert(part.len != 0 && zone < FL_ZONES);
    if (FL_UNLIKELY(p->placing->nodes != 0)) {
        p->placing->mapped(part, zone);
    }
}

FL_APART int fl_pages_commit(struct fl_pages *p, struct fl_range part, bool huge, unsigned zone)
{
    fl_assert(part.len != 0 && (part.base | part.len) % fl_page.base == 0);
    int rc = fl_vspace_commit(p->window, part, huge);

    if (rc == 0) {
        fl_pages_mapped(p, part, zone);
    }
    return rc;
}

void fl_pages_commit_absent(struct fl_pages *p, struct fl_range range, unsigned zone)
{
    uintptr_t end = fl_range_end(range);
    int rc = fl_pages_commit(p, range, p->huge, zone);

    for (uintptr_t at = range.base, next; rc == -EEXIST && at < end; at = next) {
        next = fl_min(fl_range_end(fl_huge_of(at)), end);
        fl_assert(next > at && next <= end);
        (void)fl_pages_commit(p, (struct fl_range){at, next - at}, p->huge, zone);
    }
}
