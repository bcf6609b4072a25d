/* The window and its extents: who has which base pages, what is populated, what goes back to the
 * kernel.
 *
 * Left to others: which requests come here (alloc/), when to purge (uffd/), which node (numa/).
 * State: struct fl_region, one a process, under its lock (rank REGION), which is one for each shard
 * (shard.h), but for what is marked atomic. Descriptors are out of band and type-stable: once made,
 * their memory stays readable for ever, so a stale pointer to one may be read (never trusted)
 * without the lock.
 *
 * Invariants, checked by fl_region_check:
 * R1  extents tile the window: each ends where the next begins; no address is in two.
 * R2  pagemap[first page] and, below the frontier, pagemap[last page] of an extent name its
 * descriptor; a LIVE one's waypoints too,
 *     but where it is divided (struct fl_inner): there each granule's first page names its block.
 * R3  EMPTY extents begin and end at multiples of the huge page (the window's end included).
 * R4  two neighbours of one zone are never both FREE with memory, nor both FREE and EMPTY: they
 * would have been merged.
 * R5  FREE extents are in the tree of their zone and kind, by address; nothing else is. A zone
 * counts what is in its own.
 * R6  held.populated == sum of len, less what is absent, over all extents that are neither EMPTY
 *     nor LAZY, what PART ones have, and what the reserve holds.
 * R7  FREE extents are in the queue of their kind, or, if they are pieces that were looked at, in
 * that of those or none; H1 to H3 of holes.h hold. */
#ifndef FL_REGION_REGION_H
#define FL_REGION_REGION_H

#include "core/core.h"
#include "numa/numa.h"
#include "pages/pages.h"
#include "region/supply/advice.h"
#include "region/state/budget.h"
#include "region/wait/cache.h"
#include "region/state/config.h"
#include "region/fork.h"
#include "region/state/held.h"
#include "region/special/hugetlb.h"
#include "region/special/inner.h"
#include "region/supply/left.h"
#include "region/supply/look.h"
#include "region/back/pieces.h"
#include "region/special/pin.h"
#include "region/state/pressure.h"
#include "region/supply/refill.h"
#include "region/jobs/repair.h"
#include "region/residency.h"
#include "region/jobs/rest.h"
#include "region/state/shards.h"
#include "region/wait/depot.h"
#include "region/jobs/thin.h"
#include "region/state/tick.h"
#include "region/supply/touch.h"
#include "region/free/zone.h"
#include "space/space.h"
#include "stats/stats.h"

struct fl_region {
    struct fl_space space; /* first: each request and free reads how it begins. Lock: region */
    /* Where what is behind these addresses comes from. Lock: region, but for what says otherwise */
    struct fl_pages pages;
    /* What else each request and free reads: a cache line that is seldom written. */
    _Alignas(
        FL_CACHE_LINE) _Atomic size_t cache_max; /* longest extent that thread caches may hold */
    _Atomic uint32_t epoch; /* ticks so far: of the worker, else of requests and frees */
    _Atomic bool tight;     /* free memory is handed to the kernel to take, and nothing is cached */
    /* In a small memory cgroup: the same, by base pages, and little is cached. See pressure.c */
    _Atomic bool scarce;
    _Atomic bool starved; /* a request found the memory too short: others are to give some back */
    _Atomic bool refits;  /* what the process may use is not what the next allocator was told */
    /* Free bytes that stay however old they are, as the program has said it of the heap; and that
     * all do, which it has locked. Relaxed. */
    _Atomic size_t kept;
    _Atomic bool locked;
    _Atomic bool wants_worker; /* something may age, unwatched: see fl_region_tick */
    struct fl_region_fork fork;
    struct fl_depots depots; /* begins with a line of that kind */
    struct fl_shards shards; /* with the locks */
    struct fl_region_config config;
    struct fl_region_hooks hooks;
    struct fl_settle settle;
    struct fl_zones zones;
    struct fl_extent_list isolated, pinned; /* ISOLATED; PINNED */
    struct fl_caches caches;
    /* Each shard's unlock reads caches.deferred, each holder of all locks writes this. */
    _Alignas(FL_CACHE_LINE) struct fl_held held;
    struct fl_budget budget;
    struct fl_pressure pressure;
    struct fl_history history;
    struct fl_refill refill;
    struct fl_repair repair;
    struct fl_resting resting;
    struct fl_pieces pieces;
    struct fl_hugetlb hugetlb;
    struct fl_thin thin;
    struct fl_touch touch;
    struct fl_look look;
    struct fl_clock clock;
    struct fl_region_stats stats; /* Lock: region */
};

