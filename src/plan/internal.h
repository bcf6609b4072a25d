/* Shared by the files of plan/ alone. */
#ifndef FL_PLAN_INTERNAL_H
#define FL_PLAN_INTERNAL_H

#include "plan/plan.h"

/* Bytes from which on a block begins at a huge page (measured: granules of 64 KiB inflate no training step by more than 0.8 %, those of
 * 2 MiB by up to 35 %). */
enum { FL_HUGE_FROM = 32 * FL_MIB };

/* How many hold `len` bytes. */
static inline size_t fl_granules(size_t len)
{
    return (len + FL_GRANULE - 1) >> FL_GRANULE_SHIFT;
}

/* One bit a granule. Threads: any, no lock; a claim that fails for a part leaves nothing behind. Cost: the words that the
 * range touches. */
struct fl_claims {
    _Atomic uint64_t *word;
    size_t granules;
};

enum { FL_CLAIMS_BITS = 64 }; /* of a word */

/* The bits of `n` granules, where they are in one word; else 0. */
static inline uint64_t fl_claims_mask(size_t first, size_t n)
{
    size_t at = first % FL_CLAIMS_BITS;

    return n - 1 < FL_CLAIMS_BITS - at ? (UINT64_MAX >> (FL_CLAIMS_BITS - n)) << at : 0;
}

bool fl_claims_take(struct fl_claims *c, size_t first, size_t n);
void fl_claims_give(struct fl_claims *c, size_t first, size_t n);
/* Has nobody any of them? */
bool fl_claims_are_free(const struct fl_claims *c, size_t first, size_t n);
/* Where the shortest run of free granules that holds `n` of them at a multiple of `align` has room; SIZE_MAX: none. Only a
 * hint: others claim meanwhile. Cost: all words. */
size_t fl_claims_fit(const struct fl_claims *c, size_t n, size_t align);
/* Is nothing claimed? A hint as well. */
bool fl_claims_none(const struct fl_claims *c);

/* See arena.c. Type-stable: never freed, so that a late look at one is harmless. */
struct fl_arena {
    struct fl_inner inner; /* first: fl_plan_give finds the arena by it */
    struct fl_claims claims;
    struct fl_claims filled; /* a bit a huge page that is in memory. Its owner */
    _Atomic size_t missing;  /* huge pages that are not. Its owner */
    struct fl_claims absent; /* a bit a granule of these. Its owner, or who claimed the granules */
    uintptr_t base;
    size_t words; /* of claims.word */
    _Atomic size_t
        height; /* bytes of addresses; 0: there are none. Owner, or whoever claimed all of it */
    _Atomic size_t limit; /* bytes that may be used. Its owner */
    size_t budget; /* huge pages to be in memory at most, while others of it can move. Its owner */
    size_t hand;   /* the huge page that was looked at last for one to move. Its owner */
    bool lowered;  /* some above the limit may be in memory. Its owner */
    _Atomic bool cold; /* its tables are to come into memory. Lock: plan, to write */
    _Atomic bool draining;
    _Atomic bool
        thinned; /* idle pages of it are claimed for a moment, to leave it. Lock: plan, to write */
    struct fl_arena *next; /* every arena ever made. Lock: plan */
    _Atomic bool used;     /* since the worker looked */
    _Atomic unsigned idle; /* looks at which it was not. The thread that ages it */
    _Atomic unsigned held; /* times: nothing of it moves or goes back. Lock: plan, to write */
    uint32_t opening;      /* which one it is of all that ever were. Lock: plan, or the owner */
    _Atomic bool owned;    /* by a context; else free, or draining. Lock: plan */
    /* See follow.c. */
    _Atomic uint32_t zone; /* whose its memory is. Lock: plan, to write */
    _Atomic uint32_t
        follows; /* the zone that it goes to, plus one; 0: it stays. Its owner calls, the worker ends */
    _Atomic bool stays; /* the kernel moves nothing */
    size_t followed;    /* huge pages that have been looked at, twice over. The worker */
};

/* Takes addresses for `height` bytes and a quarter more; the arena has none. False: not to be had. The owner. */
bool fl_arena_open(struct fl_arena *a, size_t height);
/* What it needs of descriptors and of the pagemap comes into memory, so that its first steps take no fault for that. The worker. */
void fl_arena_warm(struct fl_arena *a);
/* From now on `height` bytes may be used. False: it has not as many. The owner. */
bool fl_arena_raise(struct fl_arena *a, size_t height);
/* No more than `height` bytes of it are used from now on: the memory of the rest is the region's, free, as far as no block is in it. Costs nothing
 * where that is so already. The owner. */
