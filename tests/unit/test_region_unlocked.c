/* Looks at the memory, and maps, delay no thread: the region is unlocked meanwhile, others are
 * served, and what they took counts. */
#include "region/supply/fill_plan.h"
#include "region/supply/supply.h"
#include "cases.h"
#include "unit/region_fixture.h"

#include <errno.h>
#include <pthread.h>

enum { THREADS = 4 };

static unsigned looks, maps; /* files that were read; maps of the window */
static bool was_locked;
static size_t others_granted; /* bytes, during the next look */
static size_t others_want;    /* another request's, during the next map */
static struct fl_extent *others;

static void note_lock(void)
{
    was_locked |= atomic_load(&region.shards.of[0].lock.word) != 0;
}

static void look_is_made(void)
{
    looks++;
    note_lock();
    atomic_fetch_add(&region.budget.granted, others_granted);
    others_granted = 0;
}

static void map_is_made(struct fl_range r)
{
    if (fl_range_common(r, region.space.window.all).len == 0) {
        return;
    }
    maps++;
    note_lock();
    size_t want = others_want;
    others_want = 0;
    if (want != 0 && !was_locked) {
        others = take(want);
    }
}

static int each(void **state)
{
    (void)plain_begin(state);
    fake.pretend_populate = true;
    fake.on_read_file = look_is_made;
    fake.on_map = map_is_made;
    looks = maps = 0;
    was_locked = false;
    others_granted = others_want = 0;
    others = NULL;
    return 0;
}

static void assert_unlocked(void)
{
    assert_false(was_locked);
    assert_settled();
    looks = maps = 0;
    region.budget.left = 0; /* so that the next one looks, too */
}

static void assert_looked(void)
{
    assert_true(looks != 0);
    assert_unlocked();
}

static void assert_looked_and_mapped(void)
{
    assert_true(looks != 0 && maps != 0);
    assert_unlocked();
}

CASE_AFTER(each, requests_look_and_map_without_the_lock)
{
    struct fl_extent *e = take(MIB(8) + KIB(12));
    assert_looked_and_mapped();
    assert_true(fl_region_resize(&region, e, MIB(16) + KIB(4))); /* by growth where it is */
    assert_looked_and_mapped();
    assert_non_null(take(MIB(2)));
    assert_looked_and_mapped();
    assert_true(fl_region_move(&region, e, MIB(64)) != NULL || is_reserved());
    assert_true(looks != 0 || is_reserved());
    assert_unlocked();
}

CASE_AFTER(each, lazy_requests_do_too)
{
    region.config.eager_max = MIB(1);
    struct fl_extent *e = take(MIB(32));
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    assert_looked_and_mapped();
    assert_true(fl_region_resize(&region, e, MIB(64)));
    assert_true(maps != 0);
    assert_unlocked();
}

CASE_AFTER(each, reuse_and_frees_look_without_the_lock)
{
    struct fl_extent *e = take(MIB(64)), *other = take(MIB(64));
    looks = 0;
    region.pressure.look_after = MIB(16);
    give(e);
    assert_looked();
    region.tight = true;
    e = take(MIB(64));
    assert_non_null(e);
    assert_looked();
    give(other);
    looks = 0;
    region.pressure.since_look = region.pressure.look_after + 1; /* by what waited in caches */
    assert_non_null(take(KIB(64)));
    assert_looked();
}

CASE_AFTER(each, divided_extents_and_questions_look_without_the_lock)
{
    struct fl_inner in = {.shift = 16};
    assert_int_equal(fl_inner_open(&region, &in, MIB(16)), 0);
    region.budget.left = 0;
    assert_true(fl_inner_fill(&region, &in, (struct fl_range){in.outer->base, MIB(4)}));
    assert_looked();
    assert_false(fl_region_counts_maps(&region));
    assert_looked();
}

/* Of 2 GiB half stays. */
static size_t look_while_others_are_granted(size_t bytes)
{
    others_granted = bytes;
    fl_region_lock(&region);
    assert_true(fl_look_unlocking(&region));
    fl_region_unlock(&region);
    return region.look.noted.headroom;
}

CASE_AFTER(each, what_others_were_granted_meanwhile_is_taken_off)
{
    fake_file("/proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 2097152 kB\n");
    assert_int_equal(look_while_others_are_granted(MIB(512)), MIB(1536));
    assert_int_equal(region.look.noted.eager, MIB(512));
    /* given up again: nothing more is there for that */
    assert_int_equal(look_while_others_are_granted((size_t)-MIB(512)), MIB(2048));
    assert_settled();
}