/* Claims the window's addresses: eight times the memory, 4 to 8 TiB, less where that is refused.
 * Maps nothing. Returns 0; -ENOMEM when no window of 64 MiB is to be had.  Context: boot only. */
int fl_region_start(struct fl_region *r, const struct fl_region_config *c);

/* From now on there are zones. Threads: boot only, before the first request. */
void fl_region_divide(struct fl_region *r, const struct fl_placing *p);
/* The zone that a request of `len` bytes by the calling thread would have first; 0 with one
 * node. No lock held.  Cost: 0.4 us with several. */
unsigned fl_zone_first(struct fl_region *r, size_t len);

/* An extent of at least `len` bytes (a multiple of the base page) at a multiple of `align`
 * (power of two, at least the base page), LIVE, populated unless it is new memory that waits for
 * its touch, larger than eager_max, or memory is short; all zero when `zero`. `own`: the calling
 * thread's cache; NULL when it has none. NULL when the window, the descriptors or
 * the memory do not allow it: ask the next allocator. Threads: any; takes the region lock.
 * Signals: see fl_region_busy.  Cost: O(log free extents), and the kernel's clearing for what
 * has to be populated. */
struct fl_extent *fl_region_take(struct fl_region *r, struct fl_cache *own, size_t len,
                                 size_t align, bool zero);

/* The calling thread's last fl_region_take was refused since the nodes that it is bound to have
 * no room: no other allocator may serve it either, for the kernel would kill the process. */
bool fl_region_is_bound(void);

/* Back to the free ones; merges with its neighbours. `e` is CACHED (fl_extent_free_once).
 * Never fails. */
void fl_region_give(struct fl_region *r, struct fl_extent *e);

/* The claimed `e`, which the slots of the thread's cache `c` have displaced, waits in a depot for a
 * request of its length; what is too much there goes back. False: it does not wait. Threads: the
 * owner of `c`. Signals: safe where the region is not closed. No lock is waited for, but the
 * region's where something is too much. */
bool fl_region_keep(struct fl_region *r, struct fl_cache *c, struct fl_extent *e);

/* The pages of the claimed `e` go back to the kernel at once, and a touch of them is a SIGSEGV; its
 * addresses are not handed out until fl_region_give. False: the kernel refuses; nothing changed.
 * Threads: any; takes the region lock. */
bool fl_region_withhold(struct fl_region *r, struct fl_extent *e);

/* Before the LIVE extent `e`, with FL_LEFT_UNSEEN, is freed: notes how much of it was touched. No
 * lock needed; signals: safe.
 * Cost: 10 us. */
void fl_region_note_touched(struct fl_region *r, struct fl_extent *e);

/* mallopt(3) has set a trim threshold of so many bytes, SIZE_MAX: no trimming; mlockall(2) is in
 * force for what is mapped from now on, or no longer. Signals: safe.  Context: early. */
void fl_region_note_kept(struct fl_region *r, size_t bytes);
void fl_region_note_locked(struct fl_region *r, bool locked);
/* Free bytes that no age takes. */
static inline size_t fl_region_kept(const struct fl_region *r)
{
    return atomic_load_explicit(&r->locked, memory_order_relaxed)
               ? SIZE_MAX
               : atomic_load_explicit(&r->kept, memory_order_relaxed);
}

/* The least memory cgroup is a small one, or has little left: see pressure.c. */
static inline bool fl_region_is_scarce(const struct fl_region *r)
{
    return atomic_load_explicit(&r->scarce, memory_order_relaxed);
}

/* Is free memory handed to the kernel to take, and nothing cached? */
static inline bool fl_region_is_tight(const struct fl_region *r)
{
    return atomic_load_explicit(&r->tight, memory_order_relaxed);
}

