/* See rows_fixture.h. */
#include "unit/rows_fixture.h"
#include "region/row.h"
#include "unit/cmocka_all.h"
#include "unit/shards_fixture.h"

struct fl_cache *rows_own, *rows_theirs;
struct fl_extent *rows_block[2 * FL_MAGAZINE];

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
    struct fl_extent *e = fl_cache_serve(&region, own, len);

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

void rows_make_long(struct fl_cache *own, size_t len)
{
    own->row = FL_ROW_LONG;
    own->row_len = len;
}

void rows_keep(size_t n, size_t len)
{
    rows_ask_for(n, len);
    fl_region_lock(&region);
    fl_row_put_back(&region, rows_own); /* what was taken along */
    fl_region_unlock(&region);
    rows_make_long(rows_own, len);
    rows_free(n);
    assert_non_null(fl_magazine_of(rows_own));
    assert_int_equal(stats().cached_bytes, n * len);
}

uint64_t rows_locks(void)
{
    uint64_t n = region.stats.locks;

    for (unsigned i = 0; i < fl_shards_open(&region.shards); i++) {
        n += region.shards.of[i].since.locks;
    }
    return n;
}

void rows_drain_some(void)
{
    fl_region_lock(&region);
    (void)fl_cache_drain_some(&region, FL_MAGAZINES_AT_ONCE);
    fl_region_unlock(&region);
}

void rows_settle(void)
{
    fl_cache_release(&region, rows_own);
    fl_cache_release(&region, rows_theirs);
    assert_int_equal(stats().cached_bytes, 0);
    assert_int_equal(stats().in_use_bytes, 0);
    assert_settled();
}
