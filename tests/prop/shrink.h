/* A sequence of operations that fails, made shorter. */
#ifndef FL_TESTS_PROP_SHRINK_H
#define FL_TESTS_PROP_SHRINK_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Leaves out of `ops`, `n` of `each` bytes, what is not needed to fail, in ever smaller pieces.
 *   shorter  room for as many
 *   tries    at most
 *   fails    do these fail, as those did?
 * Returns how many are left. */
static inline size_t shrink(char *ops, size_t n, size_t each, char *shorter, int tries,
                            bool (*fails)(const void *config, const void *ops, size_t n),
                            const void *config)
{
    for (size_t piece = n / 2; piece >= 1; piece /= 2) {
        for (size_t from = 0; from + piece <= n && tries > 0; tries--) {
            memcpy(shorter, ops, from * each);
            memcpy(shorter + from * each, ops + (from + piece) * each, (n - from - piece) * each);
            if (fails(config, shorter, n - piece)) {
                n -= piece;
                memcpy(ops, shorter, n * each);
            } else {
                from += piece;
            }
        }
    }
    return n;
}

#endif
