/* A thread that has moved to another node for good: its arena's memory follows, in the background.
 *
 * The thread alone decides, at the end of a step: when its requests would have come from another node's memory in AWAY_STEPS steps in a row
 * and for away_ns at least; each journey makes it twice as long until the next, so that a thread that wanders does not drag its memory
 * along. The worker moves the pages, where no block is first, then all: what they hold stays, and so do addresses, claims and the
 * plan; whoever touches a page while it moves waits for it. Where the kernel moves nothing the thread takes another arena, which is filled
 * where it runs now. With one node nothing is done here. */
#include "plan/context.h"

#include <errno.h>

enum { AWAY_STEPS = 8, JOURNEYS_MOST = 16, BATCH = 8 }; /* BATCH: huge pages that move at once */
static const uint64_t away_ns = 100000000, rest_ns = 1000000;

void fl_follow_forget(struct fl_arena *a)
{
    atomic_store_explicit(&a->home.zone, a->inner.outer->zone, memory_order_relaxed);
    atomic_store_explicit(&a->home.follows, 0, memory_order_relaxed);
    atomic_store_explicit(&a->home.stays, false, memory_order_relaxed);
    a->home.followed = 0;
}

/* In another zone than `zone`, and not for the first time? */
static bool is_away_for_good(struct fl_step_context *c, unsigned zone)
{
    unsigned here = fl_zone_wish(fl_plan.region, fl_page.huge);
    uint64_t now = fl_sys.now_ns();

    if (here == zone) {
        c->away.steps = 0;
        return false;
    }
    if (c->away.steps == 0 || here != c->away.zone) {
        c->away.steps = 0;
        c->away.zone = here;
        c->away.since_ns = now;
    }
    if (++c->away.steps < AWAY_STEPS || now - c->away.since_ns < away_ns << c->away.migrations) {
        return false;
    }
    c->away.steps = 0;
    c->away.migrations += c->away.migrations < JOURNEYS_MOST;
    return true;
}

bool fl_follow_look(struct fl_step_context *c)
{
    struct fl_arena *a = c->serve.arena;

    if (FL_LIKELY(fl_plan.region->placing.move == NULL) || a == NULL ||
        atomic_load_explicit(&a->home.follows, memory_order_relaxed) != 0) {
        return true;
    }
    if (atomic_load_explicit(&a->home.stays, memory_order_relaxed)) {
        return false;
    }
    if (!is_away_for_good(c, atomic_load_explicit(&a->home.zone, memory_order_relaxed))) {
        return true;
    }
    if (!fl_plan.config.background) {
        return false;
    }
    atomic_store(&a->home.follows, c->away.zone + 1);
    fl_plan_call_worker();
    return true;
}

static bool is_wanted(const struct fl_arena *a, size_t page, bool busy)
{
    size_t granules = fl_page.huge >> FL_GRANULE_SHIFT;

    return fl_arena_is_filled(a, page) &&
           (busy || fl_claims_are_free(&a->claims, page * granules, granules));
}

/* The next pages to move, from *at on; 0: there are none any more. Lock: plan. */
static size_t next_run(struct fl_arena *a, size_t *at)
{
    size_t pages = a->filled.granules, n = 0;

    while (n == 0 && a->home.followed < 2 * pages) {
        bool busy = a->home.followed >= pages;
        *at = a->home.followed - (busy ? pages : 0);
        while (n < BATCH && *at + n < pages && is_wanted(a, *at + n, busy)) {
            n++;
        }
        a->home.followed += n != 0 ? n : 1;
    }
    return n;
}

/* Lock: plan. */
static bool set_out(struct fl_arena *a, unsigned zone)
{
    size_t filled = fl_claims_count(&a->filled, a->filled.granules);

    return fl_inner_rehome(fl_plan.region, &a->inner, zone, filled * fl_page.huge);
}

/* Lock: plan. False: that is all. */
static bool go_on(struct fl_arena *a, unsigned zone)
{
    size_t at = 0, n;

    if (!fl_arena_is_open(a) || a->use.held != 0 || (a->home.followed == 0 && !set_out(a, zone)) ||
        (n = next_run(a, &at)) == 0) {
        return false;
    }
    struct fl_range part = {a->base + at * fl_page.huge, n * fl_page.huge};
    int rc = fl_inner_move(fl_plan.region, &a->inner, part);
    if (rc != -EPERM && rc != -ENOSYS) {
        return true;
    }
    (void)fl_inner_rehome(fl_plan.region, &a->inner, a->home.zone, 0);
    atomic_store_explicit(&a->home.stays, true, memory_order_relaxed);
    return false;
}

static bool follow(struct fl_arena *a)
{
    bool more = false;

    fl_plan_lock();
    uint32_t to = atomic_load(&a->home.follows);
    if (to != 0) {
        more = go_on(a, to - 1);
    }
    if (to != 0 && !more) {
        if (fl_arena_is_open(a)) {
            atomic_store_explicit(&a->home.zone, a->inner.outer->zone, memory_order_relaxed);
        }
        a->home.followed = 0;
        atomic_store(&a->home.follows, 0);
    }
    fl_plan_unlock();
    return more;
}

uint64_t fl_plan_follow(struct fl_region *r)
{
    bool more = false;

    (void)r;
    for (struct fl_arena *a = fl_plan_first_arena(); a != NULL; a = a->next) {
        more |= atomic_load_explicit(&a->home.follows, memory_order_relaxed) != 0 && follow(a);
    }
    return more ? rest_ns : UINT64_MAX;
}
