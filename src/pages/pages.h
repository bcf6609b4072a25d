/* Pages: where memory comes from and goes to, by ranges of addresses alone.
 *
 * range       addresses of the owner's; whole base pages, or whole huge pages where it says so.
 *             What they are for is the owner's to know: there is no extent in this folder.
 * huge-page reserve  huge pages that are populated, zero and under no block (reserve.h).
 * move        populated pages go from one range to another without a copy (move.h).
 * populate    pages come into memory before they are touched (populate.h).
 * hole        a base page of a split huge page that has gone back to the kernel (holes.h).
 * collapse    base pages of a split huge page become huge again (collapse.h).
 * clear       zeros are written to what holds anything (clear.h).
 * residency   what is in memory, by the kernel's account (residency.h).
 * thin        a huge page that holds next to nothing but zeros (thin.h).
 * class       where pages come from: numa/placing.h calls it a zone.
 *
 * State: one struct fl_pages in each region. What is marked so is under the owner's lock, which the
 * caller holds where a function says "Lock: owner's"; no function here takes it, and those that
 * make system calls are called without it, unless they say otherwise. */
#ifndef FL_PAGES_PAGES_H
#define FL_PAGES_PAGES_H

#include "core/core.h"
#include "numa/numa.h"
#include "pages/clear.h"
#include "pages/collapse.h"
#include "pages/holes.h"
#include "pages/move.h"
#include "pages/populate.h"
#include "pages/purge.h"
#include "pages/reserve.h"
#include "pages/residency.h"
#include "pages/thin.h"
#include "stats/stats.h"

struct fl_pages {
    /* Constant after the start. */
    struct fl_vspace *window;         /* the addresses that get pages */
    const struct fl_placing *placing; /* the classes; its holder may write it at boot */
    struct fl_region_stats *stats;    /* the owner's: what is done is counted there, relaxed */
    bool huge;                        /* huge pages are advised */
    bool collapse;                    /* with huge: no page fault brings one, see collapse.h */
    bool by_touch;                    /* populate without MADV_POPULATE_WRITE */
    /* Held while a descriptor of a file of the kernel's is open, so that no child of fork gets it;
     * and for looks at the memory. Rank LOOK */
    struct fl_lock asking;
    struct fl_mover move;
    struct fl_pace pace;
    struct fl_holes holes;
    struct fl_reserve reserve;
};

/* Does a page fault, or a population, bring a huge page? */
static inline bool fl_pages_fault_huge(const struct fl_pages *p)
{
    return p->huge && !p->collapse;
}

/* The owner has filled in what is constant. */
void fl_pages_start(struct fl_pages *p);

/* Makes `part` of the window readable and writable, for that class. As fl_vspace_commit. */
int fl_pages_commit(struct fl_pages *p, struct fl_range part, bool huge, unsigned zone);
/* The same of those huge pages of `range` that are not mapped: in a child of fork(2) that no
 * handler told of what it did not get. */
void fl_pages_commit_absent(struct fl_pages *p, struct fl_range range, unsigned zone);
/* `part` was mapped: the kernel is told where its pages are to come from. */
void fl_pages_mapped(const struct fl_pages *p, struct fl_range part, unsigned zone);

/* The huge page that `addr` lies in. */
static inline struct fl_range fl_huge_of(uintptr_t addr)
{
    return (struct fl_range){fl_align_down(addr, fl_page.huge), fl_page.huge};
}

#endif
