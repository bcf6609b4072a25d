/* Looks at the memory as blocks come back, and what is done about it.
 *
 * glibc gives a large block back when it is freed; a program that then takes as much in small
 * blocks, in a memory cgroup or under RLIMIT_AS, must get it under faultless too. Small requests do
 * not come here, so we look at the memory at each sixteenth of what is left that comes back to us.
 * What a look says is memory.c's.
 * State: fields of struct fl_region, under its lock. */
#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/back/pressure.h"
#include "region/back/purge.h"
#include "region/supply/supply.h"
#include "region/state/tick.h"

#include <limits.h>

enum { CONFINED_SHARE = 4, PIECES_SHARE = 16 };
/* Bytes that come back between two looks at pieces, at least, where there is much memory. */
static const size_t pieces_step = (size_t)4 << 20;
enum { PIECES_STEP_SHARE = 128 };

/* Notes `len` bytes more. True: `bound` since the last look; then it is the caller who looks, and
 * no other thread meanwhile. */
static bool is_due(struct fl_region *r, size_t len, size_t bound)
{
    fl_assert(fl_region_is_locked(r));
    r->pressure.since_look += len;
    if (r->pressure.since_look < bound) {
        return false;
    }
    r->pressure.since_starved += r->pressure.since_look;
    r->pressure.since_look = 0;
    return true;
}

bool fl_region_note_reuse(struct fl_region *r, size_t len)
{
    if (!fl_region_is_tight(r)) {
        return false;
    }
    return is_due(r, len, r->pressure.least);
}

/* In a confined process the memory cannot be looked at, and nothing ages: a share of what is in use
 * may be free. */
static void bound_free(struct fl_region *r)
{
    fl_region_lock(r);
    (void)fl_pieces_smooth_unlocking(r, FL_SMOOTHED_MOST);
    size_t may = fl_max(r->held.in_use / CONFINED_SHARE, FL_LOOK_LEAST),
           has = fl_region_free(r).huge;
    fl_region_unlock(r);
    if (has > may) {
        (void)fl_region_purge_some(r, 0, has - may / 2);
    }
}

bool fl_region_note_touch(struct fl_region *r, size_t len)
{
    return is_due(r, len, r->pressure.look_after);
}

static size_t take_surplus(struct fl_region *r)
{
    size_t surplus = r->pressure.surplus;

    fl_assert(fl_region_is_locked(r));
    r->pressure.surplus = 0;
    return surplus;
}

/* Of what is free below a huge page the kernel is told nothing: while memory is tight it goes back
 * soon after it was freed, where it is some of what is left. Lock: region. */
static bool are_pieces_due(struct fl_region *r, size_t len)
{
    size_t least = fl_min(fl_max(r->pressure.most / PIECES_STEP_SHARE, fl_page.base), pieces_step);

    fl_assert(fl_region_is_locked(r));
    r->pieces.since += len;
    if (!fl_region_is_tight(r) || r->pieces.since < fl_max(r->pieces.step, least)) {
        return false;
    }
    r->pieces.since = 0;
    struct fl_free free = fl_region_free(r);
    return free.bytes - free.huge > r->pieces.headroom / PIECES_SHARE;
}

static void give_pieces(struct fl_region *r)
{
    fl_assert(!fl_region_is_locked(r));
    fl_region_lock(r);
    size_t given = fl_pieces_smooth_unlocking(r, SIZE_MAX);
    given += fl_pieces_give_back_unlocking(r, 0, SIZE_MAX, UINT_MAX);
    given += fl_pieces_give_fringes_unlocking(r, false);
    /* What is free and not there stays so: less and less often. */
    if (given != 0) {
        r->pieces.step = 0;
    } else if (!fl_supply_is_coming(r) && r->pieces.joining == 0) {
        r->pieces.step = fl_min(2 * fl_max(r->pieces.step, pieces_step), FL_STARVE_MOST);
    }
    fl_region_unlock(r);
}

void fl_region_unlock_and_look(struct fl_region *r, size_t len)
{
    fl_assert(fl_region_is_locked(r));
    if (FL_UNLIKELY(fl_sys_is_confined())) {
        r->pressure.since_look = 0;
        fl_region_unlock(r);
        bound_free(r);
        return;
    }
    size_t surplus = take_surplus(r);
    bool due = is_due(r, len, surplus != 0 ? 0 : r->pressure.look_after) && fl_look_unlocking(r);
    surplus = fl_max(surplus, take_surplus(r));
    bool tight = fl_region_is_tight(r);
    bool tick = fl_tick_is_due(r), pieces = are_pieces_due(r, len);
    fl_region_unlock(r);
    if (tick) {
        fl_region_tick_alone(r);
    }
    if (surplus != 0) {
        (void)fl_region_purge_some(r, 0, surplus);
    }
    if (due && (tight || fl_region_is_scarce(r))) {
        fl_region_soften(r);
    }
    if (pieces) {
        give_pieces(r);
    }
}

void fl_region_look_after(struct fl_region *r, size_t len)
{
    if (fl_region_lock_unless_forking(r)) { /* else the next free looks */
        fl_region_unlock_and_look(r, len);
    }
}

void fl_region_note_limit(struct fl_region *r)
{
    if (fl_region_lock_unless_forking(r)) {
        r->pressure.look_after = 0; /* until the next look, which is now if it can be */
        fl_region_unlock_and_look(r, 0);
    }
}
