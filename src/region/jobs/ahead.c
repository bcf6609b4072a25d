/* Memory that comes ahead of the touch.
 *
 * The worker looks at a long new block for a while. Once the program has touched a piece of it huge
 * page by huge page from the front on, it brings the next ones in: two processors clear memory
 * then, not one. It fills a part from its end down, and the program comes from the other side, so
 * that they meet once a part; the pages next to the program are left to it. What comes so is at
 * most as much as was touched, and a twentieth of the block and 16 MiB: a program that stops amid
 * its block holds no more in vain; and nothing comes for others until one has been touched to its
 * end. Who touches just those pages that are left to it has all of them, though.
 * No lock is held while the kernel works. The block may be freed meanwhile, or the program may map
 * something there: then one huge page of that comes into memory, or none; nothing is written to.
 * State: r->ahead. */
#include "region/state/lock.h"

#include <errno.h>

enum {
    MARGIN_HUGE = 2,   /* huge pages next to the program, which it will have touched first */
    LEAST_HUGE = 4,    /* of a part: less is not worth the look at the memory */
    STILL_MOST = 16,   /* looks without progress: half a second */
    STEPS_A_RUN = 256, /* huge pages that one look goes on by */
    FILLS_A_LOOK = 4   /* huge pages that come at one look: it costs a twentieth of one */
};
enum { SHARE_OF_BLOCK = 20 }; /* of a block, and slack: the most that is ahead of the program */
enum { ROOM_SHARE = 8 };      /* of the headroom, what may come ahead */
static const size_t slack = (size_t)16 << 20;                    /* bytes */
static const uint64_t rest_least = 250000, rest_most = 64000000; /* ns */

void fl_ahead_fork_child(struct fl_region *r)
{
    for (struct fl_ahead_slot *s = r->ahead.slot; s < r->ahead.slot + FL_AHEAD_SLOTS; s++) {
        s->e = NULL;
    }
}

/* What is still the block's; len 0: it was freed, or the program has laid hands on it. Lock:
 * region. */
static struct fl_range still_its(const struct fl_ahead_slot *s)
{
    const struct fl_extent *e = s->e;
    bool same =
        e != NULL && atomic_load_explicit(&e->state, memory_order_relaxed) == FL_EXTENT_LIVE &&
        e->base <= s->range.base && e->len >= FL_AHEAD_FROM && !fl_extent_is_user_remapped(e);

    return same ? fl_range_common(s->range, fl_range_inner(fl_extent_range(e), fl_page.huge))
                : (struct fl_range){0, 0};
}

/* All of it is in memory, and was written to: pages of zeros, which a read brings, are the
 * kernel's. */
static bool is_there(struct fl_range r)
{
    size_t there = 0, own = 0;

    return fl_sys.survey(r, &there, &own) == 0 && own == r.len;
}

/* By one call. Before Linux 6.16 it has the huge page of zeros among them, so the last page is
 * looked at. */
static uintptr_t scan_touched(struct fl_range range)
{
    struct fl_range part;

    if (fl_sys.touched(range, &part, 1) != 1 || part.base != range.base) {
        return range.base;
    }
    uintptr_t end = fl_align_down(fl_range_end(part), fl_page.huge);
    bool written =
        end != range.base && is_there((struct fl_range){end - fl_page.base, fl_page.base});
    return written ? end : range.base;
}

/* The end of the huge pages in `range` that are there from its start on. */
static uintptr_t end_of_touched(struct fl_range range, bool scans)
{
    uintptr_t at = range.base;

    if (scans) {
        return scan_touched(range);
    }
    while (at < fl_range_end(range) && is_there((struct fl_range){at, fl_page.huge})) {
        at += fl_page.huge;
    }
    return at;
}

/* Bytes by which the front went on. */
static size_t go_on(struct fl_ahead_slot *s, struct fl_range range)
{
    uintptr_t from = fl_min(s->front, fl_range_end(range)); /* it may have been shortened since */
    size_t len = fl_min(STEPS_A_RUN * fl_page.huge, fl_range_end(range) - from);

    fl_assert(from >= range.base);
    s->front = end_of_touched((struct fl_range){from, len}, s->scans);
    return s->front - from;
}

/* Does one call tell of many pages? Before Linux 6.7 each has to be read. */
static bool can_scan(uintptr_t page)
{
    struct fl_range unused;

    return fl_sys.find_split((struct fl_range){page, fl_page.huge}, &unused) != -ENOSYS;
}

static void begin(struct fl_ahead_slot *s, struct fl_range range, uint32_t turn)
{
    s->known = turn;
    s->front = range.base;
    s->scans = can_scan(range.base);
    (void)go_on(s, range);
    s->begin = s->front;
    s->part = (struct fl_range){s->front, 0};
    s->filled = 0;
    s->hopeless = fl_cpus_allowed() == 1; /* for two threads that clear side by side */
    s->still = 0;
    s->rest_ns = rest_least;
}

/* Bytes that may be there ahead of the front. The program itself may be half as much behind that:
 * where it comes to a part that was filled, the front is at the end of it. */
static size_t most_ahead(const struct fl_region *r, const struct fl_ahead_slot *s, size_t len)
{
    size_t more = slack / r->ahead.watched;

    return fl_min(s->front - s->begin, len / SHARE_OF_BLOCK + more) / 3 * 2;
}

/* Does memory leave room for so much that is not asked for? */
static bool has_room(struct fl_region *r, size_t most)
{
    struct fl_memory m;

    if (atomic_load_explicit(&r->tight, memory_order_relaxed) || fl_region_is_scarce(r) ||
        fl_populate_backs_off(&r->pages)) {
        return false;
    }
    fl_memory_look(&m, &r->look.worker_scratch);
    return most <= m.headroom / ROOM_SHARE;
}

