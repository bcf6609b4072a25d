/* Steps: what one iteration of the program's loop asks for, where it could all lie, and serving the
 * next one from there. README.md says what is where.
 *
 * A plan is a hint: what a request gets is decided by the claim on the granules' bits, so a plan
 * that is wrong, stale or torn costs memory and never a byte.
 * Left to others: where memory comes from (region/), which requests come here (alloc/), when to
 * begin (runtime/). Sizes and offsets are bytes, times are any clock that orders events. */
#ifndef FL_PLAN_PLAN_H
#define FL_PLAN_PLAN_H

#include "pack/pack.h"
#include "region/region.h"

/* ---- merge ---- */

/* Blocks of one zone lie side by side, at the layout's bottom; twice, for even and odd steps. */
enum { FL_ZONE_INPUT = 1, FL_PLAN_ZONES = 4 };

enum { FL_GRANULE_SHIFT = 16, FL_GRANULE = 1 << FL_GRANULE_SHIFT }; /* bytes */

#define FL_LIFE_NEVER UINT64_MAX
#define FL_LIFE_ANY_NODE UINT8_MAX

enum { FL_MERGE_STEPS = 8 }; /* at most: README.md, Constants */
/* The largest of each size may be so many times what one step holds at once: where memory moves,
 * that is addresses alone. */
enum { FL_ENVELOPE = 2 };
/* A step of which a larger part is not as it was known is a bad one. */
enum { FL_BAD_PART = 20 };
/* So many requests are looked ahead for where steps go on alike, after one more or one less. */
enum { FL_AHEAD = 8 };

/* A request of a recorded step. */
struct fl_life {
    uint64_t size;  /* bytes, whole base pages; below 2^47 */
    uint64_t asked; /* the same, before realloc made it longer in place */
    uint64_t birth; /* within the step */
    /* Past the step's end: in the next one. FL_LIFE_NEVER: not freed while this step and the next
     * were watched. */
    uint64_t death;
    uint64_t align; /* a power of two; 0: any */
    uint32_t zone;  /* that it was marked with; 0: none */
    uint8_t node;   /* where its memory was taken; FL_LIFE_ANY_NODE: several, or it is not known */
};

/* A step as it was recorded: lives in the order of birth; [begin, end) by the same clock, which
 * goes on from step to step. */
struct fl_lives {
    const struct fl_life *life;
    size_t n;
    uint64_t begin, end;
    uint64_t hash; /* of the sizes, in order */
};

/* The first three are planned. */
enum fl_slot_kind {
    FL_SLOT_PLANNED,
    /* freed in the next step, before it is asked for again: one place, for all of the step */
    FL_SLOT_SPANS_STEPS,
    FL_SLOT_DOUBLE_BUFFERED, /* likewise, after it is asked for again: two places, in turn */
    /* survives, is aligned to more than a granule, or is of a size that changes on its own where
     * memory is held for the largest */
    FL_SLOT_KEPT,
};

struct fl_slot {
    uint64_t size;         /* the largest seen */
    uint64_t least, most;  /* that were asked for */
    uint64_t align;        /* the largest */
    uint64_t birth, death; /* counted in births of the newest step: 0 .. lives */
    /* From the packer, FL_PACK_NONE until then; the second for FL_SLOT_DOUBLE_BUFFERED. */
    uint64_t offset[2];
    enum fl_slot_kind kind;
    uint32_t zone; /* at most FL_PLAN_ZONES; not 0, and planned: FL_SLOT_DOUBLE_BUFFERED */
};

static inline bool fl_slot_is_planned(const struct fl_slot *s)
{
    return s->kind != FL_SLOT_KEPT;
}

/* Slots for the step that comes next, of 1 to FL_MERGE_STEPS recorded ones, the newest first: one
 * for each life of the newest, in their order. Two planned slots that lived at once in any of the
 * steps do so in the result. Requests are matched by their order, some may be missing or too many.
 * A step of which more than a twentieth do not match is not used. Where all sizes at their largest
 * exceed the envelope, those that vary are not planned.
 *   largest   bytes: the most that any one step held at once, with what lives on from a step like
 *             it; what is never freed left out.
 *   scratch   fl_merge_scratch(lives of the newest step, nsteps) bytes.
 * Returns 0; -EAGAIN: more than half of the older steps would be left out; -ENOMEM: the scratch is
 * too small.
 * Threads: any. Never allocates. Cost: 0.1 us a life and step. */
