/* Addresses are mapped with the region unlocked: others are served meanwhile, and what they took
 * counts. */
#include "unit/cmocka_all.h"
#include "unit/region_fixture.h"

#include <errno.h>

static unsigned maps; /* of the window */
static bool was_locked;
/* Taken while the first map is made, by another request. */
static size_t others_want;
static struct fl_extent *others;

static void map_is_made(struct fl_range r)
{
    if (fl_range_common(r, region.space.window.all).len == 0) {
        return;
    }
    maps++;
    was_locked |= atomic_load(&region.shards.of[0].lock.word) != 0;
    size_t want = others_want;
    others_want = 0;
    if (want != 0 && !was_locked) {
        others = take(want);
    }
}

static int each(void **state)
{
    (void)state;
    region_begin(NULL);
    fake.pretend_populate = true;
    fake.on_map = map_is_made;
    maps = 0;
    was_locked = false;
    others_want = 0;
    others = NULL;
    return 0;
}

static void assert_mapped(void)
{
    assert_true(maps != 0);
    assert_false(was_locked);
    assert_settled();
    maps = 0;
}

static void assert_apart(const struct fl_extent *a, const struct fl_extent *b)
{
    assert_non_null(a);
    assert_non_null(b);
    assert_true(fl_range_common(fl_extent_range(a), fl_extent_range(b)).len == 0);
}

static void requests_map_without_the_lock(void **state)
{
    (void)state;
    struct fl_extent *e = take(MIB(8) + KIB(12));
    assert_mapped();
    assert_true(fl_region_resize(&region, e, MIB(16) + KIB(4))); /* by growth where it is */
    assert_mapped();
    assert_non_null(take(MIB(2)));
    assert_mapped();
    assert_true(fl_region_move(&region, e, MIB(64)) != NULL || is_reserved());
    assert_false(was_locked);
    assert_settled();
}

static void lazy_requests_map_without_the_lock(void **state)
{
    (void)state;
    region.config.eager_max = MIB(1);
    struct fl_extent *e = take(MIB(32));
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    assert_mapped();
    assert_true(fl_region_resize(&region, e, MIB(64)));
    assert_mapped();
}

/* The other one gets what is left of the same FREE extents, or what lies behind them. */
static void others_are_served_meanwhile(void **state)
{
    (void)state;
    struct fl_extent *filled = take(MIB(6)), *guard = take(MIB(4));
    fill(filled, 0xee);
    give(filled);
    assert_int_equal(fl_region_resize(&region, guard, MIB(2)), true); /* 2 MiB free before EMPTY */
    for (int i = 0; i < 4; i++) {
        others_want = i % 2 == 0 ? MIB(3) + KIB(4) : KIB(64);
        struct fl_extent *e = take(MIB(20) + KIB(4));
        assert_apart(e, others);
        assert_mapped();
        fill(e, 0x11);
        fill(others, 0x22);
        assert_true(is_filled(e, 0x11));
        assert_true(fl_region_resize(&region, others, others->len - KIB(4)));
        others_want = KIB(64);
        (void)fl_region_resize(&region, e, MIB(32));
        assert_settled();
    }
}

/* Whatever the kernel refuses, all is as before. */
static void a_refused_map_changes_nothing(void **state)
{
    (void)state;
    struct fl_extent *e = take(KIB(4));
    size_t populated = region.held.populated, in_use = region.stats.in_use;

    for (int i = 0; i < 2; i++) {
        fake.fail_enomem = i == 0;
        fake_fail_at(1, 1u << FAKE_MAP_AT | 1u << FAKE_COMMIT);
        struct fl_extent *other = take(MIB(20) + KIB(4));
        assert_true(fake_fired());
        fake_fail_at(0, 0);
        assert_settled();
        if (i == 0 || is_reserved()) {
            assert_null(other);
            assert_int_equal(region.held.populated, populated);
            assert_int_equal(region.stats.in_use, in_use);
        } else { /* another mapping is there */
            assert_apart(e, other);
        }
    }
    assert_int_equal(region.budget.granted, region.held.populated);
}

