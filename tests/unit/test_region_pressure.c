/* How much free memory is held: what is handed to the kernel, what is purged at once, when the
 * memory is looked at. */
#include "region/back/purge.h"
#include "unit/region_case.h"

/* Notes a look that found that much. */
static size_t note(uint64_t headroom, uint64_t keep, bool bounded)
{
    struct fl_memory m = {
        .headroom = headroom, .eager = headroom, .keep = keep, .bounded = bounded};

    fl_region_lock(&region);
    size_t surplus = fl_region_note_memory(&region, &m);
    fl_region_unlock(&region);
    return surplus;
}

static size_t note_headroom(uint64_t headroom)
{
    return note(headroom, UINT64_MAX, false);
}

/* Little is left, and free memory is the kernel's to take, from the next free on. */
static void become_tight(void)
{
    region.tight = true;
    region.pressure.since_look = 0;
    region.pressure.look_after = SIZE_MAX;
}

TEST(tight_begins_below_twice_what_is_free)
{
    fake.pretend_populate = true;
    give(take(MIB(64)));
    assert_int_equal(note_headroom(MIB(128)), 0);
    assert_false(region.tight);
    assert_int_equal(note_headroom(MIB(128) - 2), MIB(64)); /* all that is free goes */
    assert_true(region.tight);
    assert_int_equal(note_headroom(MIB(128) - 2), 0); /* once */
    assert_true(region.tight);
}

TEST(tight_ends_when_four_times_all_that_is_held_is_left)
{
    static const struct {
        uint64_t headroom;
        bool tight;
    } row[] = {{MIB(1), true},
               {MIB(256), true}, /* would not have begun here */
               {MIB(512) - 4, true},
               {MIB(512), false},
               {MIB(512) - 4, false}}; /* nor does it begin again */
    fake.pretend_populate = true;
    assert_non_null(take(MIB(64)));
    give(take(MIB(64)));
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        (void)note_headroom(row[i].headroom);
        assert_int_equal(region.tight, row[i].tight);
    }
}

TEST(nothing_free_is_never_tight)
{
    assert_int_equal(note_headroom(0), 0);
    assert_false(region.tight);
    assert_int_equal(note_headroom(UINT64_MAX), 0);
    assert_false(region.tight);
}

TEST(caches_hold_all_or_small_ones_or_nothing)
{
    assert_int_equal(region.cache_max, FL_CACHED_MOST);
    (void)note(MIB(4096), UINT64_MAX, true); /* a cgroup, or a limit */
    assert_int_equal(region.cache_max, MIB(4));
    (void)note(MIB(4096), UINT64_MAX, false);
    assert_int_equal(region.cache_max, FL_CACHED_MOST);
    give(take(MIB(8)));
    (void)note(MIB(1), UINT64_MAX, true);
    assert_int_equal(region.cache_max, 0);
}

TEST(beyond_keep_is_surplus)
{
    fake.pretend_populate = true;
    give(take(MIB(64)));
    assert_int_equal(note(MIB(4096), MIB(64), true), 0);
    assert_int_equal(note(MIB(4096), MIB(64) - 1, true), 1);
    assert_int_equal(note(MIB(4096), 0, true), MIB(64));
    assert_false(region.tight);
}

TEST(what_exceeds_keep_goes_as_it_comes_back)
{
    fake.limit_as = (uint64_t)1 << 30; /* an eighth: 128 MiB */
    fake.pretend_populate = true;
    struct fl_extent *e[8];
    for (size_t i = 0; i < 8; i++) {
        e[i] = take_walled(MIB(32));
    }
    for (size_t i = 0; i < 8; i++) {
        give(e[i]);
        assert_true(fl_region_free(&region).bytes <=
                    MIB(128) + MIB(32)); /* a look each 16 MiB at most */
        assert_sound();
    }
    assert_true(fl_region_free(&region).bytes <= MIB(128));
    assert_true(fl_region_free(&region).bytes > MIB(64)); /* and no more than that */
    assert_false(region.tight);
}

TEST(in_a_full_cgroup_free_memory_goes_back)
{
    fake_file("/proc/self/cgroup", "0::/job\n");
    fake_file("/sys/fs/cgroup/job/memory.max", "4294967296\n");
    fake_file("/sys/fs/cgroup/job/memory.current", "104857600\n");
    fake.pretend_populate = true;
    struct fl_extent *e = take(MIB(40)), *f = take(MIB(40));
    fake_file("/sys/fs/cgroup/job/memory.current", "4284481536\n"); /* 10 MiB are left */
    region.pressure.since_look = region.pressure.look_after;
    give(e);
    assert_true(region.tight);
    assert_int_equal(fl_region_free(&region).bytes, 0);
    assert_int_equal(fake_purged(), MIB(40));
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 0);
    give(f); /* from now on it is left to the kernel, and stays */
    assert_int_equal(fake_purged(), MIB(40));
    assert_int_equal(fake_bytes(FAKE_LAZY_FREE), MIB(40));
    assert_int_equal(fl_region_free(&region).bytes, MIB(40));
}

