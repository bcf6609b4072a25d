/* A thread that asks for one length many times in a row keeps what it frees for its next row. */
#include "region/magazine.h"
#include "region/row.h"
#include "unit/cmocka_all.h"
#include "unit/shards_fixture.h"

#include <pthread.h>

enum { LONG = 128, MANY = 200, SLOTS = FL_CACHE_SLOTS, AT_ONCE = 16 };

static struct fl_cache *c, *theirs;
static struct fl_extent *block[2 * FL_MAGAZINE];

static int begin(void)
{
    c = fl_cache_acquire(&region);
    theirs = fl_cache_acquire(&region);
    assert_true(c != NULL && theirs != NULL);
    return 0;
}

static int each(void **state)
{
    (void)state;
    region_begin(NULL);
    (void)begin();
    give(take(MIB(64)));
    return 0;
}

static int each_with_two_shards(void **state)
{
    shards_begin(state);
    shards_give();
    return begin();
}

/* As alloc/ asks. */
static struct fl_extent *ask_of(struct fl_cache *own, size_t len)
{
    struct fl_extent *e = fl_cache_serve(&region, own, len);

    e = e != NULL ? e : fl_region_take(&region, own, len, KIB(4), false);
    assert_non_null(e);
    assert_int_equal(e->state, FL_EXTENT_LIVE);
    assert_int_equal(e->len, len);
    return e;
}

static void ask_for(size_t n, size_t len)
{
    for (size_t i = 0; i < n; i++) {
        block[i] = ask_of(c, len);
    }
}

static void free_all(size_t n)
{
    for (size_t i = 0; i < n; i++) {
        shards_free_to(c, block[i]);
    }
}

static void make_it_asked_for_in_a_row(struct fl_cache *own, size_t len)
{
    own->row = LONG;
    own->row_len = len;
}

static void a_row_is_kept(size_t n, size_t len)
{
    ask_for(n, len);
    make_it_asked_for_in_a_row(c, len);
    free_all(n);
    assert_non_null(fl_magazine_of(c));
    assert_in_range(stats().cached_bytes, n * len, (n + SLOTS) * len); /* some were taken along */
}

static uint64_t locks(void)
{
    uint64_t n = region.stats.locks;

    for (unsigned i = 0; i < fl_shards_open(&region.shards); i++) {
        n += region.shards.of[i].since.locks;
    }
    return n;
}

static void all_is_settled(void)
{
    fl_cache_release(&region, c);
    fl_cache_release(&region, theirs);
    assert_int_equal(stats().cached_bytes, 0);
    assert_int_equal(stats().in_use_bytes, 0);
    assert_settled();
}

/* Sums what waits by what a reader outside sees. */
static size_t seen_in_magazines(void)
{
    size_t bytes = 0;

    for (const struct fl_magazine *m = region.caches.magazines; m != NULL; m = m->next) {
        bytes += m->bytes - m->gone;
    }
    return bytes;
}

static void the_next_row_takes_no_lock(void **state)
{
    (void)state;
    a_row_is_kept(MANY, KIB(64));
    for (int turn = 0; turn < 3; turn++) {
        uint64_t before = locks();
        ask_for(MANY, KIB(64));
        assert_int_equal(seen_in_magazines(), 0);
        free_all(MANY);
        assert_int_equal(locks(), before);
        assert_int_equal(seen_in_magazines(), (MANY - SLOTS) * KIB(64));
    }
    assert_sound();
    all_is_settled();
}

static void a_short_row_keeps_nothing(void **state)
{
    (void)state;
    ask_for(MANY, KIB(64));
    c->row = LONG - 1;
    free_all(MANY);
    assert_null(fl_magazine_of(c));
    assert_true(stats().cached_bytes <= (SLOTS + 8) * KIB(64));
    all_is_settled();
}

