/* malloc_trim, once and again and again, and fl_release: what goes back and what stays. */
#include "cases.h"
#include "unit/route_fixture.h"

#include <malloc.h>

static int passed_on;

static int next_trim(size_t pad)
{
    (void)pad;
    passed_on++;
    return 0;
}

static void each(void)
{
    passed_on = 0;
    route_begin();
    fl_route.next.trim = next_trim;
    fl_trim_choose(FL_TRIM_AUTO);
}

CASE(trim_gives_all_that_is_free)
{
    void *p = fl_malloc_large(MIB(40));
    fl_free_ours(p);
    assert_int_equal(fl_trim(MIB(64)), 0); /* its pad stays, as malloc_trim(3) has it */
    assert_int_equal(fl_trim(MIB(16)), MIB(24));
    assert_int_equal(fl_trim(0), MIB(16));
    assert_int_equal(fl_trim(0), 0);
    assert_int_equal(region.held.populated, 0);
}

static uint64_t purged(void)
{
    return stats().purge_bytes;
}

/* A step, and the trim at its end. */
static int step_and_trim(size_t len)
{
    void *p = fl_malloc_large(len);

    memset(p, 1, len);
    fl_free_ours(p);
    return fl_trim_call(0);
}

CASE(trims_in_a_row_leave_what_the_steps_between_use)
{
    region.config.tick_ns = 1000;
    fake.now_ns = 1000000;
    for (int i = 0; i < 3; i++) { /* a program that calls it once or twice has all back */
        assert_int_equal(step_and_trim(MIB(40)), 1);
        assert_int_equal(region.held.populated, 0);
    }
    assert_int_equal(step_and_trim(MIB(40)), 0);
    size_t populated = stats().populate_bytes, given = purged();
    for (int i = 0; i < 100; i++) {
        fake.now_ns += 250; /* a quarter of a tick */
        assert_int_equal(step_and_trim(MIB(40)), 0);
    }
    assert_int_equal(stats().populate_bytes, populated);
    assert_int_equal(purged(), given);
    assert_int_equal(passed_on, 3 + 25);
    assert_int_equal(step_and_trim(MIB(200)), 0); /* what one step used more */
    assert_int_equal(step_and_trim(MIB(40)), 1);  /* goes with the next one */
    assert_in_range(region.held.populated, MIB(40), MIB(80));
    assert_int_equal(fl_trim_call(0), 1); /* nothing was asked for since: no step has ended */
    assert_int_equal(region.held.populated, 0);
    (void)step_and_trim(MIB(40));
    assert_int_equal(region.held.populated, MIB(40));
    fake.now_ns += 4000; /* a pause */
    assert_int_equal(step_and_trim(MIB(40)), 1);
    assert_int_equal(region.held.populated, 0);
    assert_sound();
}

CASE(trims_give_all_or_nothing_where_the_user_says_so)
{
    fl_trim_choose(FL_TRIM_GIVE);
    for (int i = 1; i < 20; i++) {
        assert_int_equal(step_and_trim(MIB(40)), 1);
        assert_int_equal(passed_on, i);
    }
    fl_trim_choose(FL_TRIM_IGNORE);
    assert_int_equal(step_and_trim(MIB(40)), 0);
    assert_int_equal(passed_on, 19);
    assert_int_equal(region.held.populated, MIB(40));
}

CASE(release_leaves_as_much_as_it_is_told)
{
    fl_route.caches = true; /* in this test alone: the thread's stays */
    void *p = fl_malloc_large(MIB(40)), *q = fl_malloc_large(KIB(200)),
         *r = fl_malloc_large(MIB(7));
    fl_free_ours(p);
    fl_free_ours(q); /* to the thread's cache */
    assert_int_equal(fl_trim_to(MIB(64)), 0);
    assert_in_range(fl_trim_to(MIB(16)), MIB(24), MIB(28));
    assert_in_range(region.held.populated, MIB(7) + MIB(12), MIB(7) + MIB(16));
    (void)fl_trim_to(0);
    assert_in_range(region.held.populated, MIB(7), MIB(8));
    fl_region_lock(&region);
    assert_int_equal(fl_trim_to(0), -EBUSY);
    fl_region_unlock(&region);
    fl_free_ours(r);
    assert_sound();
}

CASES_MAIN(.setup = each)
