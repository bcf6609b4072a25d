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

/* The calling thread has something out of the tables, and will put it back: an extent apart, pages
 * of the stock, a chunk. A signal handler may fork meanwhile, for no lock is held; then the child
 * must leave the tables as they are, since the interrupted call goes on there too. They nest. */
void fl_unsettled_begin(void);
void fl_unsettled_end(void);
bool fl_unsettled(void);
void fl_unsettled_none(void);

/* At least `n` spare descriptors; -ENOMEM when no more are to be had. */
int fl_extent_reserve(struct fl_region *r, size_t n);
/* Are the descriptors up to that one mapped by now? The program's threads map what the worker may
 * need, too, which maps none. */
bool fl_extent_map(struct fl_region *r, size_t index);
/* Brings those in use into memory, and as many more. Lock: region. */
void fl_extent_populate_ahead(struct fl_region *r);
/* The next `n`, side by side, are the caller's own: not among the spare ones, nor brought into memory.
 * They are mapped. And such a row back: they become spare ones, one by one. Lock: region. */
void fl_extent_skip(struct fl_region *r, size_t n);
void fl_extent_drop_row(struct fl_region *r, struct fl_extent *first, size_t n);
/* A descriptor for [base, base + len), from the reserved ones; in the pagemap, in no tree, state FREE. */
struct fl_extent *fl_extent_new(struct fl_region *r, struct fl_range range, enum fl_content content,
                                unsigned zone);
void fl_extent_drop(struct fl_region *r, struct fl_extent *e);
/* Writes the pagemap after base or len changed. */
void fl_extent_publish(struct fl_region *r, struct fl_extent *e);
/* The same where its end is as it was. */
void fl_extent_publish_base(struct fl_region *r, const struct fl_extent *e);
/* Numbers of pages, from the window's start: the first waypoint of an extent that begins there, and
 * the one after it, in or behind the extent. See extent.c. */
enum { FL_WAYPOINT_PAGES = 32 };
static inline size_t fl_waypoint_first(size_t page)
{
    return fl_align_up(page, FL_WAYPOINT_PAGES);
}
static inline size_t fl_waypoint_next(size_t page)
{
    return page + (page & -page);
}
/* The extent is found from any of its pages in O(log n). Of each that is LIVE, after it was made or
 * became longer. Never of one that is divided: the entries inside are its blocks'. */
void fl_extent_lay_waypoints(struct fl_region *r, const struct fl_extent *e);
/* The extent that begins at `addr`, whatever its state; NULL beyond the last one in the pagemap. */
const struct fl_extent *fl_extent_at(struct fl_region *r, uintptr_t addr);
/* The extent that begins at, or ends at, `addr`, when it is FREE and of that zone; NULL else. */
struct fl_extent *fl_extent_free_at(struct fl_region *r, uintptr_t addr, unsigned zone);
struct fl_extent *fl_extent_free_before(struct fl_region *r, uintptr_t addr, unsigned zone);
/* The extent that `addr` lies in, whatever its state; sure only of a block that is the caller's.
 * NULL: none, or others are changing it. No lock needed.  Cost: O(log n) where there are waypoints,
 * else a walk over the pagemap. */
struct fl_extent *fl_extent_around(struct fl_region *r, uintptr_t addr);
/* The same, or NULL where that would be a walk: of what is in use none is. */
struct fl_extent *fl_extent_in_use_around(struct fl_region *r, uintptr_t addr);
/* Makes the pagemap usable up to the entry of `end`; `ahead`: brings what is new of it into memory.
 * -ENOMEM when the kernel refuses. */
int fl_pagemap_reach(struct fl_region *r, uintptr_t end, bool ahead);
/* Brings the pagemap of that part of the window into memory. No lock needed. */
void fl_pagemap_populate(struct fl_region *r, struct fl_range window);

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

static inline bool fl_extent_is_populated(const struct fl_extent *e)
{
    return e->content == FL_CONTENT_POPULATED;
}

static inline bool fl_extent_is_older(const struct fl_extent *e, const struct fl_extent *than)
{
    uint32_t then = atomic_load_explicit(&than->epoch, memory_order_relaxed);

    return (int32_t)(atomic_load_explicit(&e->epoch, memory_order_relaxed) - then) < 0;
}

static inline struct fl_range fl_extent_range(const struct fl_extent *e)
{
    return (struct fl_range){e->base, e->len};
}

/* The same of a FREE or APART one, less its holes. Lock: region. */
static inline size_t fl_extent_there(const struct fl_extent *e)
{
    return fl_extent_populated(e) - e->holes;
}

/* The huge page that `addr` lies in. */
static inline struct fl_range fl_huge_of(uintptr_t addr)
{
    return (struct fl_range){fl_align_down(addr, fl_page.huge), fl_page.huge};
}

static inline bool fl_extent_is_pinned(const struct fl_extent *e)
{
    return atomic_load_explicit(&e->state, memory_order_relaxed) == FL_EXTENT_PINNED;
}

/* Was it freed `age` ticks of the worker ago, or more? */
static inline bool fl_extent_is_aged(const struct fl_region *r, const struct fl_extent *e,
                                     uint32_t age)
{
    uint32_t now = atomic_load_explicit(&r->epoch, memory_order_relaxed);

    return now - atomic_load_explicit(&e->epoch, memory_order_relaxed) >= age;
}

