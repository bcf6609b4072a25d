/* What is free below a huge page goes back by base pages, and comes back. */
#include "unit/cmocka_all.h"
#include "unit/region_fixture.h"

#include <errno.h>
#include <string.h>

enum { BLOCKS = 16 };
static struct fl_extent *block[BLOCKS];

/* Blocks of 512 KiB side by side, in four huge pages. */
static int each(void **state)
{
    (void)state;
    region_begin(NULL);
    for (int i = 0; i < BLOCKS; i++) {
        block[i] = take(KIB(512));
        fill(block[i], (unsigned char)(i + 1));
    }
    fake_forget();
    return 0;
}

/* All but each `kept`-th one. */
static void give_but(int kept)
{
    for (int i = 0; i < BLOCKS; i++) {
        if (i % kept != 0) {
            give(block[i]);
            block[i] = NULL;
        }
    }
}

static void assert_live_is_as_it_was(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        assert_true(block[i] == NULL || is_filled(block[i], (unsigned char)(i + 1)));
    }
    assert_settled();
}

static void tick_times(int n)
{
    for (int i = 0; i < n; i++) {
        (void)fl_region_tick(&region, 4);
    }
}

/* Bytes of the window in memory, by the kernel's word. */
static size_t resident(void)
{
    struct fl_range all = {region.first, MIB(8)};
    size_t bytes = 0;

    assert_int_equal(fl_sys_linux.resident(all, &bytes), 0);
    return bytes;
}

static unsigned advised(enum fl_sys_advice advice)
{
    unsigned n = 0;

    for (size_t i = 0; i < fl_min(fake.nlog, FAKE_LOG); i++) {
        n += fake.log[i].slot == FAKE_ADVISE && fake.log[i].advice == advice && fake.log[i].rc == 0;
    }
    return n;
}

static void what_is_free_between_blocks_goes_when_it_is_old(void **state)
{
    (void)state;
    give_but(4);
    tick_times(3);
    assert_int_equal(region.populated_bytes, MIB(8));
    tick_times(1);
    assert_int_equal(region.populated_bytes, MIB(2));
    assert_int_equal(resident(), MIB(2));
    assert_int_equal(stats().purge_bytes, MIB(6));
    assert_int_equal(region.free_bytes, 0);
    assert_null(in_window(FAKE_UNMAP, 0)); /* it stays mapped */
    assert_null(in_window(FAKE_DECOMMIT, 0));
    assert_live_is_as_it_was();
    assert_false(fl_region_tick(&region, 4)); /* nothing is left to watch */
}

static void what_lies_between_split_ones_is_the_same_map(void **state)
{
    (void)state;
    static const int order[] = {1, 9, 5, 13};
    for (size_t i = 0; i < 4; i++) {
        give(block[order[i]]);
        block[order[i]] = NULL;
        assert_int_equal(fl_region_purge(&region, 0), KIB(512));
        assert_int_equal(region.holes.runs, i == 1 ? 2 : 1);
    }
    assert_live_is_as_it_was();
}

/* Split by the kernel at once, and not made huge behind our back. */
static void each_huge_page_is_split_once(void **state)
{
    (void)state;
    give_but(2);
    assert_int_equal(fl_region_purge(&region, 0), MIB(4));
    assert_int_equal(fake.count[FAKE_LAZY_FREE], 4);
    assert_int_equal(fake_bytes(FAKE_LAZY_FREE), 4 * KIB(4));
    assert_int_equal(advised(FL_ADVICE_NO_HUGE), 4 + 1); /* the table's own map */
    assert_int_equal(advised(FL_ADVICE_DROP), 8);
    assert_int_equal(region.holes.split, 4);
    assert_int_equal(region.holes.runs, 1); /* neighbours are one map */
    assert_live_is_as_it_was();
}

static void a_small_share_stays_until_memory_goes_at_once(void **state)
{
    (void)state;
    give(block[0]);
    block[0] = take(KIB(320)); /* 192 KiB are free */
    memset(bytes(block[0]), 1, KIB(320));
    tick_times(8);
    assert_int_equal(region.populated_bytes, MIB(8));
    assert_int_equal(fl_region_purge(&region, 0), 0); /* it has been looked at */
    give(block[0]);
    block[0] = take(KIB(320));
    memset(bytes(block[0]), 1, KIB(320));
    assert_int_equal(fl_region_purge(&region, 0), KIB(192));
    give(block[4]);
    block[4] = take(KIB(464)); /* 48 KiB: less than a thirty-second */
    memset(bytes(block[4]), 5, KIB(464));
    assert_int_equal(fl_region_purge(&region, 0), 0);
    assert_live_is_as_it_was();
}

