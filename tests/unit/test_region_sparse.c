/* Kinds of blocks of which little is touched: by base pages, and gone when they are freed. What is
 * in memory is asked of the real kernel. */
#include "unit/region_case.h"

#include <errno.h>

/* Of what little is touched: by base pages, and gone when it is freed. */
TEST_FROM(waiting_begin, sparse_kinds_get_base_pages)
{
    struct fl_extent *e = take(MIB(64));
    uintptr_t base = e->base;
    touch_at(e, 0);
    assert_true(bytes_there(e) >= MIB(2) || !fl_page.thp);
    free_looked_at(e);
    assert_int_equal(take(MIB(64))->base, base); /* what is free comes first */
    size_t populated = region.held.populated;
    for (int i = 0; i < 3; i++) {
        e = take_zeroed(MIB(80));
        assert_int_equal(e->content, FL_CONTENT_LAZY);
        touch_at(e, 0);
        touch_at(e, MIB(80) - 1);
        assert_int_equal(bytes_there(e), KIB(8));
        assert_int_equal(region.held.populated, populated);
        base = e->base;
        free_looked_at(e);
        assert_int_equal(fl_extent_at(&region.space, base)->content, FL_CONTENT_EMPTY);
        assert_settled();
    }
    e = take(MIB(40)); /* another kind */
    assert_int_equal(e->content, FL_CONTENT_POPULATED);
    assert_int_equal(take(MIB(3))->content, FL_CONTENT_POPULATED);
}

/* Where it cannot be mapped, what is free serves; and so it does under a limit, and in a confined
 * process. */
TEST_FROM(waiting_begin, what_is_free_is_better_than_nothing)
{
    for (int i = 0; i < 3; i++) {
        (void)waiting_begin(state);
        struct fl_extent *e = take(MIB(20)), *other = take(MIB(40));
        uintptr_t base = e->base;
        free_looked_at(other);
        (void)fl_region_purge(&region, 0); /* so that it is not full */
        free_looked_at(e);
        fake.rc[FAKE_MAP_AT] = fake.rc[FAKE_COMMIT] = i == 0 ? -ENOMEM : 0;
        region.config.limit = i == 1 ? MIB(200) : 0;
        fl_sys_confine(i == 2);
        assert_int_equal(fl_left_is_sparse(&region, MIB(17)), i == 0);
        e = take(MIB(17));
        fl_sys_confine(false);
        fake.rc[FAKE_MAP_AT] = fake.rc[FAKE_COMMIT] = 0;
        assert_int_equal(e->content, FL_CONTENT_POPULATED);
        assert_int_equal(e->base, base);
        assert_settled();
    }
}

/* A kind of which one, freed now, was not touched. */
static int sparse_begin(void **state)
{
    (void)waiting_begin(state);
    free_looked_at(take(MIB(20)));
    (void)fl_region_purge(&region, 0);
    return 0;
}

/* One free says little. */
TEST_FROM(sparse_begin, sparse_ones_are_few_at_first)
{
    struct fl_extent *e[3];
    for (int i = 0; i < 3; i++) {
        e[i] = take(MIB(20));
        assert_int_equal(e[i]->content, i < 2 ? FL_CONTENT_LAZY : FL_CONTENT_POPULATED);
    }
    free_looked_at(e[0]);
    free_looked_at(e[1]);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(take(MIB(20))->content, FL_CONTENT_LAZY);
    }
    assert_int_equal(region.history.sparse_live, 8);
}

/* It stays one map by base pages, and is none of what is kept. */
TEST_FROM(sparse_begin, sparse_ones_grow_as_such)
{
    struct fl_extent *e = take(MIB(20));
    assert_true(fl_region_resize(&region, e, MIB(30)));
    fill(e, 1);
    fl_region_clear(&region, e);
    fill(e, 1);
    struct fl_extent *to = is_reserved() ? e : fl_region_move(&region, e, MIB(40));
    assert_non_null(to);
    assert_int_equal(region.history.sparse_live, 1);
    assert_int_equal(to->left & FL_LEFT_SPARSE, FL_LEFT_SPARSE);
    free_looked_at(to);
    assert_int_equal(region.held.populated, 0);
    assert_int_equal(region.history.sparse_live, 0);
}

/* The page of zeros is there, and is not counted. */
TEST_FROM(sparse_begin, what_is_read_alone_stays_sparse)
{
    for (int i = 0; i < 8; i++) {
        struct fl_extent *e = take_zeroed(MIB(20));
        assert_int_equal(e->content, FL_CONTENT_LAZY);
        assert_true(is_filled(e, 0));
        free_looked_at(e);
    }
}

TEST_FROM(sparse_begin, a_kind_that_is_touched_again_is_not_sparse)
{
    for (int i = 0; i < 2; i++) {
        struct fl_extent *e = take(MIB(30));
        assert_int_equal(e->content, i == 0 ? FL_CONTENT_LAZY : FL_CONTENT_POPULATED);
        fill(e, 1);
        uintptr_t base = e->base;
        free_looked_at(e); /* base pages are not kept */
        enum fl_content now = fl_extent_at(&region.space, base)->content;
        assert_int_equal(now, i == 0 ? FL_CONTENT_EMPTY : FL_CONTENT_POPULATED);
    }
}

/* What is asked for beyond all memory cannot all be touched: as it comes without us. */
TEST_FROM(waiting_begin, what_memory_cannot_hold_comes_by_base_pages)
{
    if (is_reserved()) { /* the window has a GiB here */
        return;
    }
    for (int always = 0; always < 2; always++) {
        (void)waiting_begin(state);
        fl_page.always = always != 0;
        struct fl_extent *giant = take(fake.memory_total - MIB(40));
        struct fl_extent *e = take(MIB(20)); /* with it all may still be touched */
        assert_int_equal(e->left & FL_LEFT_SPARSE, 0);
        e = take(MIB(64));
        assert_int_equal(e->left & FL_LEFT_SPARSE, always ? 0 : FL_LEFT_SPARSE);
        touch_at(e, MIB(33));
        assert_int_equal(bytes_there(e), always && fl_page.thp ? MIB(2) : KIB(4));
        fl_page.always = false;
        assert_int_equal(take(MIB(1))->left & FL_LEFT_SPARSE, 0);
        struct fl_extent *full = take(MIB(160));
        assert_int_equal(full->content, FL_CONTENT_LAZY);
        fill(full, 1);
        free_looked_at(full);
        assert_int_equal(take(MIB(130))->content, FL_CONTENT_POPULATED); /* touched it will be */
        give(giant);
        assert_int_equal(take(MIB(20))->content, FL_CONTENT_POPULATED);
        assert_settled();
    }
}

/* What is free serves, though it may never have been touched: that is counted already. */
TEST_FROM(waiting_begin, beyond_all_memory_what_is_free_comes_first)
{
    struct fl_extent *e = take(MIB(20));
    uintptr_t base = e->base;
    for (int i = 0; i < 4; i++) {
        (void)take(fake.memory_total / 4);
    }
    give(e);
    e = take(MIB(20));
    assert_int_equal(e->content, FL_CONTENT_POPULATED);
    assert_int_equal(e->base, base);
}
