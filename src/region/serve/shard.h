/* Requests and frees by one shard's lock. */
#ifndef FL_REGION_SHARD_H
#define FL_REGION_SHARD_H

#include "region/back/pressure.h"

void fl_shards_start(struct fl_region *r);
/* A request of that length, aligned to base pages, from shard `here`; with one node else from one
 * that is not busy. NULL: to be served otherwise. fl_shards_look_if_due comes after it.  Threads:
 * any; takes one shard's lock at a time. */
struct fl_extent *fl_shard_take(struct fl_region *r, struct fl_cache *own, size_t len, size_t align,
                                unsigned here);
/* Gives the CACHED `e` back. False: that is not so simple. As above. */
bool fl_shard_give(struct fl_region *r, struct fl_extent *e);
/* The same of a chain by `next`: under one shard's lock; what lies elsewhere is left to its own,
 * and all of it where that lock is busy. */
bool fl_shard_give_chain(struct fl_region *r, struct fl_extent *e);

/* After one of these: where enough came back, all are looked at. No lock held. */
static FL_INLINE void fl_shards_look_if_due(struct fl_region *r, struct fl_shards *s)
{
    if (FL_UNLIKELY(atomic_load_explicit(&s->due, memory_order_relaxed))) {
        atomic_store_explicit(&s->due, false, memory_order_relaxed);
        fl_region_look_after(r, 0);
    }
}

/* A request is about to take that lock, and has found it busy: is another shard worth it? No lock
 * of ours is held; all are taken now and then. */
void fl_shards_note_busy(struct fl_region *r);
static FL_INLINE void fl_shard_look(struct fl_region *r, const struct fl_shard *s)
{
    if (FL_UNLIKELY(fl_lock_is_busy(&s->lock))) {
        fl_shards_note_busy(r);
    }
}

/* What was left to the shard, a chain by `next`. Lock: the shard's. */
struct fl_extent *fl_shard_take_left(struct fl_shard *s);
/* Its longest extent, for who looks without a lock. Lock: the shard's. */
void fl_shard_note_longest(struct fl_region *r, struct fl_shard *s);

/* The rest wants all locks.
 * Adds what the shards have done to the region's figures, and takes what was left to them. */
void fl_shards_gather(struct fl_region *r);
/* Before they are released. */
void fl_shards_judge(struct fl_region *r);
/* What was left to them while the fork held their locks waits until it is known what is absent in
 * the child: it must not merge with that. */
void fl_shards_fork_child(struct fl_region *r);
/* Opens one more, of FL_SHARDS at most; its part of the blocks and of what is free comes into its
 * zone bit by bit. With one node only. */
void fl_shards_open_one(struct fl_region *r);
/* With several: one for each of them, if there are as many. */
void fl_shards_open_nodes(struct fl_region *r);
/* One bit more of what fl_shards_open_one shares out, if any is left. */
void fl_shards_share_out(struct fl_region *r);
/* With one node: the shard that short requests of the calling thread are to grow in. */
unsigned fl_shard_here(const struct fl_region *r, const struct fl_cache *own);

#endif