static void pieces_of_a_huge_page_add_up(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i += 2) {
        give(block[i]);
        block[i] = take(KIB(384));
        memset(bytes(block[i]), i + 1, KIB(384));
        tick_times(8);
        assert_int_equal(region.populated_bytes, i == 0 ? MIB(8) : MIB(8) - KIB(256));
    }
    assert_live_is_as_it_was();
}

static void a_hole_that_is_used_again_is_populated_and_counted(void **state)
{
    (void)state;
    give_but(2);
    (void)fl_region_purge(&region, 0);
    fake_forget();
    block[1] = take_zeroed(KIB(512));
    assert_true(is_filled(block[1], 0));
    fill(block[1], 2);
    assert_int_equal(fake.count[FAKE_POPULATE], 1);
    assert_int_equal(fake_bytes(FAKE_POPULATE), KIB(512));
    assert_int_equal(region.populated_bytes, MIB(4) + KIB(512));
    block[3] = take(KIB(256)); /* a half of the next */
    fill(block[3], 4);
    assert_int_equal(region.populated_bytes, MIB(4) + KIB(768));
    assert_true(fl_region_resize(&region, block[3], KIB(512))); /* and the rest */
    fill(block[3], 4);
    assert_int_equal(region.populated_bytes, MIB(5));
    assert_int_equal(resident(), MIB(5));
    assert_live_is_as_it_was();
    give(block[3]);
    block[3] = NULL;
    assert_int_equal(fl_region_purge(&region, 0), KIB(512));
    assert_live_is_as_it_was();
}

/* One that was just freed is not as old as the hole that it merges with. */
static void a_hole_makes_no_neighbour_old(void **state)
{
    (void)state;
    give(block[1]);
    give(block[2]);
    tick_times(8);
    assert_int_equal(region.populated_bytes, MIB(7));
    give(block[3]);
    block[1] = block[2] = block[3] = NULL;
    tick_times(3);
    assert_int_equal(region.populated_bytes, MIB(7));
    tick_times(1);
    assert_int_equal(region.populated_bytes, MIB(7) - KIB(512));
    assert_live_is_as_it_was();
}

static void what_was_split_and_is_free_as_a_whole_goes_as_a_whole(void **state)
{
    (void)state;
    give_but(4);
    (void)fl_region_purge(&region, 0);
    fake_forget();
    give(block[4]);
    block[4] = NULL;
    assert_int_equal(region.free_huge, 0); /* no request gets its pages */
    assert_sound();
    (void)fl_region_tick(&region, 4);
    assert_int_equal(fake_purged(), MIB(2));
    assert_int_equal(region.holes.split, 3);
    assert_int_equal(region.populated_bytes, MIB(1) + KIB(512));
    assert_live_is_as_it_was();
    struct fl_extent *e = take_aligned(MIB(2), MIB(2));
    fill(e, 9);
    assert_int_equal(region.holes.split, 3);
    assert_int_equal(fl_holes_in(&region, fl_extent_range(e)), 0);
    assert_live_is_as_it_was();
}

static void repair(void)
{
    fake.now_ns += 6000000000;
    while (fl_region_repair(&region) == 0) {
    }
}

static void what_is_full_for_a_while_becomes_one_again(void **state)
{
    (void)state;
    give_but(4);
    (void)fl_region_purge(&region, 0);
    for (int i = 1; i < 4; i++) {
        repair();
        assert_int_equal(region.holes.split, 4);
        block[i] = take(KIB(512));
        fill(block[i], (unsigned char)(i + 1));
    }
    fake_forget();
    repair();
    assert_int_equal(region.holes.split, 4); /* it may not last */
    repair();
    assert_int_equal(region.holes.split, 3);
    assert_int_equal(advised(FL_ADVICE_COLLAPSE), 1);
    assert_int_equal(advised(FL_ADVICE_HUGE), 1);
    const struct fake_call *c = in_window(FAKE_ADVISE, 0);
    assert_true(c->range.base == block[0]->base && c->range.len == MIB(2));
    assert_live_is_as_it_was();
    give(block[1]); /* and it may be split once more */
    block[1] = NULL;
    assert_int_equal(fl_region_purge(&region, 0), KIB(512));
    assert_int_equal(region.holes.split, 4);
    assert_live_is_as_it_was();
}

