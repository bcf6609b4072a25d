/* Huge pages that fork split: which are collapsed, in which calls, and when the worker leaves off.
 * What the kernel tells of single pages is scripted. */
#include "unit/region_case.h"

#include <errno.h>

static const uint64_t ms = 1000000;

/* The fate of the k-th huge page from the first address. */
static void page(unsigned k, size_t present, size_t own, bool whole)
{
    fake.page[fake.npages++] =
        (struct fake_page){region.space.first + k * fl_page.huge, present, own, whole, 0};
}

static void split(unsigned k)
{
    page(k, MIB(2), MIB(2), false);
}

static void split_all(unsigned from, unsigned to)
{
    for (unsigned k = from; k < to; k++) {
        split(k);
    }
}

static void shared(unsigned k)
{
    page(k, MIB(2), 0, true);
}

/* Live memory of `len` bytes, and a fork that is over. */
static void forked(size_t len)
{
    region_begin(NULL);
    fake.pretend_populate = true;
    assert_non_null(take(len));
    fork_in_vain();
    fake_forget();
}

static int forked_begin(void **state)
{
    forked(MIB(40));
    return 0;
}

/* One look at the whole window. */
static uint64_t look(void)
{
    uint64_t ns;
    int n = 0;

    while ((ns = fl_region_repair(&region)) == 0) {
        assert_true(++n < 1000);
    }
    assert_settled();
    return ns;
}

static const struct fake_call *collapsed(size_t i)
{
    for (size_t k = 0; k < fake.nlog; k++) {
        if (fake.log[k].slot == FAKE_ADVISE && fake.log[k].advice == FL_ADVICE_COLLAPSE &&
            i-- == 0) {
            return &fake.log[k];
        }
    }
    return NULL;
}

static void assert_collapsed(size_t i, unsigned first, unsigned n)
{
    const struct fake_call *c = collapsed(i);

    assert_non_null(c);
    assert_true(c->range.base == region.space.first + first * fl_page.huge);
    assert_int_equal(c->range.len, n * fl_page.huge);
}

/* A look that makes one of them whole, and looks again soon. */
static void assert_look_mends(unsigned k)
{
    assert_true(look() == 100 * ms);
    assert_collapsed(0, k, 1);
}

TEST(before_a_fork_nothing_is_looked_at)
{
    assert_non_null(take(MIB(16)));
    split(1);
    fake_forget();
    assert_true(fl_region_repair(&region) == UINT64_MAX);
    assert_int_equal(fake.nlog, 0);
}

TEST(a_fork_calls_the_worker_which_finds_nothing)
{
    assert_non_null(take(MIB(16)));
    atomic_store(&region.wants_worker, false);
    fork_in_vain();
    assert_true(region.wants_worker);
    fake_forget();
    assert_true(look() == UINT64_MAX);
    assert_null(collapsed(0));
    assert_int_equal(fake_nth(FAKE_FIND_SPLIT, 0)->range.len, MIB(16));
    fake_forget();
    assert_true(look() == UINT64_MAX);
    assert_int_equal(fake.nlog, 0); /* until the next one */
}

TEST(where_little_is_populated_a_fork_calls_no_worker)
{
    assert_non_null(take(MIB(16) - MIB(2)));
    split(1);
    atomic_store(&region.wants_worker, false);
    fork_in_vain();
    assert_false(region.wants_worker);
    assert_true(look() == UINT64_MAX);
    assert_null(collapsed(0));
}

TEST_FROM(forked_begin, neighbours_that_are_worth_it_are_one_call)
{
    split_all(3, 7);
    page(7, MIB(2), MIB(1) - KIB(4), false); /* less than half is its own */
    split_all(8, 10);
    page(10, MIB(2) - KIB(4), MIB(2) - KIB(4), false); /* not all of it is there */
    page(11, MIB(2), MIB(1), false);                   /* just enough */
    split(12);
    split(19);
    assert_true(look() == 100 * ms);
    assert_collapsed(0, 3, 4);
    assert_collapsed(1, 8, 2);
    assert_collapsed(2, 11, 2);
    assert_collapsed(3, 19, 1);
    assert_null(collapsed(4));
    assert_int_equal(stats().repair_bytes, MIB(18));
}

TEST_FROM(forked_begin, it_ends_when_nothing_is_left)
{
    split(4);
    assert_true(look() == 100 * ms);
    assert_int_equal(fake.npages, 0);
    assert_true(look() == UINT64_MAX); /* a look that found nothing */
    fake_forget();
    assert_true(look() == UINT64_MAX);
    assert_int_equal(fake.nlog, 0);
}

