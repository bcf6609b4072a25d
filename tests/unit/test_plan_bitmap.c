/* Who has which granules: bits across words, all of a range or nothing of it. */
#include "plan/context.h"
#include "unit/cmocka_all.h"
#include "unit/fake_sys.h"

#include <pthread.h>

enum { GRANULES = 300, WORDS = (GRANULES + 63) / 64 };

static _Atomic uint64_t word[WORDS];
static struct fl_bitmap bits = {word, GRANULES};

static bool is_set(size_t i)
{
    return (word[i / 64] >> i % 64 & 1) != 0;
}

static size_t count(void)
{
    size_t n = 0;

    for (size_t i = 0; i < (size_t)WORDS * 64; i++) {
        n += is_set(i);
    }
    return n;
}

static void each_range_sets_its_bits_and_clears_them(void **state)
{
    (void)state;
    for (size_t first = 0; first < GRANULES; first++) {
        for (size_t n = 1; n <= GRANULES - first; n += 1 + n / 3) {
            uint64_t mask = fl_bitmap_mask(first, n); /* where it lies within a word */
            assert_true((mask != 0) == (first / 64 == (first + n - 1) / 64));
            assert_true(fl_bitmap_take(&bits, first, n));
            assert_int_equal(count(), n);
            assert_true(is_set(first) && is_set(first + n - 1));
            assert_true(mask == 0 || mask == word[first / 64]);
            assert_false(fl_bitmap_is_clear(&bits));
            fl_bitmap_give(&bits, first, n);
            assert_int_equal(count(), 0);
            assert_true(fl_bitmap_is_clear(&bits));
        }
    }
}

/* While one granule is taken, no range with it is free or to be had, and what failed leaves
 * nothing. */
static void a_range_is_free_while_no_block_has_any_of_it(void **state)
{
    static const size_t ones[] = {0, 7, 63, 64, 127, 128, 200, 256, GRANULES - 1};
    (void)state;
    for (size_t i = 0; i < sizeof ones / sizeof ones[0]; i++) {
        size_t one = ones[i];
        assert_true(fl_bitmap_take(&bits, one, 1));
        for (size_t first = 0; first < GRANULES; first += 7) {
            for (size_t n = 1; n <= GRANULES - first; n++) {
                bool has_it = one >= first && one < first + n;
                assert_true(fl_bitmap_are_free(&bits, first, n) != has_it);
                assert_true(!has_it || !fl_bitmap_take(&bits, first, n));
                assert_int_equal(count(), 1);
            }
        }
        assert_true(one == 0 || fl_bitmap_take(&bits, 0, one));
        assert_true(one + 1 == GRANULES || fl_bitmap_take(&bits, one + 1, GRANULES - one - 1));
        fl_bitmap_give(&bits, 0, GRANULES);
    }
}

static void what_is_not_there_has_no_owner(void **state)
{
    (void)state;
    assert_false(fl_bitmap_take(&bits, 0, 0));
    assert_false(fl_bitmap_take(&bits, 0, GRANULES + 1));
    assert_false(fl_bitmap_take(&bits, GRANULES, 1));
    assert_false(fl_bitmap_take(&bits, GRANULES - 1, 2));
    assert_false(fl_bitmap_take(&bits, SIZE_MAX, 2));
    assert_false(fl_bitmap_take(&bits, 2, SIZE_MAX));
    assert_int_equal(count(), 0);
}

enum { THREADS = 3, ROUNDS = 20000 };

/* Owner of each granule; written only by who has claimed it, so for TSan too. */
static unsigned owner[GRANULES];
static _Atomic unsigned conflicts;

static void *claim_at_random(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;
    uint64_t x = me * 0x9e3779b97f4a7c15;

    for (int i = 0; i < ROUNDS; i++) {
        x = x * 6364136223846793005 + 1442695040888963407;
        size_t n = 1 + (x >> 40) % 90, first = (x >> 20) % (GRANULES - n + 1);
        if (!fl_bitmap_take(&bits, first, n)) {
            continue;
        }
        for (size_t k = first; k < first + n; k++) {
            conflicts += owner[k] != 0;
            owner[k] = me;
        }
        for (size_t k = first; k < first + n; k++) {
            conflicts += owner[k] != me;
            owner[k] = 0;
        }
        fl_bitmap_give(&bits, first, n);
    }
    return NULL;
}

static void two_never_have_the_same(void **state)
{
    pthread_t t[THREADS];
    (void)state;
    for (uintptr_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&t[i], NULL, claim_at_random, (void *)(i + 1)), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }
    assert_int_equal(conflicts, 0);
    assert_int_equal(count(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_range_sets_its_bits_and_clears_them),
        cmocka_unit_test(a_range_is_free_while_no_block_has_any_of_it),
        cmocka_unit_test(what_is_not_there_has_no_owner),
        cmocka_unit_test(two_never_have_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
