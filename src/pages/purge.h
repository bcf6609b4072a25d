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

#endif
