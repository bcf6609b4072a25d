/* Free memory that rests is hidden from core dumps, and is in them again when it is used. */
#include "cases.h"
#include "unit/region_fixture.h"

static const uint64_t ms = 1000000;

static size_t hidden(void)
{
    return fake_hidden(region.space.window.all);
}

static uint64_t look_after(uint64_t ms_later)
{
    fake.now_ns += ms_later * ms;
    return fl_region_rest(&region);
}

/* A look that sees what was asked for, and one when nothing has been for as long as it takes. */
static void rest(void)
{
    (void)look_after(100);
    assert_true(look_after(2000) == UINT64_MAX);
}

/* One free extent of `len` bytes with edges of half a huge page, hidden. */
static struct fl_range hidden_extent(size_t len)
{
    region_begin(NULL);
    assert_non_null(take(MIB(1)));
    struct fl_extent *e = take(len + MIB(2));
    struct fl_range inner = fl_range_inner(fl_extent_range(e), MIB(2));
    assert_non_null(take(MIB(1)));
    fill(e, 0xee);
    give(e);
    rest();
    assert_int_equal(inner.len, len);
    assert_int_equal(hidden(), len);
    assert_int_equal(fake_hidden(inner), len);
    fake_forget();
    return inner;
}

CASE(what_rests_is_hidden)
{
    (void)plain_begin(state);
    struct fl_extent *e = take(MIB(8)), *live = take(MIB(4));
    give(e);
    assert_true(look_after(100) == 100 * ms); /* something was asked for since the start */
    assert_int_equal(hidden(), 0);
    assert_true(look_after(40) == 60 * ms);
    assert_int_equal(hidden(), 0);
    assert_false(region.wants_worker && region.clock.has_worker);
    assert_true(look_after(60) == UINT64_MAX);
    assert_int_equal(hidden(), MIB(8));
    assert_int_equal(fake_hidden(fl_extent_range(live)), 0);
    assert_true(region.wants_worker); /* the next free calls */
    fake_forget();
    assert_true(look_after(100) == UINT64_MAX);
    assert_int_equal(fake.count[FAKE_ADVISE], 0);
    assert_settled();
}

CASE(caches_are_emptied_for_it)
{
    (void)plain_begin(state);
    struct fl_cache *c = fl_cache_acquire(&region);
    (void)cache_put(c, take(MIB(8)));
    (void)look_after(100);
    c->stats.cache_hits++; /* as if it had been used */
    (void)look_after(100);
    assert_int_equal(hidden(), 0);
    rest();
    assert_int_equal(hidden(), MIB(8));
    assert_settled();
}

CASE(what_is_used_is_shown_and_the_rest_stays)
{
    struct fl_range inner = hidden_extent(MIB(16));
    struct fl_extent *a = take(MIB(4)); /* half a huge page of edge, so one and a half hidden */
    assert_int_equal(fake.count[FAKE_ADVISE], 1);
    assert_int_equal(fake_hidden(fl_extent_range(a)), 0);
    assert_int_equal(hidden(), inner.len - MIB(4));
    struct fl_extent *b = take(KIB(64)); /* of a huge page that is shown already */
    assert_int_equal(fake.count[FAKE_ADVISE], 1);
    assert_int_equal(fake_hidden(fl_extent_range(b)), 0);
    struct fl_extent *middle = take_aligned(MIB(2), MIB(8));
    assert_int_equal(fake_hidden(fl_extent_range(middle)), 0);
    assert_settled();
    give(b);
    give(a); /* merges with what is hidden in part */
    give(middle);
    rest();
    assert_int_equal(hidden(), inner.len);
    assert_settled();
}

/* A step's blocks out of it, and back: soon there is nothing more to tell the kernel. */
CASE(steps_do_not_tell_the_kernel_again_and_again)
{
    static const unsigned told[] = {4, 1, 0, 0};
    struct fl_extent *e[4];
    (void)hidden_extent(MIB(32));
    for (size_t step = 0; step < 4; step++) {
        fake_forget();
        for (size_t i = 0; i < 4; i++) {
            e[i] = take(MIB(4));
            assert_int_equal(fake_hidden(fl_extent_range(e[i])), 0);
        }
        assert_int_equal(fake.count[FAKE_ADVISE], told[step]);
        for (size_t i = 0; i < 4; i++) {
            give(e[i]);
        }
        assert_settled();
    }
}

