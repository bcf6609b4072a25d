/* Extents: the descriptors of what the window is divided into. Included by space.h. */
#ifndef FL_SPACE_EXTENT_H
#define FL_SPACE_EXTENT_H

#include "core/core.h"

#include <tree.h>
#include <sys/queue.h>

struct fl_inner;

enum fl_extent_state {
    FL_EXTENT_UNUSED,  /* a descriptor on the spare list */
    FL_EXTENT_FREE,    /* in a tree */
    FL_EXTENT_LIVE,    /* handed out */
    FL_EXTENT_CACHED,  /* freed, and waits: in a slot, in a depot, for who holds a lock */
    FL_EXTENT_FOREIGN, /* addresses where another mapping lies: never ours again */
    /* Being given back, moved or, where it is EMPTY, mapped: no lock is held meanwhile */
    FL_EXTENT_ISOLATED,
    FL_EXTENT_PINNED, /* a device has its pages, or soon: see pin.h */
};

enum fl_content {
    FL_CONTENT_EMPTY,     /* addresses alone: nothing is committed */
    FL_CONTENT_POPULATED, /* counts as in memory; see `left` */
    FL_CONTENT_LAZY,      /* handed out unpopulated: the kernel fills it on touch */
    FL_CONTENT_PART,      /* LIVE: `filled` bytes of it are populated, see inner.c */
    FL_CONTENT_INNER,     /* a block inside a LIVE extent that a plan divides: see inner.c */
} __attribute__((packed));

/* What is known of pages that were handed out before they were in memory, or have gone back: see
 * left.c and pieces.c. Bits. */
enum fl_left {
    /* Some may be absent: never touched, or free and given back since. They read as zero */
    FL_LEFT_HOLLOW = 1,
    FL_LEFT_UNSEEN = 2,  /* LIVE: how much was touched is looked at when it is freed */
    FL_LEFT_SPARSE = 4,  /* LAZY: by base pages, since little of such blocks is touched */
    FL_LEFT_HUGETLB = 8, /* LIVE, CACHED, LAZY: on hugetlb pages, all there; see hugetlb.c */
};

/* What the kernel was told of the whole huge pages of free memory: see advice.c. Bits. */
enum fl_advised {
    FL_ADVISED_NO_FORK = 1, /* of some: not for children of fork */
    FL_ADVISED_NO_DUMP = 2, /* of some: not for core dumps */
    FL_ADVISED_ALL_HID = 4, /* the same, of all */
};

/* What was done to the pages of a LIVE or CACHED extent that its free has to undo: see
 * user_remapped.c. Bits. */
enum fl_remapped {
    FL_REMAPPED_BY_USER = 1, /* by the program, or for it */
    /* By the worker: base pages, since little of it is touched: see thin.c. It moves and grows as
     * others do. */
    FL_REMAPPED_THIN = 2,
};

/* The list of its zone that a FREE extent with memory is on. */
enum fl_queue {
    FL_QUEUE_NONE,
    /* It has whole huge pages: a purge takes them, or a request's pages come from there. */
    FL_QUEUE_AGE,
    FL_QUEUE_PIECES, /* it has none, and some of it is there: it may go back by base pages */
    /* The same, and it was looked at: it goes when others of its huge page do, or at once where
     * memory does. */
    FL_QUEUE_SEEN,
    /* Some of its whole huge pages were split: those are purged before it is anything else. */
    FL_QUEUE_ROUGH,
};