/* Bytes in whole huge pages that the extent loses when [from, to) is cut out of it. */
static inline size_t fl_extent_huge_of(const struct fl_extent *e, uintptr_t from, uintptr_t to)
{
    struct fl_range all = fl_extent_range(e);
    uintptr_t first = fl_max(all.base, from), end = fl_min(fl_range_end(all), to);
    struct fl_range head = {all.base, first - all.base}, tail = {end, fl_range_end(all) - end};

    return fl_range_inner(all, fl_page.huge).len - fl_range_inner(head, fl_page.huge).len -
           fl_range_inner(tail, fl_page.huge).len;
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
/* The FREE extent of that kind at the lowest address that holds `len` bytes at a multiple of `align`; NULL when none
 * does. Above the base page a fit is only seen with room for any start. Cost: O(log n). */
struct fl_extent *fl_fit_first(struct fl_extent_tree *tree, size_t len, size_t align);

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
/* Makes `part` of the window readable and writable, for that zone. As fl_vspace_commit. */
int fl_zone_commit(struct fl_region *r, struct fl_range part, bool huge, unsigned zone);
void fl_zone_mapped(const struct fl_region *r, struct fl_range part, unsigned zone);

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
/* Clears what of `range`, whole base pages, holds anything; the rest is not brought into memory.
 * Returns bytes cleared. `range` is the caller's alone. Neither the region's lock nor that of looks
 * is held. */
typedef void fl_clear(void *base, size_t len);
size_t fl_left_clear(struct fl_region *r, struct fl_range range, fl_clear *clear);
/* May the calling thread look for that? A guest that shares the program's descriptors may not: held
 * up there, it would hold up the program. */
bool fl_left_may_look(void);
fl_clear fl_left_clear_plainly;

/* Notes that requests needed `bytes` that were in no free extent; calls for the worker when the stock is low. */
void fl_stock_demand(struct fl_region *r, size_t bytes, unsigned zone);
/* g->from_stock bytes, as far as they are there, into the grant; back after the move. */
void fl_stock_take(struct fl_region *r, struct fl_grant *g);
void fl_stock_return(struct fl_region *r, const struct fl_grant *g);
/* Gives chunks that were filled `age` ticks ago back to the kernel. Returns bytes. Releases the lock in between. */
size_t fl_stock_release(struct fl_region *r, uint32_t age);
/* Is there anything to release, now or when it has aged? */
bool fl_stock_is_mapped(const struct fl_region *r);
/* What is mapped of its i-th chunk. */
struct fl_range fl_stock_mapped(const struct fl_region *r, unsigned i);
void fl_stock_fork_child(struct fl_region *r);
/* Mapped for the stock: not for children, nor for core dumps. No lock needed. */
void fl_stock_advise(struct fl_range range);

/* Of an extent that was handled. renew, without the lock or with it: maps anew what it shares with neighbours, unmaps the
 * rest; false: the kernel refuses. settle: then it is FREE, and EMPTY where it can be; or it is nobody's any more. */
bool fl_hands_renew(struct fl_region *r, const struct fl_extent *e);
void fl_hands_settle(struct fl_region *r, struct fl_extent *e, bool renewed);
/* realloc to fewer bytes: its tail goes. No lock held. */
void fl_hands_shrink(struct fl_region *r, struct fl_extent *e, size_t len);

/* After fork(2), in the parent. */
void fl_repair_begin(struct fl_region *r);
/* With config.collapse, else nothing: memory comes that the worker is to make huge. Lock: region. */
void fl_repair_want(struct fl_region *r);
/* Likewise: huge pages into `fresh`, where nothing is yet. A collapse clears what is not there of
 * one, as a fault does. What it refuses is left as it is, but for a base page. No lock held. */
void fl_repair_bring(const struct fl_region *r, struct fl_range fresh);
/* Is all of that huge page there, and half of it the process's own? No lock held. */
bool fl_repair_is_worth_it(struct fl_range huge);
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

/* A batch of moves to `to`, which is mapped, not populated, and the caller's alone. */
struct fl_move {
    struct fl_range to;
    unsigned zone; /* of source and target */
    int fd;
    enum fl_rung rung;
};

/* False: nothing can be moved. No lock held; between begin and end fl_region_busy is true. */
bool fl_move_begin(struct fl_region *r, struct fl_move *m, struct fl_range to, unsigned zone);
/* Moves the whole huge pages `from` to `to`. Returns bytes moved, from its start: less where pages are pinned,
 * shared with a child, or in the way; then part of a huge page may have moved, and the number says so. Where they lay is still
 * mapped, with nothing in it. */
size_t fl_move_pages(struct fl_region *r, struct fl_move *m, struct fl_range from, uintptr_t to);
/* The same of huge pages that may be hollow: where nothing is, nothing comes, and the first touch
 * there brings a huge page. */
size_t fl_move_hollow(struct fl_region *r, struct fl_move *m, struct fl_range from, uintptr_t to);
void fl_move_end(struct fl_region *r, struct fl_move *m);
/* mremap(2) of what is mapped at `from` to `to`, which is mapped too, the caller's alone, and in no reserved span. What was
 * advised comes along. 0 or -errno; then `to` is mapped as before (kernels before 6.17 unmap it and then refuse where
 * `from` is more than one map). */
int fl_move_map(struct fl_region *r, struct fl_range from, uintptr_t to, unsigned zone);
/* realloc in a confined process, where nothing else moves: by_map is as fl_move_pages on the lower
 * rung. may_map: is a block so long that glibc's realloc would call mremap(2) for it, and may maps
 * move? No lock held. */
bool fl_move_may_map(const struct fl_region *r, size_t len);
size_t fl_move_by_map(struct fl_region *r, struct fl_range from, uintptr_t to, unsigned zone);

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

void fl_look_start(struct fl_region *r);
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
