/* Long new blocks of which next to nothing is touched: when the worker sees it, what goes back, and
 * when it leaves a block alone. What is in memory is asked of the real kernel. */
#include "region/jobs/evidence.h"
#include "unit/region_case.h"

#include <errno.h>
#include <stdio.h>

enum { BLOCK_MIB = 128, ROUNDS = 1000 };

static char statm[64];
static unsigned long memory_pages;

/* Bytes of it in memory, less the page of zeros, which mincore counts. */
static size_t held(const struct fl_extent *e)
{
    size_t there = 0;

    assert_int_equal(fl_sys_linux.present(fl_extent_range(e), &there), 0);
    return there;
}

/* As if so much more were in memory: the next look is one. */
static void change(void)
{
    memory_pages += MIB(16) / KIB(4);
    (void)snprintf(statm, sizeof statm, "1000000 %lu 10 1 0 100 0\n", memory_pages);
    fake_file("/proc/thread-self/statm", statm);
}

static int thin_begin(void **state)
{
    (void)waiting_begin(state);
    fl_sys.resident = fl_sys_linux.resident;
    memory_pages = 1000;
    change();
    return 0;
}

/* Can this kernel do it? Linux 6.7, and 6.12 for what goes back. */
static bool can(void)
{
    (void)thin_begin(NULL);
    struct fl_extent *e = take(MIB(4));
    struct fl_range page = fl_huge_of(fl_align_up(e->base, MIB(2))), huge;
    size_t there = 0;

    touch_at(e, page.base - e->base);
    if (!fl_page.thp || fl_sys_linux.huge(page, &huge, 1) != 1) {
        return false;
    }
    (void)fl_sys_linux.advise((struct fl_range){page.base, KIB(4)}, FL_ADVICE_SPLIT);
    return fl_sys_linux.present(page, &there) == 0 && there == KIB(4);
}

/* The worker's job, for as long as it has something to do at once; then some time passes. */
static uint64_t look(void)
{
    uint64_t in = 0;

    for (int i = 0; i < ROUNDS && in == 0; i++) {
        in = fl_region_thin(&region);
    }
    fake.now_ns += in == UINT64_MAX ? 0 : in;
    return in;
}

static void looks(int n)
{
    for (int i = 0; i < n; i++) {
        (void)look();
    }
}

static void change_and_look(int n)
{
    for (int i = 0; i < n; i++) {
        change();
        looks(1);
    }
}

/* A byte in each MiB. */
static void touch_little(struct fl_extent *e, size_t from, size_t to)
{
    for (size_t at = from; at < to; at += MIB(1)) {
        touch_at(e, at + KIB(300));
    }
}

static void fill_part(struct fl_extent *e, size_t from, size_t to, unsigned char with)
{
    for (size_t at = from; at < to; at++) {
        bytes(e)[at] = with;
    }
}

/* None is thin any more. */
static void assert_none_left(void)
{
    assert_int_equal(region.history.sparse_live, 0);
    assert_settled();
}

/* A block that has shown itself. */
static struct fl_extent *take_thin(void)
{
    struct fl_extent *e = take(MIB(BLOCK_MIB));

    touch_little(e, 0, MIB(32));
    looks(4);
    assert_true(fl_extent_is_merely_thin(e));
    return e;
}

TEST_WHERE(can, thin_begin, a_block_that_stays_empty_is_thin)
{
    struct fl_extent *e = take(MIB(BLOCK_MIB));
    assert_true(atomic_load(&region.wants_worker));
    assert_in_range(look(), 1, 1000000000);
    touch_little(e, 0, MIB(32));
    assert_true(held(e) >= MIB(30));
    change();
    looks(3);
    assert_true(fl_extent_is_merely_thin(e));
    touch_little(e, MIB(32), MIB(BLOCK_MIB));
    assert_true(held(e) < MIB(6)); /* with what lies in edges */
    for (size_t at = 0; at < MIB(BLOCK_MIB); at += MIB(1)) {
        assert_int_equal(bytes(e)[at + KIB(300)], 0xee);
    }
    assert_int_equal(region.history.sparse_live, 1);
    assert_true(region.history.touched[27] == 1); /* none of that kind */
    assert_in_range(stats().thin_bytes, MIB(28), MIB(32));
    free_looked_at(e);
    assert_none_left();
}

