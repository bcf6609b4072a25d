/* Shared by the files of region/ alone. Every function here wants the region lock held, unless it says otherwise. */
#ifndef FL_REGION_INTERNAL_H
#define FL_REGION_INTERNAL_H

#include "region/grant.h"

/* Bytes of the boot area. */
enum { FL_BOOT_BYTES = 32 * FL_KIB };
/* Bytes populated that make a worker worth a thread. */
enum { FL_WORKER_FROM = 16 * FL_MIB };
/* Bytes of the longest extent in a thread cache: a longer one is worth the lock, and gives its pages to others. */
enum { FL_CACHED_MOST = 64 * FL_MIB };
/* Bytes that are smoothed while somebody waits: some 32 unmappings at most. */
enum { FL_SMOOTHED_MOST = 64 * FL_MIB };

/* Lock with the signal guard: see fl_region_busy. Unlock hands deferred frees back first. */
void fl_region_lock(struct fl_region *r);
/* False: another thread forks, and the caller goes elsewhere. */
bool fl_region_lock_unless_forking(struct fl_region *r);
/* The same, or not to be had without sleeping. */
bool fl_region_lock_soon(struct fl_region *r);
void fl_region_unlock(struct fl_region *r);
/* The calling thread is in no other critical section than the one of the region's lock. */
bool fl_region_is_outer(void);

/* Populated bytes, each once. Lock: region. */
static inline size_t fl_region_counted(const struct fl_region *r)
{
    return r->populated_bytes - r->leaving - r->exempt;
}

/* Bytes of it that count as populated: what is EMPTY does so while it is being mapped. */
static inline size_t fl_extent_populated(const struct fl_extent *e)
{
    if (e->content == FL_CONTENT_PART) {
        return e->zeroed.len;
    }
    bool mapped = atomic_load_explicit(&e->state, memory_order_relaxed) == FL_EXTENT_APART &&
                  e->content == FL_CONTENT_EMPTY;
    return mapped || e->content == FL_CONTENT_POPULATED ? e->len : 0;
}

/* The same of a FREE or APART one, less its holes. Lock: region. */
static inline size_t fl_extent_there(const struct fl_extent *e)
{
    return fl_extent_populated(e) - e->holes;
}

/* fl_extent_new, of now. */
static inline struct fl_extent *fl_extent_make(struct fl_region *r, struct fl_range range,
                                               enum fl_content content, unsigned zone)
{
    struct fl_extent *e = fl_extent_new(&r->space, range, content, zone);

    atomic_store_explicit(&e->epoch, atomic_load_explicit(&r->epoch, memory_order_relaxed),
                          memory_order_relaxed);
    return e;
}

/* Was it freed `age` ticks of the worker ago, or more? */
static inline bool fl_extent_is_aged(const struct fl_region *r, const struct fl_extent *e,
                                     uint32_t age)
{
    uint32_t now = atomic_load_explicit(&r->epoch, memory_order_relaxed);

    return now - atomic_load_explicit(&e->epoch, memory_order_relaxed) >= age;
}

/* FREE extents in and out of their tree and their queue. Insert merges with neighbours of its kind
 * and returns what became of `e`. Remove leaves `e` in no tree, state FREE. */
struct fl_extent *fl_fit_insert(struct fl_region *r, struct fl_extent *e);
void fl_fit_remove(struct fl_region *r, struct fl_extent *e);
/* The first `len` bytes of `e` are no part of it any more: nothing of it is absent or hidden. Where
 * they are all of it, it is no more. */
void fl_fit_shorten(struct fl_region *r, struct fl_extent *e, size_t len);
/* As fl_fit_remove of `e`, but for the edges of it that stay, FREE and in no tree yet; NULL: there is none. */
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
/* fl_region_take where there is more to be decided than which free extent it is. */
struct fl_extent *fl_take_long(struct fl_region *r, struct fl_cache *own, size_t len, size_t align,
                               bool zero);

/* The first request makes the window one EMPTY extent. 0; -ENOMEM. */
int fl_take_seed(struct fl_region *r);
/* LIVE, LAZY, not counted yet: at least `len` bytes, in whole huge pages. NULL when addresses or
 * maps do not allow it.
 *   sparse  it may never be touched: its pagemap is not brought into memory. */
struct fl_extent *fl_take_lazy(struct fl_region *r, size_t len, size_t align, unsigned zone,
                               bool sparse);

/* The same by base pages, with FL_LEFT_SPARSE. */
struct fl_extent *fl_take_sparse(struct fl_region *r, size_t len, size_t align, unsigned zone);

