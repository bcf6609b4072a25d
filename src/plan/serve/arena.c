/* The memory that a context's planned blocks lie in: one live extent of the region's, in granules.
 *
 * It has addresses for a quarter more than the height that was asked for: other layouts, or one
 * that is made anew, may be higher. Up to its limit they are used. It is taken when a plan
 * begins to serve and kept from step to step. When nothing of it is in use for a while, or
 * memory is short, all its bits are claimed at once, so that nothing of it is handed out any
 * more, and it goes back. An arena that is too low for a new plan drains: it serves no more, and
 * the thread that frees its last block gives it back. */
#include "plan/context.h"

#include <errno.h>

enum { ROOM_SHARE = 4 }; /* of the height, for higher layouts: it costs addresses alone */

bool fl_arena_is_open(const struct fl_arena *a)
{
    return atomic_load_explicit(&a->height, memory_order_relaxed) != 0;
}

/* Of so many huge pages. */
static size_t granules_of(size_t pages)
{
    return pages * (fl_page.huge >> FL_GRANULE_SHIFT);
}

/* Is huge page `page` in memory? */
static bool is_filled(const struct fl_arena *a, size_t page)
{
    return fl_bitmap_are_free(&a->absent, granules_of(page), granules_of(1));
}

/* Where memory goes that is not wanted here: fl_inner_empty or fl_inner_yield. */
typedef int give_back(struct fl_region *r, struct fl_inner *in, struct fl_range part);

static struct fl_range pages(const struct fl_arena *a, size_t at, size_t n)
{
    fl_assert((at + n) * fl_page.huge <= atomic_load_explicit(&a->height, memory_order_relaxed));
    return (struct fl_range){a->base + at * fl_page.huge, n * fl_page.huge};
}

/* Huge page `page` is in memory and may leave it, and all of its granules were free: they are ours
 * now. */
static bool claim_page(struct fl_arena *a, size_t page)
{
    if (a->use.held != 0 || !is_filled(a, page) ||
        !fl_bitmap_take(&a->claimed, granules_of(page), granules_of(1))) {
        return false;
    }
    if (!is_filled(a, page)) { /* its memory was taken meanwhile */
        fl_bitmap_give(&a->claimed, granules_of(page), granules_of(1));
        return false;
    }
    return true;
}

/* `n` huge pages, all of whose granules are ours, are not in memory any more. */
static void note_gone(struct fl_arena *a, size_t at, size_t n)
{
    bool took = n == 0 || fl_bitmap_take(&a->absent, granules_of(at), granules_of(n));

    fl_assert(took);
    (void)took;
    atomic_fetch_add_explicit(&a->missing, n, memory_order_relaxed);
}

/* Lock: plan. Bytes. */
static size_t empty_run(struct fl_arena *a, size_t at, size_t n, give_back *to)
{
    fl_assert(n != 0 && a->use.held == 0);
    int rc = to(fl_plan.region, &a->inner, pages(a, at, n));

    if (rc == 0) {
        note_gone(a, at, n);
    }
    if (rc != -EEXIST) {
        fl_bitmap_give(&a->claimed, granules_of(at), granules_of(n));
    }
    return rc == -EBUSY ? 0 : n * fl_page.huge;
}

/* Those below `end`, from the top down, are ours. Returns how many, `most` of them at most. */
static FL_APART size_t claim_below(struct fl_arena *a, size_t end, size_t most)
{
    size_t n = 0;

    while (n < most && n < end && claim_page(a, end - n - 1)) {
        n++;
    }
    return n;
}

/* Lock: plan. Idle huge pages, `most` of them at most, are not here any more. From the top down,
 * where a layout has what lives for a short time only. Bytes. */
static size_t take_out(struct fl_arena *a, size_t most, give_back *to)
{
    size_t given = 0, n;

    fl_assert(fl_lock_is_held(FL_RANK_PLAN, 1));
    atomic_store(&a->thinned, true);
    atomic_thread_fence(memory_order_release); /* with what is claimed: fl_arena_was_thinned */
    for (size_t end = a->absent.granules / granules_of(1); end > 0 && given / fl_page.huge < most;
         end -= fl_min(n + 1, end)) {
        n = claim_below(a, end, most - given / fl_page.huge);
        given += n != 0 ? empty_run(a, end - n, n, to) : 0;
    }
    atomic_store(&a->thinned, false);
    return given;
}

size_t fl_arena_trim(struct fl_arena *a)
{
    fl_plan_lock();
    size_t given = fl_arena_is_open(a) ? take_out(a, SIZE_MAX, fl_inner_yield) : 0;
    fl_plan_unlock();
    return given;
}

size_t fl_plan_lend(unsigned zone, size_t bytes)
{
    size_t lent = 0;

    fl_region_enter();
    if (fl_lock_acquire_unless_forking(&fl_plan.lock)) {
        for (struct fl_arena *a = fl_plan.arenas; a != NULL && lent < bytes; a = a->next) {
            bool has_some = fl_arena_is_open(a) && a->inner.outer->zone == zone;
            size_t most = (bytes - lent + fl_page.huge - 1) / fl_page.huge;
            size_t out = has_some ? take_out(a, most, fl_inner_yield) : 0;
            atomic_fetch_add_explicit(&a->lent, out / fl_page.huge, memory_order_relaxed);
            lent += out;
        }
        fl_lock_release(&fl_plan.lock);
    }
    fl_region_leave();
    return lent;
}