static void other_lengths_are_not_kept(void **state)
{
    (void)state;
    ask_for(MANY, KIB(64));
    make_it_asked_for_in_a_row(c, KIB(64));
    for (size_t i = MANY; i < MANY + 64; i++) {
        block[i] = take(KIB(32));
    }
    for (size_t i = MANY; i < MANY + 64; i++) {
        shards_free_to(c, block[i]);
    }
    assert_true(stats().cached_bytes <= (SLOTS + 8) * KIB(64));
    free_all(MANY);
    all_is_settled();
}

static void it_holds_so_many_blocks(void **state)
{
    (void)state;
    ask_for((size_t)2 * FL_MAGAZINE, KIB(4));
    free_all((size_t)2 * FL_MAGAZINE);
    assert_in_range(stats().cached_bytes / KIB(4), FL_MAGAZINE + SLOTS, FL_MAGAZINE + SLOTS + 8);
    all_is_settled();
}

static void and_so_many_bytes(void **state)
{
    (void)state;
    ask_for(FL_MAGAZINE, KIB(128));
    make_it_asked_for_in_a_row(c, KIB(128));
    free_all(FL_MAGAZINE);
    assert_in_range(stats().cached_bytes, MIB(16), MIB(16) + (SLOTS + 8) * KIB(128));
    all_is_settled();
}

/* First fit finds all of it as one; and a row of another length may follow. */
static void another_length_puts_it_back(void **state)
{
    (void)state;
    for (size_t len = KIB(64); len != KIB(16); len /= 2) {
        a_row_is_kept(MANY, len);
        size_t held = stats().populated_bytes;
        struct fl_extent *e = ask_of(c, MANY * len);
        assert_int_equal(stats().cached_bytes, 0);
        assert_int_equal(seen_in_magazines(), 0);
        assert_int_equal(stats().populated_bytes, held);
        assert_sound();
        give(e);
    }
    all_is_settled();
}

/* What another thread asks for, some of it goes back for that, and the rest stays. */
static void others_get_some_of_it_before_the_window_grows(void **state)
{
    (void)state;
    struct fl_extent *rest = take(MIB(64) - (MANY + 32) * KIB(64));
    a_row_is_kept(MANY, KIB(64));
    size_t held = stats().populated_bytes, n = 0;
    assert_non_null(take(32 * KIB(64)));
    while (fl_cache_has_some(c)) {
        size_t before = stats().cached_bytes;
        struct fl_extent *e = take(KIB(32));
        assert_true(before - stats().cached_bytes <= (SLOTS + AT_ONCE) * KIB(64));
        assert_int_equal(stats().populated_bytes, held);
        block[n++] = e;
        assert_sound();
    }
    assert_int_equal(seen_in_magazines(), 0);
    assert_in_range(n, MANY * 2 - 2 * AT_ONCE, MANY * 2);
    give(rest);
}

static void drain_some(void)
{
    fl_region_lock(&region);
    (void)fl_cache_drain_some(&region);
    fl_region_unlock(&region);
}

static void a_row_is_shorter_by_four_for_each_that_went(void **state)
{
    size_t left = MANY - SLOTS - AT_ONCE;
    (void)state;
    a_row_is_kept(MANY, KIB(64));
    c->row = 1000;
    drain_some(); /* the slots, and the lowest */
    assert_int_equal(seen_in_magazines(), left * KIB(64));
    for (size_t i = 0; i < left; i++) {
        give(ask_of(c, KIB(64)));
    }
    assert_int_equal(c->row, 1000);
    assert_null(fl_magazine_take(&region, c, KIB(64))); /* passes the holes by */
    assert_int_equal(c->row, 1000 - 4 * AT_ONCE);
    assert_int_equal(seen_in_magazines(), 0);
    all_is_settled();
}

/* The region has none that is free: another thread in such a row takes some at once, and that is no
 * reason for its owner to keep less. */
