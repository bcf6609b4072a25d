/* Short requests that lie in holes: what is touched of such blocks is learnt from a few, and where
 * that is little they wait for their touch. What is in memory is asked of the real kernel. */
#include "unit/region_case.h"
#include "unit/pieces_fixture.h"

enum { EVERY = 16 };

static int each(void **state)
{
    int rc = blocks_begin(state);

    region.config.wait_for_touch = true;
    give_but(2);
    (void)fl_region_purge(&region, 0);
    fake_forget();
    return rc;
}

/* A block in a hole; `out_there`: bytes of it in memory before it is touched. */
static struct fl_extent *take_hole(size_t *out_there)
{
    struct fl_extent *e = take(KIB(512));

    *out_there = bytes_there(e);
    return e;
}

/* And it is a hole again, of which the first `touched` bytes were. */
static void give_hole(struct fl_extent *e, size_t touched)
{
    for (size_t at = 0; at < touched; at += KIB(4)) {
        touch_at(e, at);
    }
    free_looked_at(e);
    (void)fl_region_purge(&region, 0);
}

/* One request after the other. Returns how many were left to the touch. */
static unsigned left_of(unsigned requests, size_t touched)
{
    unsigned left = 0;

    for (unsigned i = 0; i < requests; i++) {
        size_t there;
        struct fl_extent *e = take_hole(&there);
        assert_true(there == 0 || there == KIB(512));
        left += there == 0;
        give_hole(e, touched);
    }
    assert_sound();
    return left;
}

TEST_FROM(each, what_is_seldom_touched_is_left_to_the_touch)
{
    assert_int_equal(left_of(EVERY, KIB(4)), 1);
    assert_int_equal(left_of(EVERY, KIB(4)), EVERY);
}

TEST_FROM(each, what_is_touched_goes_on_being_populated)
{
    assert_int_equal(left_of(4 * EVERY, KIB(512)), 4);
    assert_int_equal(left_of(4 * EVERY, KIB(256)), 4);
}

TEST_FROM(each, a_program_may_change)
{
    (void)left_of(4 * EVERY, KIB(4));
    (void)left_of(12 * EVERY, KIB(512));
    assert_int_equal(left_of(4 * EVERY, KIB(512)), 4);
}

TEST_FROM(each, a_part_of_a_hole_tells_nothing)
{
    for (unsigned i = 0; i < 2 * EVERY; i++) {
        struct fl_extent *a = take(KIB(512));
        fill(a, 1);
        free_looked_at(a); /* its memory is there for the next one */
        a = take(KIB(512));
        assert_int_equal(bytes_there(a), KIB(512));
        assert_int_equal(a->left & FL_LEFT_UNSEEN, 0);
        free_looked_at(a);
    }
}

/* Of a short one calloc would clear each page, by a fault. */
TEST_FROM(each, calloc_of_a_short_one_has_it_populated)
{
    for (unsigned i = 0; i < 2 * EVERY; i++) {
        struct fl_extent *e = take_zeroed(KIB(128));
        assert_int_equal(e->left & FL_LEFT_UNSEEN, 0);
        assert_true(is_filled(e, 0));
        free_looked_at(e);
        (void)fl_region_purge(&region, 0);
    }
    assert_int_equal(fake.count[FAKE_POPULATE], 2 * EVERY);
}

TEST_FROM(each, who_wants_it_at_once_gets_it)
{
    region.config.wait_for_touch = false;
    assert_int_equal(left_of(2 * EVERY, KIB(4)), 0);
}
