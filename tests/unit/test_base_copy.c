/* Copies past the caches: every alignment of both sides, and not a byte more. */
#include "base/base.h"
#include "unit/cmocka_all.h"

#include <string.h>

static unsigned char from[1024], to[1024], expected[1024];

static void every_alignment_and_length(void **state)
{
    static const size_t lens[] = {0, 1, 15, 16, 63, 64, 65, 127, 128, 200, 700};
    (void)state;
    for (size_t i = 0; i < sizeof from; i++) {
        from[i] = (unsigned char)(i * 7 + 1);
    }
    for (size_t a = 0; a < 66; a++) {
        for (size_t b = 0; b < 66; b += 3) {
            for (size_t k = 0; k < sizeof lens / sizeof lens[0]; k++) {
                memset(to, 0xee, sizeof to);
                memset(expected, 0xee, sizeof expected);
                memcpy(expected + a, from + b, lens[k]);
                fl_copy_streaming(to + a, from + b, lens[k]);
                assert_memory_equal(to, expected, sizeof to);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_alignment_and_length)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