/* Idle pages first, unless all of it goes at once. `if_empty`: nothing while a block is in
 * it. The lock: a thread that looks late, at an arena that was closed meanwhile, must not see it
 * half open. */
static size_t give_up(struct fl_arena *a, bool if_empty, give_back *to)
{
    size_t given = 0;

    fl_plan_lock();
    if (fl_arena_is_open(a) && (!if_empty || fl_bitmap_is_clear(&a->claimed))) {
        bool at_once = fl_bitmap_is_clear(&a->claimed) && a->use.held == 0 &&
                       (to == fl_inner_empty || fl_bitmap_is_clear(&a->absent));
        given = at_once ? 0 : take_out(a, SIZE_MAX, to);
        /* All of it is claimed, for good. */
        if (a->use.held == 0 && fl_bitmap_is_clear(&a->claimed) &&
            fl_bitmap_take(&a->claimed, 0, a->claimed.granules)) {
            given += a->inner.outer->filled;
            fl_inner_close(fl_plan.region, &a->inner);
            atomic_store_explicit(&a->height, 0, memory_order_release);
        }
    }
    fl_plan_unlock();
    return given;
}

void fl_arena_drop_if_empty(struct fl_arena *a)
{
    (void)give_up(a, true, fl_inner_yield);
}

size_t fl_arena_give_up(struct fl_arena *a)
{
    return give_up(a, false, fl_inner_empty);
}

size_t fl_arena_hand_on(struct fl_arena *a)
{
    return give_up(a, false, fl_inner_yield);
}

static size_t words_of(size_t granules)
{
    return (granules + FL_BITMAP_BITS - 1) / FL_BITMAP_BITS;
}

/* Room for the bits of granules, and, behind them, of those that are absent. Lock: plan. */
static bool has_words(struct fl_arena *a, size_t granules)
{
    size_t words = 2 * words_of(granules);

    fl_assert(fl_lock_is_held(FL_RANK_PLAN, 1));
    if (words <= a->words) {
        return true;
    }
    _Atomic uint64_t *word = fl_own_map(&fl_plan.memory, words * sizeof *word);
    if (word == NULL) {
        return false;
    }
    fl_own_unmap(&fl_plan.memory, a->claimed.word, a->words * sizeof *word);
    a->claimed.word = word;
    a->words = words;
    return true;
}

/* How many huge pages below the limit are not in memory. Lock: plan, for others may take some out
 * meanwhile. */
static void count_missing(struct fl_arena *a)
{
    size_t absent = fl_bitmap_count(&a->absent, a->limit >> FL_GRANULE_SHIFT);

    atomic_store_explicit(&a->missing, absent / granules_of(1), memory_order_relaxed);
}

bool fl_arena_raise(struct fl_arena *a, size_t height)
{
    height = fl_align_up(height, fl_page.huge);
    if (height > atomic_load_explicit(&a->height, memory_order_relaxed)) {
        return false;
    }
    if (height > a->limit) {
        fl_plan_lock();
        atomic_store_explicit(&a->limit, height, memory_order_relaxed);
        count_missing(a);
        fl_plan_unlock();
    }
    fl_assert(height <= a->limit && a->limit <= atomic_load(&a->height));
    return true;
}

/* Lock: plan. */
static bool open_with(struct fl_arena *a, size_t len)
{
    size_t granules = len >> FL_GRANULE_SHIFT;

    fl_assert(fl_lock_is_held(FL_RANK_PLAN, 1) && len % fl_page.huge == 0 && !fl_arena_is_open(a));
    a->inner.shift = FL_GRANULE_SHIFT;
    if (!has_words(a, granules) || fl_inner_open(fl_plan.region, &a->inner, len) != 0) {
        return false;
    }
    a->claimed.granules = a->absent.granules = granules;
    a->base = a->inner.outer->base;
    a->absent.word = a->claimed.word + words_of(granules);
    for (size_t w = 0; w < a->words; w++) {
        atomic_store_explicit(&a->claimed.word[w], 0, memory_order_relaxed);
    }
    (void)fl_bitmap_take(&a->absent, 0, granules);
    return true;
}

static uint32_t openings; /* Lock: plan */

bool fl_arena_open(struct fl_arena *a, size_t height)
{
    size_t limit = fl_align_up(height, fl_page.huge);
    size_t room = fl_region_counts_maps(fl_plan.region) ? 0 : limit / ROOM_SHARE;
    size_t len = fl_align_up(limit + room, fl_page.huge);

    fl_plan_lock();
    bool open = open_with(a, len);
    if (!open && len != limit) {
        len = limit;
        open = open_with(a, len);
    }
    if (open) {
        atomic_store_explicit(&a->limit, limit, memory_order_relaxed);
        count_missing(a);
        atomic_store_explicit(&a->lent, 0, memory_order_relaxed);
        a->budget = SIZE_MAX;
        a->hand = 0;
        a->use.opening = ++openings;
        a->use.idle = 0;
        atomic_store_explicit(&a->draining, false, memory_order_relaxed);
        a->cold = true;
        atomic_store_explicit(&a->height, len, memory_order_release);
    }
    fl_plan_unlock();
    if (open) {
        fl_plan_call_worker(); /* it may age, and its tables come into memory */
    }
    return open;
}

