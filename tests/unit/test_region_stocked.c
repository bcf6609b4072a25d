/* Requests that take huge pages from the stock: clean ones, whole pieces, and what becomes of those
 * that do not move. */
#include "unit/region_case.h"

#include <errno.h>
#include <string.h>

static struct fl_reserve *stock(void)
{
    return &region.pages.reserve;
}

TEST_WHERE(has_stock, stock_ready, calloc_takes_from_it_and_clears_nothing)
{
    size_t populated = region.held.populated;
    memset(stock_chunk(0), 0xcc, MIB(64)); /* clearing would take that away */
    struct fl_extent *e = take_zeroed(MIB(20));
    assert_true(is_filled(e, 0xcc));
    assert_int_equal(region.held.populated, populated);
    assert_int_equal(fake_bytes(FAKE_MOVE), MIB(20));
    assert_null(in_window(FAKE_POPULATE, 0));
    assert_stock(MIB(44));
    assert_int_equal(stats().stalls, 1); /* the first one's */
}

TEST_WHERE(has_stock, stock_ready, malloc_takes_from_it_before_the_kernel_has_to_give)
{
    assert_non_null(take(MIB(20)));
    assert_int_equal(fake_bytes(FAKE_MOVE), MIB(20));
    assert_null(in_window(FAKE_POPULATE, 0));
    assert_stock(MIB(44));
}

TEST_WHERE(has_stock, stock_ready, malloc_takes_from_free_extents_before_it)
{
    struct fl_extent *a = take_zeroed(MIB(8)), *wall = take_zeroed(MIB(2)),
                     *b = take_zeroed(MIB(8));
    assert_true(wall != NULL && take_zeroed(MIB(2)) != NULL);
    assert_stock(MIB(44));
    fill(a, 1);
    fill(b, 1);
    give(a);
    give(b);
    struct fl_extent *e = take(MIB(12));
    assert_true(is_filled(e, 1));
    assert_stock(MIB(44));
    struct fl_extent *z = take_zeroed(MIB(12)); /* what is clean is for calloc */
    assert_true(is_filled(z, 0));
    assert_stock(MIB(32));
}

TEST_WHERE(has_stock, stock_ready, requests_take_pieces_of_several_chunks)
{
    assert_non_null(take_zeroed(MIB(40)));
    stock_refill(MIB(64)); /* into another chunk: one that is taken from is not refilled */
    assert_int_equal(stock()->chunk[0].ready, MIB(24));
    assert_int_equal(stock()->chunk[1].ready, MIB(40));
    assert_stock(MIB(64));
    memset(stock_chunk(0), 0xc0, MIB(24));
    memset(stock_chunk(1), 0xc1, MIB(40));
    fake_forget();
    struct fl_extent *e = take_zeroed(MIB(50));
    assert_int_equal(fake.count[FAKE_MOVE], 2);
    assert_int_equal(fake_bytes(FAKE_MOVE), MIB(50));
    assert_true(bytes(e)[0] == 0xc0 && bytes(e)[MIB(24) - 1] == 0xc0);
    assert_true(bytes(e)[MIB(24)] == 0xc1 && bytes(e)[MIB(50) - 1] == 0xc1);
    assert_stock(MIB(14));
    assert_non_null(take_zeroed(MIB(20))); /* more than there is */
    assert_int_equal(in_window(FAKE_POPULATE, 0)->range.len, MIB(6));
    assert_stock(0);
}

TEST_WHERE(has_stock, stock_none, requests_take_so_many_pieces_and_no_more)
{
    assert_non_null(take(MIB(64)));
    for (size_t i = 1; i <= 30; i++) { /* each into a chunk of its own */
        region.refill.demand = MIB(2) * i;
        region.refill.filling = true;
        (void)fl_region_refill(&region);
        assert_stock(MIB(2) * i);
    }
    fake_forget();
    struct fl_extent *e = take_zeroed(MIB(60));
    assert_true(is_filled(e, 0));
    assert_int_equal(fake.count[FAKE_MOVE], FL_RESERVE_PIECES);
    assert_int_equal(in_window(FAKE_POPULATE, 0)->range.len, MIB(60 - 2 * FL_RESERVE_PIECES));
    assert_stock(MIB(60 - 2 * FL_RESERVE_PIECES));
    assert_true(is_filled(take_zeroed(MIB(12)), 0));
    assert_stock(0);
}

