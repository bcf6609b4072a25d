/* What one request gets: from where its bytes come (the plan), what it is carved from, and what
 * is to be done for it once the lock is released.
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

/* What a request asks for. */
struct fl_region_request {
    struct fl_cache *own; /* the thread's; NULL: none */
    size_t len, align;
    const struct fl_wish *wish;
    uint32_t site; /* the calling thread's */
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

/* What has to be done, outside the lock, before an extent may be handed out, and with what. */
struct fl_fill_plan {
    /* Wishes of the caller's. */
    bool zero;
    bool to_stay;  /* it is kept from step to step: what is free elsewhere goes there first */
    bool on_touch; /* base pages, not populated, so that nothing is taken untouched */
    bool sparse;   /* little of it will be touched: nothing in which a touch brings a huge page */
    bool leaves;   /* what the plan has from the kernel comes when it is touched: see left.c */
    bool leave_holes; /* so do the holes in what was free */
    /* Times that what is idle in divided extents may be asked for, before the kernel is; some came,
     * and is free elsewhere. */
    uint8_t loans;
    uint8_t dry; /* the zone whose divided extents lent nothing last, plus one; 0: none */
    bool lent;
    bool any_room;                /* it must not be refused for want of room on the zone's node */
    const struct fl_memory *seen; /* a look that was made for it; NULL: none yet */
    bool look; /* after it the memory is to be looked at: see fl_look_after_take */
    uint8_t zone;
    uint8_t threads; /* that populate; 0: automatic */
    /* The plan: where the bytes of `fresh` come from; the rest is the kernel's. */
    size_t from_reserve, from_free;
    size_t
        wanted; /* bytes to be lent before all is planned anew; see fl_region_take_loan_unlocking */
    size_t budgeted; /* bytes for which fl_region_may_populate was asked */
    size_t exempt;   /* bytes that nothing is populated for, or that bring their pages along */
    enum fl_refusal refusal;
    /* What there is to do. */
    bool hollow; /* some of what is handed out may never have been touched */
    bool bare;   /* in some of what is held nothing is mapped, see holes.h */
    struct fl_range live;
    struct fl_range back; /* populated but for holes, which are to come back */
    size_t holes;         /* bytes of those */
    unsigned nfresh, ndirty, npieces, nhidden;
    bool filling;             /* it is one of r->held.filling */
    struct fl_extent *donors; /* ISOLATED; a chain by `next` */
    struct fl_extent *held;   /* the same, by address: what it is carved from */
    /* The last members: fl_fill_begin leaves them. */
    struct fl_region_request asked;
    struct fl_wish wish;                  /* of the thread's, where it has one */
    struct fl_run run;                    /* that is carved */
    struct fl_filling done;               /* while it is carried out */
    struct fl_range fresh[FL_FILL_FRESH]; /* to be filled; whole huge pages */
    struct fl_range dirty[FL_FILL_DIRTY];
    struct fl_reserve_piece piece[FL_RESERVE_PIECES];
    struct fl_range hidden[FL_FILL_HIDDEN]; /* to be in core dumps again */
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

static inline bool fl_fill_may_borrow(const struct fl_fill_plan *g)
{
    return g->loans != 0 && g->dry != g->zone + 1;
}

_Static_assert(offsetof(struct fl_fill_plan, hidden) +
                       sizeof((struct fl_fill_plan *)NULL)->hidden ==
                   sizeof(struct fl_fill_plan),
               "lists are the last members");

/* Nothing is planned yet, and nothing wished for but that. A fill plan is 1.4 KiB: to clear, or
 * copy, all of it costs more than the rest of a request. */
static inline void fl_fill_begin(struct fl_fill_plan *g, bool zero, const struct fl_memory *seen)
{
    memset(g, 0, offsetof(struct fl_fill_plan, asked));
    g->zero = zero;
    g->seen = seen;
}

#endif
