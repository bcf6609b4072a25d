/* The reserved span: how large, where, and its boot area. */
#include "region/internal.h"

#include <errno.h>
#include <sys/resource.h>

enum {
    BOOT_AREA_HUGE = 1
}; /* huge pages at the window's start that the boot area has, in base pages */

static const size_t window_max = (size_t)1 << 42; /* 4 TiB: its pagemap is 4 GiB of address space */
static const size_t window_min = (size_t)64 << 20;
/* Extents average at least 16 KiB: a descriptor is 128 bytes, so 1/128 of the window in address space. */
static const size_t bytes_per_descriptor = (size_t)16 << 10;

static int reserve_parts(struct fl_region *r, size_t len, bool counted)
{
    size_t pagemap_len = fl_align_up((len >> fl_page.shift) * sizeof(uint32_t), fl_page.huge);
    size_t descriptors_len =
        fl_align_up(len / bytes_per_descriptor * sizeof(struct fl_extent), fl_page.huge);
    int rc = fl_vspace_reserve(&r->window, len, fl_page.huge, counted, "faultless:window");

    if (rc != 0) {
        return rc;
    }
    rc = fl_vspace_reserve(&r->pagemap, pagemap_len, fl_page.huge, false, "faultless:pagemap");
    if (rc != 0) {
        goto no_pagemap;
    }
    rc = fl_vspace_reserve(&r->descriptors, descriptors_len, fl_page.huge, false,
                           "faultless:extents");
    if (rc == 0) {
        return 0;
    }
    (void)fl_sys.unreserve(r->pagemap.all);
no_pagemap:
    (void)fl_sys.unreserve(
        (struct fl_range){r->window.all.base, counted ? r->window.committed : len});
    return rc;
}

int fl_region_start(struct fl_region *r, const struct fl_region_config *c)
{
    uint64_t as_limit = fl_sys.limit(RLIMIT_AS), data_limit = fl_sys.limit(RLIMIT_DATA);
    bool counted = as_limit != UINT64_MAX;
    size_t len = counted ? fl_min(fl_align_down(as_limit, fl_page.huge), window_max) : window_max;
    char mode[8];
    int rc = -ENOMEM;

    r->config = *c;
    fl_lock_init(&r->lock, FL_RANK_REGION);
    RB_INIT(&r->populated);
    RB_INIT(&r->empty);
    TAILQ_INIT(&r->by_age);
    TAILQ_INIT(&r->spare);
    TAILQ_INIT(&r->purging);
    while (len >= window_min && (rc = reserve_parts(r, len, counted)) != 0) {
        len = fl_align_down(len / 2, fl_page.huge);
    }
    if (rc != 0 || fl_vspace_commit(&r->window, fl_page.huge) != 0) {
        return -ENOMEM;
    }
    r->first = r->window.all.base + BOOT_AREA_HUGE * fl_page.huge;
    r->window.huge = c->huge;
    bool strict = fl_sys.read_file("/proc/sys/vm/overcommit_memory", mode, sizeof mode) == 0 &&
                  mode[0] == '2';
    if (!strict && !counted && data_limit == UINT64_MAX) {
        r->window.chunk = (size_t)1 << 30; /* nobody counts it: one mprotect a GiB */
    }
    return 0;
}

void *fl_region_boot_alloc(struct fl_region *r, size_t size)
{
    static size_t used; /* bytes; boot is single-threaded */
    size_t want = fl_align_up(fl_max(size, 1), 16);

    if (size > fl_page.huge || used + want + 16 > fl_page.huge) {
        return NULL;
    }
    char *block = (char *)r->window.all.base + used; /* NOLINT(performance-no-int-to-ptr) */
    *(size_t *)(void *)block = size;                 /* for realloc */
    used += want + 16;
    return block + 16;
}

int fl_window_commit(struct fl_region *r, uintptr_t end)
{
    size_t upto = end - r->window.all.base;
    /* one entry more: the extent that begins at `end` is published too */
    size_t entries = fl_min((upto >> fl_page.shift) + 1, r->window.all.len >> fl_page.shift);
    int rc = fl_vspace_commit(&r->pagemap, fl_align_up(entries * sizeof(uint32_t), fl_page.base));

    return rc == 0 ? fl_vspace_commit(&r->window, upto) : rc;
}