int fl_merge(const struct fl_lives *steps, size_t nsteps, struct fl_slot *slot, uint64_t *largest,
             void *scratch, size_t scratch_len);
size_t fl_merge_scratch(size_t n, size_t nsteps);
/* What is planned of those that have a zone has two places. What has two, or spans steps, lives for
 * the whole step. */
void fl_merge_zones(struct fl_slot *slot, size_t n);
/* Sizes are rounded up and aligned to `granule` bytes; from `huge_from` bytes on to `huge`. */
struct fl_merge_unit {
    uint64_t granule, huge_from, huge;
};
/* The planned slots as buffers, with the slots' offsets. `back` says which slot and which offset
 * each is for: 2 * slot + (0 or 1). The first `free` have no zone; those of zones follow in the
 * order (zone, parity). `buffer` and `back` have room for twice the slots. */
struct fl_merge_buffers {
    struct fl_pack_buffer *buffer;
    uint32_t *back;
    size_t n, free;
};
void fl_merge_buffers(const struct fl_slot *slot, size_t n, struct fl_merge_unit unit,
                      struct fl_merge_buffers *out);

/* ---- steps of the running program ---- */

struct fl_step_context;

struct fl_plan_config {
    const char *trace; /* folder that recorded steps are written to; NULL: they are not */
    /* Recorded are the steps after `start` of a loop. They are planned when more than `stable` in a
     * row repeated the one before; or, as they vary, when more than `max` were recorded without
     * that. */
    unsigned start, stable, max;
    _Atomic bool on;          /* steps that the program declares are learned */
    bool background;          /* there is a worker */
    _Atomic uint64_t tick_ns; /* between two looks at what is idle; 0: nothing goes back for that */
    /* Has fl_plan_thread_ends called when the calling thread ends; may allocate. */
    void (*watch_thread)(void);
};

/* What the calling thread's context wants of each of its large requests; 0 for a thread without
 * one. The thread alone. */
enum fl_plan_wants {
    FL_PLAN_REPLAY = 1, /* to serve it: fl_plan_take */
    FL_PLAN_WATCH = 2,  /* to know of it: fl_plan_saw */
    FL_PLAN_SAMPLE = 4, /* not of a context's, but of all threads' where there is a profile */
};
extern _Thread_local unsigned fl_plan_wants;
/* NULL: nothing, or a handler has interrupted the thread's request. Else fl_plan_take_next serves
 * what comes as planned, and fl_plan_wants says what to do with the rest. */
extern _Thread_local struct fl_cursor *fl_plan_cursor;
/* There is something for the worker to do: the thread that sees it calls. */
extern _Atomic bool fl_plan_calls;

/* What each thread's requests want, with a context or without: FL_PLAN_SAMPLE, or 0. Constant after
 * boot. */
extern FL_HIDDEN unsigned fl_plan_always;
/* The calling thread makes its first request. */
void fl_plan_thread_begins(void);

/* Before any other function here.  Context: boot only. */
void fl_plan_start(struct fl_region *r, const struct fl_plan_config *c);
void fl_plan_set_tick(uint64_t tick_ns);
/* Whether steps begin from now on. One that has begun ends as it would have, and what plans hold
 * goes back by its age.  Threads: any. */
void fl_plan_set_on(bool on);

/* A request of the step, in its order. Constant. */
struct fl_plan_entry {
    uint64_t least, most; /* bytes of a request that fits; equal where the size never changed */
    uint64_t room;        /* bytes that realloc may make it long in place */
    uint64_t before;      /* bytes of all entries before it whose size has a bound */
    /* In even and odd steps: of its granules' bits, if it has one size and they are in one word;
     * else 0. Of the bitmap, the first word that has some. The first granule, or FL_ENTRY_NONE. */
    uint64_t mask[2];
    uint32_t word[2], granule[2];
};
_Static_assert(sizeof(struct fl_plan_entry) == FL_CACHE_LINE, "a request reads one line");

/* What a request that comes as planned needs to know. */
struct fl_cursor {
    const struct fl_plan_entry *next;
    /* Of the arena: descriptors by granule; a bit each for what is claimed, and what is absent. */
    struct fl_extent *block;
    _Atomic uint64_t *claimed, *absent;
    size_t parity;
};