/* PART, nothing of it populated, not counted: `len` bytes, whole huge pages. NULL: no addresses. */
struct fl_extent *fl_part_take(struct fl_region *r, size_t len, unsigned zone);
struct fl_part_how {
    bool asked_for; /* only for want of memory is it refused, however much it is */
    uint8_t hands;  /* that populate; 0: automatic */
};
/* fl_inner_fill, of any PART extent. No lock held. */
bool fl_part_fill(struct fl_region *r, struct fl_extent *outer, struct fl_range part,
                  const struct fl_part_how *how);
/* Gives it back; `in` (NULL: nobody) does not divide it any more. No lock held. */
void fl_part_give(struct fl_region *r, struct fl_extent *outer, struct fl_inner *in);

/* fl_region_fork_child: what is PINNED and not for children is addresses with nothing behind, that nobody gets. */
void fl_pin_fork_child(struct fl_region *r);

/* Walks all zones; `z` is declared here, which tidy cannot see. */
/* NOLINTNEXTLINE(bugprone-macro-parentheses) */
#define FL_EACH_ZONE(r, z) for (struct fl_zone *z = (r)->zone; z < (r)->zone + (r)->nzones; z++)

static inline unsigned fl_zone_touch(const struct fl_region *r)
{
    return 2 * r->placing.nodes;
}

/* Does all its memory come from one node? Then it may move within the zone. */
static inline bool fl_zone_moves(const struct fl_region *r, unsigned zone)
{
    return zone < fl_max(r->placing.nodes, 1);
}

/* Whose addresses they are once nothing is behind them. */
static inline unsigned fl_zone_when_empty(const struct fl_region *r, unsigned zone)
{
    return zone >= r->placing.nodes && zone < fl_zone_touch(r) ? fl_zone_touch(r) : zone;
}

/* Where nothing EMPTY of the zone holds `len` bytes at a multiple of `align`: addresses that are nobody's yet. */
void fl_zone_extend(struct fl_region *r, unsigned zone, size_t len, size_t align);
/* A LIVE, LAZY extent comes back: where does it lie? No lock held. */
void fl_zone_find(struct fl_region *r, struct fl_extent *e);
/* Is new memory left to the first touch, but for what is known to be touched? */
bool fl_left_is_usual(const struct fl_region *r);
/* Is what a request for `len` bytes needs from the kernel left to the first touch? */
bool fl_left_wants(const struct fl_region *r, const struct fl_grant *g, size_t len);
/* Were blocks of about that length in memory when they were freed? */
bool fl_left_was_touched(const struct fl_region *r, size_t len);
/* Is a new block of that kind to come by base pages? Lock: region. */
bool fl_left_is_sparse(const struct fl_region *r, size_t len);
/* With it more is asked for than the process can have in memory: not all of that will be touched,
 * and what is touched comes as it does without us. Lock: region. */
bool fl_left_is_beyond(const struct fl_region *r, size_t len);
/* LIVE no more. Lock: region. */
void fl_left_note_gone(struct fl_region *r, const struct fl_extent *e);
/* Holes in what was carved for the grant: left to the touch where they may not be filled
 * (`refusal`) or need not be. Some are left so that one learns by `live` what is touched of such
 * blocks; NULL: not by this one. Lock: region. */
void fl_left_note_holes(struct fl_region *r, struct fl_grant *g, struct fl_extent *live,
                        int refusal);
/* enum fl_left of what is carved for the grant. */
uint8_t fl_left_of(const struct fl_region *r, const struct fl_grant *g);
/* See refill.c. Notes that requests needed `bytes` that were in no free extent; calls for the worker
 * when the reserve is low. */
void fl_refill_demand(struct fl_region *r, size_t bytes, unsigned zone);
/* g->from_stock bytes, as far as they are there, into the grant; back after the move. */
void fl_refill_take(struct fl_region *r, struct fl_grant *g);
void fl_refill_give_back(struct fl_region *r, const struct fl_grant *g);
/* Gives chunks that were filled `age` ticks ago back to the kernel. Returns bytes. Releases the lock in between. */
size_t fl_refill_release(struct fl_region *r, uint32_t age);
void fl_refill_fork_child(struct fl_region *r);

/* Of an extent that was handled. renew, without the lock or with it: maps anew what it shares with neighbours, unmaps the
 * rest; false: the kernel refuses. settle: then it is FREE, and EMPTY where it can be; or it is nobody's any more. */
bool fl_hands_renew(struct fl_region *r, const struct fl_extent *e);
void fl_hands_settle(struct fl_region *r, struct fl_extent *e, bool renewed);
/* realloc to fewer bytes: its tail goes. No lock held. */
void fl_hands_shrink(struct fl_region *r, struct fl_extent *e, size_t len);

