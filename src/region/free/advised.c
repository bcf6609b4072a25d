/* What the kernel has been told of an extent: its bits `advised`, as it is cut and merged.
 * A1  No LIVE, CACHED or EMPTY extent has a bit of hiding.
 * A2  Of an extent that says so all whole huge pages are hidden. */
#include "region/free/advised.h"
#include "region/state/counts.h"
#include "region/state/lock.h"

#include <errno.h>

uint8_t fl_advice_of_part(uint8_t advised, struct fl_range part)
{
    return fl_range_inner(part, fl_page.huge).len != 0 ? advised : 0;
}

bool fl_advice_is_sound(const struct fl_extent *e)
{
    uint32_t state = fl_extent_state(e);
    bool may = e->content != FL_CONTENT_EMPTY &&
               (state == FL_EXTENT_FREE || state == FL_EXTENT_ISOLATED) &&
               fl_extent_inner(e).len != 0;
    bool all = (e->advised & FL_ADVISED_ALL_HID) != 0;

    return fl_advice_is_hidden(e) ? may : !all;
}

size_t fl_advice_all_hidden(const struct fl_extent *e)
{
    return (e->advised & FL_ADVISED_ALL_HID) != 0 ? fl_extent_inner(e).len : 0;
}

void fl_advice_note_merged(struct fl_extent *e, size_t hidden)
{
    if (fl_extent_inner(e).len != hidden) {
        e->advised &= (uint8_t)~FL_ADVISED_ALL_HID;
    }
}

void fl_fork_undo(struct fl_region *r, struct fl_extent *e)
{
    fl_assert(fl_region_is_locked(r));
    if (FL_UNLIKELY((e->advised & FL_ADVISED_NO_FORK) != 0)) {
        fl_lock_permit_calls(true);
        int rc = fl_sys.advise(fl_extent_inner(e), FL_ADVICE_FORK);
        /* Under a filter that has come since the mark was made, a new map takes the old one's
         * place. */
        bool anew = rc != 0 && fl_sys_is_confined() &&
                    fl_vspace_decommit(&r->space.window, fl_extent_inner(e)) == 0;
        if (anew || rc == -ENOMEM) { /* a child that no handler told, and merged extents in part */
            fl_pages_commit_absent(&r->pages, fl_extent_inner(e), e->zone);
        }
        fl_lock_permit_calls(false);
        e->advised &= (uint8_t)~FL_ADVISED_NO_FORK;
    }
}
