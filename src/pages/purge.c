/* Pages go back to the kernel. See purge.h.
 *
 * MADV_DONTNEED of a part of a huge page gives nothing back before the kernel splits it, which it
 * does when memory is short; MADV_FREE of one base page of it splits it at once. What a child
 * shared, or a device held, was not split then. */
#include "pages/pages.h"

bool fl_purge_piece(const struct fl_pages *p, struct fl_range part)
{
    if (p->huge) {
        (void)fl_sys.advise(fl_huge_of(part.base), FL_ADVICE_NO_HUGE);
    }
    (void)fl_sys.lazy_free((struct fl_range){part.base, fl_page.base});
    return fl_sys.advise(part, FL_ADVICE_DROP) == 0;
}

void fl_purge_undo(struct fl_range huge)
{
    (void)fl_sys.advise(huge, FL_ADVICE_HUGE);
}

void fl_purge_split(struct fl_range page)
{
    (void)fl_sys.advise(page, FL_ADVICE_SPLIT);
}