struct fl_extent {
    uintptr_t base; /* page-aligned. Lock: region. Constant while LIVE or CACHED */
    size_t len;     /* bytes, a multiple of the base page. As base, but for resizing in place */
    /* enum fl_extent_state. LIVE -> CACHED by the thread that frees, CACHED -> LIVE by the one that
     * has taken it from a slot or a depot, all others under the lock */
    _Atomic uint32_t state;
    /* When it was freed: the region's epoch. Relaxed: an age, orders nothing */
    _Atomic uint32_t epoch;
    enum fl_content content; /* Lock: region, or the owner while LIVE */
    uint8_t queue;           /* enum fl_queue. Lock: region */
    bool spent;              /* ISOLATED: its pages have moved. The owner */
    bool armed;              /* LIVE and LAZY: first touches go to the worker. The owner */
    uint8_t advised;         /* FREE, ISOLATED: enum fl_advised; PINNED: all of it. Lock: region */
    /* See fl_zone. Lock: region, or the owner while LIVE; others look by fl_extent_zone */
    uint8_t zone;
    /* LIVE or CACHED: enum fl_remapped. Relaxed: the program's call comes before the free by the
     * program's own order; for the worker's see thin.c */
    _Atomic uint8_t user_remapped;
    uint8_t left; /* POPULATED, LAZY: enum fl_left. Lock: region, or the owner while LIVE */
    union {
        /* Chain of a depot's bin, of frees that are left to who holds a lock, or of extents that
         * give their pages to one request. */
        struct fl_extent *next;
        struct fl_inner *inner; /* FL_CONTENT_INNER: of what it is a part. Constant */
    };
    union {
        /* LIVE: which of its thread's requests it is, and whose; 0: not watched. And its sample in
         * the profile; 0: it has none. `noted` 0: none of these. The owner */
        struct {
            uint32_t life;
            uint16_t watcher, sample;
        };
        uint64_t noted;
        size_t holes; /* FREE, ISOLATED: bytes that holes.h has as absent. Lock: region */
    };
    union {
        struct fl_range zeroed; /* FREE: bytes that are known to be zero. Lock: region */
        struct {
            uintptr_t zeroed_base; /* as above */
            size_t filled;         /* PART, or divided: bytes that are populated. Lock: region */
        };
        /* FL_CONTENT_INNER: the divider's. */
        struct {
            uint64_t mask; /* granules of its word of the bitmap */
            size_t room;   /* bytes that the block may grow to where it is */
        } planned;
    };
    _Alignas(FL_CACHE_LINE) RB_ENTRY(fl_extent) by_address; /* Lock: region */
    union {
        struct {
            /* FREE: bytes that the kernel was not told it may take, see pressure.c. Lock: region */
            size_t unreclaimable;
            size_t longest; /* bytes of the longest extent in the subtree below. Lock: region */
        };
        /* With FL_LEFT_HUGETLB. */
        struct {
            uintptr_t copy; /* what a child of the fork under way gets; 0: nothing. That thread */
            bool hidden;    /* from the child of that fork. That thread */
            _Atomic bool changed; /* the program maps it otherwise. Relaxed: as user_remapped */
        } hugetlb;
        /* LIVE or CACHED, with hardening on. The owner */
        struct fl_hardened {
            size_t asked;  /* bytes that the program asked for */
            uint16_t lead; /* bytes from `base` to the block */
            uint8_t align; /* log2 of the alignment asked for, malloc's at least */
            uint8_t guard; /* enum fl_guard, see alloc/harden.c */
        } hardened;
    };
    union {
        TAILQ_ENTRY(fl_extent)
        by_age;                       /* Lock: region. Also of the isolated, and on hugetlb pages */
        SLIST_ENTRY(fl_extent) spare; /* UNUSED. Lock: region */
    };
};
_Static_assert(sizeof(struct fl_extent) == (size_t)2 * FL_CACHE_LINE,
               "a free reads one line, the lists the other");

RB_HEAD(fl_extent_tree, fl_extent);
TAILQ_HEAD(fl_extent_list, fl_extent);
SLIST_HEAD(fl_extent_stack, fl_extent);

static inline struct fl_range fl_extent_range(const struct fl_extent *e)
{
    return (struct fl_range){e->base, e->len};
}

/* Its whole huge pages. */
static inline struct fl_range fl_extent_inner(const struct fl_extent *e)
{
    return fl_range_inner(fl_extent_range(e), fl_page.huge);
}

/* Who holds another shard's lock may look, see region/serve/shard.h. Relaxed: what it could take
 * for an extent of its own zone was of no other since all locks were held. */