/* All bits of `mask`, none of which is taken; false: one is, and nothing changed. */
static FL_INLINE bool fl_bits_take(_Atomic uint64_t *word, uint64_t mask)
{
    uint64_t had = atomic_load_explicit(word, memory_order_relaxed);

    fl_assert(mask != 0);
    do {
        if (FL_UNLIKELY((had & mask) != 0)) {
            return false;
        }
        /* acquire: pairs with fl_bits_give, what the last owner did comes before what the next one
         * does */
    } while (FL_UNLIKELY(!atomic_compare_exchange_weak_explicit(
        word, &had, had | mask, memory_order_acquire, memory_order_relaxed)));
    return true;
}

/* release, and sequentially consistent: comes before the look at `draining` that follows a free */
static inline void fl_bits_give(_Atomic uint64_t *word, uint64_t mask)
{
    uint64_t had = atomic_fetch_and(word, ~mask);

    fl_assert((had & mask) == mask);
    (void)had;
}

/* The granules of `e` are the caller's, and in memory. */
static FL_INLINE struct fl_extent *fl_plan_placed(struct fl_extent *e, size_t len, size_t room,
                                                  uint64_t mask)
{
    fl_assert(fl_extent_state(e) != FL_EXTENT_LIVE);
    fl_assert(e->content == FL_CONTENT_INNER && len != 0 && len <= room);
    e->len = len;
    e->planned.mask = mask;
    e->planned.room = room;
    atomic_store_explicit(&e->state, FL_EXTENT_LIVE, memory_order_relaxed);
    return e;
}

/* A block for a request of `n` bytes, aligned to a granule, when it is what the plan expects next,
 * at most 4 MiB, and all is there that it needs; NULL: others have to see. `t` is fl_plan_cursor,
 * which a handler does not find meanwhile. No lock, no system call. Signals: safe.  Cost: 40
 * instructions. */
static FL_INLINE struct fl_extent *fl_plan_take_next(struct fl_cursor *t, size_t n)
{
    struct fl_extent *e = NULL;

    fl_plan_cursor = NULL;
    atomic_signal_fence(memory_order_seq_cst);
    const struct fl_plan_entry *s = t->next;
    uint64_t mask = s->mask[t->parity];
    if (FL_LIKELY(s->most - n < fl_page.base && mask != 0)) {
        size_t word = s->word[t->parity];
        if (FL_LIKELY(fl_bits_take(&t->claimed[word], mask))) {
            if (FL_LIKELY((atomic_load_explicit(&t->absent[word], memory_order_relaxed) & mask) ==
                          0)) {
                e = fl_plan_placed(&t->block[s->granule[t->parity]], s->most, s->room, mask);
                t->next = s + 1;
            } else {
                fl_bits_give(&t->claimed[word], mask);
            }
        }
    }
    atomic_signal_fence(memory_order_seq_cst);
    fl_plan_cursor = t;
    return e;
}

/* A block of `len` bytes, whole base pages, from the plan; NULL: it has none to give. No lock; no
 * system call, unless its memory is not there yet.  Signals: safe.  Cost: O(1) for what was
 * planned; else a look at a bit a granule of the arena. */
struct fl_extent *fl_plan_take(size_t len, size_t align);
/* The request was served with `e`, by the plan or not. */
void fl_plan_saw(struct fl_extent *e, size_t align);
/* A block is about to be free, or is elsewhere now: its extent had that life and that watcher, and
 * has none any more. Any thread. */
void fl_plan_saw_free(uint32_t watcher, uint32_t life);
/* `e` is FL_CONTENT_INNER and CACHED. Any thread; no lock. Keeps errno.  Signals: safe. */
void fl_plan_give(struct fl_extent *e);
/* realloc of such a block, LIVE, in place: within what the plan has for it. */
bool fl_plan_resize(struct fl_extent *e, size_t len);
/* realloc made `e`, which has a life, e->len bytes long in place. */
void fl_plan_saw_resize(const struct fl_extent *e);
/* The calling thread ends. */
void fl_plan_thread_ends(void);

/* The public calls: see include/faultless/faultless.h. */
int fl_plan_context_new(struct fl_step_context **out);
int fl_plan_context_free(struct fl_step_context *c);
int fl_plan_begin(struct fl_step_context *c);
int fl_plan_end(struct fl_step_context *c);

/* ---- the layout, for other layers ---- */