TEST(what_a_request_finds_tight_goes_with_the_next_free)
{
    region.pages.move.method = FL_METHOD_NONE; /* else what is free would serve */
    fake.pretend_populate = true;
    struct fl_extent *e[6];
    for (int i = 0; i < 6; i++) {
        e[i] = take(i % 2 == 0 ? MIB(20) : MIB(2));
    }
    give(e[0]);
    give(e[2]); /* 40 MiB, in two pieces */
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 79872 kB\n");
    region.budget.left = 0;
    assert_non_null(take(MIB(22))); /* looks, for it fits into neither */
    assert_true(region.tight);
    assert_int_equal(fake_purges(), 0); /* not while the lock is held */
    give(e[5]);
    assert_int_equal(fake_purged(), MIB(40));
    assert_int_equal(fake_bytes(FAKE_LAZY_FREE), MIB(2)); /* which stays */
    assert_int_equal(fl_region_free(&region).bytes, MIB(2));
    assert_sound();
    give(e[4]); /* only once */
    assert_int_equal(fake_purged(), MIB(40));
}

TEST(what_a_request_purges_itself_is_no_surplus_any_more)
{
    region.pages.move.method = FL_METHOD_NONE; /* else what is free would serve */
    fake.pretend_populate = true;
    struct fl_extent *e = take(MIB(40)), *f = take_walled(MIB(4));
    give(e);
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 40960 kB\n");
    region.budget.left = 0;
    assert_int_equal(take(MIB(60))->content, FL_CONTENT_LAZY); /* more than is left */
    assert_int_equal(fake_purged(), MIB(40));
    assert_int_equal(region.pressure.surplus, 0);
    give(f);
    assert_int_equal(fake_purged(), MIB(40));
}

static struct fl_range softened;

static void note_softened(struct fl_range r)
{
    assert_false(fl_region_busy()); /* no lock is held during the system call */
    fl_region_lock(&region);
    assert_null(fl_extent_free_at(&region.space, r.base, 0));
    assert_null(fl_extent_free_before(&region.space, fl_range_end(r), 0));
    for (struct fl_extent *e = fl_tree_lowest(&region.zones.of[0].populated); e != NULL;
         e = fl_tree_higher(e)) { /* not to be had before the kernel was told */
        assert_true(e->base + e->len <= r.base || e->base >= fl_range_end(r));
    }
    fl_region_unlock(&region);
    softened = r;
}

TEST(the_kernel_is_told_before_it_is_handed_out)
{
    struct fl_extent *a = take(KIB(512)), *e = take(MIB(5)), *b = take(KIB(64));
    fill(a, 1);
    fill(e, 2);
    fill(b, 3);
    uintptr_t base = e->base;
    become_tight();
    fake.on_lazy_free = note_softened;
    fake_forget();
    give(e); /* from 512 KiB to 5.5 MiB: one whole huge page, and a half on each side */
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 1);
    assert_true(softened.base == fl_align_up(base, fl_page.huge));
    assert_int_equal(softened.len, MIB(2));
    assert_true(is_filled(a, 1) && is_filled(b, 3));
    assert_sound();
    fake.on_lazy_free = NULL;
    e = take(MIB(5));
    assert_true(e->base == base);
    fill(e, 4); /* what is written now stays, whatever the kernel was told */
    assert_true(is_filled(e, 4));
    give(e);
    e = take_zeroed(MIB(5));
    assert_true(e->base == base && is_filled(e, 0));
}

TEST(less_than_a_huge_page_is_not_worth_a_call)
{
    assert_non_null(take(KIB(512)));
    struct fl_extent *e = take(MIB(2));
    assert_non_null(take(KIB(64)));
    become_tight();
    give(e); /* no whole huge page of its own */
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 0);
}

TEST(with_plenty_left_the_kernel_is_told_nothing)
{
    give(take(MIB(8)));
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 0);
    assert_int_equal(fake_purges(), 0);
}

TEST(a_hollow_lazy_extent_goes_back_whole)
{
    struct fl_region_config c = {.huge = true, .eager_max = MIB(16)};
    region_begin(&c);
    struct fl_extent *hollow = take(MIB(32)), *full = take(MIB(18));
    fill(full, 1);
    become_tight();
    give(hollow);
    assert_int_equal(fake_purged(), MIB(32));
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 0);
    give(full);
    assert_int_equal(fake_bytes(FAKE_LAZY_FREE), MIB(18));
}

TEST(small_blocks_count_once_they_merge)
{
    struct fl_extent *e[32];
    for (int i = 0; i < 32; i++) {
        e[i] = take(KIB(256));
    }
    assert_non_null(take(KIB(256)));
    become_tight();
    for (int i = 0; i < 32; i++) {
        give(e[i]);
    }
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 0);
    fake.on_lazy_free = note_softened;
    fl_region_soften(&region);
    assert_int_equal(fake_bytes(FAKE_LAZY_FREE), MIB(8));
    assert_sound();
    fl_region_soften(&region); /* told once */
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 1);
}

