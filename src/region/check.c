/* The invariants of region.h, walked over the whole window. For tests: cost grows with the number
 * of extents. */
#include "region/free/advised.h"
#include "region/check.h"
#include "region/state/counts.h"
#include "region/free/fit.h"
#include "region/state/lock.h"

static struct fl_extent *at(struct fl_region *r, uintptr_t addr)
{
    size_t page = (addr - r->space.window.all.base) >> fl_page.shift;
    const uint32_t *map =
        (const uint32_t *)r->space.pagemap.all.base; /* NOLINT(performance-no-int-to-ptr) */

    struct fl_extent *e = (struct fl_extent *)r->space.descriptors.span.all.base +
                          map[page]; /* NOLINT(performance-no-int-to-ptr) */
    return e->content == FL_CONTENT_INNER ? e->inner->outer : e;
}

/* Does it know the longest extent below it? */
static bool knows_longest(const struct fl_extent *e)
{
    const struct fl_extent *left = RB_LEFT(e, by_address), *right = RB_RIGHT(e, by_address);
    size_t most = e->len;

    most = left != NULL ? fl_max(most, left->longest) : most;
    most = right != NULL ? fl_max(most, right->longest) : most;
    return e->longest == most;
}

/* Adds up what is in the tree. False: one of them does not know its longest, or is of another zone.
 */
static bool add_tree(struct fl_extent_tree *tree, size_t zone, size_t *n, struct fl_free *sum)
{
    for (struct fl_extent *e = fl_tree_lowest(tree); e != NULL; e = fl_tree_higher(e)) {
        if (!knows_longest(e) || e->zone != zone) {
            return false;
        }
        bool aged = e->queue == FL_QUEUE_AGE;
        sum->bytes += fl_extent_is_populated(e) ? fl_extent_there(e) : 0;
        sum->huge += aged ? fl_extent_inner(e).len : 0;
        sum->hidden += (e->advised & FL_ADVISED_NO_DUMP) != 0;
        ++*n;
    }
    return true;
}

static bool is_list_of(const struct fl_extent_list *list, size_t zone)
{
    const struct fl_extent *e;

    TAILQ_FOREACH(e, list, by_age)
    {
        if (e->zone != zone) {
            return false;
        }
    }
    return true;
}

/* Its trees and lists, and what it counts; adds the number of its extents, with memory and without.
 */
static bool is_zone_right(struct fl_region *r, struct fl_zone *z, size_t n[2])
{
    size_t zone = (size_t)(z - r->zones.of);
    struct fl_free sum = {0, 0, 0};

    return add_tree(&z->populated, zone, &n[0], &sum) && add_tree(&z->empty, zone, &n[1], &sum) &&
           sum.bytes == z->free.bytes && sum.huge == z->free.huge && sum.hidden == z->free.hidden &&
           is_list_of(&z->by_age, zone) && is_list_of(&z->pieces, zone) &&
           is_list_of(&z->seen, zone) && is_list_of(&z->rough, zone);
}

/* Descriptors that a zone has for itself. */
static bool is_stash_right(const struct fl_stash *stash, size_t zone)
{
    const struct fl_extent *e;
    size_t n = 0;

    SLIST_FOREACH(e, &stash->spare, spare)
    {
        if (e->zone != zone || e->state != FL_EXTENT_UNUSED) {
            return false;
        }
        n++;
    }
    return n == stash->n;
}

static bool are_stashes_right(const struct fl_space *s)
{
    for (unsigned zone = 1; zone <= s->descriptors.behind; zone++) {
        if (!is_stash_right(&s->descriptors.of_zone[zone], zone)) {
            return false;
        }
    }
    return true;
}

static const char *check_pair(const struct fl_extent *left, const struct fl_extent *right)
{
    bool both_free = left->state == FL_EXTENT_FREE && right->state == FL_EXTENT_FREE &&
                     left->zone == right->zone;

    if (both_free && (left->content == FL_CONTENT_EMPTY) == (right->content == FL_CONTENT_EMPTY)) {
        return "R4";
    }
    return NULL;
}

/* Its waypoints: see pagemap.c. */
static bool is_found_inside(struct fl_region *r, const struct fl_extent *e)
{
    size_t first = (e->base - r->space.base) >> fl_page.shift,
           end = first + (e->len >> fl_page.shift);

    for (size_t page = fl_waypoint_first(first); page < end; page = fl_waypoint_next(page)) {
        uint32_t index = atomic_load(fl_waypoint_entry(&r->space, page));
        if (&r->space.descriptor[index] != e) {
            return false;
        }
    }
    return true;
}

/* Of a divided one the entries inside are its blocks'. */
static bool are_blocks_found(struct fl_region *r, const struct fl_inner *in)
{
    fl_assert(fl_region_is_locked(r));
    for (size_t i = 0; i < in->granules; i++) {
        struct fl_extent *e;
        bool used = in->block[i].state != FL_EXTENT_UNUSED;
        if (used && (!fl_region_look(r, in->block[i].base, &e) || e != &in->block[i])) {
            return false;
        }
    }
    return true;
}

