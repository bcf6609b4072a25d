/* Addresses become memory of a class. */
#include "pages/pages.h"

void fl_pages_start(struct fl_pages *p)
{
    fl_lock_init(&p->asking, FL_RANK_LOOK);
    fl_lock_init(&p->move.lock, FL_RANK_LEAF);
}

void fl_pages_mapped(const struct fl_pages *p, struct fl_range part, unsigned zone)
{
    if (FL_UNLIKELY(p->placing->nodes != 0)) {
        p->placing->mapped(part, zone);
    }
}

int fl_pages_commit(struct fl_pages *p, struct fl_range part, bool huge, unsigned zone)
{
    int rc = fl_vspace_commit(p->window, part, huge);

    if (rc == 0) {
        fl_pages_mapped(p, part, zone);
    }
    return rc;
}
