/* The window: how large, where; and how the pagemap reaches as far as it is used. */
#include "space/space.h"

#include <errno.h>
#include <string.h>

enum { ADDRESS_TRIES = 4 };

/* Whatever memory there is: sparse requests need addresses too. */
static const size_t window_least = (size_t)4 << 40;
static const size_t window_most = (size_t)8 << 40;
static const size_t window_worthless = (size_t)64 << 20;
/* Where nothing else is placed: docs/internals/regions.md has the table of what lies around. The
 * kernel puts no map there by itself, in no layout of its own, for a map of others amid the window
 * would be taken for ours. A random base keeps large blocks' addresses as hard to guess as mmap's.
 * The next place is for processes with fewer addresses than the one before. */
static const uintptr_t quiet[] = {
#if defined(__aarch64__)
    (uintptr_t)130 << 40, /* of 48 bits */
#endif
    (uintptr_t)67 << 40, /* of 47 bits */
};
static const size_t quiet_spread = (size_t)4 << 40;
/* The pagemap is brought into memory as it grows, 1 KiB a MiB of the window, so that later steps
 * take no fault for it; but not for a sparse giant's sake; in strides of an eighth of what is
 * wanted, of 2 MiB at most. */
static const size_t ahead_most = (size_t)4 << 20, ample_share = 8;
/* Extents average at least 16 KiB: a descriptor is 128 bytes, so descriptors take 1/128 of the
 * window in addresses. */
static const size_t bytes_per_descriptor = (size_t)16 << 10;

/* Window, pagemap and descriptors side by side from `at`, or anywhere when it is 0. */
static int claim_parts(struct fl_space *s, size_t len, uintptr_t at)
{
    size_t pagemap_len = fl_align_up((len >> fl_page.shift) * sizeof(uint32_t), fl_page.huge);
    size_t descriptors_len =
        fl_align_up(len / bytes_per_descriptor * sizeof(struct fl_extent), fl_page.huge);
    uintptr_t pagemap_at = at != 0 ? at + len : 0,
              descriptors_at = at != 0 ? at + len + pagemap_len : 0;
    int rc = fl_vspace_claim(&s->window, len, fl_page.huge, at, "faultless:window");

    if (rc != 0) {
        return rc;
    }
    rc = fl_vspace_claim(&s->pagemap, pagemap_len, fl_page.huge, pagemap_at, "faultless:pagemap");
    if (rc != 0) {
        goto no_pagemap;
    }
    rc = fl_vspace_claim(&s->descriptors.span, descriptors_len, fl_page.huge, descriptors_at,
                         "faultless:extents");
    if (rc == 0) {
        fl_assert(s->window.all.len == len && s->pagemap.all.len == pagemap_len);
        return 0;
    }
    fl_vspace_release(&s->pagemap);
no_pagemap:
    fl_vspace_release(&s->window);
    return rc;
}

static int claim_quiet(struct fl_space *s, size_t len, uintptr_t from)
{
    uint64_t dice = fl_sys.entropy();

    fl_assert((len | from) % fl_page.huge == 0);
    int rc = -EEXIST;

    for (int i = 0; i < ADDRESS_TRIES && rc == -EEXIST; i++) {
        rc = claim_parts(s, len, from + fl_align_down(dice % quiet_spread, fl_page.huge));
        dice = dice * 6364136223846793005u + 1442695040888963407u;
    }
    return rc;
}

static int claim_anywhere(struct fl_space *s, size_t len)
{
    int rc = -ENOMEM;

    for (size_t i = 0; i < sizeof quiet / sizeof quiet[0] && rc == -ENOMEM; i++) {
        rc = claim_quiet(s, len, quiet[i]);
    }
    while (rc != 0 && len >= window_worthless) {
        rc = claim_parts(s, len, 0);
        len = fl_align_down(len / 2, fl_page.huge);
    }
    return rc;
}

int fl_space_start(struct fl_space *s, size_t memory, bool huge)
{
    size_t len = fl_min(fl_max(fl_align_up(8 * memory, fl_page.huge), window_least), window_most);
    int rc = claim_anywhere(s, len);

    SLIST_INIT(&s->descriptors.stash.spare);
    if (rc != 0) {
        return rc;
    }
    fl_assert(s->window.all.base % fl_page.huge == 0 && s->window.all.len >= window_worthless);
    s->pagemap.huge = huge;
    s->base = s->window.all.base;
    /* NOLINTBEGIN(performance-no-int-to-ptr): spans are memory */
    s->map = (_Atomic uint32_t *)s->pagemap.all.base;
    s->descriptor = (struct fl_extent *)s->descriptors.span.all.base;
    /* NOLINTEND(performance-no-int-to-ptr) */
    return 0;
}

void fl_space_end(struct fl_space *s)
{
    fl_assert(s->map != NULL);
    fl_vspace_release(&s->descriptors.span);
    fl_vspace_release(&s->pagemap);
    fl_vspace_release(&s->window);
    s->base = 0;
    s->map = NULL;
    s->descriptor = NULL;
    memset(s->coarse, 0, sizeof s->coarse);
}

void fl_pagemap_populate(struct fl_space *s, struct fl_range window)
{
    struct fl_range all = {s->pagemap.all.base,
                           atomic_load_explicit(&s->mapped, memory_order_acquire) *
                               sizeof(uint32_t)};
    size_t from = (window.base - s->base) >> fl_page.shift, n = window.len >> fl_page.shift;
    struct fl_range part = {all.base + from * sizeof(uint32_t), n * sizeof(uint32_t)};

    fl_assert(window.base >= s->base && (window.base | window.len) % fl_page.base == 0);
    part = fl_range_inner(fl_range_common(part, all), fl_page.base);
    if (part.len != 0) {
        (void)fl_sys.populate(part);
    }
}

int fl_pagemap_reach(struct fl_space *s, uintptr_t end, bool ahead)
{
    /* one entry more: the extent that begins at `end` is published too */
    size_t entries = ((end - s->window.all.base) >> fl_page.shift) + 1;

    fl_assert(end >= s->base && end <= fl_range_end(s->window.all));
    size_t want = fl_min(entries * sizeof(uint32_t), s->pagemap.all.len);
    size_t had = atomic_load_explicit(&s->pagemap.grown, memory_order_relaxed);
    if (want <= had) {
        return 0;
    }
    size_t ample = want + (ahead ? fl_min(want / ample_share, ahead_most / 2) : 0);
    int rc = fl_vspace_grow(&s->pagemap, fl_min(ample, s->pagemap.all.len));
    if (rc != 0) {
        rc = fl_vspace_grow(&s->pagemap, want);
    }
    size_t now = atomic_load_explicit(&s->pagemap.grown, memory_order_relaxed), more = now - had;
    fl_assert(now >= had && (rc != 0 || now >= want) && now <= s->pagemap.all.len);

    if (more != 0) { /* release: a reader of the new bound may read what lies below it */
        atomic_store_explicit(&s->mapped, now / sizeof(uint32_t), memory_order_release);
    }
    if (ahead && more != 0 && more <= ahead_most) { /* a mere saving: it may fail */
        fl_lock_permit_calls(true);
        (void)fl_sys.populate((struct fl_range){s->pagemap.all.base + had, more});
        fl_lock_permit_calls(false);
    }
    return rc;
}
