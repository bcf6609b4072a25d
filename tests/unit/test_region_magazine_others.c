/* What a thread keeps for its next row, others may need: threads in rows of that length, any
 * request that fits nowhere, and the machine where memory is short. */
#include "unit/cmocka_all.h"
#include "unit/rows_fixture.h"
#include "unit/shards_fixture.h"

#include <pthread.h>

enum { MANY = 200, SLOTS = FL_CACHE_SLOTS, AT_ONCE = FL_MAGAZINES_AT_ONCE };

/* What another thread asks for, some of it goes back for that, and the rest stays. */
static void others_get_some_of_it_before_the_window_grows(void **state)
{
    (void)state;
    struct fl_extent *rest = take(MIB(64) - (MANY + 32) * KIB(64));
    rows_keep(MANY, KIB(64));
    size_t held = stats().populated_bytes, n = 0;
    assert_non_null(take(32 * KIB(64)));
    while (fl_cache_has_some(rows_own)) {
        size_t before = stats().cached_bytes;
        struct fl_extent *e = take(KIB(32));
        assert_true(before - stats().cached_bytes <= (SLOTS + AT_ONCE) * KIB(64));
        assert_int_equal(stats().populated_bytes, held);
        rows_block[n++] = e;
        assert_sound();
    }
    assert_int_equal(fl_magazine_bytes(&region), 0);
    assert_in_range(n, MANY * 2 - 2 * AT_ONCE, MANY * 2);
    give(rest);
}

/* The region has none that is free: another thread in such a row takes some at once, and that is no
 * reason for its owner to keep less. */
static void threads_in_rows_take_from_each_other(void **state)
{
    (void)state;
    struct fl_extent *rest = take(MIB(64) - MANY * KIB(64));
    rows_keep(MANY, KIB(64));
    rows_make_long(rows_theirs, KIB(64));
    size_t held = stats().populated_bytes;
    uint32_t row = rows_own->row;
    for (size_t i = 0; i < MANY - SLOTS; i++) {
        rows_block[i] = rows_ask(rows_theirs, KIB(64));
    }
    assert_int_equal(stats().populated_bytes, held);
    assert_int_equal(stats().cached_bytes, SLOTS * KIB(64));
    assert_int_equal(rows_theirs->stats.cache_hits, (MANY - SLOTS + SLOTS) / (SLOTS + 1));
    assert_int_equal(rows_theirs->stats.hit_bytes, rows_theirs->stats.cache_hits * KIB(64));
    for (size_t i = 0; i < SLOTS; i++) {
        give(rows_ask(rows_own, KIB(64)));
    }
    assert_null(fl_magazine_take(&region, rows_own, KIB(64)));
    assert_int_equal(rows_own->row, row);
    assert_int_equal(fl_magazine_bytes(&region), 0);
    for (size_t i = 0; i < MANY - SLOTS; i++) {
        give(rows_block[i]);
    }
    give(rest);
    rows_settle();
}

/* The lowest slots, which are empty by then, are looked at again. */
static void they_do_again_after_the_next_row(void **state)
{
    (void)state;
    rows_make_long(rows_theirs, KIB(64));
    for (int turn = 0; turn < 3; turn++) {
        rows_keep(MANY, KIB(64));
        for (size_t i = 0; i < MANY - SLOTS; i++) {
            struct fl_extent *e = fl_cache_serve(&region, rows_theirs, KIB(64));
            e = e != NULL ? e : fl_magazine_take_theirs(&region, rows_theirs, KIB(64));
            assert_non_null(e);
            give(e);
        }
        assert_null(fl_magazine_take_theirs(&region, rows_theirs, KIB(64)));
    }
    rows_settle();
}

