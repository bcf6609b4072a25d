/* Who uses shelves: a thread that misses its cache often, and would not be served by it. */
#include "unit/cmocka_all.h"
#include "unit/shelf_fixture.h"

static bool left; /* the thread went on without shelves, once it had begun with them */

static void miss(size_t len, uint64_t ns)
{
    fake.now_ns += ns;
    (void)fl_shelf_is_of_use(shelf_cache, len);
}

/* As malloc does: from the shelf, else from the region. */
static struct fl_extent *ask(size_t len)
{
    miss(len, 1000);
    left = left || !shelf_cache->uses_shelves;
    struct fl_extent *e = fl_shelf_take(&region, shelf_cache, len);
    return e != NULL ? e : take(len);
}

static void put(struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    assert_true(fl_shelf_put(&region, shelf_cache, e));
}

static void who_misses_often_uses_them(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * FL_SHELF_MISSES; i++) {
        miss(KIB(64), 3000);
    }
    assert_true(shelf_cache->uses_shelves);
    for (int i = 0; i < FL_SHELF_MISSES; i++) {
        miss(KIB(64), 5000);
    }
    assert_false(shelf_cache->uses_shelves);
}

static void begin_to_use(void)
{
    while (!shelf_cache->uses_shelves) {
        miss(MIB(1), 1000);
    }
    left = false;
}

/* `n` blocks of as many lengths, or of one, are taken and then freed, again and again. Does the
 * thread go on with shelves? */
static bool used_by(size_t n, bool alike)
{
    struct fl_extent *e[8];

    begin_to_use();
    for (size_t i = 0; i < 4 * FL_SHELF_MISSES / n; i++) {
        for (size_t k = 0; k < n; k++) {
            e[k] = ask(KIB(64) * (alike ? 1 : k + 1));
        }
        for (size_t k = 0; k < n; k++) {
            put(e[k]);
        }
    }
    return !left;
}

static void who_asks_for_what_it_just_freed_does_not(void **state)
{
    (void)state;
    assert_false(used_by(1, true));
    assert_false(used_by(2, false));
    assert_false(used_by(4, false));
    assert_false(used_by(4, true));
}

static void who_frees_more_than_a_cache_holds_does(void **state)
{
    (void)state;
    assert_true(used_by(8, true));
    assert_true(used_by(8, false));
}

/* Of malloc and free. */
static void pairs(size_t len, int n)
{
    for (int i = 0; i < n; i++) {
        put(ask(len));
    }
}

static void a_request_that_slots_do_not_serve_would_empty_them(void **state)
{
    (void)state;
    struct fl_extent *a = take(KIB(64)), *b = take(KIB(128));
    begin_to_use();
    for (int i = 0; i < 4 * FL_SHELF_MISSES; i++) {
        put(a);
        put(b);
        miss(MIB(2), 1000);
        a = ask(KIB(64));
        b = ask(KIB(128));
    }
    assert_false(left);
}

/* They serve each of a window's requests, or the thread goes on. */
static void one_other_request_is_enough(void **state)
{
    (void)state;
    begin_to_use();
    for (int i = 0; i < 8; i++) {
        pairs(KIB(64), FL_SHELF_MISSES - 1);
        miss(MIB(2), 1000);
        pairs(KIB(64), FL_SHELF_MISSES); /* the first of these is not served */
    }
    assert_false(left);
    pairs(KIB(64), 2 * FL_SHELF_MISSES);
    assert_true(left);
}

static void what_waits_in_a_slot_stays_there(void **state)
{
    (void)state;
    for (int n = 3; n < 17; n++) {
        begin_to_use();
        for (int i = 0; i < 4 * FL_SHELF_MISSES; i++) {
            struct fl_extent *a = ask(KIB(64)), *b = ask(KIB(128));
            put(a);
            put(b);
            pairs(KIB(64), n);
        }
        assert_true(left);
    }
}

static void a_longer_block_counts_as_what_was_asked_for(void **state)
{
    (void)state;
    put(take(KIB(1000)));
    put(take(KIB(512)));
    begin_to_use();
    pairs(KIB(972), 3);
    pairs(KIB(1000), 3 * FL_SHELF_MISSES);
    assert_true(left); /* the same block, asked for by its own length */
    begin_to_use();
    for (int i = 0; i < 2 * FL_SHELF_MISSES; i++) {
        struct fl_extent *a = ask(KIB(972)), *b = ask(KIB(500));
        assert_int_equal(a->len, KIB(1000));
        put(a);
        put(b);
    }
    assert_true(left);
}

static void who_leaves_leaves_no_lengths_behind(void **state)
{
    (void)state;
    begin_to_use();
    pairs(KIB(64), 1);
    put(take(KIB(128)));
    while (!left) {
        pairs(KIB(64), 1);
    }
    for (int i = 0; i < FL_CACHE_SLOTS; i++) {
        assert_int_not_equal(shelf_cache->ghost.slot[i], KIB(128));
    }
}

#define T(f) cmocka_unit_test_setup(f, shelf_begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(who_misses_often_uses_them),
        T(who_asks_for_what_it_just_freed_does_not),
        T(who_frees_more_than_a_cache_holds_does),
        T(a_request_that_slots_do_not_serve_would_empty_them),
        T(one_other_request_is_enough),
        T(what_waits_in_a_slot_stays_there),
        T(a_longer_block_counts_as_what_was_asked_for),
        T(who_leaves_leaves_no_lengths_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
