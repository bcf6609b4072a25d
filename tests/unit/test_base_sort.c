/* Sorting by keys, and the scratch that it is done in. */
#include "base/base.h"
#include "cases.h"

enum { MOST = 500 };

static _Alignas(FL_CACHE_LINE) char scratch[64 * FL_KIB];
static uint64_t key[MOST];
static uint32_t order[MOST];

static struct fl_bump room_of(size_t len)
{
    return (struct fl_bump){.at = scratch, .end = scratch + len};
}

/* `shift`: which bytes of the keys differ; `kinds`: how many keys there are. */
static void sort(size_t n, unsigned shift, uint64_t kinds)
{
    uint64_t x = 1;

    for (size_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        key[i] = ((x >> 33) % kinds << shift) + 7;
        order[i] = (uint32_t)(n - 1 - i);
    }
    assert_true(fl_sort(order, key, n, room_of(fl_sort_cost(n))));
}

CASE(keys_come_out_in_order)
{
    for (unsigned shift = 0; shift < 64; shift += 9) {
        for (size_t n = 0; n <= MOST; n += n < 4 ? 1 : 62) {
            uint64_t seen = 0;
            sort(n, shift, UINT64_MAX >> shift);
            for (size_t i = 0; i < n; i++) {
                seen += order[i];
                assert_true(i == 0 || key[order[i - 1]] <= key[order[i]]);
            }
            assert_int_equal(seen, n * (n - (n > 0)) / 2);
        }
    }
}

CASE(equal_keys_keep_their_order)
{
    sort(MOST, 20, 3);
    for (size_t i = 1; i < MOST; i++) {
        assert_true(key[order[i - 1]] < key[order[i]] || order[i - 1] > order[i]);
    }
}

CASE(too_little_room_is_an_answer)
{
    for (uint32_t i = 0; i < MOST; i++) {
        order[i] = i;
    }
    assert_false(fl_sort(order, key, MOST, room_of(fl_sort_cost(MOST) - 1)));
}

CASE(what_does_not_fit_ends_a_bump)
{
    struct fl_bump b = room_of((size_t)3 * FL_CACHE_LINE);

    assert_ptr_equal(fl_bump_carve(&b, 1, 1), scratch);
    assert_ptr_equal(fl_bump_carve(&b, 0, 8), scratch + FL_CACHE_LINE);
    assert_int_equal(fl_bump_cost(FL_CACHE_LINE + 1, 1), 2 * FL_CACHE_LINE);
    assert_null(fl_bump_carve(&b, 3, FL_CACHE_LINE));
    assert_true(b.is_short);
    assert_null(fl_bump_carve(&b, 1, 1));
}

CASES_MAIN()