TEST_FROM(forked_begin, it_looks_less_and_less_often)
{
    shared(4);
    static const unsigned rests[] = {200, 400, 800, 1000, 1000};
    for (size_t i = 0; i < sizeof rests / sizeof rests[0]; i++) {
        assert_true(look() == rests[i] * ms);
    }
    fake.npages = 0;
    page(4, MIB(2), MIB(2), false); /* the parent has rewritten it */
    shared(5);
    assert_look_mends(4);
    assert_true(look() == 200 * ms);
    fake.npages = 0;
    assert_true(look() == UINT64_MAX);
}

/* Looks until it wants none; for ten minutes. */
static void look_for_long(void)
{
    uint64_t sum = 0, ns;

    while ((ns = look()) != UINT64_MAX) {
        sum += ns;
        assert_true(sum < 1000000 * ms);
    }
    assert_true(sum >= 590000 * ms);
}

TEST_FROM(NULL, it_gives_up_when_nothing_changes_for_long)
{
    forked(MIB(16));
    shared(0);
    look_for_long();
    split(1);
    assert_true(look() == UINT64_MAX);
    fork_in_vain(); /* the next fork begins anew */
    assert_look_mends(1);
}

TEST_FROM(NULL, only_what_is_committed_is_looked_at)
{
    region_begin(&(struct fl_region_config){.huge = true, .eager_max = MIB(100)});
    fake.pretend_populate = true;
    struct fl_extent *a = take(MIB(6)), *hole = take(MIB(10)), *lazy;
    assert_non_null(take(MIB(90)));
    lazy = take(MIB(200));
    give(hole);
    assert_int_equal(fl_region_purge(&region, 0), MIB(10));
    assert_int_equal(lazy->content, FL_CONTENT_LAZY);
    fork_in_vain();
    fake_forget();
    assert_true(look() == UINT64_MAX);
    uintptr_t at = region.space.first;
    size_t sum = 0;
    for (size_t i = 0; i < fake.count[FAKE_FIND_SPLIT]; i++) {
        struct fl_range r = fake_nth(FAKE_FIND_SPLIT, i)->range;
        assert_true(r.base >= at && r.len <= MIB(64)); /* in order, some at a time */
        assert_true(r.base >= hole->base + MIB(10) || fl_range_end(r) <= a->base + MIB(6));
        at = fl_range_end(r);
        sum += r.len;
    }
    assert_int_equal(sum, MIB(296));
}

/* No huge page is to be had: not for now, where one was busy, or for good, for such a map. */
TEST_FROM(forked_begin, what_is_refused_for_now_is_tried_again)
{
    split_all(2, 6);
    fake.rc[FAKE_ADVISE] = -EAGAIN;
    assert_true(look() == 200 * ms);
    assert_collapsed(0, 2, 4);
    assert_int_equal(stats().repair_bytes, 0);
    fake.rc[FAKE_ADVISE] = 0;
    assert_true(look() == 100 * ms);
    assert_int_equal(stats().repair_bytes, MIB(8));
    assert_true(look() == UINT64_MAX);
}

TEST_FROM(NULL, one_that_cannot_be_collapsed_does_not_keep_the_others_small)
{
    const struct {
        int refusal;
        uint64_t then, at_last;
    } row[] = {{-EINVAL, UINT64_MAX, UINT64_MAX}, {-EAGAIN, 200 * ms, 100 * ms}};
    for (size_t i = 0; i < 2; i++) {
        forked(MIB(40));
        split_all(2, 10);
        fake.page[2].refusal = row[i].refusal;
        assert_true(look() == 100 * ms);
        assert_int_equal(stats().repair_bytes, MIB(14));
        assert_int_equal(fake.npages, 1);
        assert_true(look() == row[i].then);
        fake.page[0].refusal = 0;
        assert_true(look() == row[i].at_last);
    }
}

TEST_FROM(forked_begin, without_the_kernel_s_word_nothing_is_collapsed)
{
    split(3);
    fake.rc[FAKE_FIND_SPLIT] = -ENOSYS;
    assert_true(look() == UINT64_MAX);
    forked(MIB(40));
    split(3);
    fake.rc[FAKE_SURVEY] = -EACCES;
    (void)look();
    assert_null(collapsed(0));
}

static bool forked_again;

static void fork_again(struct fl_range r)
{
    if (!forked_again && r.base >= region.space.first + 20 * fl_page.huge) {
        forked_again = true;
        fork_in_vain();
        fake.npages = 0;
        split(1); /* what was mended is split again */
    }
}