/* The next part: behind the last one, or where the program has overtaken it. False: not now. */
static bool next_part(struct fl_region *r, struct fl_ahead_slot *s, struct fl_range range)
{
    size_t most = most_ahead(r, s, range.len), len = fl_align_down(most / 2, fl_page.huge);
    uintptr_t from = fl_max(s->front, fl_range_end(s->part));

    if (from >= fl_range_end(range)) { /* it has been shortened since */
        return false;
    }
    len = fl_min(len, fl_range_end(range) - from);
    if (len < LEAST_HUGE * fl_page.huge || from + len - s->front > most || r->ahead.vain > slack) {
        return false;
    }
    if (!has_room(r, most)) {
        s->hopeless = true;
        return false;
    }
    s->part = (struct fl_range){from, len};
    s->filled = 0;
    return true;
}

/* The huge page that is to come next; 0: none of this part. */
static uintptr_t next_page(const struct fl_ahead_slot *s)
{
    uintptr_t page = fl_range_end(s->part) - s->filled - fl_page.huge;
    uintptr_t least = fl_max(s->front, s->part.base) + MARGIN_HUGE * fl_page.huge;

    return s->filled < s->part.len && page >= least ? page : 0;
}

static bool is_its_still(struct fl_region *r, const struct fl_ahead_slot *s, uintptr_t page,
                         uint32_t turn)
{
    fl_region_lock(r);
    struct fl_range range = s->turn == turn ? still_its(s) : (struct fl_range){0, 0};
    fl_region_unlock(r);
    return page >= range.base && page + fl_page.huge <= fl_range_end(range);
}

/* Brings a huge page in. False: there is none to bring now. */
static bool fill(struct fl_region *r, struct fl_ahead_slot *s, struct fl_range range, uint32_t turn)
{
    uintptr_t page = next_page(s);

    if (page == 0 && next_part(r, s, range)) {
        page = next_page(s);
    }
    if (page == 0 || !is_its_still(r, s, page, turn) ||
        fl_sys.populate((struct fl_range){page, fl_page.huge}) != 0) {
        return false;
    }
    s->filled += fl_page.huge;
    fl_assert(s->filled <= s->part.len);
    return true;
}

/* The program stopped there, and what is ahead of it came in vain; or it has come to the end. */
static uint64_t end_watch(struct fl_region *r, struct fl_ahead_slot *s, struct fl_range range)
{
    if (s->front >= fl_range_end(range)) {
        r->ahead.vain = 0;
    } else if (fl_range_end(s->part) > s->front) {
        r->ahead.vain += fl_range_end(s->part) - s->front;
    }
    return UINT64_MAX;
}

/* Returns the ns until it wants a look again; UINT64_MAX: the watch is over. */
static uint64_t serve(struct fl_region *r, struct fl_ahead_slot *s, struct fl_range range,
                      uint32_t turn)
{
    if (s->known != turn) {
        begin(s, range, turn);
    } else if (fl_sys.now_ns() < s->due_ns) {
        return s->due_ns - fl_sys.now_ns();
    }
    size_t gone = go_on(s, range);
    bool whole_run = gone == STEPS_A_RUN * fl_page.huge;
    if (whole_run) { /* so much was there before */
        s->begin = s->front;
    }
    if (s->front >= fl_range_end(range)) {
        return end_watch(r, s, range);
    }
    bool may_fill = !whole_run && !s->hopeless, filled = false;
    for (int i = 0; may_fill && i < FILLS_A_LOOK && fill(r, s, range, turn); i++) {
        filled = true;
    }
    s->still = gone != 0 || filled ? 0 : s->still + 1;
    if (filled || whole_run) {
        s->due_ns = 0;
        return 0;
    }
    s->rest_ns = s->still <= 1 ? rest_least : fl_min(s->rest_ns * 2, rest_most);
    s->due_ns = fl_sys.now_ns() + s->rest_ns;
    return s->still < STILL_MOST && !s->hopeless ? s->rest_ns : end_watch(r, s, range);
}

/* The slot is done with, unless another watch has begun there. */
static void leave(struct fl_region *r, struct fl_ahead_slot *s, uint32_t turn)
{
    fl_region_lock(r);
    s->e = s->turn == turn ? NULL : s->e;
    fl_region_unlock(r);
}

uint64_t fl_region_ahead(struct fl_region *r)
{
    struct fl_range range[FL_AHEAD_SLOTS];
    uint32_t turn[FL_AHEAD_SLOTS];
    uint64_t next = UINT64_MAX;
    unsigned watched = 0;

    if (atomic_load_explicit(&r->ahead.turn, memory_order_relaxed) ==
        0) { /* as in most processes */
        return next;
    }
    fl_region_lock(r);
    for (int i = 0; i < FL_AHEAD_SLOTS; i++) {
        struct fl_ahead_slot *s = &r->ahead.slot[i];
        range[i] = still_its(s);
        turn[i] = s->turn;
        s->e = range[i].len != 0 ? s->e : NULL;
        watched += range[i].len != 0;
    }
    fl_region_unlock(r);
    r->ahead.watched = watched;
    for (int i = 0; i < FL_AHEAD_SLOTS; i++) {
        uint64_t in =
            range[i].len != 0 ? serve(r, &r->ahead.slot[i], range[i], turn[i]) : UINT64_MAX;
        if (range[i].len != 0 && in == UINT64_MAX) {
            leave(r, &r->ahead.slot[i], turn[i]);
        }
        next = fl_min(next, in);
    }
    return next;
}
