/* What of a range is in memory, by the kernel's account, at the moment it is asked. Included by
 * pages.h. */
#ifndef FL_PAGES_RESIDENCY_H
#define FL_PAGES_RESIDENCY_H

#include "core/core.h"

struct fl_pages;

/* Bytes of which each page is looked at; of longer ranges some are: some 6 us. */
#define FL_RESIDENCY_WHOLE ((size_t)32 << 20)

/* Adds bytes of `range`, mapped or not, that are there, and such of which nothing can be told. No
 * lock held.  Cost: 50 us a GiB of huge pages, 3 to 20 ms a GiB of base pages. */
void fl_residency_ask(struct fl_pages *p, struct fl_range range, uint64_t *resident,
                      uint64_t *unknown);
/* Percent of `range` in memory; negative: unknown. No lock held.
 *   sparse  by base pages: the page of zeros, which reads bring, doesn't count. */
int fl_residency_share(struct fl_pages *p, struct fl_range range, bool sparse);
/* Is nearly all of it there? Ends as soon as too much is not: a giant of which little was touched
 * costs next to nothing. */
bool fl_residency_is_dense(struct fl_range range);

#endif
