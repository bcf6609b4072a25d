/* What the kernel is told of free memory, and how that is taken back before it is used again.
 *
 * Of whole huge pages of FREE extents: not for children of fork (MADV_DONTFORK, see fork.c), and
 * not for core dumps (MADV_DONTDUMP), so that the dump of a program that has freed its memory is
 * small. The worker hides what rests: see rest.c. Each hidden piece may be a map more, so there are
 * only so many.
 * Left to fork.c: what children get, and to reserve.c: that the reserve is never dumped.
 * State: the bits `advised` of extents; under the region lock.
 * A1 and A2: free/advised.c. */
#include "region/free/fit.h"
#include "region/free/advised.h"
#include "region/free/isolated.h"
#include "region/state/counts.h"
#include "region/supply/fill_plan.h"
#include "region/state/lock.h"

static const uint8_t hiding = FL_ADVISED_NO_DUMP | FL_ADVISED_ALL_HID;

/* May the rest of it stay hidden? A cut makes two pieces of one; and of what is hidden in part the
 * kernel would be told again at each request. */
static bool may_cut(const struct fl_region *r, const struct fl_extent *e)
{
    return (e->advised & FL_ADVISED_ALL_HID) != 0 &&
           fl_region_free(r).hidden < (size_t)2 * FL_HIDDEN_MOST;
}

void fl_advice_cut(struct fl_region *r, struct fl_extent *e, struct fl_range part,
                   struct fl_todo *t)
{
    uintptr_t from = fl_align_down(part.base, fl_page.huge);
    struct fl_range used = {from, fl_align_up(fl_range_end(part), fl_page.huge) - from};

    fl_assert(fl_region_is_locked(r));
    fl_fork_undo(r, e);
    if (FL_LIKELY(!fl_advice_is_hidden(e))) {
        return;
    }
    r->resting.undone = true;
    used = fl_range_common(used, fl_extent_inner(e));
    if (!may_cut(r, e)) { /* others may get the rest at once, and are not told */
        fl_lock_permit_calls(true);
        (void)fl_sys.advise(fl_extent_inner(e), FL_ADVICE_DUMP);
        fl_lock_permit_calls(false);
        e->advised &= (uint8_t)~hiding;
        r->zones.of[e->zone].free.hidden--;
    } else if (used.len != 0) {
        t->hidden[t->nhidden++] = used;
    }
}

void fl_advice_show(const struct fl_todo *t)
{
    for (unsigned i = 0; i < t->nhidden; i++) {
        (void)fl_sys.advise(t->hidden[i], FL_ADVICE_DUMP);
    }
}

void fl_advice_show_apart(const struct fl_extent *e)
{
    if (fl_advice_is_hidden(e)) {
        (void)fl_sys.advise(fl_extent_range(e), FL_ADVICE_DUMP);
    }
}

void fl_advice_note_shown(struct fl_extent *e)
{
    e->advised &= (uint8_t)~hiding;
}

/* The next extent that dumps would have, claimed; NULL: none of that age, or enough are hidden. */
static struct fl_extent *claim_shown(struct fl_region *r, struct fl_walk *w, uint32_t age)
{
    bool full = fl_region_free(r).hidden >= FL_HIDDEN_MOST;

    fl_assert(fl_region_is_locked(r));
    for (struct fl_extent *e; (e = fl_fit_walk(r, w)) != NULL;) {
        bool due = e->queue == FL_QUEUE_AGE && (e->advised & FL_ADVISED_ALL_HID) == 0 &&
                   fl_extent_is_aged(r, e, age);
        w->at = e->base + e->len;
        if (due && (fl_advice_is_hidden(e) || !full)) {
            return fl_extent_reserve(&r->space, 2) == 0 ? fl_isolated_claim(r, e, SIZE_MAX) : NULL;
        }
    }
    return NULL;
}

void fl_advice_hide_unlocking(struct fl_region *r, uint32_t age, unsigned most)
{
    struct fl_walk w = {0};
    struct fl_extent *e;
    bool hid = true;

    fl_assert(fl_region_is_locked(r));
    for (unsigned n = 0; hid && n < most && (e = claim_shown(r, &w, age)) != NULL; n++) {
        fl_region_unlock(r);
        hid = fl_sys.advise(fl_extent_range(e), FL_ADVICE_NO_DUMP) == 0;
        if (!hid) { /* too many maps: the kernel may have done a part */
            (void)fl_sys.advise(fl_extent_range(e), FL_ADVICE_DUMP);
        }
        fl_region_lock(r);
        e->advised = (uint8_t)(hid ? e->advised | hiding : e->advised & ~hiding);
        fl_isolated_return(r, e, false);
    }
}