/* The next one gets huge pages again where the first one lay. */
TEST_WHERE(can, thin_begin, who_comes_after_it_has_huge_pages)
{
    struct fl_extent *e = take_thin();
    uintptr_t base = e->base;
    free_looked_at(e);
    e = take(MIB(20));
    assert_int_equal(e->base, base);
    touch_at(e, 0);
    touch_at(e, MIB(10));
    assert_true(held(e) >= MIB(3));
}

/* Zeros alone say nothing: they may have been written. */
TEST_FROM(NULL, what_fills_is_left_alone)
{
    for (unsigned char with = 0; with < 2; with++) {
        (void)thin_begin(state);
        struct fl_extent *e = take(MIB(BLOCK_MIB));
        for (size_t at = 0; at < MIB(BLOCK_MIB); at += MIB(8)) {
            fill_part(e, at, at + MIB(8), with);
            change();
            looks(2);
        }
        assert_false(fl_extent_is_user_remapped(e));
        assert_settled();
    }
}

/* By eight threads side by side, of which each has written a few pages at the first look. */
TEST_FROM(thin_begin, what_is_being_filled_is_left_alone)
{
    struct fl_extent *e = take(MIB(BLOCK_MIB));
    size_t share = MIB(BLOCK_MIB) / 8;
    for (size_t done = 0; done < MIB(2); done += KIB(64)) {
        for (size_t t = 0; t < 8; t++) {
            fill_part(e, t * share + done, t * share + done + KIB(64), 1);
        }
        change();
        looks(1);
    }
    assert_false(fl_extent_is_user_remapped(e));
}

TEST_WHERE(can, thin_begin, a_thin_block_that_fills_is_thin_no_more)
{
    struct fl_extent *e = take_thin();
    fill_part(e, 0, MIB(64), 1);
    change_and_look(16);
    assert_false(fl_extent_is_thin(e));
    assert_true(fl_extent_is_user_remapped(e));
    assert_int_equal(region.history.sparse_live, 0);
    assert_true(atomic_load(&region.pages.pace.left_base));
    size_t before = held(e);
    touch_at(e, MIB(100));
    assert_true(held(e) >= before + MIB(2));
    free_looked_at(e);
}

/* Others of its kind have shown themselves. */
TEST_WHERE(can, thin_begin, a_hundred_blocks_of_a_kind_are_thin)
{
    enum { N = 40 };
    struct fl_extent *e[N];
    size_t there = 0;
    for (int i = 0; i < N; i++) {
        e[i] = take(MIB(12));
    }
    for (int i = 0; i < N; i++) {
        touch_at(e[i], MIB(5));
        change_and_look(1);
    }
    change_and_look(8);
    for (int i = 0; i < N; i++) {
        there += held(e[i]);
    }
    assert_true(there < MIB(20));
    for (int i = 0; i < N; i++) {
        free_looked_at(e[i]);
    }
    assert_none_left();
}

/* A look has so many samples. Whom it had none for has taught nothing, neither this nor that. */
TEST_WHERE(can, thin_begin, who_had_no_look_does_not_rest)
{
    enum { FULL = FL_EVIDENCE_PICKS, N = FULL + 12 };
    struct fl_extent *e[N];
    for (int i = 0; i < N; i++) {
        e[i] = take(i < FULL ? MIB(4) : MIB(16)); /* no two kinds in one */
        fill_part(e[i], 0, i < FULL ? MIB(4) : 0, 1);
        touch_at(e[i], MIB(3));
    }
    change_and_look(8);
    for (int i = 0; i < N; i++) {
        assert_int_equal(fl_extent_is_merely_thin(e[i]), i >= FULL);
        free_looked_at(e[i]);
    }
}

