/* The region's start. */
#include "region/serve/shard.h"
#include "region/free/fit.h"
#include "region/settle.h"

#include <errno.h>

/* What is behind the window's addresses, once these are known. */
static void start_pages(struct fl_region *r)
{
    struct fl_pages *p = &r->pages;

    /* The last pages of the window's first huge page, which no block ever gets. */
    fl_move_start(p, r->config.method,
                  (struct fl_range){r->space.first - 2 * fl_page.base, 2 * fl_page.base});
    p->holes.window = r->space.window.all;
    p->holes.reserved = r->space.window.reserved;
    /* Right behind the descriptors, where nothing else is either. */
    p->holes.place = fl_range_end(r->space.descriptors.span.all);
}

int fl_region_start(struct fl_region *r, const struct fl_region_config *c)
{
    uint64_t swap;
    size_t memory = fl_sys.memory_total(&swap);

    r->config = *c;
    r->pressure.total = memory;
    r->pressure.absurd_above = memory != 0 ? memory + swap : SIZE_MAX;
    atomic_store_explicit(&r->cache_max, FL_CACHED_MOST, memory_order_relaxed);
    r->zones.n = 1;
    fl_fit_start(&r->zones.of[0]);
    fl_shards_start(r);
    fl_settle_start(r);
    TAILQ_INIT(&r->isolated);
    TAILQ_INIT(&r->pinned);
    TAILQ_INIT(&r->hugetlb.live);
    fl_depot_resize(r);
    r->pages.window = &r->space.window;
    r->pages.placing = &r->zones.placing;
    r->pages.stats = &r->stats;
    r->pages.huge = c->huge;
    r->pages.collapse = c->collapse;
    r->pages.by_touch = c->populate_by_touch;
    r->pages.pace.wants_worker = &r->wants_worker;
    fl_pages_start(&r->pages);
    if (fl_space_start(&r->space, memory, c->huge) != 0) {
        return -ENOMEM;
    }
    r->space.first = r->space.window.all.base + fl_page.huge;
    fl_assert(r->space.first % fl_page.huge == 0);
    start_pages(r);
    return 0;
}
