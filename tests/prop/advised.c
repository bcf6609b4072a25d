#include "prop/advised.h"

#include "prop/must.h"
#include "region/state/lock.h"
#include "region/region.h"
#include "unit/fake_sys.h"

void advised_hide(struct fl_region *r, const struct op *op)
{
    if (op->a % 4 == 0) {
        fl_region_lock(r);
        fl_advice_hide_unlocking(r, op->b % 3, op->b % 5);
        fl_region_unlock(r);
        return;
    }
    for (int i = 0; i < 2; i++) { /* the first look finds that requests came */
        fake.now_ns += 2000000000;
        (void)fl_region_rest(r);
    }
}

/* All huge pages are hidden of what says that all are, and none of what says none. */
static bool is_hidden_as_it_says(const struct fl_extent *e)
{
    struct fl_range inner = fl_range_inner(fl_extent_range(e), fl_page.huge);
    size_t hidden = fake_hidden(fl_extent_range(e));

    return (e->advised & FL_ADVISED_ALL_HID) != 0
               ? hidden == inner.len
               : hidden == 0 || (e->advised & FL_ADVISED_NO_DUMP) != 0;
}

const char *advised_check(struct fl_region *r)
{
    const struct fl_extent *e;

    for (uintptr_t at = r->space.first;
         r->zones.seeded && (e = fl_extent_at(&r->space, at)) != NULL; at += e->len) {
        bool live = e->state == FL_EXTENT_LIVE || e->state == FL_EXTENT_CACHED;
        MUST(!live || fake_hidden(fl_extent_range(e)) == 0,
             "a live extent is kept out of core dumps");
        MUST(!live || fake_kept_from_child(fl_extent_range(e)) == 0,
             "a live extent is kept from children");
        MUST(e->state != FL_EXTENT_FREE || is_hidden_as_it_says(e),
             "a free extent is not hidden as it says");
    }
    return NULL;
}

/* Nothing is mapped there, or nothing has come. */
static bool is_absent(struct fl_holes *h, struct fl_range page)
{
    size_t there = 0;

    return fl_holes_bare_in(h, page) != 0 ||
           (fl_sys_linux.resident(page, &there) == 0 && there == 0);
}

/* What is said to be absent is in no memory. */
const char *holes_check(struct fl_region *r)
{
    struct fl_range run, rest = r->space.window.all;

    while ((run = fl_holes_next_split(&r->pages.holes, rest)).len != 0) {
        for (uintptr_t at = run.base; at < fl_range_end(run); at += fl_page.base) {
            struct fl_range page = {at, fl_page.base};
            MUST(fl_holes_in(&r->pages.holes, page) == 0 || is_absent(&r->pages.holes, page),
                 "a hole has a page in it");
        }
        rest = (struct fl_range){fl_range_end(run), fl_range_end(rest) - fl_range_end(run)};
    }
    return NULL;
}