static inline unsigned fl_extent_zone(const struct fl_extent *e)
{
    return __atomic_load_n(&e->zone, __ATOMIC_RELAXED);
}
static inline void fl_extent_set_zone(struct fl_extent *e, unsigned zone)
{
    __atomic_store_n(&e->zone, (uint8_t)zone, __ATOMIC_RELAXED);
}

/* As of now: others may change LIVE and CACHED. */
static inline uint32_t fl_extent_state(const struct fl_extent *e)
{
    return atomic_load_explicit(&e->state, memory_order_relaxed);
}
/* Sequentially consistent: comes after the caller's mark on it, which who frees it looks for. */
static inline bool fl_extent_is_live(const struct fl_extent *e)
{
    return atomic_load(&e->state) == FL_EXTENT_LIVE;
}

/* Pages, and some. */
static inline bool fl_extent_is_sound(const struct fl_extent *e)
{
    return e->len != 0 && ((e->base | e->len) & (fl_page.base - 1)) == 0;
}

static inline bool fl_extent_is_populated(const struct fl_extent *e)
{
    return e->content == FL_CONTENT_POPULATED;
}

static inline bool fl_extent_is_pinned(const struct fl_extent *e)
{
    return fl_extent_state(e) == FL_EXTENT_PINNED;
}

static inline bool fl_extent_is_older(const struct fl_extent *e, const struct fl_extent *than)
{
    uint32_t then = atomic_load_explicit(&than->epoch, memory_order_relaxed);

    return (int32_t)(atomic_load_explicit(&e->epoch, memory_order_relaxed) - then) < 0;
}

/* Bytes in whole huge pages that the extent loses when [from, to) is cut out of it. */
static inline size_t fl_extent_huge_of(const struct fl_extent *e, uintptr_t from, uintptr_t to)
{
    fl_assert(from <= to);
    struct fl_range all = fl_extent_range(e);
    uintptr_t first = fl_max(all.base, from), end = fl_min(fl_range_end(all), to);
    struct fl_range head = {all.base, first - all.base}, tail = {end, fl_range_end(all) - end};

    return fl_range_inner(all, fl_page.huge).len - fl_range_inner(head, fl_page.huge).len -
           fl_range_inner(tail, fl_page.huge).len;
}

static inline bool fl_extent_is_user_remapped(const struct fl_extent *e)
{
    return atomic_load_explicit(&e->user_remapped, memory_order_relaxed) != 0;
}

static inline bool fl_extent_is_thin(const struct fl_extent *e)
{
    return (atomic_load_explicit(&e->user_remapped, memory_order_relaxed) & FL_REMAPPED_THIN) != 0;
}

/* Nothing was done to its pages but that. */
static inline bool fl_extent_is_merely_thin(const struct fl_extent *e)
{
    return atomic_load_explicit(&e->user_remapped, memory_order_relaxed) == FL_REMAPPED_THIN;
}

static inline void fl_extent_note_remapped(struct fl_extent *e)
{
    (void)atomic_fetch_or_explicit(&e->user_remapped, FL_REMAPPED_BY_USER, memory_order_relaxed);
}

/* LIVE -> CACHED by exactly one caller; false: it was not LIVE (a double free). Lock-free. */
static inline bool fl_extent_free_once(struct fl_extent *e)
{
    uint32_t live = FL_EXTENT_LIVE;

    /* acq_rel: what the last owner wrote is seen by the next one */
    return atomic_compare_exchange_strong_explicit(&e->state, &live, FL_EXTENT_CACHED,
                                                   memory_order_acq_rel, memory_order_relaxed);
}

/* The same, and its age begins now: `epoch` is the region's. */
static inline bool fl_extent_claim(struct fl_extent *e, uint32_t epoch)
{
    if (!fl_extent_free_once(e)) {
        return false;
    }
    atomic_store_explicit(&e->epoch, epoch, memory_order_relaxed);
    return true;
}

#endif