TEST_FROM(NULL, a_fork_amid_a_look_begins_anew)
{
    for (unsigned k = 20; k < 60; k += 39) { /* in the first batch, and at the very end */
        forked(MIB(120));
        forked_again = false;
        fake.on_survey = fork_again;
        shared(k);
        split(k);
        uint64_t ns = look();
        assert_true(forked_again);
        if (ns != UINT64_MAX && fake.npages != 0) {
            ns = look();
        }
        assert_int_equal(fake.npages, 0);
        assert_collapsed(0, 1, 1);
        assert_int_equal(stats().repair_bytes, MIB(2));
        assert_true(look() == UINT64_MAX);
    }
}

TEST(pages_that_came_small_are_made_huge)
{
    assert_non_null(take(MIB(16)));
    split(2);
    atomic_store(&region.pages.pace.left_base, true);
    assert_look_mends(2);
    assert_true(look() == UINT64_MAX);
}

/* Faults bring no huge pages: what is new is looked at. */
static int collapse_begin(void **state)
{
    region_begin(&(struct fl_region_config){.huge = true, .collapse = true});
    fake.pretend_populate = true;
    return 0;
}

TEST_FROM(collapse_begin, where_faults_bring_none_new_memory_is_looked_at)
{
    assert_non_null(take(MIB(16) - MIB(2)));
    assert_false(region.wants_worker); /* so little is not worth a thread */
    assert_non_null(take(MIB(2)));
    assert_true(atomic_exchange(&region.wants_worker, false));
    split(2);
    page(4, MIB(2) - KIB(4), MIB(2) - KIB(4), false); /* not all of it is there */
    assert_look_mends(2);
    assert_null(collapsed(1));
    assert_int_equal(stats().repair_bytes, MIB(2));
}

/* It may be touched later: the looks go on, and end. */
TEST_FROM(collapse_begin, what_is_touched_later_becomes_huge_too)
{
    assert_non_null(take(MIB(16)));
    assert_true(look() == 200 * ms);
    assert_true(look() == 400 * ms);
    split(3);
    assert_look_mends(3);
    (void)look();
    (void)look();
    assert_non_null(take(MIB(4)));
    assert_true(look() == 200 * ms); /* as at the beginning */
    look_for_long();
    atomic_store(&region.wants_worker, false);
    assert_non_null(take(MIB(4)));
    assert_true(region.wants_worker);
    assert_true(look() == 200 * ms);
}

TEST_FROM(collapse_begin, while_memory_is_short_nothing_is_copied)
{
    assert_non_null(take(MIB(16)));
    split(2);
    atomic_store(&region.tight, true);
    assert_true(look() == 1000 * ms);
    assert_null(collapsed(0));
    atomic_store(&region.tight, false);
    assert_look_mends(2);
}

TEST_FROM(collapse_begin, where_the_kernel_collapses_nothing_the_looks_end)
{
    assert_non_null(take(MIB(16)));
    split(2);
    split(5);
    fake.rc[FAKE_ADVISE] = -EINVAL;
    assert_true(look() == UINT64_MAX);
    fake.rc[FAKE_ADVISE] = 0;
    fake_forget();
    assert_true(look() == UINT64_MAX);
    assert_int_equal(fake.nlog, 0);
}

TEST_FROM(NULL, without_huge_pages_there_is_nothing_to_repair)
{
    region_begin(&(struct fl_region_config){.huge = false});
    assert_non_null(take(MIB(16)));
    split(2);
    fork_in_vain();
    assert_true(look() == UINT64_MAX);
    assert_null(collapsed(0));
}

/* A look ends amid it and goes on there: its blocks' entries in the pagemap are theirs. */
TEST_FROM(NULL, blocks_of_a_divided_extent_are_still_found)
{
    enum { SHIFT = 16 };
    static struct fl_inner in = {.shift = SHIFT};
    forked(MIB(16));
    assert_int_equal(fl_inner_open(&region, &in, MIB(256)), 0);
    assert_true(fl_inner_fill(&region, &in, fl_extent_range(in.outer)));
    for (size_t i = 0; i < in.granules; i++) {
        in.block[i].len = (size_t)1 << SHIFT;
        in.block[i].state = FL_EXTENT_LIVE;
    }
    (void)look();
    for (size_t i = 0; i < in.granules; i++) {
        assert_ptr_equal(fl_region_find(&region, in.outer->base + (i << SHIFT)), &in.block[i]);
        in.block[i].state = FL_EXTENT_UNUSED;
    }
    fl_inner_close(&region, &in);
}