TEST_WHERE(has_stock, stock_ready, what_does_not_move_at_all_is_stock_again)
{
    fake.rc[FAKE_MOVE_BEGIN] = -EMFILE;
    size_t populated = region.held.populated;
    struct fl_extent *e = take_zeroed(MIB(20));
    assert_true(is_filled(e, 0));
    assert_int_equal(region.held.populated, populated + MIB(20));
    assert_false(stock()->chunk[0].holed);
    assert_stock(MIB(64));
}

TEST_WHERE(has_stock, NULL, a_chunk_whose_rest_is_unknown_is_made_anew)
{
    static const size_t before[] = {KIB(4), MIB(2), MIB(3), MIB(20) - KIB(4)};
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        (void)stock_filled(&stock_wanted);
        memset(stock_chunk(0), 0xcc, MIB(64)); /* so that it has pages to leave behind */
        refuse_moves(before[i], -EBUSY);
        struct fl_extent *e = take(MIB(20));
        fake.on_move = NULL;
        memset(bytes(e), 0, e->len);
        assert_true(stock()->chunk[0].holed);
        assert_stock(MIB(44));
        e = take_zeroed(MIB(44)); /* what lies below is as good as ever */
        assert_true(is_filled(e, 0xcc));
        assert_stock(0);
        stock_refill(MIB(64));
        assert_stock(MIB(64));
        assert_false(stock()->chunk[0].holed);
        assert_int_equal(stock_chunk(0)[MIB(60)], 0); /* what was left there is gone */
        e = take_zeroed(MIB(64));
        assert_true(is_filled(e, 0));
        assert_stock(0);
    }
}

static void *purge_all(void *arg)
{
    (void)fl_region_purge(&region, 0);
    stock_refill(MIB(64));
    assert_sound();
    return arg;
}

static int others_purge_and_refill(struct fl_range from, uintptr_t to, size_t *most)
{
    fake.on_move = NULL;
    run_beside(purge_all, NULL);
    return 0;
}

TEST_WHERE(has_stock, stock_ready, pages_on_their_way_are_in_no_other_block)
{
    memset(stock_chunk(0), 0xcc, MIB(64));
    fake.on_move = others_purge_and_refill;
    struct fl_extent *e = take_zeroed(MIB(20));
    assert_true(is_filled(e, 0xcc));
    assert_int_equal(stock()->chunk[0].moving, 0);
    assert_stock(stock()->ready);
    (void)fl_region_purge(&region, 0);
    assert_stock(0);
    (void)stock_filled(&stock_wanted);
    memset(stock_chunk(0), 0xcc, MIB(64));
    fake.on_move = others_purge_and_refill;
    e = take_zeroed(MIB(64)); /* all of it is on its way */
    assert_true(is_filled(e, 0xcc));
    assert_int_equal(stock()->chunk[0].ready, 0);
    assert_int_equal(stock()->chunk[1].ready, stock()->ready); /* filled meanwhile */
    assert_true(stock()->ready != 0);
    assert_stock(stock()->ready);
}

TEST_WHERE(has_stock, NULL, what_mremap_takes_from_it_is_for_children_too)
{
    struct fl_region_config c = stock_wanted;
    c.method = FL_METHOD_REMAP;
    (void)stock_filled(&c);
    struct fl_extent *e = take_zeroed(MIB(64));
    assert_int_equal(fake_bytes(FAKE_REMAP), MIB(64));
    assert_int_equal(fake_kept_from_child(region.space.window.all), 0);
    assert_true(is_filled(e, 0));
    assert_stock(0);
    fake_forget();
    stock_refill(MIB(64)); /* into maps that are advised as they should be */
    assert_stock(MIB(64));
    assert_int_equal(fake_kept_from_child(stock()->span.all), MIB(64));
    assert_int_equal(fake_nth(FAKE_ADVISE, 0)->advice, FL_ADVICE_HUGE);
    assert_int_equal(fake_nth(FAKE_ADVISE, 0)->range.len, MIB(64));
}
