/* Huge pages that copy-on-write split after fork(2) become whole again, beside the program, once it has rewritten them.
 *
 * What the parent writes while a child shares it the kernel copies in base pages, and leaves it so. The worker looks for such
 * places and collapses them (MADV_COLLAPSE, which copies): a huge page of which half is the parent's own again, so that a child
 * that lives for long does not make us hold more than twice what was rewritten. It ends when nothing is shared or split any
 * more, or when nothing has changed for some minutes.
 * State: r->repair, written by the worker, and by fork under the region lock. */
#include "region/internal.h"

static const uint64_t rest_least = 100000000, rest_most = 1000000000; /* ns */
static const uint64_t patience = (uint64_t)600 * 1000000000;          /* ns without a repair */
static const size_t batch = (size_t)64 << 20; /* bytes looked at, and collapsed, in one go */

static void start(struct fl_region *r)
{
    r->repair.active = true;
    r->repair.cursor = r->repair.repaired = r->repair.left = 0;
    r->repair.quiet_ns = 0;
    r->repair.rest_ns = rest_least;
}

void fl_repair_begin(struct fl_region *r)
{
    if (r->config.huge && r->populated_bytes >= fl_page.huge) {
        start(r);
        atomic_store(&r->wants_worker, true);
    }
}

/* The next committed addresses from `from` on, at most a batch of whole huge pages; len 0: there are no more. */
static struct fl_range next_committed(struct fl_region *r, uintptr_t from)
{
    struct fl_range run = {0, 0};
    uintptr_t end = fl_range_end(r->window.all);

    for (uintptr_t addr = r->first; addr < end && run.len < batch;) {
        const struct fl_extent *e = fl_extent_at(r, addr);
        if (e == NULL) {
            break;
        }
        uintptr_t e_end = e->base + e->len;
        bool usable = e->content != FL_CONTENT_EMPTY;
        if (usable && e_end > from) {
            run.base = run.len == 0 ? fl_max(e->base, from) : run.base;
            run.len = e_end - run.base;
        } else if (run.len != 0) {
            break;
        }
        addr = e_end;
    }
    run = fl_range_inner(run, fl_page.huge);
    run.len = fl_min(run.len, batch);
    return run;
}

/* Is it all there, and half of it the process's own? */
static bool is_worth_it(struct fl_range huge)
{
    size_t present = 0, own = 0;

    return fl_sys.survey(huge, &present, &own) == 0 && present == huge.len && own >= huge.len / 2;
}

static void collapse(struct fl_region *r, struct fl_range run)
{
    if (run.len != 0 && fl_sys.advise(run, FL_ADVICE_COLLAPSE) == 0) {
        __atomic_fetch_add(&r->stats.repair_bytes, run.len, __ATOMIC_RELAXED);
        r->repair.repaired += run.len;
    }
}

/* Collapses what of `split`, whole huge pages mapped by base pages, is worth it: neighbours in one call. */
static void mend(struct fl_region *r, struct fl_range split)
{
    struct fl_range run = {split.base, 0};

    for (uintptr_t at = split.base; at < fl_range_end(split); at += fl_page.huge) {
        if (is_worth_it((struct fl_range){at, fl_page.huge})) {
            run.len += fl_page.huge;
            continue;
        }
        r->repair.left++;
        collapse(r, run);
        run = (struct fl_range){at + fl_page.huge, 0};
    }
    collapse(r, run);
}

static void note_shared(struct fl_region *r, struct fl_range run)
{
    size_t present = 0, own = 0;

    for (uintptr_t at = run.base; at < fl_range_end(run) && r->repair.left == 0;
         at += fl_page.huge) {
        if (fl_sys.survey((struct fl_range){at, fl_page.base}, &present, &own) == 0) {
            r->repair.left += own < present;
        }
    }
}

static void mend_batch(struct fl_region *r, struct fl_range run)
{
    struct fl_range rest = run, split;

    while (rest.len != 0 && fl_sys.find_split(rest, &split) == 0) {
        mend(r, split);
        rest = (struct fl_range){fl_range_end(split), fl_range_end(rest) - fl_range_end(split)};
    }
    note_shared(r, run);
}

/* After a look at all of the window. */
static uint64_t end_of_pass(struct fl_region *r)
{
    struct fl_repair *p = &r->repair;

    p->quiet_ns = p->repaired != 0 ? 0 : p->quiet_ns + p->rest_ns;
    p->rest_ns = p->repaired != 0 ? rest_least : p->rest_ns * 2;
    p->rest_ns = p->rest_ns < rest_most ? p->rest_ns : rest_most;
    p->active = (p->left != 0 || p->repaired != 0) && p->quiet_ns < patience;
    p->cursor = p->repaired = p->left = 0;
    return p->active ? p->rest_ns : UINT64_MAX;
}

uint64_t fl_region_repair(struct fl_region *r)
{
    fl_region_lock(r);
    if (!r->repair.active && atomic_exchange(&r->repair.wanted, false)) {
        start(r);
    }
    bool active = r->repair.active && r->seeded;
    struct fl_range run = active ? next_committed(r, r->repair.cursor) : (struct fl_range){0, 0};
    fl_region_unlock(r);
    if (!active) {
        return UINT64_MAX;
    }
    if (run.len == 0) {
        return end_of_pass(r);
    }
    mend_batch(r, run);
    r->repair.cursor = fl_range_end(run);
    return 0;
}