/* Each has a huge page of its own, or none, and there are more of them than slots. */
TEST_WHERE(can, thin_begin, many_short_blocks_show_it_together)
{
    if (is_reserved()) { /* the window is too small for so many */
        return;
    }
    enum { N = FL_THIN_SLOTS + 44 };
    static struct fl_extent *e[N];
    size_t there = 0;
    for (int i = 0; i < N; i++) {
        e[i] = take(MIB(2) + KIB(256));
    }
    for (int i = 0; i < N; i++) {
        touch_at(e[i], MIB(1));
        change();
        looks(i % 8 == 0);
    }
    change_and_look(16);
    for (int i = 0; i < N; i++) {
        there += held(e[i]);
        assert_int_equal(bytes(e[i])[MIB(1)], 0xee);
    }
    assert_true(there < MIB(N / 8));
    assert_true(region.thin.walk == 0 && !region.thin.missed);
    assert_true(region.history.touched[21] == 1); /* none */
    for (int i = 0; i < N; i++) {
        free_looked_at(e[i]);
    }
    assert_none_left();
}

TEST_FROM(thin_begin, what_rests_is_looked_at_less_and_less)
{
    (void)take(MIB(BLOCK_MIB));
    uint64_t first = look();
    for (int i = 0; i < 400; i++) {
        (void)look();
    }
    fake_forget();
    uint64_t later = look();
    assert_true(later > 100 * first);
    assert_true(fake.count[FAKE_READ_FILE] <= 1);
    change();
    (void)look();
    assert_in_range(look(), 1, 20 * first); /* and often again */
}

static int refused(struct fl_range r, struct fl_range out[], unsigned most)
{
    return -ENOTTY;
}

static int split_nothing_back(struct fl_range r, size_t *out)
{
    *out = r.len;
    return 0;
}

/* Before Linux 6.7 nothing is known; before 6.12 nothing goes back, and the rest is base pages. */
TEST_WHERE(can, thin_begin, on_an_old_kernel)
{
    struct fl_extent *e = take(MIB(BLOCK_MIB));
    touch_little(e, 0, MIB(32));
    fl_sys.huge = refused;
    looks(8);
    assert_false(fl_extent_is_user_remapped(e));
    fl_sys.huge = fl_sys_linux.huge;
    fl_sys.present = split_nothing_back;
    change();
    looks(4);
    assert_true(fl_extent_is_merely_thin(e));
    assert_true(region.thin.never_back);
    assert_true(held(e) >= MIB(28));
    touch_little(e, MIB(32), MIB(BLOCK_MIB));
    assert_true(held(e) <= MIB(36));
}

/* Too many maps. */
TEST_FROM(thin_begin, where_the_kernel_refuses_it_stays_as_it_is)
{
    struct fl_extent *e = take(MIB(BLOCK_MIB));
    touch_little(e, 0, MIB(32));
    fake.rc[FAKE_ADVISE] = -ENOMEM;
    looks(6);
    fake.rc[FAKE_ADVISE] = 0;
    assert_false(fl_extent_is_user_remapped(e));
    assert_none_left();
}

TEST_WHERE(can, thin_begin, a_thin_block_grows_and_moves_as_such)
{
    struct fl_extent *e = take_thin();
    struct fl_extent *behind = take(MIB(8));
    struct fl_extent *to =
        fl_region_resize(&region, e, MIB(200)) ? e : fl_region_move(&region, e, MIB(200));
    if (to != NULL) { /* else it is copied */
        assert_true(fl_extent_is_merely_thin(to));
        assert_int_equal(region.history.sparse_live, 1);
        assert_int_equal(bytes(to)[KIB(300)], 0xee);
        assert_true(fl_region_resize(&region, to, MIB(64)));
        e = to;
    }
    free_looked_at(e);
    give(behind);
    assert_none_left();
}
