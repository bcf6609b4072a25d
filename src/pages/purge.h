/* Pages go back to the kernel. No lock held. Included by pages.h. */
#ifndef FL_PAGES_PURGE_H
#define FL_PAGES_PURGE_H

#include "core/core.h"

struct fl_pages;

/* `part` of one huge page goes back by base pages. It is split for that, and stays so: the kernel
 * is told each time not to make it huge again, since the program may have advised otherwise of its
 * block there. False: the kernel refuses. */
bool fl_purge_piece(const struct fl_pages *p, struct fl_range part);
/* The huge page that `piece` lies in may become huge again. */
void fl_purge_undo(struct fl_range huge);
/* Splits the huge page that `page` lies in. */
void fl_purge_split(struct fl_range page);

/* `range`, free memory, is given back with its addresses, but for what holes.h has as bare. Returns
 * how far that went: its end, where the kernel refused nothing. */
uintptr_t fl_purge_whole(struct fl_pages *p, struct fl_range range);
/* What of `range`, free memory, holes.h has as bare is mapped: 0, or fl_vspace_commit's refusal and
 * all of it is bare still. unmap: it is not, after all. */
int fl_purge_map_bare(struct fl_pages *p, struct fl_range range, unsigned zone);
void fl_purge_unmap_bare(struct fl_pages *p, struct fl_range range);
/* `range` is as holes.h has it, where the thread that was about to change that is not there. */
void fl_purge_settle_bare(struct fl_pages *p, struct fl_range range, unsigned zone);

#endif
