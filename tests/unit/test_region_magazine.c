/* A thread that asks for one length many times in a row keeps what it frees for its next row. */
#include "unit/cmocka_all.h"
#include "unit/rows_fixture.h"
#include "unit/shards_fixture.h"

enum { MANY = 200, SLOTS = FL_CACHE_SLOTS, AT_ONCE = FL_MAGAZINES_AT_ONCE };

static void the_next_row_takes_no_lock(void **state)
{
    (void)state;
    rows_keep(MANY, KIB(64));
    for (int turn = 0; turn < 3; turn++) {
        uint64_t before = rows_locks();
        rows_ask_for(MANY, KIB(64));
        assert_int_equal(fl_magazine_bytes(&region), 0);
        rows_free(MANY);
        assert_int_equal(rows_locks(), before);
        assert_int_equal(fl_magazine_bytes(&region), (MANY - SLOTS) * KIB(64));
    }
    assert_sound();
    rows_settle();
}

static void a_short_row_keeps_nothing(void **state)
{
    (void)state;
    rows_ask_for(MANY, KIB(64));
    rows_own->row = FL_ROW_LONG - 1;
    rows_free(MANY);
    assert_null(fl_magazine_of(rows_own));
    assert_true(stats().cached_bytes <= (SLOTS + 8) * KIB(64));
    rows_settle();
}

static void other_lengths_are_not_kept(void **state)
{
    (void)state;
    rows_ask_for(MANY, KIB(64));
    rows_make_long(rows_own, KIB(64));
    for (size_t i = MANY; i < MANY + 64; i++) {
        rows_block[i] = take(KIB(32));
    }
    for (size_t i = MANY; i < MANY + 64; i++) {
        shards_free_to(rows_own, rows_block[i]);
    }
    assert_true(stats().cached_bytes <= (SLOTS + 8) * KIB(64));
    rows_free(MANY);
    rows_settle();
}

static void it_holds_so_many_blocks(void **state)
{
    (void)state;
    rows_ask_for((size_t)2 * FL_MAGAZINE, KIB(4));
    rows_free((size_t)2 * FL_MAGAZINE);
    assert_in_range(stats().cached_bytes / KIB(4), FL_MAGAZINE + SLOTS, FL_MAGAZINE + SLOTS + 8);
    rows_settle();
}

static void and_so_many_bytes(void **state)
{
    (void)state;
    rows_ask_for(FL_MAGAZINE, KIB(128));
    rows_make_long(rows_own, KIB(128));
    rows_free(FL_MAGAZINE);
    assert_in_range(stats().cached_bytes, MIB(16), MIB(16) + (SLOTS + 8) * KIB(128));
    rows_settle();
}

/* First fit finds all of it as one; and a row of another length may follow. */
static void another_length_puts_it_back(void **state)
{
    (void)state;
    for (size_t len = KIB(64); len != KIB(16); len /= 2) {
        rows_keep(MANY, len);
        size_t held = stats().populated_bytes;
        struct fl_extent *e = rows_ask(rows_own, MANY * len);
        assert_int_equal(stats().cached_bytes, 0);
        assert_int_equal(fl_magazine_bytes(&region), 0);
        assert_int_equal(stats().populated_bytes, held);
        assert_sound();
        give(e);
    }
    rows_settle();
}

static void a_row_is_shorter_by_four_for_each_that_went(void **state)
{
    size_t left = MANY - SLOTS - AT_ONCE;
    (void)state;
    rows_keep(MANY, KIB(64));
    rows_own->row = 1000;
    rows_drain_some(); /* the slots, and the lowest */
    assert_int_equal(fl_magazine_bytes(&region), left * KIB(64));
    for (size_t i = 0; i < left; i++) {
        give(rows_ask(rows_own, KIB(64)));
    }
    assert_int_equal(rows_own->row, 1000);
    assert_null(fl_magazine_take(&region, rows_own, KIB(64))); /* passes the holes by */
    assert_int_equal(rows_own->row, 1000 - 4 * AT_ONCE);
    assert_int_equal(fl_magazine_bytes(&region), 0);
    struct fl_extent *e = take(KIB(64));
    assert_true(fl_extent_claim(e, region.epoch));
    assert_null(fl_magazine_put(&region, rows_own, e));
    assert_int_equal(fl_magazine_bytes(&region), KIB(64));
    rows_settle();
}

/* A handler of the owner's that came between its loads and stores. */
static void what_a_handler_did_is_not_lost(void **state)
{
    (void)state;
    rows_keep(MANY, KIB(64));
    struct fl_magazine *m = fl_magazine_of(rows_own);
    struct fl_extent *same = take(KIB(64)), *other = take(KIB(32)), *mine = take(KIB(64));
    assert_true(fl_extent_claim(same, region.epoch) && fl_extent_claim(other, region.epoch) &&
                fl_extent_claim(mine, region.epoch));
    atomic_store(&m->slot[m->top], same);
    assert_ptr_equal(fl_magazine_put(&region, rows_own, mine), same);
    assert_ptr_equal(fl_magazine_take(&region, rows_own, KIB(64)), mine);
    fl_region_defer(&region, same);
    same = atomic_exchange(&m->slot[m->top - 1], other);
    assert_null(fl_magazine_take(&region, rows_own, KIB(64)));
    fl_region_defer(&region, same);
    give(mine);
    rows_settle();
}