static void one_that_the_program_laid_hands_on_is_left_alone(void **state)
{
    (void)state;
    give(block[1]);
    (void)fl_region_purge(&region, 0);
    block[1] = take(KIB(512));
    fill(block[1], 2);
    fl_region_note_hands(&region, (struct fl_range){block[2]->base, KIB(4)});
    for (int i = 0; i < 4; i++) {
        repair();
    }
    assert_int_equal(region.holes.split, 1);
    assert_live_is_as_it_was();
}

/* Where pages come from elsewhere to what a request leaves of its last huge page, a hole would be filled unseen. */
static void pieces_wait_while_pages_move(void **state)
{
    (void)state;
    give_but(2);
    region.leaving = MIB(2);
    assert_int_equal(fl_region_purge(&region, 0), 0);
    assert_true(fl_region_tick(&region, 0)); /* and are not forgotten */
    region.leaving = 0;
    (void)fl_region_tick(&region, 0);
    assert_int_equal(region.populated_bytes, MIB(4));
    assert_live_is_as_it_was();
}

static void refused_they_stay_and_nothing_goes_round(void **state)
{
    (void)state;
    give_but(2);
    fake.rc[FAKE_ADVISE] = -EINVAL; /* as where all is locked in memory */
    assert_int_equal(fl_region_purge(&region, 0), 0);
    assert_true(fake.count[FAKE_ADVISE] <= 3);
    tick_times(8);
    assert_true(fake.count[FAKE_ADVISE] <= 3 + 8 * 2); /* one piece a tick */
    assert_int_equal(region.populated_bytes, MIB(8));
    assert_live_is_as_it_was();
}

static void without_a_table_they_stay(void **state)
{
    (void)state;
    give_but(2);
    fake.rc[FAKE_MAP_AT] = fake.rc[FAKE_RESERVE] = fake.rc[FAKE_COMMIT] = -ENOMEM;
    assert_int_equal(fl_region_purge(&region, 0), 0);
    tick_times(8);
    assert_int_equal(advised(FL_ADVICE_DROP), 0);
    assert_live_is_as_it_was();
    fake.rc[FAKE_MAP_AT] = fake.rc[FAKE_RESERVE] = fake.rc[FAKE_COMMIT] = 0;
    assert_int_equal(fl_region_purge(&region, 0), MIB(4));
    assert_live_is_as_it_was();
}

static void a_confined_process_keeps_them(void **state)
{
    (void)state;
    give_but(2);
    fl_sys_confine(true);
    size_t given = fl_region_purge(&region, 0);
    fl_sys_confine(false);
    assert_int_equal(given, 0);
    assert_int_equal(fake.count[FAKE_ADVISE], 0);
    assert_live_is_as_it_was();
}

static void a_hole_is_filled_within_the_limit(void **state)
{
    (void)state;
    give_but(2);
    (void)fl_region_purge(&region, 0);
    region.config.limit = MIB(5);
    block[1] = take(KIB(512));
    block[3] = take(KIB(512));
    assert_true(block[1] != NULL && block[3] != NULL);
    fill(block[1], 2);
    fill(block[3], 4);
    assert_null(take(KIB(512)));
    assert_int_equal(region.populated_bytes, MIB(5));
    assert_live_is_as_it_was();
}

/* The kernel is told nothing of pieces: where it is short they go, whatever their age, and whatever they are beside. */
static void where_memory_is_short_they_go_at_once(void **state)
{
    (void)state;
    region.tight = true;
    region.pieces.headroom = MIB(16);
    region.look_after = SIZE_MAX; /* it stays so */
    for (int i = 1; i < 9; i++) { /* a whole huge page and pieces of two */
        assert_int_equal(region.populated_bytes, MIB(8));
        give(block[i]);
        block[i] = NULL;
    }
    assert_int_equal(region.populated_bytes, MIB(6));
    assert_live_is_as_it_was();
    assert_int_equal(fl_region_purge(&region, 0), MIB(2)); /* which the kernel might have taken */
    assert_int_equal(region.populated_bytes, MIB(4));
    assert_live_is_as_it_was();
}

static int child(void)
{
    bool whole = fl_region_fork_child(&region, NULL);
    struct fl_extent *e = take_zeroed(KIB(512));

    if (!whole || e == NULL || !is_filled(e, 0) || fl_region_check(&region) != NULL) {
        return 1;
    }
    fill(e, 1);
    for (int i = 0; i < BLOCKS; i++) {
        if (block[i] != NULL && !is_filled(block[i], (unsigned char)(i + 1))) {
            return 2;
        }
    }
    give(e);
    (void)fl_region_purge(&region, 0);
    return region.populated_bytes == MIB(4) && fl_region_check(&region) == NULL ? 0 : 3;
}

