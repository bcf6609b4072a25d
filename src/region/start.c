/* The region's start, and its boot area. */
#include "region/internal.h"

#include <errno.h>

static _Alignas(
    16) char boot_fallback[FL_BOOT_BYTES]; /* untouched, so no memory, unless it is needed */

int fl_region_start(struct fl_region *r, const struct fl_region_config *c)
{
    size_t memory = fl_sys.memory_total();

    r->config = *c;
    r->memory_total = memory;
    atomic_store_explicit(&r->cache_max, FL_CACHED_MOST, memory_order_relaxed);
    fl_lock_init(&r->lock, FL_RANK_REGION);
    r->nzones = 1;
    fl_fit_start(&r->zone[0]);
    TAILQ_INIT(&r->apart);
    TAILQ_INIT(&r->pinned);
    fl_rezero_start(r);
    fl_lock_init(&r->moving, FL_RANK_LEAF);
    fl_look_start(r);
    int rc = fl_space_start(&r->space, memory, c->huge);
    if (rc == 0 &&
        fl_vspace_commit(&r->space.window,
                         (struct fl_range){r->space.window.all.base, FL_BOOT_BYTES}, false) != 0) {
        fl_space_end(&r->space);
        rc = -ENOMEM;
    }
    if (rc != 0) { /* no window, but a boot area there must be */
        r->space.window.all = (struct fl_range){(uintptr_t)boot_fallback, sizeof boot_fallback};
        r->space.first = fl_range_end(r->space.window.all);
        return -ENOMEM;
    }
    /* mremap would leave a hole in the reserved span, for anybody to map something in */
    bool plain = c->rung == FL_RUNG_REMAP && r->space.window.reserved;
    atomic_store_explicit(&r->rung, plain ? FL_RUNG_PLAIN : c->rung, memory_order_relaxed);
    r->space.first = r->space.window.all.base +
                     fl_page.huge; /* the boot area has the first huge page's addresses */
    return 0;
}

void *fl_region_boot_alloc(struct fl_region *r, size_t size)
{
    static size_t used; /* bytes; boot is single-threaded */
    size_t want = fl_align_up(fl_max(size, 1), 16);

    if (size > FL_BOOT_BYTES || used + want + 16 > FL_BOOT_BYTES) {
        return NULL;
    }
    char *block = (char *)r->space.window.all.base + used; /* NOLINT(performance-no-int-to-ptr) */
    *(size_t *)(void *)block = size;                       /* for realloc */
    used += want + 16;
    return block + 16;
}