void fl_arena_lower(struct fl_arena *a, size_t height);
/* The huge pages that the granules lie in are in memory, each run of missing ones brought there at once. The owner. */
bool fl_arena_bring(struct fl_arena *a, size_t granule, size_t n);
/* `most` bytes of it are expected to be in use at once: beyond that, and beyond what was needed at once before, what is idle moves to where
 * it is wanted. The owner. */
void fl_arena_expect(struct fl_arena *a, size_t most);
/* Bytes of it in memory. Its owner */
size_t fl_arena_holds(const struct fl_arena *a);
/* fl_claims_fit below the limit. */
size_t fl_arena_fit(const struct fl_arena *a, size_t n, size_t align);
/* A block at `granule`, LIVE, that may grow to `room` bytes; NULL: some of it is somebody's. */
struct fl_extent *fl_arena_take(struct fl_arena *a, size_t granule, size_t len, size_t room);
/* A claim failed: may that be for idle pages that were about to leave it? They have left now. No lock held. */
bool fl_arena_was_thinned(struct fl_arena *a);
/* Closes it if nobody has a block in it: its memory is the region's, free. Any thread; takes the region lock. */
void fl_arena_drop_if_empty(struct fl_arena *a);
/* All huge pages of it in which there is no block are the region's, free; the addresses stay. Bytes. */
size_t fl_arena_trim(struct fl_arena *a);
/* The one or the other. Bytes. */
size_t fl_arena_hand_on(struct fl_arena *a);
/* The same, but the memory goes to the kernel. */
size_t fl_arena_give_up(struct fl_arena *a);

/* Memory of `len` bytes, zero; NULL. Lock: plan. */
void *fl_plan_map(size_t len);
void fl_plan_unmap(uintptr_t p, size_t len);
/* The same, for callers without the lock. */
void *fl_plan_map_locked(size_t len);
void fl_plan_unmap_locked(uintptr_t p, size_t len);

enum { FL_RECORDS = 8, FL_LIVES_MOST = 32768, FL_LAYOUTS = 4, FL_SIGNATURE = 3 };

/* A step as it happens: see record.c. */
struct fl_record {
    struct fl_life *life; /* FL_LIVES_MOST; NULL: not mapped */
    uint32_t n;
    uint32_t first;      /* ordinal of the first request */
    uint64_t begin, end; /* the context's clock */
    uint64_t hash;       /* of the sizes, in order */
    bool full;           /* more requests than there is room for */
    bool closed;         /* ended */
    bool complete; /* and so has the next one: what it left behind has been freed there, or stays */
};

#define FL_SEAT_NONE UINT32_MAX
#define FL_SEAT_GAP (UINT32_MAX - 1) /* wherever there is room in the arena */

/* What is known of the steps that a layout serves. */
struct fl_past {
    uint64_t asked_most;  /* bytes that one of them asked for in planned slots, at most */
    uint64_t asked_then;  /* the same, when the layout was made; 0: it has served none */
    uint64_t asked_least; /* bytes that one of them asked for since */
    uint32_t seen;        /* steps that its sizes are known from, when it was made; 0: unknown */
    uint32_t steps;       /* that it has served since */
    bool headroom;        /* some slot has some */
};

/* Constant once made, but for `past`, and for what `wish` says. */
struct fl_layout {
    size_t bytes; /* of this object, in plan memory */
    uint32_t n;
    uint64_t hash; /* of the record it was made from */
    uint64_t height, bound, horizon;
    uint64_t largest;     /* bytes that any one step held at once */
    struct fl_seat *seat; /* and one more, that nothing fits */
    struct fl_slot *slot; /* what it was made from; size: grown by requests that did not fit */
    bool wish;            /* some slot has grown */
    uint64_t
        needs; /* bytes of memory at once: as many as it is high, unless its sizes belong to different steps */
    struct fl_past past;
    uint32_t period; /* requests and frees of a step; 0: it was read from a file */
    uint8_t failed;  /* times that it was taken up and did not serve for long */
    bool exact;      /* for steps like one that was repeated to the byte */
    uint32_t serial; /* no other has it */
    uint32_t
        first; /* of the one that this one is instead of, with nothing but lower places; else its own */
    struct fl_plan_zone zone[FL_PLAN_ZONES + 1];
};

enum fl_job_state { FL_JOB_NONE, FL_JOB_WANTED, FL_JOB_RUNNING, FL_JOB_DONE };

