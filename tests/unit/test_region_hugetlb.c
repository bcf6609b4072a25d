/* Blocks on hugetlb pages, on a fake kernel that has as many as a test wants, and refuses what it
 * says. */
#include "cases.h"
#include "unit/region_fixture.h"

#include <errno.h>

static const struct fl_region_config config = {.hugetlb_from = MIB(4),
                                               .hugetlb = FL_HUGETLB_2M,
                                               .hugetlb_fork = FL_PIN_COPIED,
                                               .wait_for_touch = true};

static int begin(void **state)
{
    (void)state;
    region_begin(&config);
    return 0;
}

static bool on_hugetlb(const struct fl_extent *e)
{
    return (e->left & FL_LEFT_HUGETLB) != 0;
}

CASE_AFTER(begin, a_block_has_whole_pages_populated_and_counts_as_none_of_ours)
{
    struct fl_extent *e = take(MIB(9));
    assert_true(on_hugetlb(e));
    assert_int_equal(e->len, MIB(10));
    assert_int_equal(fake.hugetlb, MIB(2));
    assert_int_equal(bytes_there(e), MIB(10));
    assert_int_equal(stats().in_use_bytes, 0);
    assert_int_equal(stats().populated_bytes, 0);
    assert_int_equal(stats().live_extents, 1);
    assert_false(on_hugetlb(take(MIB(3))));
    give(e);
    assert_int_equal(stats().live_extents, 1);
    assert_int_equal(stats().in_use_bytes, MIB(3));
    assert_settled();
    e = take_zeroed(MIB(8));
    assert_true(on_hugetlb(e) && is_filled(e, 0));
}

CASE_AFTER(begin, giants_where_less_than_an_eighth_is_wasted)
{
    static const struct {
        size_t asked, len, page; /* MiB */
    } row[] = {{1000, 1024, 1024}, {1100, 1100, 2}, {1030, 1030, 2}};
    struct fl_region_config c = config;
    c.hugetlb = FL_HUGETLB_2M | FL_HUGETLB_1G;
    region_begin(&c);
    fake.pretend_populate = true;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        assert_int_equal(take(MIB(row[i].asked))->len, MIB(row[i].len));
        assert_int_equal(fake.hugetlb, MIB(row[i].page));
    }
}

/* The map, or what a control group's limit leaves of it: EFAULT is what a touch would have met. */
CASE_AFTER(begin, what_is_refused_lies_on_ordinary_pages)
{
    static const struct {
        enum fake_slot slot;
        int rc;
    } row[] = {{FAKE_MAP_HUGETLB, -ENOMEM},
               {FAKE_MAP_HUGETLB, -EINVAL},
               {FAKE_POPULATE, -EFAULT},
               {FAKE_POPULATE, -ENOMEM}};

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        fake.rc[row[i].slot] = row[i].rc;
        struct fl_extent *e = take(MIB(8));
        fake.rc[row[i].slot] = 0;
        assert_non_null(e);
        assert_false(on_hugetlb(e));
        fill(e, 1);
        assert_int_equal(stats().live_extents, 1);
        assert_int_equal(stats().in_use_bytes, MIB(8));
        assert_settled();
        give(e);
        (void)fl_region_purge(&region, 0);
        assert_settled();
    }
    assert_int_equal(fake_purged() % MIB(2), 0);
}

CASE_AFTER(begin, no_size_that_is_not_wanted_is_asked_for)
{
    fake.rc[FAKE_MAP_HUGETLB] = -ENOMEM;
    (void)take(MIB(8));
    assert_int_equal(fake.count[FAKE_MAP_HUGETLB], 1);
    (void)take(MIB(2));
    fl_sys_confine(true);
    (void)take(MIB(8));
    fl_sys_confine(false);
    assert_int_equal(fake.count[FAKE_MAP_HUGETLB], 1);
}

CASE_AFTER(begin, realloc_keeps_what_is_not_wasted)
{
    struct fl_extent *e = take(MIB(8));
    assert_false(fl_region_resize(&region, e, MIB(10)));
    assert_null(fl_region_move(&region, e, MIB(10)));
    assert_true(fl_region_resize(&region, e, MIB(5)));
    assert_int_equal(e->len, MIB(8));
    assert_false(fl_region_resize(&region, e, MIB(3)));
    give(e);
    assert_settled();
}

CASE_AFTER(begin, pages_that_a_program_gives_back_are_cleared)
{
    struct fl_extent *e = take(MIB(8));
    fill(e, 1);
    struct fl_range part = {e->base + KIB(4), MIB(2)}, beyond = {e->base + MIB(7), MIB(2)};
    assert_true(fl_region_drop_hugetlb(&region, part, false));
    assert_true(is_filled(e, 1));
    assert_true(fl_region_drop_hugetlb(&region, part, true));
    assert_int_equal(bytes(e)[KIB(4) - 1], 1);
    assert_int_equal(bytes(e)[KIB(4)], 0);
    assert_int_equal(bytes(e)[KIB(4) + MIB(2) - 1], 0);
    assert_int_equal(bytes(e)[KIB(4) + MIB(2)], 1);
    assert_false(fl_region_drop_hugetlb(&region, beyond, true));
    struct fl_extent *other = take(MIB(2));
    assert_false(fl_region_drop_hugetlb(&region, fl_extent_range(other), true));
    fl_region_note_remapped(&region, part); /* say, part of it is mapped read-only */
    assert_false(fl_region_drop_hugetlb(&region, part, true));
}