/* Another thread's are full of what was there before, and not in whole huge pages. */
static void no_one_takes_what_has_to_be_zero_or_aligned(void **state)
{
    (void)state;
    struct fl_extent *rest = take(MIB(64) - MANY * KIB(64));
    rows_keep(MANY, KIB(64));
    rows_make_long(rows_theirs, KIB(64));
    struct fl_extent *zeroed = fl_region_take(&region, rows_theirs, KIB(64), KIB(4), true);
    struct fl_extent *aligned = fl_region_take(&region, rows_theirs, KIB(64), MIB(1), false);
    assert_int_equal(fl_magazine_of(rows_own)->passed_on, 0);
    give(zeroed);
    give(aligned);
    give(rest);
    rows_settle();
}

static void what_is_free_goes_before_what_others_keep(void **state)
{
    (void)state;
    rows_keep(MANY, KIB(64));
    rows_make_long(rows_theirs, KIB(64));
    struct fl_extent *e = rows_ask(rows_theirs, KIB(64));
    assert_int_equal(fl_magazine_of(rows_own)->passed_on, 0);
    give(e);
    rows_settle();
}

static void no_one_takes_another_length(void **state)
{
    (void)state;
    rows_keep(MANY, KIB(64));
    assert_null(fl_magazine_take_theirs(&region, NULL, KIB(64)));
    assert_null(fl_magazine_take_theirs(&region, rows_theirs, KIB(64))); /* it is in no row */
    rows_make_long(rows_theirs, KIB(32));
    assert_null(fl_magazine_take_theirs(&region, rows_theirs, KIB(32)));
    rows_make_long(rows_theirs, KIB(64));
    struct fl_extent *e = fl_magazine_take_theirs(&region, rows_theirs, KIB(64));
    assert_non_null(e);
    give(e);
    assert_null(fl_magazine_take_theirs(&region, rows_own, KIB(64))); /* nor from itself */
    rows_settle();
}

/* What lies on another node goes back, and is not handed out. */
static void no_one_takes_from_another_zone(void **state)
{
    (void)state;
    rows_keep(MANY, KIB(64));
    rows_make_long(rows_theirs, KIB(64));
    atomic_store(&rows_theirs->station, FL_STATION_FIRST);
    rows_theirs->zone = 1;
    size_t before = stats().cached_bytes;
    assert_null(fl_magazine_take_theirs(&region, rows_theirs, KIB(64)));
    assert_int_equal(fl_magazine_of(rows_own)->passed_on, 0);
    atomic_store(&fl_magazine_of(rows_own)->zone, 1); /* has moved since */
    assert_null(fl_magazine_take_theirs(&region, rows_theirs, KIB(64)));
    fl_region_lock(&region);
    fl_region_unlock(&region);
    assert_int_equal(stats().cached_bytes, before - KIB(64));
    rows_settle();
}

static void it_is_idle_memory_and_goes_where_that_is_short(void **state)
{
    struct fl_memory little = {.headroom = MIB(16), .keep = MIB(64)};
    (void)state;
    (void)fl_region_purge(&region, 0);
    rows_keep(MANY, KIB(64)); /* 12.5 MiB: of the headroom all but what is free */
    fl_region_lock(&region);
    (void)fl_region_note_memory(&region, &little);
    fl_region_unlock(&region);
    assert_true(region.tight);
    assert_int_equal(fl_magazine_bytes(&region), 0);
    rows_settle();
}

/* Frees that wait here are what calls for a look, once they have come back. */
static void what_comes_back_calls_for_a_look(void **state)
{
    (void)state;
    rows_keep(MANY, KIB(64));
    size_t before = region.pressure.since_look;
    rows_drain_some();
    assert_true(region.pressure.since_look - before >= AT_ONCE * KIB(64));
    rows_settle();
}

/* So many out of all of them, and twice as many for a request that they were too few for. */
static void several_magazines_give_no_more_at_once(void **state)
{
    (void)state;
    struct fl_cache *first = rows_own;
    rows_keep(MANY, KIB(64));
    rows_own = rows_theirs;
    rows_ask_for(SLOTS + 10, KIB(32));
    rows_make_long(rows_own, KIB(32));
    rows_free(SLOTS + 10);
    rows_own = first;
    size_t before = fl_magazine_bytes(&region);
    rows_drain_some();
    assert_int_equal(before - fl_magazine_bytes(&region), 10 * KIB(32) + (AT_ONCE - 10) * KIB(64));
    for (int i = 0; i < 2 * MANY / AT_ONCE; i++) {
        rows_drain_some();
    }
    assert_int_equal(fl_magazine_bytes(&region), 0);
    rows_settle();
}