/* As in fl_plan_stats. */
struct fl_plan_counters {
    _Atomic uint64_t hits, misses, unseated, missed_bytes, steps, layouts, drops;
};

struct fl_step_context {
    /* What each request reads. */
    struct fl_turn turn;           /* first: fl_plan_take_long finds the context by it */
    const struct fl_seat *end;     /* of the layout */
    const struct fl_seat *counted; /* before it, all is in the figures below; see fl_replay_count */
    struct fl_arena *arena;        /* NULL: none */
    struct fl_layout *layout;      /* the one that is served now; NULL: none */
    _Atomic bool inside; /* its thread is at work here: a handler that sees it leaves all alone */
    uint32_t id;         /* its place in fl_plan.context, plus one */
    /* Of the step under way. */
    uint64_t asked, missed; /* bytes */
    uint64_t forgiven;      /* of these: what a change of phase was recognised by */
    uint32_t requests_here; /* in this step, or since the last boundary */
    uint32_t diverged;      /* of these, those that were not where the plan says */
    uint32_t crowded;       /* of these, those whose place was somebody's */
    unsigned crowded_steps; /* in a row in which there were some */
    unsigned in_arena;      /* steps since this one was taken */
    unsigned served;        /* steps in a row, since a plan was taken up */
    unsigned changes;       /* steps in a row that had other sizes than the one before */
    uint32_t varied;        /* requests of a step whose sizes vary; 0: of none so far */
    bool moved;             /* to another arena before */
    /* Steps in a row that began in another zone than the arena's; that zone; when the first of them did, monotonic ns. */
    unsigned away;
    unsigned away_zone;
    uint64_t away_since;
    unsigned journeys; /* times that the arena has followed */
    bool relearn;      /* so many that steps are worth recording again */
    uint64_t recent[FL_SIGNATURE];
    unsigned misses_in_a_row;
    unsigned strange; /* steps in a row that nearly nothing of was known */
    /* Since it was made. */
    uint32_t requests; /* ordinal of the last one */
    uint64_t clock;    /* events */
    uint64_t live;     /* bytes asked for by its thread, less what that thread freed */
    _Atomic uint64_t freed_by_others;
    /* Learning. */
    struct fl_detect *detect; /* NULL: steps are declared, or it rests */
    struct fl_record record[FL_RECORDS];
    unsigned newest; /* record under way */
    bool recording;
    uint32_t begun; /* steps of this loop */
    uint32_t sampled,
        stable; /* recorded since a plan was last made; of these, the last ones in a row that repeated the one before */
    bool detecting; /* `detect` is fed */
    /* Steps of others: how many this context's thread has ended; whose blocks it frees, while its own
     * steps are not found, and how many that one had ended; no other's steps are its own. */
    _Atomic uint32_t ended;
    struct fl_step_context *leader;
    uint32_t followed;
    bool alone;
    /* Of watch.c. */
    bool resting;    /* requests are counted in `rest`, and nothing else is looked at */
    bool warm;       /* without a thread, it has its memory still. Lock: plan */
    uint32_t warmed; /* events, at which the worker was called last for that */
    _Atomic uint32_t
        warms; /* events, after which the detector's memory is to come ahead; 0: none. The worker takes it */
    uint32_t unfound;     /* requests of this watch, since the last step */
    unsigned watches;     /* in a row, in vain: each makes watch and rest longer */
    uint64_t rest;        /* requests or steps until it learns again */
    unsigned drops;       /* in a row: each makes the rest longer */
    uint8_t bad;          /* a bit for each of the last eight steps that missed too much */
    _Atomic uint32_t job; /* enum fl_job_state */
    struct fl_lives lives[FL_RECORDS]; /* the job's input: records, or, with no lives, `grown` */
    unsigned nlives;
    struct fl_layout *grown;
    struct fl_layout *draft; /* what it had grown to when the job was wanted */
    struct fl_layout *made;  /* by the job; NULL: it failed */
    struct fl_layout *known[FL_LAYOUTS];
    struct fl_better *better;                /* a search under way. The worker */
    _Atomic uint32_t better_for;             /* `first` of the layout that it is for; 0: for none */
    _Atomic(struct fl_layout *) better_made; /* what it has found; whoever takes it out has it */
    unsigned settling;      /* steps until what a lower layout leaves is given back */
    bool settles;           /* this is one of them */
    struct fl_layout *last; /* declared: of the step before */
    /* Whose it is. */
    _Atomic int tid;               /* of the thread inside; 0: none */
    uint64_t traced;               /* steps written to FAULTLESS_TRACE */
    bool open;                     /* not freed by the program */
    bool declared;                 /* by the program: its steps are too */
    struct fl_step_context *outer; /* the one this thread was in before */
    struct fl_step_context *of;    /* what it is a member of; NULL: it is the program's */
    _Atomic(struct fl_step_context *)
        next_member;      /* of those of the same context, which is the first. Lock: plan, to add */
    _Atomic int last_tid; /* of the thread that was in it last */
    struct fl_step_context *free_next;
    struct fl_plan_counters stats; /* written by its thread */
};