static void threads_in_rows_take_from_each_other(void **state)
{
    (void)state;
    struct fl_extent *rest = take(MIB(64) - MANY * KIB(64));
    a_row_is_kept(MANY, KIB(64));
    make_it_asked_for_in_a_row(theirs, KIB(64));
    size_t held = stats().populated_bytes;
    uint32_t row = c->row;
    for (size_t i = 0; i < MANY - SLOTS; i++) {
        block[i] = ask_of(theirs, KIB(64));
    }
    assert_int_equal(stats().populated_bytes, held);
    assert_int_equal(stats().cached_bytes, SLOTS * KIB(64));
    assert_int_equal(theirs->stats.cache_hits, (MANY - SLOTS + SLOTS) / (SLOTS + 1));
    for (size_t i = 0; i < SLOTS; i++) {
        give(ask_of(c, KIB(64)));
    }
    assert_null(fl_magazine_take(&region, c, KIB(64)));
    assert_int_equal(c->row, row);
    assert_int_equal(seen_in_magazines(), 0);
    for (size_t i = 0; i < MANY - SLOTS; i++) {
        give(block[i]);
    }
    give(rest);
    all_is_settled();
}

static void what_is_free_goes_before_what_others_keep(void **state)
{
    (void)state;
    a_row_is_kept(MANY, KIB(64));
    make_it_asked_for_in_a_row(theirs, KIB(64));
    struct fl_extent *e = ask_of(theirs, KIB(64));
    assert_int_equal(fl_magazine_of(c)->passed_on, 0);
    give(e);
    all_is_settled();
}

static void no_one_takes_another_length(void **state)
{
    (void)state;
    a_row_is_kept(MANY, KIB(64));
    assert_null(fl_magazine_take_theirs(&region, NULL, KIB(64)));
    assert_null(fl_magazine_take_theirs(&region, theirs, KIB(64))); /* it is in no row */
    make_it_asked_for_in_a_row(theirs, KIB(32));
    assert_null(fl_magazine_take_theirs(&region, theirs, KIB(32)));
    make_it_asked_for_in_a_row(theirs, KIB(64));
    struct fl_extent *e = fl_magazine_take_theirs(&region, theirs, KIB(64));
    assert_non_null(e);
    give(e);
    assert_null(fl_magazine_take_theirs(&region, c, KIB(64))); /* nor from itself */
    all_is_settled();
}

/* What lies on another node goes back, and is not handed out. */
static void no_one_takes_from_another_zone(void **state)
{
    (void)state;
    a_row_is_kept(MANY, KIB(64));
    make_it_asked_for_in_a_row(theirs, KIB(64));
    atomic_store(&theirs->station, FL_STATION_FIRST);
    theirs->zone = 1;
    size_t before = stats().cached_bytes;
    assert_null(fl_magazine_take_theirs(&region, theirs, KIB(64)));
    fl_region_lock(&region);
    fl_region_unlock(&region);
    assert_int_equal(stats().cached_bytes, before - KIB(64));
    all_is_settled();
}

/* A handler of the owner's that came between its loads and stores. */
static void what_a_handler_did_is_not_lost(void **state)
{
    (void)state;
    a_row_is_kept(MANY, KIB(64));
    struct fl_magazine *m = fl_magazine_of(c);
    struct fl_extent *same = take(KIB(64)), *other = take(KIB(32)), *mine = take(KIB(64));
    assert_true(fl_extent_claim(same, region.epoch) && fl_extent_claim(other, region.epoch) &&
                fl_extent_claim(mine, region.epoch));
    atomic_store(&m->slot[m->top], same);
    assert_ptr_equal(fl_magazine_put(&region, c, mine), same);
    assert_ptr_equal(fl_magazine_take(&region, c, KIB(64)), mine);
    fl_region_defer(&region, same);
    same = atomic_exchange(&m->slot[m->top - 1], other);
    assert_null(fl_magazine_take(&region, c, KIB(64)));
    fl_region_defer(&region, same);
    give(mine);
    all_is_settled();
}

static void what_waits_ages(void **state)
{
    (void)state;
    struct fl_extent *rest = take(MIB(64) - MANY * KIB(64));
    a_row_is_kept(MANY, KIB(64));
    for (int i = 0; i < 100 && fl_cache_has_some(c); i++) {
        (void)fl_region_tick(&region, 4);
    }
    assert_false(fl_cache_has_some(c));
    assert_int_equal(seen_in_magazines(), 0);
    give(rest);
    all_is_settled();
}