/* The block, what is free, and what waits in a magazine, above the lowest. */
static void growth_in_place_passes_by_what_is_free(void **state)
{
    (void)state;
    struct fl_extent *grown = take(KIB(64)), *between = take(KIB(64));
    rows_keep(MANY, KIB(64));
    struct fl_magazine *m = fl_magazine_of(rows_own);
    struct fl_extent *behind = fl_extent_at(&region.space, between->base + KIB(64));
    unsigned i = 0;
    while (i < m->top && m->slot[i] != behind) {
        i++;
    }
    if (i < m->top) { /* to the top */
        atomic_store(&m->slot[i], atomic_load(&m->slot[m->top - 1]));
        atomic_store(&m->slot[m->top - 1], behind);
    }
    give(between);
    assert_true(fl_region_resize(&region, grown, KIB(192)));
    assert_int_equal(grown->len, KIB(192));
    give(grown);
    rows_settle();
}

enum { TURNS = 200, THREADS = 4, EACH = 160 };

/* Rows of one length, with a word of its thread's in each block. */
static void *go_in_rows(void *arg)
{
    struct fl_cache *own = fl_cache_acquire(&region);
    struct fl_extent *e[EACH];

    for (uintptr_t turn = 0; turn < TURNS; turn++) {
        uintptr_t word = (uintptr_t)arg + turn;
        for (size_t i = 0; i < EACH; i++) {
            e[i] = fl_cache_serve(&region, own, KIB(8));
            e[i] = e[i] != NULL ? e[i] : fl_region_take(&region, own, KIB(8), KIB(4), false);
            *(uintptr_t *)e[i]->base = word;
        }
        for (size_t i = 0; i < EACH; i++) {
            if (*(uintptr_t *)e[i]->base != word) {
                return e[i];
            }
            shards_free_to(own, e[i]);
        }
        if (turn % 64 == 63) { /* as a request would, while others go on */
            fl_region_lock(&region);
            (void)(turn % 128 == 63 ? fl_cache_drain_some(&region, AT_ONCE)
                                    : fl_cache_drain_all(&region, 0));
            fl_region_unlock(&region);
        }
    }
    fl_cache_release(&region, own);
    return NULL;
}

static void no_block_is_two_threads(void **state)
{
    pthread_t thread[THREADS];
    void *lost;
    (void)state;
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&thread[i], NULL, go_in_rows, (void *)(i << 32)), 0);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(thread[i], &lost), 0);
        assert_null(lost);
    }
    assert_non_null(region.caches.magazines);
    assert_int_equal(fl_magazine_bytes(&region), 0);
    rows_settle();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(others_get_some_of_it_before_the_window_grows, rows_begin),
        cmocka_unit_test_setup(threads_in_rows_take_from_each_other, rows_begin),
        cmocka_unit_test_setup(they_do_again_after_the_next_row, rows_begin),
        cmocka_unit_test_setup(no_one_takes_what_has_to_be_zero_or_aligned, rows_begin),
        cmocka_unit_test_setup(what_is_free_goes_before_what_others_keep, rows_begin),
        cmocka_unit_test_setup(no_one_takes_another_length, rows_begin),
        cmocka_unit_test_setup(no_one_takes_from_another_zone, rows_begin),
        cmocka_unit_test_setup(it_is_idle_memory_and_goes_where_that_is_short, rows_begin),
        cmocka_unit_test_setup(what_comes_back_calls_for_a_look, rows_begin),
        cmocka_unit_test_setup(several_magazines_give_no_more_at_once, rows_begin),
        cmocka_unit_test_setup(growth_in_place_passes_by_what_is_free, rows_begin),
        ROWS_TWICE(no_block_is_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