/* After fork(2), in the parent. */
void fl_repair_begin(struct fl_region *r);
void fl_rezero_start(struct fl_region *r);
/* A request for `len` zeroed bytes was served. */
void fl_rezero_earn(struct fl_region *r, size_t len);

/* A block is handed out: is it new, and long enough to be worth a look? Lock: region. */
void fl_ahead_watch(struct fl_region *r, struct fl_extent *e);
void fl_ahead_fork_child(struct fl_region *r);

/* Is a request of `len` to be populated by its first touches? */
bool fl_touch_wants(const struct fl_region *r, size_t len);
/* `e` is LIVE and LAZY. disarm: false when it may still be armed. No lock held; both wait for the worker, but not for long. */
void fl_touch_arm(struct fl_region *r, struct fl_extent *e);
bool fl_touch_disarm(struct fl_region *r, struct fl_extent *e);

/* The last whole huge pages of the FREE extent `e`, `most` bytes at most, out of the tree and APART; what is left of it
 * stays FREE. Two descriptors have been reserved. */
struct fl_extent *fl_apart_claim(struct fl_region *r, struct fl_extent *e, size_t most);
/* The same of `part` of it, whole huge pages: a child may find nothing there. */
struct fl_extent *fl_apart_claim_part(struct fl_region *r, struct fl_extent *e,
                                      struct fl_range part);
/* It is the caller's, and on no list. */
void fl_apart_take(struct fl_region *r, struct fl_extent *e);
/* Bytes of memory that is APART. Cost: by their number, which is that of the threads at work. */
size_t fl_apart_bytes(const struct fl_region *r);
/* What is in no list becomes APART. */
void fl_apart_put(struct fl_region *r, struct fl_extent *e);
/* FREE again: EMPTY when its pages are `gone`. */
void fl_apart_return(struct fl_region *r, struct fl_extent *e, bool gone);

/* All extents out of a cache, or out of all, or those older than `age` ticks. Returns how many.
 * Cost: all of all caches: one look for each cache that was filled since the last time; by age: for
 * each there is. */
size_t fl_cache_drain(struct fl_region *r, struct fl_cache *c, uint32_t age);
size_t fl_cache_drain_all(struct fl_region *r, uint32_t age);
/* All out of caches, and some of what waits on shelves. */
size_t fl_cache_drain_some(struct fl_region *r);
/* In a child of fork(2): empties all but `survivor`, for other threads to have. */
void fl_cache_drain_orphans(struct fl_region *r, const struct fl_cache *survivor);

/* Before a FREE extent is used: children of later forks have it again. The worker, which must not hold others up, never does it. */
void fl_fork_undo(struct fl_region *r, struct fl_extent *e);

/* Before `part` is cut out of the FREE extent `e`, which is in its tree, to be used: children have
 * it again, and the grant says what core dumps are to have again. Then `e` says what is still
 * advised of the rest of it. */
void fl_advice_cut(struct fl_region *r, struct fl_extent *e, struct fl_range part,
                   struct fl_grant *g);
/* What is advised of a part of an extent. */
uint8_t fl_advice_of_part(uint8_t advised, struct fl_range part);
/* Bytes in whole huge pages, where all of them are hidden; else 0. note_merged: the sum of that of
 * the two that became `e`. */
size_t fl_advice_all_hidden(const struct fl_extent *e);
void fl_advice_note_merged(struct fl_extent *e, size_t hidden);
/* A1, in checks. */
bool fl_advice_is_sound(const struct fl_extent *e);
/* What the grant says, and an APART extent, is in core dumps again. No lock held. */
void fl_advice_show(const struct fl_grant *g);
void fl_advice_show_apart(const struct fl_extent *e);
/* The extent was shown: the mark goes with the lock held. */
void fl_advice_note_shown(struct fl_extent *e);
/* Hides what was freed `age` ticks ago, `most` extents at most. Releases the lock in between. */
void fl_advice_hide(struct fl_region *r, uint32_t age, unsigned most);

/* Ticks without a worker. is_due: the region's age has gone up, or the last tick left something to
 * do; then tick_alone does it, with no lock held. */
bool fl_tick_is_due(struct fl_region *r);
void fl_region_tick_alone(struct fl_region *r);
/* What others have to age at such ticks. Not in a free, which may come from them. No lock held. */
void fl_region_age_more(struct fl_region *r);
/* Both, where they are due. */
static inline void fl_tick_after(struct fl_region *r, bool tick, bool more)
{
    if (FL_UNLIKELY(tick)) {
        fl_region_tick_alone(r);
    }
    if (FL_UNLIKELY(more)) {
        fl_region_age_more(r);
    }
}

