/* Huge pages that were split become whole again. See collapse.h. */
#include "pages/pages.h"

#include <errno.h>

/* Is all of it there, and half of it the process's own? */
static bool is_worth_it(struct fl_range huge)
{
    size_t present = 0, own = 0;

    fl_assert(huge.base % fl_page.huge == 0 && huge.len == fl_page.huge);
    return fl_sys.survey(huge, &present, &own) == 0 && present == huge.len && own >= huge.len / 2;
}

static int collapse_once(struct fl_pages *p, struct fl_collapsed *t, struct fl_range run)
{
    int rc = fl_sys.advise(run, FL_ADVICE_COLLAPSE);

    fl_assert((run.base | run.len) % fl_page.huge == 0);
    if (rc == 0) {
        __atomic_fetch_add(&p->stats->repair_bytes, run.len, __ATOMIC_RELAXED);
        t->bytes += run.len;
    }
    return rc;
}

static void collapse(struct fl_pages *p, struct fl_collapsed *t, struct fl_range run)
{
    int rc = run.len != 0 ? collapse_once(p, t, run) : 0;

    if (rc == 0) {
        return;
    }
    /* It ends at the first map that may have no huge pages. */
    for (uintptr_t at = run.base; at < fl_range_end(run); at += fl_page.huge) {
        if (run.len > fl_page.huge) {
            rc = collapse_once(p, t, (struct fl_range){at, fl_page.huge});
        }
        t->refused += rc == -EINVAL;
        t->left += rc != 0 && rc != -EINVAL; /* none to be had now, or this one is busy */
    }
}

/* Collapses what of `split`, whole huge pages mapped by base pages, is worth it: neighbours in
 * one call. */
static void mend(struct fl_pages *p, struct fl_collapsed *t, struct fl_range split)
{
    struct fl_range run = {split.base, 0};

    fl_assert((split.base | split.len) % fl_page.huge == 0);
    for (uintptr_t at = split.base; at < fl_range_end(split); at += fl_page.huge) {
        bool own = fl_holes_is_split(&p->holes, at); /* by ourselves: see pieces.c */
        if (!own && is_worth_it((struct fl_range){at, fl_page.huge})) {
            run.len += fl_page.huge;
            continue;
        }
        t->left += !own;
        collapse(p, t, run);
        run = (struct fl_range){at + fl_page.huge, 0};
    }
    collapse(p, t, run);
}

static void note_shared(struct fl_collapsed *t, struct fl_range run)
{
    size_t present = 0, own = 0;

    for (uintptr_t at = run.base; at < fl_range_end(run) && t->left == 0; at += fl_page.huge) {
        if (fl_sys.survey((struct fl_range){at, fl_page.base}, &present, &own) == 0) {
            t->left += own < present;
        }
    }
}

void fl_collapse_range(struct fl_pages *p, struct fl_range range, struct fl_collapsed *sum)
{
    struct fl_range rest = range, split;

    fl_assert((range.base | range.len) % fl_page.huge == 0);
    while (rest.len != 0 && fl_sys.find_split(rest, &split) == 0) {
        fl_assert(split.len != 0 && fl_range_common(split, rest).len == split.len);
        mend(p, sum, split);
        rest = (struct fl_range){fl_range_end(split), fl_range_end(rest) - fl_range_end(split)};
    }
    if (sum->forked) {
        note_shared(sum, range);
    }
}

void fl_collapse_bring(const struct fl_pages *p, struct fl_range fresh)
{
    fl_assert(!p->collapse || (fresh.base | fresh.len) % fl_page.huge == 0);
    for (size_t done = 0; p->collapse && done < fresh.len; done += fl_page.huge) {
        struct fl_range huge = {fresh.base + done, fl_page.huge};
        (void)fl_sys.populate((struct fl_range){huge.base, fl_page.base});
        (void)fl_sys.advise(huge, FL_ADVICE_COLLAPSE);
    }
}
