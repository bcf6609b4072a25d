/* The window: how large, and where. */
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
