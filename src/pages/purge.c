/* Pages go back to the kernel. See purge.h.
 *
 * MADV_DONTNEED of a part of a huge page gives nothing back before the kernel splits it, which it
 * does when memory is short; MADV_FREE of one base page of it splits it at once. What a child
 * shared, or a device held, was not split then. */
#include "pages/pages.h"

bool fl_purge_piece(const struct fl_pages *p, struct fl_range part)
{
    fl_assert(part.len != 0 && fl_range_common(part, fl_huge_of(part.base)).len == part.len);
    if (p->huge) {
        (void)fl_sys.advise(fl_huge_of(part.base), FL_ADVICE_NO_HUGE);
    }
    (void)fl_sys.lazy_free((struct fl_range){part.base, fl_page.base});
    return fl_sys.advise(part, FL_ADVICE_DROP) == 0;
}

void fl_purge_undo(struct fl_range huge)
{
    fl_assert(huge.base % fl_page.huge == 0 && huge.len == fl_page.huge);
    (void)fl_sys.advise(huge, FL_ADVICE_HUGE);
}

void fl_purge_split(struct fl_range page)
{
    fl_assert(page.base % fl_page.base == 0 && page.len <= fl_page.huge);
    (void)fl_sys.advise(page, FL_ADVICE_SPLIT);
}

/* Of `range`, the first part behind `done` that is bare, or is not; len 0: there is none. */
static struct fl_range next(const struct fl_pages *p, struct fl_range range, uintptr_t done,
                            bool bare)
{
    fl_assert(done >= range.base && done <= fl_range_end(range));
    struct fl_range rest = {done, fl_range_end(range) - done};

    return fl_holes_next_bare(&p->holes, rest, bare);
}

uintptr_t fl_purge_whole(struct fl_pages *p, struct fl_range range)
{
    uintptr_t done = range.base;

    fl_assert((range.base | range.len) % fl_page.base == 0);
    for (struct fl_range part; (part = next(p, range, done, false)).len != 0;) {
        if (fl_vspace_decommit(p->window, part) != 0) {
            return part.base;
        }
        done = fl_range_end(part);
    }
    return fl_range_end(range);
}

void fl_purge_unmap_bare(struct fl_pages *p, struct fl_range range)
{
    uintptr_t done = range.base;

    for (struct fl_range part; (part = next(p, range, done, true)).len != 0;) {
        (void)fl_vspace_decommit(p->window, part);
        done = fl_range_end(part);
    }
}

int fl_purge_map_bare(struct fl_pages *p, struct fl_range range, unsigned zone)
{
    uintptr_t done = range.base;
    int rc = 0;

    fl_assert((range.base | range.len) % fl_page.base == 0 && zone < FL_ZONES);
    for (struct fl_range part; rc == 0 && (part = next(p, range, done, true)).len != 0;) {
        rc = fl_pages_commit(p, part, false, zone);
        done = rc == 0 ? fl_range_end(part) : part.base;
    }
    fl_assert(done >= range.base && done <= fl_range_end(range));
    if (rc != 0) {
        fl_purge_unmap_bare(p, (struct fl_range){range.base, done - range.base});
    }
    return rc;
}

void fl_purge_settle_bare(struct fl_pages *p, struct fl_range range, unsigned zone)
{
    uintptr_t done = range.base;

    fl_purge_unmap_bare(p, range);
    for (struct fl_range part; (part = next(p, range, done, false)).len != 0;) {
        (void)fl_pages_commit(p, part, false, zone); /* -EEXIST: nothing was changed there */
        done = fl_range_end(part);
    }
}
