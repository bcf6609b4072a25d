/* Clearing past the caches: every byte asked for, and none beside it. */
#include "base/base.h"
#include "cases.h"

enum { AROUND = 256, LONGEST = 3 * FL_CACHE_LINE + 1 };

static unsigned char memory[AROUND + LONGEST + AROUND] __attribute__((aligned(FL_CACHE_LINE)));

static size_t count(const unsigned char *p, size_t len, unsigned char what)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++) {
        n += p[i] == what;
    }
    return n;
}

CASE(exactly_the_bytes_asked_for_are_cleared)
{
    for (size_t skew = 0; skew < FL_CACHE_LINE; skew++) {
        for (size_t len = 0; len + skew <= LONGEST; len++) {
            unsigned char *p = memory + AROUND + skew;
            memset(memory, 0xa5, sizeof memory);
            fl_zero_streaming(p, len);
            assert_int_equal(count(p, len, 0), len);
            assert_int_equal(count(memory, sizeof memory, 0xa5), sizeof memory - len);
        }
    }
}

CASE(a_huge_page_and_some_is_cleared)
{
    size_t len = 2 * FL_MIB + 3;
    unsigned char *p = malloc(len + 2);
    assert_non_null(p);
    memset(p, 0xa5, len + 2);
    fl_zero_streaming(p + 1, len);
    assert_int_equal(count(p + 1, len, 0), len);
    assert_int_equal(p[0], 0xa5);
    assert_int_equal(p[len + 1], 0xa5);
    free(p);
}

CASES_MAIN()