static bool is_found(struct fl_region *r, const struct fl_extent *e)
{
    struct fl_extent *outer;
    const struct fl_inner *in = fl_inner_around(&r->space, e->base, &outer);

    return in != NULL ? are_blocks_found(r, in)
                      : e->state != FL_EXTENT_LIVE || is_found_inside(r, e);
}

/* In another one, or in none, is a piece that has been looked at. */
static bool is_queued_right(struct fl_region *r, const struct fl_extent *e)
{
    enum fl_queue want =
        e->state == FL_EXTENT_FREE ? fl_fit_queue_of(r, e) : (enum fl_queue)FL_QUEUE_NONE;

    fl_assert(fl_region_is_locked(r));
    return e->queue == want ||
           (want == FL_QUEUE_PIECES && (e->queue == FL_QUEUE_NONE || e->queue == FL_QUEUE_SEEN));
}

static bool are_holes_right(struct fl_region *r, const struct fl_extent *e)
{
    bool counted = e->state == FL_EXTENT_FREE || e->state == FL_EXTENT_ISOLATED;
    bool free = counted || e->state == FL_EXTENT_FOREIGN;
    bool empty = e->content == FL_CONTENT_EMPTY;
    /* A LIVE one's owner writes `left` without the lock. */
    bool hollow = free && (e->left & FL_LEFT_HOLLOW) != 0;
    size_t holes = fl_holes_in(&r->pages.holes, fl_extent_range(e));

    return (!counted || e->holes == holes) && (holes == 0 || (hollow && !empty)) &&
           fl_holes_bare_in(&r->pages.holes, fl_extent_range(e)) <= holes &&
           !(empty && fl_holes_next_split(&r->pages.holes, fl_extent_range(e)).len != 0);
}

static bool is_table_counted_right(struct fl_region *r)
{
    struct fl_range run, rest = r->space.window.all;
    size_t split = 0, runs = 0;

    while ((run = fl_holes_next_split(&r->pages.holes, rest)).len != 0) {
        split += run.len / fl_page.huge;
        runs++;
        rest = (struct fl_range){fl_range_end(run), fl_range_end(rest) - fl_range_end(run)};
    }
    return split == r->pages.holes.split && runs == r->pages.holes.runs &&
           fl_holes_bare_in(&r->pages.holes, r->space.window.all) == r->pages.holes.bare;
}

/* Of one by itself: the rule that it breaks; NULL: none. */
static const char *check_one(struct fl_region *r, const struct fl_extent *e, uintptr_t addr,
                             uintptr_t end)
{
    bool empty = e->content == FL_CONTENT_EMPTY;

    if (e->base != addr || e->len == 0 || e->len > end - addr || e->state == FL_EXTENT_UNUSED) {
        return "R1";
    }
    if (addr + e->len < end && at(r, addr + e->len - fl_page.base) != e) {
        return "R2";
    }
    if (!is_found(r, e)) {
        return "R2";
    }
    if (!fl_advice_is_sound(e)) {
        return "A1";
    }
    if (!is_queued_right(r, e) || !are_holes_right(r, e)) {
        return "R7";
    }
    return empty && (addr % fl_page.huge != 0 || (addr + e->len) % fl_page.huge != 0) ? "R3" : NULL;
}

const char *fl_region_check_locked(struct fl_region *r)
{
    uintptr_t end = fl_range_end(r->space.window.all);
    size_t populated = r->pages.reserve.held, nfree[2] = {0, 0};
    const struct fl_extent *left = NULL;

    fl_assert(fl_region_is_locked(r));
    for (uintptr_t addr = r->space.first; addr < end;) {
        const struct fl_extent *e = at(r, addr);
        const char *broken = check_one(r, e, addr, end);
        if (broken != NULL) {
            return broken;
        }
        bool empty = e->content == FL_CONTENT_EMPTY;
        if (left != NULL && check_pair(left, e) != NULL) {
            return "R4";
        }
        nfree[empty] += e->state == FL_EXTENT_FREE;
        populated += fl_extent_populated(e) - fl_holes_in(&r->pages.holes, fl_extent_range(e));
        left = e;
        addr += e->len;
    }
    if (!is_table_counted_right(r)) {
        return "R7";
    }
    size_t ntree[2] = {0, 0};
    FL_EACH_ZONE(r, z)
    {
        if (!is_zone_right(r, z, ntree)) {
            return "R5";
        }
    }
    if (ntree[0] != nfree[0] || ntree[1] != nfree[1] || !are_stashes_right(&r->space)) {
        return "R5";
    }
    return populated != r->held.populated ? "R6" : NULL;
}

const char *fl_region_check(struct fl_region *r)
{
    fl_region_lock(r);
    const char *broken = r->zones.seeded ? fl_region_check_locked(r) : NULL;
    fl_region_unlock(r);
    return broken;
}
