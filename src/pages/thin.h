/* Huge pages that hold next to nothing: found, and given back but for what they hold. No lock held.
 * Included by pages.h. */
#ifndef FL_PAGES_THIN_H
#define FL_PAGES_THIN_H

#include "core/core.h"

struct fl_pages;

/* Base pages of a huge page, up to which little of it is filled. The kernel's own shrinker of huge
 * pages judges by their zeros, too. */
enum { FL_THIN_FEW = 32 };

/* The first huge page in `range`, whole huge pages; 0: none, or nothing can be told. */
uintptr_t fl_thin_next(struct fl_pages *p, struct fl_range range);
/* Which base pages of the huge page hold anything but zeros, FL_THIN_FEW + 1 at most. False:
 * unknown.  Cost: 0.5 ms, 30 us where many do. */
bool fl_thin_filled(struct fl_pages *p, uintptr_t page, struct fl_filled *out);
/* Of a huge page of which little was filled, is what lies before and behind that still zero? What
 * is written from one end to the other has gone on by then. False where that is unknown. */
bool fl_thin_stays(struct fl_pages *p, const struct fl_filled *had);
/* Does a quarter of the huge page hold anything but zeros, by a look at some of it? 50 us. */
bool fl_thin_is_full(struct fl_pages *p, uintptr_t page);
/* Is a quarter or more of the first huge page in `range` that holds anything in memory? `*out`:
 * which it is; 0: none. */
bool fl_thin_is_filling(struct fl_pages *p, struct fl_range range, uintptr_t *out);

enum fl_thin_given {
    FL_THIN_GIVEN,    /* what was zero has gone back */
    FL_THIN_HELD,     /* the huge page is as it was: shared with a child, or a device has it */
    FL_THIN_NOT_BACK, /* it was split, and nothing has gone back: Linux before 6.12 */
};
/* Splits the huge page, by which the kernel takes back what of it is zero: at once, and against
 * whatever is written meanwhile. */
enum fl_thin_given fl_thin_give(struct fl_pages *p, uintptr_t page);

#endif