static size_t bytes_of(enum fake_slot slot)
{
    const struct fake_call *c;
    size_t sum = 0;

    for (size_t i = 0; (c = in_window(slot, i)) != NULL; i++) {
        sum += c->rc == 0 ? c->range.len : 0;
    }
    return sum;
}

static size_t mapped_in_window(void)
{
    return bytes_of(FAKE_MAP_AT) + bytes_of(FAKE_COMMIT) - bytes_of(FAKE_UNMAP) -
           bytes_of(FAKE_DECOMMIT);
}

/* What is being mapped counts already: FAULTLESS_LIMIT holds, and no other call gets the pages that
 * are to come. */
static void the_limit_holds_for_both(void **state)
{
    (void)state;
    region.config.limit = MIB(24);
    others_want = MIB(16);
    struct fl_extent *e = take(MIB(20));
    assert_int_equal(e->content, FL_CONTENT_POPULATED);
    assert_int_equal(others->content, FL_CONTENT_LAZY);
    assert_false(was_locked);
    assert_settled();
    assert_int_equal(region.held.populated, MIB(20));
    assert_int_equal(mapped_in_window(), MIB(16) + MIB(20));
    others_want = MIB(1);
    assert_non_null(take(MIB(4)));
    assert_settled();
}

static void assert_others_populated(void)
{
    assert_non_null(others);
    assert_int_equal(others->content, FL_CONTENT_POPULATED);
}

/* What nothing is populated for does not count, while it is mapped too. */
static void lazy_bytes_take_nothing_from_others(void **state)
{
    (void)state;
    region.config.eager_max = MIB(1);
    region.config.limit = MIB(24);
    struct fl_extent *e = take(MIB(32));
    others_want = KIB(512);
    assert_true(fl_region_resize(&region, e, MIB(64)));
    assert_others_populated();
    others_want = KIB(512);
    e = take(MIB(32));
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    assert_others_populated();
    assert_true(region.stats.populated_peak <= MIB(2));
    assert_settled();
}

static void pages_that_move_count_once(void **state)
{
    (void)state;
    region.config.limit = MIB(26);
    struct fl_extent *e = take(MIB(8)), *behind = take(KIB(64));
    others_want = MIB(8);
    struct fl_extent *to = fl_region_move(&region, e, MIB(16));
    assert_non_null(behind);
    assert_true(to != NULL || region.pages.move.method == FL_METHOD_NONE);
    if (to != NULL) {
        assert_others_populated();
        assert_true(region.stats.populated_peak <= MIB(26));
    }
    assert_settled();
}

/* A child that another thread makes amid it has the addresses, and nothing that is not there. */
static int child_takes_all(void)
{
    bool whole = fl_region_fork_child(&region, NULL);
    struct fl_extent *e = whole ? take(MIB(20)) : NULL;
    if (e == NULL || fl_region_check(&region) != NULL) {
        return 1;
    }
    fill(e, 0x33);
    return is_filled(e, 0x33) ? 0 : 2;
}

static int status;

static void fork_amid(struct fl_range r)
{
    (void)r;
    fake.on_map = NULL;
    status = fork_beside(child_takes_all);
}

static void a_child_made_amid_it_is_whole(void **state)
{
    (void)state;
    give(take(MIB(3)));
    fake.on_map = fork_amid;
    status = -1;
    struct fl_extent *e = take(MIB(20) + KIB(4));
    assert_non_null(e);
    assert_int_equal(status, 0);
    fill(e, 0x11);
    assert_settled();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(requests_map_without_the_lock, each),
        cmocka_unit_test_setup(lazy_requests_map_without_the_lock, each),
        cmocka_unit_test_setup(others_are_served_meanwhile, each),
        cmocka_unit_test_setup(a_refused_map_changes_nothing, each),
        cmocka_unit_test_setup(the_limit_holds_for_both, each),
        cmocka_unit_test_setup(lazy_bytes_take_nothing_from_others, each),
        cmocka_unit_test_setup(pages_that_move_count_once, each),
        cmocka_unit_test_setup(a_child_made_amid_it_is_whole, each),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