/* Ticks so far: what is freed now is as old as that. */
static inline uint32_t fl_region_epoch(const struct fl_region *r)
{
    return atomic_load_explicit(&r->epoch, memory_order_relaxed);
}

/* Can pages move at all? */
static inline bool fl_region_moves_pages(const struct fl_region *r)
{
    return atomic_load_explicit(&r->pages.move.method, memory_order_relaxed) != FL_METHOD_NONE;
}

/* Zero in all of the LIVE extent `e`, which has something of enum fl_left. No lock needed; signals:
 * safe. */
void fl_region_clear(struct fl_region *r, struct fl_extent *e);

/* Makes the LIVE extent `e` `len` bytes long without moving it, populated. False: not possible,
 * nothing changed. Shrinking always succeeds. */
bool fl_region_resize(struct fl_region *r, struct fl_extent *e, size_t len);

/* For realloc of a large extent that cannot grow in place: a longer one with its pages, whole
 * huge pages moved and not copied, the edges copied; `e` is gone then. NULL: not possible, or
 * not worth it; nothing changed.  Threads: any. */
struct fl_extent *fl_region_move(struct fl_region *r, struct fl_extent *e, size_t len);

/* Gives whole huge pages of FREE extents back to the kernel, then what is free of others, see
 * pieces.c: what was freed at least `age` ticks ago (0: all, thread caches included). Returns bytes
 * given back. Threads: any; no lock is held during the system calls. */
size_t fl_region_purge(struct fl_region *r, uint32_t age);
/* The same of all that is free, but for `pad` bytes. */
size_t fl_region_trim(struct fl_region *r, size_t pad);

/* The age at which free memory goes back; 0: it does not. Threads: any. */
uint64_t fl_region_decay_ns(struct fl_region *r);
/* The members of those names of r->config, from now on. Threads: any, no lock of ours held.
 * limit: what is free beyond it goes back. */
void fl_region_set_decay(struct fl_region *r, uint64_t tick_ns, bool crowd_goes);
void fl_region_set_limit(struct fl_region *r, size_t limit);
void fl_region_set_eager(struct fl_region *r, size_t eager_max, bool wait_for_touch);

/* For the worker: from now on it serves first touches. */
void fl_region_serve_touches(struct fl_region *r);

/* For the worker: huge pages of the zone's reserve to the armed addresses `to`, whole huge pages,
 * by its own door `fd`. Returns bytes, from the start of `to`; what waits there is woken. */
size_t fl_region_place(struct fl_region *r, int fd, struct fl_range to, unsigned zone);

/* For the worker: where the zone's reserve has nothing, `len` bytes, whole huge pages, are put
 * there, while a thread waits for them. False: it has some, or none is to be had. */
bool fl_region_fill_now(struct fl_region *r, size_t len, unsigned zone);

/* See pages/move.h. */
static inline void fl_region_probe(struct fl_region *r)
{
    fl_move_probe(&r->pages);
}
static inline void fl_region_prove_later(struct fl_region *r)
{
    fl_move_prove_later(&r->pages);
}
static inline void fl_region_prove(struct fl_region *r)
{
    fl_move_prove(&r->pages);
}

/* Memory is short: all that is free goes back at once, whole huge pages. Threads: any, no lock
 * of ours held. */
void fl_region_release(struct fl_region *r);
/* The same with all addresses: nothing stays mapped where free memory lies. Returns bytes. */
size_t fl_region_clear_out(struct fl_region *r);
/* The process's own limits have changed: looks at the memory now, and as often as they ask for.
 * No lock of ours held. */
void fl_region_note_limit(struct fl_region *r);

/* Are maps counted, used or not (RLIMIT_AS, RLIMIT_DATA, overcommit_memory=2)? Some 10 us. */
bool fl_region_counts_maps(struct fl_region *r);

/* Jobs of the worker. Each returns the ns until it wants to run again; UINT64_MAX: not before it
 * is called. Fills the reserve up to what recent requests needed. */
uint64_t fl_region_refill(struct fl_region *r);
/* Long new blocks of which little is touched get base pages. */
uint64_t fl_region_thin(struct fl_region *r);
/* Makes huge pages again that fork(2) split. */
uint64_t fl_region_repair(struct fl_region *r);
/* When no request has come for a while: empties slots and depots, keeps what is free out of core
 * dumps, and gives a crowd's back: rest.c. */
