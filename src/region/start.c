/* The region's start, and its boot area. */
#include "region/counts.h"
#include "region/fit.h"
#include "region/pressure.h"

#include <errno.h>

static _Alignas(
    16) char boot_fallback[FL_BOOT_BYTES]; /* untouched, so no memory, unless it is needed */

/* What is behind the window's addresses, once these are known. */
static void start_pages(struct fl_region *r)
{
    struct fl_pages *p = &r->pages;

    /* The last pages of the boot area's huge page, which no block ever gets. */
    fl_move_start(p, r->config.method,
                  (struct fl_range){r->space.first - 2 * fl_page.base, 2 * fl_page.base});
    p->holes.window = r->space.window.all;
    p->holes.reserved = r->space.window.reserved;
    /* Right behind the descriptors, where nothing else is either. */
    p->holes.place = fl_range_end(r->space.descriptors.span.all);
}

int fl_region_start(struct fl_region *r, const struct fl_region_config *c)
{
    size_t memory = fl_sys.memory_total();

    r->config = *c;
    r->pressure.total = memory;
    atomic_store_explicit(&r->cache_max, FL_CACHED_MOST, memory_order_relaxed);
    r->zones.n = 1;
    fl_fit_start(&r->zones.of[0]);
    fl_shards_start(r);
    TAILQ_INIT(&r->isolated);
    TAILQ_INIT(&r->pinned);
    TAILQ_INIT(&r->hugetlb.live);
    fl_rezero_start(r);
    r->pages.window = &r->space.window;
    r->pages.placing = &r->zones.placing;
    r->pages.stats = &r->stats;
    r->pages.huge = c->huge;
    r->pages.collapse = c->collapse;
    r->pages.by_touch = c->populate_by_touch;
    r->pages.pace.wants_worker = &r->wants_worker;
    fl_pages_start(&r->pages);
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
    r->space.first = r->space.window.all.base +
                     fl_page.huge; /* the boot area has the first huge page's addresses */
    start_pages(r);
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