/* Too many maps: the kernel may have done a part. */
CASE(what_cannot_be_hidden_is_shown_whole)
{
    (void)plain_begin(state);
    give(take(MIB(8)));
    (void)look_after(100);
    fake_fail_at(1, 1u << FAKE_ADVISE);
    assert_true(look_after(2000) == UINT64_MAX);
    assert_true(fake_fired());
    assert_int_equal(hidden(), 0);
    fake_fail_at(0, 1);
    rest();
    assert_int_equal(hidden(), MIB(8));
    assert_settled();
}

CASE(only_so_many_are_hidden)
{
    enum { MANY = 300, MOST = 256 };
    static struct fl_extent *e[MANY];
    (void)plain_begin(state);
    if (is_reserved()) { /* the window is too small for so many */
        return;
    }
    fake.pretend_populate = true;
    for (size_t i = 0; i < MANY; i++) {
        e[i] = take(MIB(2));
        assert_non_null(take(MIB(2)));
    }
    for (size_t i = 0; i < MANY; i++) {
        give(e[i]);
    }
    rest();
    assert_int_equal(hidden(), MOST * MIB(2));
    assert_int_equal(fake_hidden((struct fl_range){e[0]->base, MIB(2)}), MIB(2)); /* the oldest */
    rest();
    assert_int_equal(hidden(), MOST * MIB(2));
    assert_settled();
}

CASE(among_requests_it_is_hidden_by_age)
{
    (void)plain_begin(state);
    struct fl_extent *old = take(MIB(8)), *between = take(MIB(2)), *young = take(MIB(4));
    assert_non_null(take(MIB(2)));
    give(old);
    region.epoch += 2;
    give(young);
    assert_true(look_after(100) < UINT64_MAX);
    assert_int_equal(fake_hidden((struct fl_range){old->base, MIB(8)}), MIB(8));
    assert_int_equal(hidden(), MIB(8));
    assert_int_equal(fake_hidden(fl_extent_range(between)), 0);
    assert_settled();
}

/* Steps with a pause as long as memory has to rest: soon they find nothing hidden any more. */
CASE(what_is_used_after_a_pause_rests_longer_the_next_time)
{
    (void)plain_begin(state);
    give(take(MIB(8)));
    unsigned undone = 0;
    for (int step = 0; step < 20; step++) {
        fake_forget();
        struct fl_extent *e = take(MIB(8));
        undone += fake.count[FAKE_ADVISE];
        give(e);
        uint64_t next = look_after(100);
        for (int i = 0; i < 3 && next != UINT64_MAX; i++) {
            next = look_after(100);
        }
    }
    assert_int_equal(undone, 2);
    assert_settled();
}

/* A busy program is looked at seldom. */
CASE(looks_become_rare_while_requests_come)
{
    (void)plain_begin(state);
    uint64_t next = 0;
    for (int i = 0; i < 20; i++) {
        give(take(MIB(8)));
        next = look_after(100);
    }
    assert_true(next == 1600 * ms);
    assert_int_equal(hidden(), 0);
    rest();
    give(take(MIB(8)));
    assert_true(look_after(100) < 1000 * ms);
}

CASE(the_stock_is_hidden_from_its_start)
{
    if (!stock_filled(&(struct fl_region_config){.huge = true, .stock = MIB(16)})) {
        return;
    }
    assert_int_equal(fake_hidden(region.pages.reserve.span.all), MIB(16));
    struct fl_extent *e = take_zeroed(MIB(8));
    assert_int_equal(stats().move_bytes, MIB(8));
    assert_int_equal(fake_hidden(fl_extent_range(e)), 0);
    assert_settled();
}

CASES_MAIN()
