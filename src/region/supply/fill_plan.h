/* One request on its way: what is asked for, from where its bytes come (the supply), what the
 * region counts for it, and what is to be done once the lock is released.
 *
 * A request goes this way: plan, hold, claim, map, make under the lock, but for map; then
 * fulfil. Every function here wants the region lock held, unless it says otherwise. */
#ifndef FL_REGION_FILL_PLAN_H
#define FL_REGION_FILL_PLAN_H

#include "region/region.h"

#include <stddef.h>
#include <string.h>

/* Adjacent FREE extents that one request is carved from, at most. */
enum { FL_RUN_EXTENTS = 9 };

/* What was lent may lie where the request, planned anew, takes other addresses and lacks some
 * again. */
enum { FL_LOANS = 4 };

enum {
    FL_FILL_HIDDEN = FL_RUN_EXTENTS,
    FL_FILL_FRESH = (FL_RUN_EXTENTS + 1) / 2,
    FL_FILL_DIRTY = FL_RUN_EXTENTS + 1 + FL_FILL_FRESH
};

/* What a request is carved from, and what that costs. */
struct fl_run {
    struct fl_extent *start; /* first of the adjacent FREE extents; NULL: none found */
    struct fl_range part;    /* that is taken of them */
    size_t want;             /* bytes that the program asks for with it */
    size_t fresh;            /* bytes to fill: EMPTY, in whole huge pages */
    size_t own;              /* of whole huge pages that the run loses: not to be given away */
};

/* What a request asks for, and where it is tried. */
struct fl_region_request {
    struct fl_cache *own; /* the thread's; NULL: none */
    size_t len, align;
    const struct fl_zonelist *zonelist;
    uint32_t site; /* the calling thread's */
    bool zero;
    bool to_stay;  /* it is kept from step to step: what is free elsewhere goes there first */
    bool on_touch; /* base pages, not populated, so that nothing is taken untouched */
    bool any_room; /* it must not be refused for want of room on the zone's node */
    uint8_t zone;
    uint8_t threads;              /* that populate; 0: automatic */
    const struct fl_memory *seen; /* a look that was made for it; NULL: none yet */
};

/* What idle memory in divided extents lends to it. */
struct fl_loan {
    uint8_t tries; /* so often it may be asked for, before the kernel is */
    uint8_t dry;   /* the zone whose divided extents lent nothing last, plus one; 0: none */
    bool came;     /* some was lent, and is free elsewhere */
};

/* The plan: where the bytes come from that nothing is behind yet. What is not said here is the
 * kernel's. */
struct fl_supply {
    enum fl_refusal refusal; /* why there is none */
    size_t from_reserve, from_free;
    size_t wanted; /* bytes to be lent before all is planned anew: fl_region_take_loan_unlocking */
    bool sparse;   /* little of it will be touched: nothing in which a touch brings a huge page */
    bool leaves;   /* what the plan has from the kernel comes when it is touched: see left.c */
    bool leave_holes; /* so do the holes in what was free */
};

/* What the region counts for it, until it is made or given up. */
struct fl_fill_account {
    size_t budgeted; /* bytes for which fl_region_may_populate was asked */
    size_t exempt;   /* bytes that nothing is populated for, or that bring their pages along */
    bool filling;    /* it is one of r->held.filling */
};

/* How far the fresh ranges of a fill plan are filled, in whole huge pages. */
struct fl_filling {
    size_t done[FL_FILL_FRESH];  /* bytes, from the start of each */
    size_t clean[FL_FILL_FRESH]; /* the same, before what came from donors */
    unsigned i;                  /* the range that is being filled; nfresh: no more can be moved */
    bool open;
    struct fl_move move;
    struct fl_range from; /* what moves; here, and not on a stack that may be small */
    size_t moved;         /* bytes of that, from its start */
};

/* What it is carved from, and what has to be done outside the lock before it is handed out. */
struct fl_todo {
    struct fl_range live; /* that is handed out */
    struct fl_range back; /* populated but for holes, which are to come back */
    size_t holes;         /* bytes of those */
    bool hollow;          /* some of what is handed out may never have been touched */
    bool bare;            /* in some of what is held nothing is mapped, see holes.h */
    unsigned nfresh, ndirty, npieces, nhidden;
    struct fl_extent *donors; /* ISOLATED; a chain by `next` */
    struct fl_extent *held;   /* the same, by address: what it is carved from */
    /* The lists, which are not cleared. */
    struct fl_range fresh[FL_FILL_FRESH]; /* to be filled; whole huge pages */
    struct fl_range dirty[FL_FILL_DIRTY]; /* to be cleared, for calloc */
    struct fl_reserve_piece piece[FL_RESERVE_PIECES];
    struct fl_range hidden[FL_FILL_HIDDEN]; /* to be in core dumps again */
};

struct fl_fill_plan {
    struct fl_todo todo; /* first: where it is passed on no register is taken for its address */
    struct fl_region_request asked;
    struct fl_loan loan;
    bool look; /* when it is done the memory is to be looked at: see fl_look_after_take */
    struct fl_supply supply;
    struct fl_fill_account account;
    /* Each is written before it is read. */
    struct fl_zonelist zonelist; /* of the thread's, where it has one */
    struct fl_run run;           /* that is carved */
    struct fl_filling done;      /* while it is carried out */
};

/* A plan that the caller has until it returns it; NULL: all are lent. Threads: any, no lock wanted;
 * signals: safe. */
struct fl_fill_plan *fl_fill_borrow(void);
/* Of a plan that lies elsewhere it does nothing. */
void fl_fill_return(const struct fl_fill_plan *g);
/* In a child of fork(2). */
void fl_fill_fork_child(void);

/* Where all are lent, a plan lies on the caller's stack. */
#define FL_FILL_PLAN()                                                                             \
    (fl_fill_borrow() ?: (struct fl_fill_plan *)__builtin_alloca(sizeof(struct fl_fill_plan)))

static inline bool fl_loan_may_come(const struct fl_loan *l, unsigned zone)
{
    return l->tries != 0 && l->dry != zone + 1;
}

_Static_assert(offsetof(struct fl_todo, hidden) + sizeof((struct fl_todo *)NULL)->hidden ==
                   sizeof(struct fl_todo),
               "lists are the last members");

/* Nothing is planned yet, or any more, for what is asked. A fill plan is 1.7 KiB: to clear, or
 * copy, all of it costs more than the rest of a request. */
static inline void fl_fill_again(struct fl_fill_plan *g)
{
    g->supply = (struct fl_supply){.refusal = FL_REFUSED_NOT};
    g->account = (struct fl_fill_account){.budgeted = 0};
    memset(&g->todo, 0, offsetof(struct fl_todo, fresh));
}

/* Nor is anything asked. */
static inline void fl_fill_begin(struct fl_fill_plan *g)
{
    g->asked = (struct fl_region_request){.own = NULL};
    g->loan = (struct fl_loan){.tries = 0};
    g->look = false;
    fl_fill_again(g);
}

#endif
