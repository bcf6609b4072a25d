/* Free memory that is cleared while no request comes: when, how much of it, and that calloc then
 * has nothing to do. The linker wraps fl_zero_streaming (CMakeLists.txt): so the tests count what
 * is cleared, and do something meanwhile. */
#include "region/back/purge.h"
#include "unit/region_case.h"

#include <string.h>

static const uint64_t rest_least = 100000000, rest_most = 1600000000;

static size_t cleared;
static unsigned pieces;
static void (*meanwhile)(void *base, size_t len); /* before it is cleared */

void __wrap_fl_zero_streaming(void *base, size_t len);
void __real_fl_zero_streaming(void *base, size_t len);

void __wrap_fl_zero_streaming(void *base, size_t len)
{
    if (meanwhile != NULL) {
        meanwhile(base, len);
    }
    __real_fl_zero_streaming(base, len);
    cleared += len;
    pieces++;
}

static int each(void **state)
{
    region_begin(NULL);
    cleared = pieces = 0;
    meanwhile = NULL;
    return 0;
}

/* A look, which finds that requests came, then one that finds none. */
static uint64_t look_twice(void)
{
    (void)fl_region_rezero(&region);
    cleared = pieces = 0;
    return fl_region_rezero(&region);
}

/* A free extent of `len` bytes full of 0xee from the first address on, before a guard. */
static struct fl_extent *dirty(size_t len)
{
    struct fl_extent *e = take(len);
    uintptr_t base = e->base;

    (void)take_guard(MIB(2));
    fill(e, 0xee);
    give(e);
    return fl_extent_free_at(&region.space, base, 0);
}

/* 64 MiB, and a look has found that no request comes. */
static void dirty_and_quiet(void)
{
    (void)dirty(MIB(64));
    (void)fl_region_rezero(&region);
}

TEST_FROM(each, it_waits_for_a_quiet_while)
{
    struct fl_extent *e = dirty(MIB(8));
    uint64_t ns = rest_least;
    for (int i = 0; i < 6; i++) { /* a request at least between two looks */
        ns = ns < rest_most ? 2 * ns : rest_most;
        assert_true(fl_region_rezero(&region) == ns);
        assert_int_equal(cleared, 0);
        give(take(KIB(4)));
    }
    assert_true(fl_region_rezero(&region) == rest_most);
    assert_int_equal(e->zeroed.len, 0);
    assert_true(fl_region_rezero(&region) == UINT64_MAX);
    assert_int_equal(cleared, MIB(8));
}

TEST_FROM(each, calloc_clears_nothing_of_it)
{
    struct fl_extent *e = dirty(MIB(40));
    uintptr_t base = e->base;
    (void)look_twice();
    assert_int_equal(cleared, MIB(40));
    assert_int_equal(pieces, 3); /* 16 MiB at most: no call waits for longer */
    assert_int_equal(stats().rezero_bytes, MIB(40));
    e = fl_extent_free_at(&region.space, base, 0); /* one again */
    assert_int_equal(e->len, MIB(40));
    assert_int_equal(e->zeroed.len, MIB(40));
    assert_guarded();
    struct fl_extent *z = take_zeroed(MIB(10));
    assert_true(is_filled(z, 0));
    memset((void *)(base + MIB(10)), 0xcc, MIB(30)); /* clearing would take that away */
    z = take_zeroed(MIB(30));
    assert_true(is_filled(z, 0xcc));
}

TEST_FROM(each, dirty_parts_on_either_side_are_cleared_and_join)
{
    uintptr_t base = dirty(MIB(24))->base;
    (void)look_twice();
    struct fl_extent *a = take(MIB(6)), *b = take(MIB(12)), *d = take(MIB(6));
    fill(a, 1);
    fill(d, 1);
    give(b); /* in the middle: dirty for all that is known */
    (void)look_twice();
    assert_int_equal(cleared, MIB(12));
    give(a);
    give(d);
    struct fl_extent *e = fl_extent_free_at(&region.space, base, 0);
    assert_true(e->zeroed.base == base + MIB(6) && e->zeroed.len == MIB(12));
    cleared = 0;
    assert_true(fl_region_rezero(&region) == UINT64_MAX);
    assert_int_equal(cleared, MIB(12));
    e = fl_extent_free_at(&region.space, base, 0);
    assert_int_equal(e->zeroed.len, MIB(24));
    assert_true(is_filled(take_zeroed(MIB(24)), 0));
}

TEST_FROM(each, small_remains_are_left_alone)
{
    assert_non_null(take(KIB(512)));
    struct fl_extent *e = take(MIB(4));
    assert_non_null(take(KIB(4)));
    struct fl_extent *small = take(KIB(900));
    uintptr_t large_base = e->base, small_base = small->base;
    (void)take_guard(MIB(2));
    give(e); /* from 0.5 to 4.5: one whole huge page */
    give(small);
    (void)look_twice();
    assert_int_equal(cleared, MIB(2));
    assert_int_equal(fl_extent_free_at(&region.space, large_base, 0)->zeroed.len, MIB(2));
    assert_int_equal(fl_extent_free_at(&region.space, small_base, 0)->zeroed.len, 0);
}