/* What comes after the look may be served without a plan. */
CASE_AFTER(each, a_plan_that_waits_for_a_look_leaves_nothing)
{
    struct fl_fill_plan g = {.asked = {.to_stay = true}};
    give(take(MIB(8)));
    assert_int_equal(region.zones.of[0].free.huge, MIB(8));
    region.budget.left = 0;
    fl_region_lock(&region);
    enum fl_refusal refusal = fl_supply_plan(&region, &g, MIB(64), MIB(64), 0);
    fl_region_unlock(&region);
    assert_int_equal(refusal, FL_REFUSED_LOOK);
    assert_int_equal(g.supply.from_free, 0);
    assert_int_equal(g.supply.from_reserve, 0);
    assert_int_equal(g.account.budgeted, 0);
}

static void *grow_and_give(void *arg)
{
    for (int i = 0; i < 200; i++) {
        struct fl_extent *e =
            fl_region_take(&region, NULL, MIB(2) + KIB(4) * (size_t)i, fl_page.base, false);
        if (e != NULL && fl_extent_claim(e, region.epoch)) {
            fl_region_give(&region, e);
        }
        if (i % 16 == 0) {
            (void)fl_region_purge(&region, 0);
        }
    }
    return arg;
}

CASE_AFTER(each, many_threads_look_at_once)
{
    pthread_t t[THREADS];
    fake.on_read_file = NULL;
    fake.on_map = NULL;
    fake.limit_as = MIB(1) << 20; /* a bound: each growth looks */
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, grow_and_give, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }
    assert_settled();
}

static int child_looks(void)
{
    if (!fl_region_fork_child(&region, NULL)) {
        return 1;
    }
    fl_region_lock(&region);
    bool looked = fl_look_unlocking(&region);
    fl_region_unlock(&region);
    return looked ? 0 : 2;
}

CASE_AFTER(each, a_child_looks_too)
{
    assert_non_null(take(MIB(4)));
    assert_int_equal(fork_with(child_looks), 0);
    assert_settled();
}

static void assert_apart(const struct fl_extent *a, const struct fl_extent *b)
{
    assert_true(a != NULL && b != NULL);
    assert_true(fl_range_common(fl_extent_range(a), fl_extent_range(b)).len == 0);
}

/* The other one gets what is left of the same FREE extents, or what lies behind them. */
CASE_AFTER(each, others_are_served_meanwhile)
{
    struct fl_extent *filled = take(MIB(6)), *guard = take(MIB(4));
    fill(filled, 0xee);
    give(filled);
    assert_int_equal(fl_region_resize(&region, guard, MIB(2)), true); /* 2 MiB free before EMPTY */
    for (int i = 0; i < 4; i++) {
        others_want = i % 2 == 0 ? MIB(3) + KIB(4) : KIB(64);
        struct fl_extent *e = take(MIB(20) + KIB(4));
        assert_apart(e, others);
        assert_true(maps != 0);
        assert_unlocked();
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
CASE_AFTER(each, a_refused_map_changes_nothing)
{
    struct fl_extent *e = take(KIB(4));
    size_t populated = region.held.populated, in_use = region.held.in_use;

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
            assert_int_equal(region.held.in_use, in_use);
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
CASE_AFTER(each, the_limit_holds_for_both)
{
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
CASE_AFTER(each, lazy_bytes_take_nothing_from_others)
{
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
    assert_true(region.held.populated_peak <= MIB(2));
    assert_settled();
}

CASE_AFTER(each, pages_that_move_count_once)
{
    region.config.limit = MIB(26);
    struct fl_extent *e = take(MIB(8));
    assert_non_null(take(KIB(64)));
    others_want = MIB(8);
    struct fl_extent *to = fl_region_move(&region, e, MIB(16));
    assert_true(to != NULL || region.pages.move.method == FL_METHOD_NONE);
    if (to != NULL) {
        assert_others_populated();
        assert_true(region.held.populated_peak <= MIB(26));
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

CASE_AFTER(each, a_child_made_amid_it_is_whole)
{
    give(take(MIB(3)));
    fake.on_map = fork_amid;
    status = -1;
    struct fl_extent *e = take(MIB(20) + KIB(4));
    assert_non_null(e);
    assert_int_equal(status, 0);
    fill(e, 0x11);
    assert_settled();
}

CASES_MAIN()
