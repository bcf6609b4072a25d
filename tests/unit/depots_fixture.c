/* See depots_fixture.h. */
#include "unit/depots_fixture.h"
#include "unit/cmocka_all.h"

struct fl_cache *depots_cache;
struct fl_depot *depots_own;

void depots_resize(void)
{
    fl_region_lock(&region);
    fl_depot_resize(&region);
    fl_region_unlock(&region);
}

int depots_begin(void **state)
{
    (void)state;
    region_begin(NULL);
    fake.pretend_populate = true;
    assert_non_null(take(MIB(192)));
    depots_cache = fl_cache_acquire(&region);
    assert_non_null(depots_cache);
    depots_resize();
    assert_int_equal(region.depots.most, MIB(192) / DEPOTS_SHARE);
    return 0;
}

bool depots_put(struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    bool kept = fl_region_keep(&region, depots_cache, e);
    if (!kept) {
        fl_region_give(&region, e);
    } else {
        depots_own = &region.depots.depot[__builtin_ctzll(region.depots.used)];
    }
    return kept;
}

size_t depots_waiting(void)
{
    return fl_depot_blocks(&region);
}
