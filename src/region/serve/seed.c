/* The window's first extent. */
#include "region/free/fit.h"
#include "region/serve/shard.h"
#include "region/serve/take.h"
#include "region/state/counts.h"
#include "region/state/lock.h"

#include <errno.h>

/* The whole window as one EMPTY extent. Left to the first request, so that a process without any
 * touches nothing. The pagemap is mapped once for both, the seed and the request. */
int fl_take_seed(struct fl_region *r, size_t len)
{
    fl_assert(fl_region_is_locked(r));
    if (r->zones.seeded) {
        return 0;
    }
    bool ahead = !fl_left_is_usual(r);
    struct fl_range all = {r->space.first, fl_range_end(r->space.window.all) - r->space.first};
    size_t most = fl_align_down(all.len, fl_page.huge);
    size_t some = ahead ? 0 : fl_min(fl_align_up(fl_min(len, most), fl_page.huge), most);

    if (fl_extent_reserve(&r->space, 1) != 0 ||
        (fl_pagemap_reach(&r->space, all.base + some, ahead) != 0 &&
         fl_pagemap_reach(&r->space, all.base, ahead) != 0)) {
        return -ENOMEM;
    }
    (void)fl_fit_insert(r, fl_extent_make(r, all, FL_CONTENT_EMPTY, fl_zone_of_none(r)));
    r->zones.seeded = true;
    if (r->zones.placing.nodes != 0) {
        fl_shards_open_nodes(r);
    }
    while (fl_shards_open(&r->shards) < r->config.shards && r->zones.placing.nodes == 0) {
        fl_shards_open_one(r);
    }
    return 0;
}
