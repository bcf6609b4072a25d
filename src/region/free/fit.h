/* Free extents: merged with their neighbours, in the tree of their kind and in a queue by age.
 * Lock: region. */
#ifndef FL_REGION_FIT_H
#define FL_REGION_FIT_H

#include "region/region.h"

/* FREE extents in and out of their tree and their queue. Insert merges with neighbours of its kind
 * and returns what became of `e`. Remove leaves `e` in no tree, state FREE. */
struct fl_extent *fl_fit_insert(struct fl_region *r, struct fl_extent *e);
void fl_fit_remove(struct fl_region *r, struct fl_extent *e);
/* Blocks that come back together are neighbours often: each run of them is inserted once. `run` is
 * joined so far, and in no tree; NULL: nothing is. Returns what is in none now, `e` or with `e`:
 * the last one is for the caller to insert. */
struct fl_extent *fl_fit_join(struct fl_region *r, struct fl_extent *run, struct fl_extent *e);
/* The FREE `e` is that zone's from here on; merges with its neighbours there, as at insert. */
struct fl_extent *fl_fit_change_zone(struct fl_region *r, struct fl_extent *e, unsigned zone);
/* The first `len` bytes of `e` are no part of it any more: nothing of it is absent or hidden. Where
 * they are all of it, it is no more. */
void fl_fit_shorten(struct fl_region *r, struct fl_extent *e, size_t len);
/* A walk over FREE extents with memory, by zone and address. The lock may be released meanwhile:
 * the walk goes on at `at`, whatever lies there by then. */
struct fl_walk {
    unsigned zone;
    uintptr_t at;
};
/* The extent there, or the next one; NULL: there is none.  Cost: O(log n). */
struct fl_extent *fl_fit_walk(struct fl_region *r, struct fl_walk *w);
/* As fl_fit_remove of `e`, which has been cut: `head` and `tail` are what stays of it in front and
 * behind, FREE and in no tree yet; NULL: there is none. */
void fl_fit_cut(struct fl_region *r, struct fl_extent *e, struct fl_extent *head,
                struct fl_extent *tail);
void fl_fit_start(struct fl_zone *z);
/* The queue that it belongs in; into that, and out of the one it is in. It is FREE and in its
 * tree. */
enum fl_queue fl_fit_queue_of(struct fl_region *r, const struct fl_extent *e);
void fl_fit_enqueue(struct fl_region *r, struct fl_extent *e);
void fl_fit_unqueue(struct fl_region *r, struct fl_extent *e);
/* The piece `e` was looked at: into the queue of those seen, for another look `again`, or into
 * none. look_again: all of those are pieces as before. */
void fl_fit_note_seen(struct fl_region *r, struct fl_extent *e, bool again);
void fl_fit_look_again(struct fl_region *r);

/* For a walk over the window by address, in parts: the extent that `at` lies in, where it usually
 * begins. `out_in`: not NULL where it is divided. NULL: no such address. Lock: region. */
struct fl_extent *fl_region_extent_around(struct fl_region *r, uintptr_t at,
                                          const struct fl_inner **out_in);

#endif