static void it_goes_with_all_caches(void **state)
{
    (void)state;
    a_row_is_kept(MANY, KIB(64));
    (void)fl_region_purge(&region, 0);
    assert_int_equal(stats().populated_bytes, 0);
    all_is_settled();
}

/* In a child of fork: another thread's is empty, one's own is as it was. */
static void children_keep_their_own(void **state)
{
    (void)state;
    a_row_is_kept(MANY, KIB(64));
    fl_region_lock(&region);
    fl_cache_drain_orphans(&region, c);
    fl_region_unlock(&region);
    assert_int_equal(stats().cached_bytes, MANY * KIB(64));
    fl_region_lock(&region);
    fl_cache_drain_orphans(&region, theirs);
    fl_region_unlock(&region);
    assert_int_equal(stats().cached_bytes, 0);
    assert_int_equal(seen_in_magazines(), 0);
    assert_settled();
}

static void the_next_thread_has_its_magazine(void **state)
{
    (void)state;
    a_row_is_kept(MANY, KIB(64));
    struct fl_magazine *m = fl_magazine_of(c);
    fl_cache_release(&region, c);
    assert_int_equal(stats().cached_bytes, 0);
    c = fl_cache_acquire(&region);
    assert_ptr_equal(fl_magazine_of(c), m);
    assert_int_equal(m->top, 0);
    assert_int_equal(seen_in_magazines(), 0);
    a_row_is_kept(MANY, KIB(64));
    assert_ptr_equal(fl_magazine_of(c), m);
    all_is_settled();
}

static void without_memory_for_it_there_is_none(void **state)
{
    (void)state;
    ask_for(MANY, KIB(64));
    make_it_asked_for_in_a_row(c, KIB(64));
    fake.commit_max = 0;
    while (fl_cache_acquire(&region) != NULL) {
    }
    free_all(MANY);
    assert_null(fl_magazine_of(c));
    assert_true(stats().cached_bytes <= (SLOTS + 8) * KIB(64));
    assert_sound();
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
            (void)(turn % 128 == 63 ? fl_cache_drain_some(&region)
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
    assert_int_equal(seen_in_magazines(), 0);
    all_is_settled();
}

#define TWICE(test)                                                                                \
    cmocka_unit_test_setup(test, each),                                                            \
    {                                                                                              \
        .name = #test "_with_shards", .test_func = test, .setup_func = each_with_two_shards        \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_next_row_takes_no_lock, each),
        cmocka_unit_test_setup(a_short_row_keeps_nothing, each),
        cmocka_unit_test_setup(other_lengths_are_not_kept, each),
        TWICE(it_holds_so_many_blocks),
        cmocka_unit_test_setup(and_so_many_bytes, each),
        TWICE(another_length_puts_it_back),
        cmocka_unit_test_setup(others_get_some_of_it_before_the_window_grows, each),
        cmocka_unit_test_setup(a_row_is_shorter_by_four_for_each_that_went, each),
        cmocka_unit_test_setup(threads_in_rows_take_from_each_other, each),
        cmocka_unit_test_setup(what_is_free_goes_before_what_others_keep, each),
        cmocka_unit_test_setup(no_one_takes_another_length, each),
        cmocka_unit_test_setup(no_one_takes_from_another_zone, each),
        cmocka_unit_test_setup(what_a_handler_did_is_not_lost, each),
        cmocka_unit_test_setup(what_waits_ages, each),
        cmocka_unit_test_setup(it_goes_with_all_caches, each),
        cmocka_unit_test_setup(children_keep_their_own, each),
        cmocka_unit_test_setup(the_next_thread_has_its_magazine, each),
        cmocka_unit_test_setup(without_memory_for_it_there_is_none, each),
        TWICE(no_block_is_two_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