enum { FL_CONTEXTS = 1024 };

extern struct fl_plan {
    struct fl_lock lock;
    struct fl_region *region;
    struct fl_plan_config config;
    struct fl_step_context *context[FL_CONTEXTS]; /* type-stable. Lock: plan, to add */
    _Atomic uint32_t ncontexts;
    struct fl_step_context *free;      /* those that are warm. Lock: plan */
    struct fl_step_context *free_cold; /* the others. Lock: plan */
    struct fl_arena *arenas;           /* Lock: plan */
    bool trace_failed;
} fl_plan;

extern _Thread_local struct fl_step_context *fl_plan_mine, *fl_plan_default;
extern struct fl_turn fl_plan_no_turn;

/* record.c */
bool fl_record_begin(struct fl_step_context *c);
void fl_record_end(struct fl_step_context *c);
uint64_t fl_record_mix(uint64_t hash, uint64_t size);
void fl_record_drop_all(struct fl_step_context *c);
/* How many records, the newest first, may be learned from; 0: not yet. */
unsigned fl_record_ready(struct fl_step_context *c, struct fl_lives out[static FL_RECORDS]);

/* The request's life, if it is recorded. Any thread. False: it is not. */
bool fl_record_mark(struct fl_step_context *c, uint32_t request, uint32_t zone);

/* watch.c */
/* The thread is watched from here on, its detector in memory as far as it is used at once. False: it cannot be. */
bool fl_watch_begin(struct fl_step_context *c);
/* A step was found, or nothing is known of its steps: it is watched for as long as at first. */
void fl_watch_anew(struct fl_step_context *c);
/* A request was watched, and no step ended with it. */
void fl_watch_count(struct fl_step_context *c);
/* Brings memory of its detector ahead of the stream. The worker. */
void fl_watch_warm(struct fl_step_context *c);
/* A request while its thread rests. False: that is over with this one. A handler may lose one. */
static inline bool fl_watch_rests(struct fl_step_context *c)
{
    uint64_t rest = __atomic_load_n(&c->rest, __ATOMIC_RELAXED);

    __atomic_store_n(&c->rest, rest > 1 ? rest - 1 : rest, __ATOMIC_RELAXED);
    return rest > 1;
}
/* Its thread has ended: the memory of few such contexts is kept. No lock held. */
void fl_watch_leave(struct fl_step_context *c);
/* One without a thread; NULL: there is none. Lock: plan. */
struct fl_step_context *fl_watch_get(void);

/* What the packer is given for a layout, and what it has come to. */
struct fl_packing {
    struct fl_pack_buffer *buffer;
    uint32_t *back;
    size_t n, bytes, backs;
    struct fl_pack_progress progress;
    struct fl_pack_result result;
};

bool fl_packing_open(struct fl_packing *p, const struct fl_layout *l);
void fl_packing_close(struct fl_packing *p);
/* Goes on for so long; 0, 0: see fl_pack_progress. */
int fl_packing_run(struct fl_packing *p, uint64_t cost, uint64_t ns);
/* The layout's height by the offsets that were found; and may one be lower enough for a swap than `height`? */
uint64_t fl_packing_height(const struct fl_packing *p, const struct fl_layout *l);
bool fl_packing_is_worth(const struct fl_packing *p, const struct fl_layout *l, uint64_t height);
void fl_packing_store(const struct fl_packing *p, struct fl_layout *l);

/* better.c */
/* A search for a lower layout than `l`, from where `p` has come to, which is the search's then. The worker. */
void fl_better_begin(struct fl_step_context *c, const struct fl_layout *l, struct fl_packing *p);
/* A part of it. ns until the next; UINT64_MAX: there is none. The worker. */
uint64_t fl_better_work(struct fl_step_context *c);
/* Takes over what it has found. At a step's boundary. */
void fl_better_collect(struct fl_step_context *c);
/* `l` is no more, or will be made anew; NULL: whatever it is. The context's thread. */
void fl_better_forget(struct fl_step_context *c, const struct fl_layout *l);