static size_t held(const struct fl_arena *a)
{
    return a->limit / fl_page.huge - atomic_load_explicit(&a->missing, memory_order_relaxed);
}

/* The next idle huge pages below the hand, `most` of them at most, are ours: from the hand on. 0:
 * there are none. */
static size_t claim_idle(struct fl_arena *a, size_t most)
{
    size_t pages = a->limit / fl_page.huge, n = 0;

    for (size_t looked = 0; looked < pages && (n == 0 || (n < most && a->hand != 0)); looked++) {
        size_t next = a->hand != 0 ? a->hand - 1 : pages - 1;
        if (claim_page(a, next)) {
            n++;
        } else if (n != 0) {
            break;
        }
        a->hand = next;
    }
    return n;
}

/* Moves what is idle to `n` huge pages from `at` on, which are not in memory. Returns how many have
 * it then. */
static FL_APART size_t shift(struct fl_arena *a, size_t at, size_t n)
{
    size_t done = 0, run, moved = 0;

    do {
        run = claim_idle(a, n - done);
        moved = run != 0 ? fl_inner_shift(fl_plan.region, &a->inner, pages(a, a->hand, run),
                                          a->base + (at + done) * fl_page.huge) /
                               fl_page.huge
                         : 0;
        fl_assert(moved <= run && done + moved <= n);
        note_gone(a, a->hand, moved);
        fl_bitmap_give(&a->claimed, granules_of(a->hand), granules_of(run));
        done += moved;
    } while (done < n && moved != 0 && moved == run);
    return done;
}

/* Brings `n` huge pages from `at` on into memory, which are ours to fill. */
static FL_INLINE bool fill_run(struct fl_arena *a, size_t at, size_t n)
{
    fl_assert(n != 0 && atomic_load_explicit(&a->missing, memory_order_relaxed) >= n);
    size_t done = held(a) + n > a->budget ? shift(a, at, n) : 0, rest = n - done;
    bool filled = rest == 0 || fl_inner_fill(fl_plan.region, &a->inner, pages(a, at + done, rest));

    a->moved += done;
    if (filled) {
        size_t back = fl_min(rest, atomic_load_explicit(&a->lent, memory_order_relaxed));
        atomic_fetch_sub_explicit(&a->lent, back, memory_order_relaxed);
        a->moved += back;
        done = n;
    }
    fl_bitmap_give(&a->absent, granules_of(at), granules_of(done));
    atomic_fetch_sub_explicit(&a->missing, done, memory_order_relaxed);
    a->budget = fl_max(a->budget, held(a));
    return filled;
}

void fl_arena_expect(struct fl_arena *a, size_t most)
{
    a->budget = fl_max(held(a), fl_align_up(most, fl_page.huge) / fl_page.huge);
}

static FL_APART size_t run_of_absent(const struct fl_arena *a, size_t at, size_t end)
{
    size_t run = 0;

    while (at + run < end && !is_filled(a, at + run)) {
        run++;
    }
    return run;
}

static FL_INLINE bool bring(struct fl_arena *a, size_t granule, size_t n)
{
    size_t per = granules_of(1), end = (granule + n + per - 1) / per;

    for (size_t at = granule / per, run; at < end; at += run + 1) {
        run = run_of_absent(a, at, end);
        if (run != 0 && !fill_run(a, at, run)) {
            return false;
        }
    }
    return true;
}

FL_COLD bool fl_arena_bring(struct fl_arena *a, size_t granule, size_t n)
{
    return bring(a, granule, n);
}

/* The granules are the caller's. Apart, and called last: the region may have to take pages from
 * another arena, on a short stack. */
static FL_APART struct fl_extent *bring_and_place(struct fl_arena *a, size_t granule, size_t len,
                                                  size_t room)
{
    if (!bring(a, granule, fl_granules(len))) {
        fl_bitmap_give(&a->claimed, granule, fl_granules(len));
        return NULL;
    }
    return fl_plan_placed(&a->inner.block[granule], len, room,
                          fl_bitmap_mask(granule, fl_granules(len)));
}

struct fl_extent *fl_arena_take(struct fl_arena *a, size_t granule, size_t len, size_t room)
{
    size_t n = fl_granules(len);

    if (FL_UNLIKELY(!fl_bitmap_take(&a->claimed, granule, n))) {
        return NULL;
    }
    if (FL_UNLIKELY(atomic_load_explicit(&a->missing, memory_order_relaxed) != 0)) {
        return bring_and_place(a, granule, len, room);
    }
    return fl_plan_placed(&a->inner.block[granule], len, room, fl_bitmap_mask(granule, n));
}