/* From the next layout on, the requests like that of the block at `p`, LIVE, belong to `zone`, 1 to
 * FL_PLAN_ZONES: each keeps its place for the whole step, in two places in turn, so that what was
 * written in one step may be read while the next one is written, where the arena is held. Sizes
 * that vary are planned at their largest. Marking the block in each step costs no more than once.
 * 0; -EINVAL: no such zone; -ENOENT: the block is of no step that is learned or served, or got its
 * place by chance; -EBUSY: another thread is in that context, or a handler asks. Threads: any for a
 * step that is learned, else the one in the context. No lock.  Cost: O(1) for the newest request;
 * at most all of them. */
int fl_plan_mark_zone(const void *p, uint32_t zone);

/* One for each request of the step, in its order. */
struct fl_plan_place {
    uint64_t offset[2]; /* bytes from the base, in even and odd steps; FL_PACK_NONE: not planned */
    uint64_t size;      /* bytes, at most */
    uint32_t zone;
};

struct fl_plan_layout {
    /* Of this layout in this arena; a pair that comes back has the same again. */
    uint64_t generation;
    uint64_t opening; /* of the arena: what is known of its memory is void when it is another */
    uintptr_t base;   /* of the arena. Aligned to a huge page */
    size_t height;    /* bytes of the layout */
    size_t limit; /* bytes from `base` that planned blocks may lie in; no less. Whole huge pages */
    unsigned parity; /* 0: the step under way, or the last one, has the offsets of even steps */
    size_t places;
    /* By number; 0 is no zone's. len 0: nothing is in it. */
    struct fl_plan_zone {
        uint64_t offset[2], len; /* bytes */
    } zone[FL_PLAN_ZONES + 1];
};

/* The layout that `c` is served from, or will be; NULL: the calling thread's innermost context. The
 * first `room` places go to `place`, which may be NULL. 0; -ENODATA: there is none, or no memory
 * for it yet; -EBUSY: another thread is in it; -EINVAL. Threads: any.  Cost: O(1), and the
 * places. */
int fl_plan_layout(struct fl_step_context *c, struct fl_plan_layout *out,
                   struct fl_plan_place *place, size_t room);
/* The same, and all of the arena up to `limit` is brought into memory, and neither moves nor goes
 * back until fl_plan_let_go: who registers it with a device holds it so. As often as it was
 * held it is let go. A child of fork has nothing of it. -ENOMEM. */
int fl_plan_hold(struct fl_step_context *c, struct fl_plan_layout *out);
/* `opening` as fl_plan_hold said. */
void fl_plan_let_go(uint64_t opening);

/* Jobs of the worker: packs what has been learned; gives back what no step has used for a while. */
uint64_t fl_plan_work(struct fl_region *r);
uint64_t fl_plan_age(struct fl_region *r);
/* Memory is short: what of arenas has no block in it goes back. Bytes. No lock held. */
size_t fl_plan_release(void);
/* Idle huge pages of that zone, of any arena, become the region's, free: `bytes`, if there are as
 * many. Bytes. No lock held. */
size_t fl_plan_lend(unsigned zone, size_t bytes);

/* The lock, for forks: before the region's, and held until that is. In the child it is released
 * first, while no handler may come to it. `whole`: neither it nor the region's had been taken over
 * (see fl_region_fork_child); else nothing of the planner may be used. */
struct fl_lock *fl_plan_fork_word(void);
void fl_plan_fork_child(bool whole);

struct fl_plan_stats {
    uint64_t hits, misses; /* requests in replayed steps, served by the plan or not */
    uint64_t hit_bytes;    /* of the hits, together */
    uint64_t unplaced;     /* of the misses: requests that the step was not known to make */
    uint64_t missed_bytes;
    uint64_t recorded;    /* steps, to learn from */
    uint64_t steps;       /* replayed */
    uint64_t layouts;     /* made */
    uint64_t drops;       /* plans given up */
    uint64_t arenas;      /* open now: each is one extent of the region's */
    uint64_t live_blocks; /* in them, now */
    uint64_t arena_bytes; /* now */
    uint64_t free_bytes;  /* now; held in arenas, and no block has it */
};
void fl_plan_stats_read(struct fl_plan_stats *out);
/* Where these lie, for readers outside the process.  Context: boot. */
void fl_plan_live(struct fl_live_page *p);
/* The addresses of the planner's own memory, and how much of them is mapped. */
struct fl_range fl_plan_memory(size_t *out_mapped);

#endif