TEST_FROM(each, clearing_in_vain_comes_to_an_end)
{
    dirty_and_quiet();
    region.rezero.credit = MIB(40);
    atomic_store(&region.wants_worker, false);
    assert_true(fl_region_rezero(&region) == UINT64_MAX);
    assert_int_equal(cleared, MIB(32));
    assert_int_equal(region.rezero.credit, MIB(8));
    assert_true(fl_region_rezero(&region) == UINT64_MAX);
    assert_int_equal(cleared, MIB(32));
    assert_non_null(take(MIB(8))); /* malloc earns nothing */
    assert_int_equal(region.rezero.credit, MIB(8));
    assert_non_null(take_zeroed(MIB(2))); /* eight times as much, as it was worth it */
    assert_int_equal(region.rezero.credit, MIB(24));
    (void)look_twice();
    assert_int_equal(cleared, MIB(16));
    assert_int_equal(region.rezero.credit, MIB(8));
}

TEST_FROM(each, credit_has_a_bound)
{
    region.rezero.credit = 0;
    fl_region_lock(&region);
    fl_rezero_earn(&region.rezero, SIZE_MAX / 2);
    fl_region_unlock(&region);
    assert_true(region.rezero.credit == (size_t)64 << 30);
}

TEST_FROM(each, not_while_memory_is_tight)
{
    struct fl_extent *e = dirty(MIB(8));
    atomic_store(&region.tight, true);
    assert_true(look_twice() == UINT64_MAX);
    assert_int_equal(cleared, 0);
    atomic_store(&region.tight, false);
    (void)look_twice();
    assert_int_equal(e->zeroed.len, MIB(8));
}

TEST_FROM(each, where_first_touches_wait_it_is_a_piece_at_a_time)
{
    region_begin(&(struct fl_region_config){.huge = true, .first_touch = true});
    (void)dirty(MIB(40));
    assert_true(look_twice() == 0);
    assert_int_equal(cleared, MIB(16));
    assert_true(fl_region_rezero(&region) == 0);
    assert_true(fl_region_rezero(&region) == 0);
    assert_int_equal(cleared, MIB(40));
    assert_true(fl_region_rezero(&region) == UINT64_MAX);
    assert_int_equal(cleared, MIB(40));
}

static struct fl_extent *got;

static void request(void *base, size_t len)
{
    meanwhile = NULL;
    assert_sound(); /* what is being cleared is in no block, and counts */
    got = take_zeroed(MIB(4));
    fill(got, 0x44);
}

TEST_FROM(each, a_request_ends_it)
{
    dirty_and_quiet();
    meanwhile = request;
    (void)fl_region_rezero(&region);
    assert_int_equal(cleared, MIB(16));
    assert_true(is_filled(got, 0x44));
}

static void purge(void *base, size_t len)
{
    meanwhile = NULL;
    size_t rest = fl_region_free(&region).huge;
    assert_int_equal(fl_region_purge(&region, 0), rest);
    assert_int_equal(len, MIB(16));
    assert_sound();
}

TEST_FROM(each, a_purge_leaves_what_is_being_cleared)
{
    dirty_and_quiet();
    meanwhile = purge;
    (void)fl_region_rezero(&region);
    assert_int_equal(fl_region_free(&region).bytes, MIB(16));
    assert_true(is_filled(take_zeroed(MIB(16)), 0));
}

static int child(void)
{
    fl_region_fork_child(&region, NULL);
    if (fl_region_check(&region) != NULL || !TAILQ_EMPTY(&region.isolated)) {
        return 1;
    }
    struct fl_extent *z = take_zeroed(MIB(64));
    if (z == NULL || !is_filled(z, 0) || z->base != region.space.first) {
        return 2;
    }
    return fl_region_check(&region) != NULL ? 3 : 0;
}

static int child_status;

static void fork_now(void *base, size_t len)
{
    memset(base, 0xdd, len);
    meanwhile = NULL;
    child_status = fork_beside(child);
}

TEST_FROM(each, a_child_forked_meanwhile_finds_none_of_it)
{
    dirty_and_quiet();
    child_status = -1;
    meanwhile = fork_now;
    (void)fl_region_rezero(&region);
    assert_int_equal(child_status, 0);
    assert_int_equal(cleared, MIB(64));
    assert_true(is_filled(take_zeroed(MIB(64)), 0));
}

TEST_FROM(each, without_descriptors_nothing_is_cleared)
{
    (void)dirty(MIB(8));
    withhold_descriptors(true);
    assert_true(look_twice() == UINT64_MAX);
    assert_int_equal(cleared, 0);
    withhold_descriptors(false);
}

/* What the kernel was told it may take it may not any more once zeros have been written to it. */
TEST_FROM(each, cleared_memory_is_offered_to_the_kernel_anew)
{
    struct fl_extent *e = dirty(MIB(8));
    fl_region_soften(&region);
    e = fl_extent_free_at(&region.space, region.space.first, 0);
    assert_int_equal(e->unreclaimable, 0);
    (void)look_twice();
    assert_int_equal(cleared, MIB(8));
    fake_forget();
    fl_region_soften(&region);
    assert_int_equal(fake_bytes(FAKE_LAZY_FREE), MIB(8));
    assert_true(is_filled(take_zeroed(MIB(8)), 0));
}