static void children_know_of_the_holes(void **state)
{
    (void)state;
    give_but(2);
    (void)fl_region_purge(&region, 0);
    assert_int_equal(fork_with(child), 0);
    assert_live_is_as_it_was();
}

static int child_status;

static int uses_what_is_free(void)
{
    if (!fl_region_fork_child(&region, NULL) || fl_region_check(&region) != NULL) {
        return 1;
    }
    struct fl_extent *e = take_zeroed(MIB(3));
    if (e == NULL || !is_filled(e, 0)) {
        return 2;
    }
    fill(e, 1);
    return fl_region_check(&region) == NULL ? 0 : 3;
}

/* What lies on both sides of the piece is freed, so that it is not for children, and another thread forks. */
static void free_around_and_fork(struct fl_range r)
{
    (void)r;
    fake.on_lazy_free = NULL;
    give(block[0]);
    block[0] = NULL;
    for (int i = 4; i < 8; i++) {
        give(block[i]);
        block[i] = NULL;
    }
    child_status = fork_beside(uses_what_is_free);
}

static void a_child_finds_a_piece_apart(void **state)
{
    (void)state;
    for (int i = 1; i < 4; i++) {
        give(block[i]);
        block[i] = NULL;
    }
    fake.on_lazy_free = free_around_and_fork;
    (void)fl_region_purge(&region, 0);
    assert_int_equal(child_status, 0);
    assert_live_is_as_it_was();
}

/* A part of it is rough since a block beside what is not for children was freed. */
static void children_get_what_is_split_and_free(void **state)
{
    (void)state;
    struct fl_extent *big = take(MIB(4)), *end = take(MIB(2));
    fill(end, 0x33);
    give(block[13]);
    (void)fl_region_purge(&region, 0);
    give(big);
    fl_region_fork_lock(&region); /* `big` is not for children */
    fl_region_fork_parent(&region);
    for (int i = 12; i < BLOCKS; i++) {
        if (i != 13) {
            give(block[i]);
        }
        block[i] = NULL;
    }
    int status = fork_with(child);
    assert_true(status == 0 || status == 3); /* it has other figures */
    assert_true(is_filled(end, 0x33));
    assert_live_is_as_it_was();
}

static void a_worker_less_process_gives_them_back_by_its_calls(void **state)
{
    (void)state;
    region.config.tick_ns = 100000000;
    fake.now_ns = 1;
    give_but(4);
    for (int i = 0; i < 8; i++) {
        fake.now_ns += 100000001;
        give(take(KIB(512)));
    }
    assert_true(region.populated_bytes <= MIB(2) + KIB(512));
    assert_live_is_as_it_was();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(what_is_free_between_blocks_goes_when_it_is_old, each),
        cmocka_unit_test_setup(each_huge_page_is_split_once, each),
        cmocka_unit_test_setup(what_lies_between_split_ones_is_the_same_map, each),
        cmocka_unit_test_setup(a_small_share_stays_until_memory_goes_at_once, each),
        cmocka_unit_test_setup(pieces_of_a_huge_page_add_up, each),
        cmocka_unit_test_setup(a_hole_that_is_used_again_is_populated_and_counted, each),
        cmocka_unit_test_setup(a_hole_makes_no_neighbour_old, each),
        cmocka_unit_test_setup(what_was_split_and_is_free_as_a_whole_goes_as_a_whole, each),
        cmocka_unit_test_setup(what_is_full_for_a_while_becomes_one_again, each),
        cmocka_unit_test_setup(one_that_the_program_laid_hands_on_is_left_alone, each),
        cmocka_unit_test_setup(pieces_wait_while_pages_move, each),
        cmocka_unit_test_setup(refused_they_stay_and_nothing_goes_round, each),
        cmocka_unit_test_setup(without_a_table_they_stay, each),
        cmocka_unit_test_setup(a_confined_process_keeps_them, each),
        cmocka_unit_test_setup(a_hole_is_filled_within_the_limit, each),
        cmocka_unit_test_setup(where_memory_is_short_they_go_at_once, each),
        cmocka_unit_test_setup(children_know_of_the_holes, each),
        cmocka_unit_test_setup(a_child_finds_a_piece_apart, each),
        cmocka_unit_test_setup(children_get_what_is_split_and_free, each),
        cmocka_unit_test_setup(a_worker_less_process_gives_them_back_by_its_calls, each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
