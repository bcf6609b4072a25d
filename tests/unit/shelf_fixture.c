/* See shelf_fixture.h. */
#include "unit/shelf_fixture.h"

#include "unit/cmocka_all.h"

struct fl_cache *shelf_cache;

void shelf_resize(void)
{
    fl_region_lock(&region);
    fl_shelf_resize(&region);
    fl_region_unlock(&region);
}

int shelf_begin(void **state)
{
    (void)state;
    region_begin(NULL);
    fake.pretend_populate = true;
    assert_non_null(take(MIB(192)));
    shelf_cache = fl_cache_acquire(&region);
    assert_non_null(shelf_cache);
    shelf_resize();
    return 0;
}
