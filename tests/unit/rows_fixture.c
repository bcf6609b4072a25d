/* See rows_fixture.h. */
#include "unit/rows_fixture.h"
#include "unit/cmocka_all.h"
#include "unit/shards_fixture.h"

struct fl_cache *rows_own, *rows_theirs;
struct fl_extent *rows_block[ROWS_MOST];

static void begin(void)
{
    rows_own = fl_cache_acquire(&region);
    rows_theirs = fl_cache_acquire(&region);
    assert_true(rows_own != NULL && rows_theirs != NULL);
}

int rows_begin(void **state)
{
    (void)state;
    region_begin(NULL);
    begin();
    give(take(MIB(64)));
    return 0;
}

int rows_begin_sharded(void **state)
{
    shards_begin(state);
    shards_give();
    begin();
    fl_region_lock(&region);
    fl_region_unlock(&region);
    return 0;
}

struct fl_extent *rows_ask(struct fl_cache *own, size_t len)
{
    struct fl_extent *e = fl_cache_take(&region, own, len);

    e = e != NULL ? e : fl_depot_take_same(&region, own, len);
    e = e != NULL ? e : fl_depot_take(&region, own, len);
    e = e != NULL ? e : fl_region_take(&region, own, len, KIB(4), false);
    assert_non_null(e);
    assert_int_equal(e->state, FL_EXTENT_LIVE);
    assert_int_equal(e->len, len);
    return e;
}

void rows_ask_for(size_t n, size_t len)
{
    for (size_t i = 0; i < n; i++) {
        rows_block[i] = rows_ask(rows_own, len);
    }
}

void rows_free(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        shards_free_to(rows_own, rows_block[i]);
    }
}

void rows_give(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        give(rows_block[i]);
    }
}

uint64_t rows_locks(void)
{
    uint64_t n = region.stats.locks;

    for (unsigned i = 0; i < fl_shards_open(&region.shards); i++) {
        n += region.shards.of[i].since.locks;
    }
    return n;
}

void rows_settle(void)
{
    fl_cache_release(&region, rows_own);
    fl_cache_release(&region, rows_theirs);
    assert_int_equal(stats().cached_bytes, 0);
    assert_int_equal(stats().in_use_bytes, 0);
    assert_settled();
}
