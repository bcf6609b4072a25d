/* What of a range is in memory. Asked for when it is wanted, and not kept.
 *
 * The pagemap's descriptor is open under the lock of looks, so that no child of fork gets it: never
 * for long. Where it is not to be had, mincore(2) tells the same, slower. Where both are refused
 * nothing is known, and nothing is guessed. */
#include "pages/pages.h"

#include <errno.h>

enum { SAMPLES = 16 }; /* base pages of a long block that are looked at, 4 us each */
/* Bytes asked for at once: some 2 ms in base pages, for which a call that looks at the memory
 * waits. */
static const size_t ask_most = (size_t)256 << 20;
static const size_t resident_piece = (size_t)16 << 20; /* bytes */

static bool by_pagemap(struct fl_pages *p, struct fl_range part, size_t *out_bytes)
{
    int rc = -EAGAIN;

    fl_busy_begin();
    if (fl_lock_acquire_unless_forking(&p->asking)) {
        rc = fl_sys.present(part, out_bytes);
        fl_lock_release(&p->asking);
    }
    fl_busy_end();
    return rc == 0;
}

/* mincore fails where some of it is not mapped: that is told page by page. */
static void by_page(struct fl_range part, uint64_t *resident, uint64_t *unknown)
{
    for (size_t done = 0; done < part.len; done += fl_page.base) {
        size_t there = 0;
        int rc = fl_sys.resident((struct fl_range){part.base + done, fl_page.base}, &there);
        *resident += rc == 0 ? there : 0;
        *unknown += rc != 0 && rc != -ENOMEM ? fl_page.base : 0;
    }
}

static void by_mincore(struct fl_range part, uint64_t *resident, uint64_t *unknown)
{
    for (size_t done = 0; done < part.len; done += fl_page.huge) {
        struct fl_range piece = {part.base + done, fl_min(fl_page.huge, part.len - done)};
        size_t there = 0;
        int rc = fl_sys.resident(piece, &there);
        if (rc == -ENOMEM) {
            by_page(piece, resident, unknown);
        } else {
            *resident += rc == 0 ? there : 0;
            *unknown += rc != 0 ? piece.len : 0;
        }
    }
}

void fl_residency_ask(struct fl_pages *p, struct fl_range range, uint64_t *resident,
                      uint64_t *unknown)
{
    fl_lock_must_be_free(FL_RANK_REGION);
    if (fl_sys_is_confined()) {
        *unknown += range.len;
        return;
    }
    for (size_t done = 0; done < range.len; done += ask_most) {
        struct fl_range part = {range.base + done, fl_min(ask_most, range.len - done)};
        size_t there = 0;
        if (by_pagemap(p, part, &there)) {
            fl_assert(there <= part.len);
            *resident += there;
        } else {
            by_mincore(part, resident, unknown);
        }
    }
}

/* Percent of `all` in memory; negative: unknown. */
static int share_of(struct fl_range all)
{
    size_t there = 0, sum = 0, stride = fl_align_down(all.len / SAMPLES, fl_page.base);

    fl_assert(all.len != 0);
    if (all.len <= FL_RESIDENCY_WHOLE) {
        return fl_sys.resident(all, &there) == 0 ? (int)(there * 100 / all.len) : -1;
    }
    /* Not to the end where more than half is missing: how much more is of no interest. */
    for (size_t i = 0; i < SAMPLES && (i - sum / fl_page.base) * 2 <= SAMPLES; i++) {
        struct fl_range page = {all.base + i * stride, fl_page.base};
        if (fl_sys.resident(page, &there) != 0) {
            return -1;
        }
        sum += there;
    }
    fl_assert(sum <= SAMPLES * fl_page.base);
    return (int)(sum / fl_page.base * 100 / SAMPLES);
}

/* May the pagemap be asked? It has no scan before Linux 6.7, and would be read entry by entry. */
static bool may_scan(struct fl_range all)
{
    struct fl_range unused;

    return all.len <= FL_RESIDENCY_WHOLE ||
           fl_sys.find_split((struct fl_range){all.base, fl_page.huge}, &unused) != -ENOSYS;
}

/* The same of a sparse one. The page of zeros, which comes where base pages are only read, is
 * not counted: mincore has it as there. */
static int share_of_sparse(struct fl_pages *p, struct fl_range all)
{
    size_t there = 0;
    int rc = -EBUSY;

    fl_busy_begin();
    if (fl_lock_acquire_unless_forking(&p->asking)) {
        rc = may_scan(all) ? fl_sys.present(all, &there) : -ENOSYS;
        fl_lock_release(&p->asking);
    }
    fl_busy_end();
    return rc == 0 ? (int)(there * 100 / all.len) : share_of(all);
}

int fl_residency_share(struct fl_pages *p, struct fl_range range, bool sparse)
{
    return sparse ? share_of_sparse(p, range) : share_of(range);
}

bool fl_residency_is_dense(struct fl_range range)
{
    size_t missing = 0, may_miss = range.len / 16;

    for (size_t done = 0; done < range.len && missing <= may_miss; done += resident_piece) {
        struct fl_range piece = {range.base + done, fl_min(resident_piece, range.len - done)};
        size_t there = 0;
        (void)fl_sys.resident(piece, &there); /* a refusal counts as not there */
        fl_assert(there <= piece.len);
        missing += piece.len - there;
    }
    return missing <= may_miss;
}