uint64_t fl_region_rest(struct fl_region *r);

/* One tick of the worker's clock, then fl_region_purge(age). False when nothing is left that
 * could age: then the region sets wants_worker at the next free, and the worker may sleep until
 * it is called. */
bool fl_region_tick(struct fl_region *r, uint32_t age);
/* Without a worker requests and frees that come to the region do that work. One that a thread cache
 * served calls this now and then. No lock held.  Cost: a look where there is a worker. */
void fl_region_age_alone(struct fl_region *r);
/* Tells the region whether a worker watches it. Without one, wants_worker is raised once enough
 * is populated. */
void fl_region_set_worker(struct fl_region *r, bool there);

/* What the pagemap names for the page of `addr`, which is anything: to be trusted for nothing,
 * the first descriptor is none. False: the pagemap does not reach so far. Lock-free. */
static FL_INLINE bool fl_region_look(const struct fl_region *r, uintptr_t addr,
                                     struct fl_extent **out)
{
    return fl_space_look(&r->space, addr, out);
}

/* The extent that begins at `addr` and is LIVE; NULL when there is none. `addr` is anything.
 * Lock-free. */
static inline struct fl_extent *fl_region_find(const struct fl_region *r, uintptr_t addr)
{
    struct fl_extent *e;

    if (!fl_region_look(r, addr, &e) || fl_extent_state(e) != FL_EXTENT_LIVE || e->base != addr) {
        return NULL;
    }
    return e;
}

/* The program is about to change how `range`, anything, is mapped: blocks in it come back as new
 * when they are freed. Lock-free; Threads: any.  Signals: safe.  Context: early, and in a child
 * of vfork(2). Cost: O(log n) for each block in it. */
void fl_region_note_remapped(struct fl_region *r, struct fl_range range);
/* The same of what changes no page, nor who may read it: mlock(2), and advice on dumps and on how
 * pages are kept. */
void fl_region_note_flagged(struct fl_region *r, struct fl_range range);

/* The program is about to give the pages of `range`, anything, back to the kernel. Where that
 * ends amid a huge page, the kernel would keep all of it until memory is short: it is split
 * first, and the block comes back as new when it is freed. Threads and the rest as
 * fl_region_note_remapped; errno may change.  Cost: a system call for each end that is amid a
 * huge page. */
void fl_region_note_dropped(struct fl_region *r, struct fl_range range);

/* See fl_is_busy: a signal handler that sees it must not call take, give, resize. */
static inline bool fl_region_busy(void)
{
    return fl_is_busy();
}

/* The same, or another thread forks at this moment: what can go elsewhere does not wait for it. */
bool fl_region_is_closed(const struct fl_region *r);

/* Begin and end of a critical section; they nest. */
static inline void fl_region_enter(void)
{
    fl_busy_begin();
}
static inline void fl_region_leave(void)
{
    fl_busy_end();
}

/* Around fork(2): lock before it, parent after it. Other threads take the locks over when that
 * lasts (sys/lock.c). child: `survivor` is the forking thread's cache, or NULL; false when another
 * thread had taken a lock over, or the calling one forks in a handler that interrupted its own work
 * here, which goes on in the child: then no request may come here any more. */
void fl_region_fork_lock(struct fl_region *r);
void fl_region_fork_parent(struct fl_region *r);
bool fl_region_fork_child(struct fl_region *r, struct fl_cache *survivor);

/* Adds this region's figures, with those of all thread caches, to `out`. */
void fl_region_stats_read(struct fl_region *r, struct fl_stats_values *out);
/* Where these lie, for readers outside the process.  Context: boot. */
void fl_region_live(const struct fl_region *r, struct fl_live_page *p);

/* What is populated on each node; where there is one, none. Bytes.  Cost: a walk over all
 * extents, the lock held. */
void fl_region_nodes_read(struct fl_region *r, struct fl_stats_nodes *out);

/* Invariants R1 to R7 over the whole window; NULL, or the name of the first that does not hold. For
 * tests. */
const char *fl_region_check(struct fl_region *r);

#endif