/* After fork: empties the caches of threads that are gone, for others to use. */
void fl_region_adopt_orphans(struct fl_region *r);

/* fl_region_purge until `want` bytes are given back. No lock held. */
size_t fl_region_purge_some(struct fl_region *r, uint32_t age, size_t want);

/* On several nodes, before `len` bytes come into memory in that zone: where more would be held than ever was in use at once, what is free
 * in other zones, for a tick or more, goes back to the kernel. The lock is released meanwhile. */
void fl_region_make_way(struct fl_region *r, size_t len, unsigned zone);
/* The node of that zone has no room for `len` bytes more: what is free, and may lie there, of zones
 * of several nodes and of what programs touched goes back. True: some did. Lock: region; it is
 * released meanwhile. */
bool fl_region_clear_node(struct fl_region *r, size_t len, unsigned zone);

/* What lend does, for a plan that had to ask for it (g->wanted): all is to be planned anew. The lock is
 * released meanwhile, but for a fork. */
void fl_region_take_loan(struct fl_region *r, struct fl_grant *g);
/* What release_more does, where it is plugged in. No lock held. */
size_t fl_region_release_more(struct fl_region *r);

/* Tells the kernel that it may take free memory when it is short. No lock held. */
void fl_region_soften(struct fl_region *r);

/* fl_region_check, with the lock held, once the window is seeded. */
const char *fl_region_check_locked(struct fl_region *r);

/* fl_region_give, with the lock held. */
void fl_region_give_locked(struct fl_region *r, struct fl_extent *e);

/* May `fresh` bytes be populated for a request of `len`? 0, and they are off the budget; -E2BIG when the request is
 * larger than eager_max; -ENOMEM when limit or machine leave too little; -EAGAIN when they leave enough, but half of the
 * whole is in use, so that only what is touched may be taken. The kernel is asked anew when a quarter of what was left
 * the last time has been used up: -EBUSY when that is so and `seen`, the answer, is NULL. */
int fl_region_may_populate(struct fl_region *r, size_t len, size_t fresh,
                           const struct fl_memory *seen);
/* `fresh` bytes that were allowed are not populated after all; and that taken back. */
void fl_region_forgo(struct fl_region *r, size_t fresh);
void fl_region_spend(struct fl_region *r, size_t fresh);

void fl_look_fork_child(struct fl_region *r);
/* Looks at the memory, and notes what is seen. The lock is released meanwhile: all that depends on
 * it is to be decided anew.
 * False: another thread forks, and nothing was seen. */
bool fl_look_leaving_lock(struct fl_region *r, struct fl_memory *out);
/* After a request that wanted a look but did not wait for it; `on_touch` bytes were handed out
 * unpopulated. No lock held. */
void fl_look_after_take(struct fl_region *r, size_t on_touch);

/* More than eight times the machine's memory: refused by take and resize. No lock needed. */
bool fl_region_is_absurd(const struct fl_region *r, size_t len);

/* What a look at the memory says about holding free memory: tight, cache_max, keep. Returns the bytes of free memory
 * that are too many: to be purged when the lock is released. */
size_t fl_region_note_memory(struct fl_region *r, const struct fl_memory *m);
/* Before `len` free bytes are handed out again: while memory is tight the kernel may have taken them, and will have to
 * give them anew. True: it is time to look at the memory, afterwards. */
bool fl_region_note_reuse(struct fl_region *r, size_t len);
/* Before `len` bytes are handed out unpopulated, to be filled on touch: as at a growth the memory
 * is to be looked at, and the next allocator asked for what it holds when that leaves too little.
 * True: it is time to, afterwards. */
bool fl_region_note_touch(struct fl_region *r, size_t len);
/* After `len` bytes came back: looks at the memory if it is time to, and purges what is too much. No lock held. */
void fl_region_look_after(struct fl_region *r, size_t len);
/* The same with the lock held, which is released. */
void fl_region_unlock_and_look(struct fl_region *r, size_t len);

/* The most that was in use, but for what waits on shelves. */
void fl_region_note_peak(struct fl_region *r);
/* A request has been handed so much unpopulated memory; 0: none. Lock: region. */
static inline void fl_region_count_lazy(struct fl_region *r, size_t len)
{
    r->stats.lazy += len != 0;
    r->stats.lazy_bytes += len;
}
/* Statistics after `in_use` bytes more (or fewer) are handed out. */
void fl_region_count_use(struct fl_region *r, int64_t in_use);

#endif
