/* What one request gets: from where its bytes come (the plan), what it is carved from, and what is to
 * be done for it once the lock is released.
 *
 * A request goes this way: plan, hold, claim, map, make under the lock, but for map; then fulfil.
 * Every function here wants the region lock held, unless it says otherwise. */
#ifndef FL_REGION_GRANT_H
#define FL_REGION_GRANT_H

#include "region/region.h"

#include <stddef.h>
#include <string.h>

/* Adjacent FREE extents that one request is carved from, and descriptors that one carve makes: at
 * most. */
enum { FL_RUN_EXTENTS = 9, FL_CARVE_DESCRIPTORS = 5 };

/* What was lent may lie where the request, planned anew, takes other addresses and lacks some again. */
enum { FL_LOANS = 4 };

enum {
    FL_GRANT_HIDDEN = FL_RUN_EXTENTS,
    FL_GRANT_FRESH = (FL_RUN_EXTENTS + 1) / 2,
    FL_GRANT_DIRTY = FL_RUN_EXTENTS + 1 + FL_GRANT_FRESH
};

/* What has to be done, outside the lock, before an extent may be handed out, and with what. */
struct fl_grant {
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
    uint8_t hands; /* that populate; 0: automatic */
    /* The plan: where the bytes of `fresh` come from; the rest is the kernel's. */
    size_t from_stock, from_free;
    size_t wanted;   /* bytes to be lent before all is planned anew; see fl_region_take_loan */
    size_t budgeted; /* bytes for which fl_region_may_populate was asked */
    size_t exempt;   /* bytes that nothing is populated for, or that bring their pages along */
    /* There is room, but fl_region_may_populate says no, and why; -ENOSPC: the node is full;
     * -EBUSY: borrow, or look, first */
    int refusal;
    /* What there is to do. */
    bool hollow; /* some of what is handed out may never have been touched */
    struct fl_range live;
    struct fl_range back; /* populated but for holes, which are to come back */
    size_t holes;         /* bytes of those */
    unsigned nfresh, ndirty, npieces, nhidden;
    bool filling;             /* it is one of r->filling */
    struct fl_extent *donors; /* APART; a chain by `next` */
    struct fl_extent *held;   /* the same, by address: what it is carved from */
    /* Lists, the last members: fl_grant_begin leaves them. */
    struct fl_range fresh[FL_GRANT_FRESH]; /* to be filled; whole huge pages */
    struct fl_range dirty[FL_GRANT_DIRTY];
    struct fl_reserve_piece piece[FL_RESERVE_PIECES];
    struct fl_range hidden[FL_GRANT_HIDDEN]; /* to be in core dumps again */
};

static inline bool fl_grant_may_borrow(const struct fl_grant *g)
{
    return g->loans != 0 && g->dry != g->zone + 1;
}

_Static_assert(offsetof(struct fl_grant, hidden) + sizeof((struct fl_grant *)NULL)->hidden ==
                   sizeof(struct fl_grant),
               "lists are the last members");

/* Nothing is planned yet, and nothing wished for but that. A grant is 1.4 KiB: to clear, or copy, all
 * of it costs more than the rest of a request. */
static inline void fl_grant_begin(struct fl_grant *g, bool zero, const struct fl_memory *seen)
{
    memset(g, 0, offsetof(struct fl_grant, fresh));
    g->zero = zero;
    g->seen = seen;
}

/* Takes [start, start + len) out of the adjacent FREE extents that begin with `e` and hold it all.
 * What lies before and behind stays FREE; an EMPTY part is cut at huge pages, so some of it becomes
 * populated FREE memory: `g->fresh` says what to fill. Descriptors have been reserved. Returns the
 * extent, LIVE; NULL when the memory cannot be committed, with g->refusal -EEXIST when others have
 * mapped something there: then it is FOREIGN, and another place will do. The lock is released where
 * something of it is EMPTY. */
struct fl_extent *fl_carve(struct fl_region *r, struct fl_extent *e, uintptr_t start, size_t len,
                           struct fl_grant *g);
/* Most requests are so: the front of memory that is there. Then nothing is held, nothing can fail,
 * and where nothing is to be cleared there is no need of a grant. */
bool fl_carve_is_plain(const struct fl_extent *e, uintptr_t start, size_t len);
/* The first `len` bytes of such an `e`, LIVE. One descriptor has been reserved. */
struct fl_extent *fl_carve_front(struct fl_region *r, struct fl_extent *e, size_t len);
/* The same step by step. hold: false, with nothing held: no descriptors or no pagemap. map, with the
 * lock released meanwhile where some of it is EMPTY: false, with nothing held and g->refusal as
 * above. make cannot fail. */
bool fl_carve_hold(struct fl_region *r, struct fl_extent *e, uintptr_t start, size_t len,
                   struct fl_grant *g);
bool fl_carve_map(struct fl_region *r, struct fl_grant *g);
struct fl_extent *fl_carve_make(struct fl_region *r, struct fl_grant *g);
/* Is some of what is held EMPTY? */
bool fl_carve_wants_map(const struct fl_grant *g);

/* What a request is carved from, and what that costs. */
struct fl_run {
    struct fl_extent *start; /* first of the adjacent FREE extents; NULL: none found */
    struct fl_range part;    /* that is taken of them */
    size_t want;             /* bytes that the program asks for with it */
    size_t fresh;            /* bytes to fill: EMPTY, in whole huge pages */
    size_t own;              /* of whole huge pages that the run loses: not to be given away */
};
/* Carves by plan, see run.c. NULL: g->refusal says why, as fl_supply_plan and fl_carve have it, and
 * nothing is planned or claimed.
 *   out_holes  why what is absent of it may not be brought in; 0: it may */
struct fl_extent *fl_run_carve(struct fl_region *r, struct fl_grant *g, const struct fl_run *run,
                               int *out_holes);

/* Decides where `fresh` bytes for a request of `len` come from; 0, or the refusal of
 * fl_region_may_populate.
 *   own  bytes, in whole huge pages, of free extents that the request takes as they are. */
int fl_supply_plan(struct fl_region *r, struct fl_grant *g, size_t len, size_t fresh, size_t own);
/* The request failed after the plan. */
void fl_supply_cancel(struct fl_region *r, struct fl_grant *g);
/* Takes what the plan says out of stock and free extents, into the grant; and puts that back. */
void fl_supply_claim(struct fl_region *r, struct fl_grant *g);
void fl_supply_unclaim(struct fl_region *r, struct fl_grant *g);
/* Bytes that may be held populated once `more` are in use. */
size_t fl_supply_allowed(const struct fl_region *r, size_t more);
/* Would `fresh` bytes for a request of `len` be more than that? Then free extents give their pages. */
bool fl_supply_is_full(const struct fl_region *r, size_t len, size_t fresh);
/* Are pages on their way to addresses that were handed out, and to what is free beside them? Then
 * what is absent there may not stay so. No lock needed. */
bool fl_supply_is_coming(const struct fl_region *r);

/* Does what the grant says: moves, populates, clears. Not under the lock. */
void fl_grant_fulfil(struct fl_region *r, struct fl_grant *g);
#endif