static struct fl_extent *block; /* filled with 1 */

static void take_block(void)
{
    block = take(MIB(8));
    fill(block, 1);
}

static int fork_around(int (*child)(void))
{
    fl_hugetlb_fork_prepare(&region);
    int status = fork_with(child);
    fl_hugetlb_fork_parent(&region);
    return status;
}

static int has_its_own(void)
{
    fl_hugetlb_fork_child(&region, fl_region_fork_child(&region, NULL));
    bool well = !on_hugetlb(block) && is_filled(block, 1);
    fill(block, 2);
    give(block);
    return well && stats().in_use_bytes == 0 ? 0 : 1;
}

/* Also of a block with a flag: of mlock(2), say, and it may be read as before. */
CASE_AFTER(begin, a_child_has_a_copy_and_the_parent_what_it_had)
{
    for (int flagged = 0; flagged < 2; flagged++) {
        take_block();
        if (flagged != 0) {
            fl_region_note_flagged(&region, fl_extent_range(block));
        }
        size_t mapped = fake_mapped();
        assert_int_equal(fork_around(has_its_own), 0);
        assert_true(on_hugetlb(block) && is_filled(block, 1));
        assert_int_equal(fake_mapped(), mapped);
        assert_int_equal(fake_kept_from_child(fl_extent_range(block)), 0);
        give(block);
        assert_settled();
    }
}

static int inherits(void)
{
    fl_hugetlb_fork_child(&region, fl_region_fork_child(&region, NULL));
    return on_hugetlb(block) && is_filled(block, 1) ? 0 : 1;
}

CASE_AFTER(begin, without_memory_for_a_copy_it_inherits)
{
    take_block();
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8192 kB\n");
    assert_int_equal(fork_around(inherits), 0);
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 14680064 kB\n");
    fake.rc[FAKE_RESERVE] = -ENOMEM;
    assert_int_equal(fork_around(inherits), 0);
    fake.rc[FAKE_RESERVE] = 0;
    fl_region_note_remapped(&region, fl_extent_range(block));
    assert_int_equal(fork_around(inherits), 0);
    assert_int_equal(fake_kept_from_child(fl_extent_range(block)), 0);
}

/* A copy is of no use where the pages cannot be hidden. */
CASE_AFTER(begin, under_a_filter_no_copy_is_made)
{
    take_block();
    unsigned before = fake.count[FAKE_RESERVE];
    fl_sys_confine(true);
    fl_hugetlb_fork_prepare(&region);
    assert_int_equal(fake.count[FAKE_RESERVE], before);
    fl_hugetlb_fork_parent(&region);
    fl_sys_confine(false);
}

/* What it inherits goes where the parent writes and the pool is empty: a touch is a SIGBUS then. */
static int forks_without_a_look(void)
{
    fl_hugetlb_fork_child(&region, fl_region_fork_child(&region, NULL));
    fake.rc[FAKE_RESERVE] = 0;
    if (fl_sys_linux.unmap(fl_extent_range(block)) != 0) {
        return 1;
    }
    fl_hugetlb_fork_prepare(&region);
    fl_hugetlb_fork_parent(&region);
    return 0;
}

CASE_AFTER(begin, a_child_copies_nothing_that_is_not_its_own)
{
    block = take(MIB(8));
    fake.rc[FAKE_RESERVE] = -ENOMEM;
    assert_int_equal(fork_around(forks_without_a_look), 0);
    fake.rc[FAKE_RESERVE] = 0;
    fl_hugetlb_fork_prepare(&region);
    block = take(MIB(8)); /* another thread's, after the copies */
    assert_int_equal(fork_with(forks_without_a_look), 0);
    fl_hugetlb_fork_parent(&region);
}

/* Say, a library that has a device read it, and that no write after a fork may part from that. */
CASE_AFTER(begin, what_the_program_keeps_from_children_stays_so)
{
    block = take(MIB(8));
    fl_region_note_remapped(&region, fl_extent_range(block));
    assert_int_equal(fl_sys.advise(fl_extent_range(block), FL_ADVICE_NO_FORK), 0);
    for (int how = FL_PIN_APART; how <= FL_PIN_COPIED; how++) {
        region.config.hugetlb_fork = (enum fl_pin_fork)how;
        fl_hugetlb_fork_prepare(&region);
        fl_hugetlb_fork_parent(&region);
        assert_int_equal(fake_kept_from_child(fl_extent_range(block)), MIB(8));
    }
}

CASE_AFTER(begin, freed_while_a_copy_is_made_it_goes_afterwards)
{
    struct fl_extent *e = take(MIB(8)), *other = take(MIB(8));
    fl_hugetlb_fork_prepare(&region);
    give(e);
    assert_int_equal(bytes_there(e), MIB(8));
    struct fl_extent *late = take(MIB(8));
    fl_hugetlb_fork_parent(&region);
    assert_int_equal(stats().live_extents, 2);
    give(late);
    give(other);
    assert_int_equal(stats().live_extents, 0);
    assert_settled();
}

CASES_MAIN()