/* zone.c */
/* The zones of its slots, and what it needs with them; its serial. */
void fl_layout_zones(struct fl_layout *l);

/* replay.c */
void fl_replay_begin(struct fl_step_context *c);
/* Brings the figures up to date: fl_plan_take_next keeps none. */
void fl_replay_count(struct fl_step_context *c);
/* Judges the step. False: the plan is no good. */
bool fl_replay_end(struct fl_step_context *c);
/* The step's first request, which has been served already. */
void fl_replay_skip(struct fl_step_context *c, size_t len);
/* The layout's first requests have been served already: those that it was recognised by. */
void fl_replay_resume(struct fl_step_context *c);
/* What it was recognised by is not held against the step. */
void fl_replay_forgive(struct fl_step_context *c);
/* Blocks that stay are in the way in each step: another arena would do better. */
bool fl_replay_is_crowded(struct fl_step_context *c);
void fl_replay_off(struct fl_step_context *c);
void fl_arena_let_go(struct fl_step_context *c);
/* The layout whose first requests were the last ones; NULL. */
struct fl_layout *fl_replay_recognise(const struct fl_step_context *c);
struct fl_arena *fl_plan_first_arena(void);

/* follow.c */
/* A step is over: has the thread moved for good? False: the arena cannot follow, and another has to take its place. */
bool fl_follow_look(struct fl_step_context *c);
/* The arena was opened. Lock: plan. */
void fl_follow_forget(struct fl_arena *a);
/* Is huge page `page` in memory? */
bool fl_arena_is_filled(const struct fl_arena *a, size_t page);
bool fl_arena_is_open(const struct fl_arena *a);

/* engine.c */
void fl_engine_want(struct fl_step_context *c);
/* Takes over what the job has made. At a step's boundary. */
void fl_engine_collect(struct fl_step_context *c);
/* Its plans are no more. False: somebody is at it still, and will be. */
bool fl_engine_abandon(struct fl_step_context *c);
/* Its requests get their places from the layout, and those whose sizes vary a gap. */
static inline bool fl_slot_is_planned(const struct fl_slot *s)
{
    return s->kind <= FL_SLOT_DOUBLED && s->align <= FL_GRANULE;
}

static inline bool fl_slot_is_served(const struct fl_slot *s)
{
    return s->kind == FL_SLOT_VARIES || fl_slot_is_planned(s);
}

struct fl_layout *fl_layout_new(size_t n);
struct fl_layout *fl_layout_copy(const struct fl_layout *from); /* Lock: plan */
/* Its places and zones anew, from the slots' offsets. */
void fl_layout_spots(struct fl_layout *l);
/* Seats from slots; `grown`: the layout whose slots these were, before some grew. */
void fl_layout_seat(struct fl_layout *l, const struct fl_layout *grown);
void fl_layout_free(struct fl_layout *l);

/* heap.c */
/* A context is made. Lock: plan. */
void fl_heap_start(void);
/* A step of a plan is over. Cost: none, unless the break has moved since. */
void fl_heap_look(void);
/* The worker. */
void fl_heap_work(void);

/* context.c */
/* What the thread has of `c`, that or a member; NULL: its innermost one, or the one of its own that it has been in. NULL: it has none. */
struct fl_step_context *fl_context_of_thread(struct fl_step_context *c);
struct fl_step_context *fl_context_make(bool declared);
void fl_context_unmake(struct fl_step_context *c);
/* The thread is in `c` from here on; a handler never finds wishes without a context. */
void fl_context_enter(struct fl_step_context *c);
/* Has it a layout, whichever is served? */
bool fl_context_knows_any(const struct fl_step_context *c);
void fl_context_begins(struct fl_step_context *c);
void fl_context_over(struct fl_step_context *c);
/* Plans for steps with as many requests of exactly other sizes are of no use. */
void fl_context_note_sizes(struct fl_step_context *c, const struct fl_record *rec);
void fl_context_stop_watching(void);
void fl_context_boundary(struct fl_step_context *c);
void fl_context_give_up(struct fl_step_context *c);
/* Amid a step a known one has begun: its first requests were the last ones. */
void fl_context_restart(struct fl_step_context *c);
/* One more request of a thread whose steps are not known. */
void fl_context_watched(struct fl_step_context *c);
/* The last requests were the first ones of `l`, which we know. */
void fl_context_resume(struct fl_step_context *c, struct fl_layout *l);

/* There is something for the worker to do. */
void fl_plan_call_worker(void);

/* With a signal guard: see fl_region_busy. */
void fl_plan_lock(void);
void fl_plan_unlock(void);

#endif