TEST(edges_that_are_longer_than_a_huge_page_together_end_it)
{
    assert_non_null(take(KIB(512)));
    struct fl_extent *e = take(MIB(5));
    assert_non_null(take(KIB(64)));
    give(e); /* edges of 1.5 MiB each, too small to tell the kernel about */
    become_tight();
    fl_region_soften(&region);
    fl_region_soften(&region);
    assert_int_equal(fake_bytes(FAKE_LAZY_FREE), MIB(2));
}

TEST(a_kernel_without_lazy_free_is_asked_once_a_free)
{
    struct fl_extent *e = take_walled(MIB(8));
    fake.rc[FAKE_LAZY_FREE] = -22;
    become_tight();
    give(e);
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 1);
    fl_region_soften(&region);
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 2);
    assert_int_equal(fl_region_free(&region).bytes, MIB(8));
}

/* After a look that found that much the n-th free of that length looks again; and the n-th after
 * that. */
TEST_FROM(NULL, looks_are_a_sixteenth_of_what_is_left_apart_and_16_mib_at_least)
{
    static const struct {
        uint64_t headroom, keep;
        size_t len;
        int n, again;
    } row[] = {{MIB(1024), UINT64_MAX, MIB(2), 32, 32}, {MIB(64), 0, MIB(1), 16, 0}};
    for (size_t k = 0; k < sizeof row / sizeof row[0]; k++) {
        struct fl_extent *e[64];
        region_begin(NULL);
        fake.pretend_populate = true;
        for (int i = 0; i < 64; i++) {
            e[i] = take(row[k].len);
        }
        fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 1048576 kB\n");
        (void)note(row[k].headroom, row[k].keep, row[k].keep == 0);
        fake_forget();
        for (int i = 0; i < row[k].n + row[k].again - 1; i++) {
            give(e[i]);
            bool looked = fake.count[FAKE_READ_FILE] != 0;
            assert_int_equal(looked, i + 1 == row[k].n);
            fake_forget();
        }
        give(e[row[k].n + row[k].again - 1]);
        assert_int_not_equal(fake.count[FAKE_READ_FILE], 0);
    }
}

TEST(while_it_is_tight_a_tick_of_age_is_enough)
{
    struct fl_extent *e = take_walled(MIB(8));
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 24576 kB\n");
    become_tight();
    give(e); /* 24 MiB are left: less than four times the 10 that are held */
    assert_int_equal(fake_purged(), 0);
    (void)fl_region_tick(&region, 4);
    assert_true(region.tight);
    assert_int_equal(fake_purged(), MIB(8));
}

/* A look that found such a memory cgroup. */
static void note_group(uint64_t limit, uint64_t left)
{
    struct fl_memory m = {.headroom = left,
                          .eager = left / 2,
                          .keep = UINT64_MAX,
                          .most = limit,
                          .bounded = true,
                          .grouped = true};

    fl_region_lock(&region);
    (void)fl_region_note_memory(&region, &m);
    fl_region_unlock(&region);
}

TEST(in_a_small_group_each_free_is_the_kernels_by_base_pages)
{
    assert_non_null(take(KIB(512)));
    struct fl_extent *e = take(KIB(68));
    assert_non_null(take(KIB(64)));
    note_group(MIB(256), MIB(256));
    assert_false(region.tight);
    give(e);
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 1);
    assert_int_equal(fake_bytes(FAKE_LAZY_FREE), KIB(68));
    assert_sound();
    note_group(MIB(4096), MIB(64));
    give(take(KIB(128)));
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 1);
}

TEST(a_larger_group_is_scarce_while_little_is_left)
{
    static const struct {
        uint64_t limit, left;
        bool scarce;
    } row[] = {{MIB(1024), MIB(128), false},
               {MIB(1024), MIB(127), true},
               {MIB(1024), MIB(255), true}, /* would not have begun here */
               {MIB(1024), MIB(256), false},
               {MIB(2048), MIB(64), false}}; /* a look is soon enough there */
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        note_group(row[i].limit, row[i].left);
        assert_int_equal(fl_region_is_scarce(&region), row[i].scarce);
    }
}

TEST(in_a_small_group_little_is_cached)
{
    note_group(MIB(1024), MIB(1024));
    assert_int_equal(region.cache_max, MIB(4));
    note_group(MIB(512), MIB(63));
    assert_int_equal(region.cache_max, MIB(2)); /* a 64th, by four slots */
    note_group(MIB(64), MIB(64));
    assert_int_equal(region.cache_max, KIB(256));
    assert_int_equal(region.pressure.look_after, MIB(2));
}

TEST(what_became_free_otherwise_is_marked_at_a_look)
{
    struct fl_extent *e = take(KIB(512)), *guard = take(KIB(64));
    note_group(MIB(256), MIB(256));
    assert_true(fl_region_resize(&region, e, KIB(64)));
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 0);
    fl_region_soften(&region);
    assert_int_equal(fake_bytes(FAKE_LAZY_FREE), KIB(448) + MIB(2) - KIB(512 + 64));
    fl_region_soften(&region); /* told once */
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 2);
    assert_sound();
    assert_non_null(guard);
}