static void no_more_than_a_bounded_process_may_keep(void **state)
{
    (void)state;
    atomic_store(&region.cache_max, MIB(4));
    rows_ask_for(FL_MAGAZINE, KIB(64));
    rows_make_long(rows_own, KIB(64));
    rows_free(FL_MAGAZINE);
    assert_int_equal(fl_magazine_bytes(&region), MIB(4));
    rows_settle();
}

/* Who empties all looks at it then, if others have emptied the slots meanwhile. */
static void the_first_one_enters_the_list(void **state)
{
    (void)state;
    rows_keep(MANY, KIB(64));
    fl_region_lock(&region);
    (void)fl_cache_drain_all(&region, 0);
    fl_region_unlock(&region);
    assert_false(rows_own->listed);
    rows_make_long(rows_own, KIB(64));
    struct fl_extent *e = take(KIB(64));
    assert_true(fl_extent_claim(e, region.epoch));
    fl_magazine_emptied(rows_own);
    assert_null(fl_magazine_put(&region, rows_own, e));
    assert_true(rows_own->listed);
    rows_settle();
}

static void what_waits_ages(void **state)
{
    (void)state;
    struct fl_extent *rest = take(MIB(64) - MANY * KIB(64));
    rows_keep(MANY, KIB(64));
    for (int i = 0; i < 100 && fl_cache_has_some(rows_own); i++) {
        (void)fl_region_tick(&region, 4);
    }
    assert_false(fl_cache_has_some(rows_own));
    assert_int_equal(fl_magazine_bytes(&region), 0);
    give(rest);
    rows_settle();
}

static void it_goes_with_all_caches(void **state)
{
    (void)state;
    rows_keep(MANY, KIB(64));
    (void)fl_region_purge(&region, 0);
    assert_int_equal(stats().populated_bytes, 0);
    rows_settle();
}

/* In a child of fork: another thread's is empty, one's own is as it was. */
static void children_keep_their_own(void **state)
{
    (void)state;
    rows_keep(MANY, KIB(64));
    fl_region_lock(&region);
    fl_cache_drain_orphans(&region, rows_own);
    fl_region_unlock(&region);
    assert_int_equal(stats().cached_bytes, MANY * KIB(64));
    fl_region_lock(&region);
    fl_cache_drain_orphans(&region, rows_theirs);
    fl_region_unlock(&region);
    assert_int_equal(stats().cached_bytes, 0);
    assert_int_equal(fl_magazine_bytes(&region), 0);
    assert_int_equal(fl_magazine_of(rows_own)->top, 0);
    assert_settled();
}

static void the_next_thread_has_its_magazine(void **state)
{
    (void)state;
    rows_keep(MANY, KIB(64));
    struct fl_magazine *m = fl_magazine_of(rows_own);
    fl_cache_release(&region, rows_own);
    assert_int_equal(stats().cached_bytes, 0);
    rows_own = fl_cache_acquire(&region);
    assert_ptr_equal(fl_magazine_of(rows_own), m);
    assert_int_equal(m->top, 0);
    assert_int_equal(fl_magazine_bytes(&region), 0);
    rows_keep(MANY, KIB(64));
    assert_ptr_equal(fl_magazine_of(rows_own), m);
    rows_settle();
}

static void without_memory_for_it_there_is_none(void **state)
{
    (void)state;
    rows_ask_for(MANY, KIB(64));
    rows_make_long(rows_own, KIB(64));
    fake.commit_max = 0;
    while (fl_cache_acquire(&region) != NULL) {
    }
    rows_free(MANY);
    assert_null(fl_magazine_of(rows_own));
    assert_int_equal(rows_own->row, 0); /* it is not tried at each free */
    assert_true(stats().cached_bytes <= (SLOTS + 8) * KIB(64));
    assert_sound();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_next_row_takes_no_lock, rows_begin),
        cmocka_unit_test_setup(a_short_row_keeps_nothing, rows_begin),
        cmocka_unit_test_setup(other_lengths_are_not_kept, rows_begin),
        ROWS_TWICE(it_holds_so_many_blocks),
        cmocka_unit_test_setup(and_so_many_bytes, rows_begin),
        ROWS_TWICE(another_length_puts_it_back),
        cmocka_unit_test_setup(a_row_is_shorter_by_four_for_each_that_went, rows_begin),
        cmocka_unit_test_setup(what_a_handler_did_is_not_lost, rows_begin),
        cmocka_unit_test_setup(no_more_than_a_bounded_process_may_keep, rows_begin),
        cmocka_unit_test_setup(the_first_one_enters_the_list, rows_begin),
        cmocka_unit_test_setup(what_waits_ages, rows_begin),
        cmocka_unit_test_setup(it_goes_with_all_caches, rows_begin),
        cmocka_unit_test_setup(children_keep_their_own, rows_begin),
        cmocka_unit_test_setup(the_next_thread_has_its_magazine, rows_begin),
        cmocka_unit_test_setup(without_memory_for_it_there_is_none, rows_begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
