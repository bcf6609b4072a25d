/* Random sequences on the region against the model of ops.c, in each configuration. A failure is
 * shrunk by halving and printed with its seed. */
#include "prop/ops.h"
#include "prop/seed.h"
#include "unit/cmocka_all.h"

#include <string.h>

#if defined(__SANITIZE_THREAD__)
enum { OPS = 400 }; /* there each mapping costs its shadow */
#else
enum { OPS = 2000 };
#endif
enum { SHRINK_TRIES = 400 };

static uint64_t seed;

static void generate(struct op *ops, size_t n, uint64_t *random)
{
    /* Out of 128: how often each kind occurs. */
    static const uint8_t share[OP_KINDS] = {31, 13, 26, 8, 3, 11, 3, 4, 1, 2,
                                            3,  7,  4,  3, 2, 2,  1, 2, 2};

    for (size_t i = 0; i < n; i++) {
        uint64_t r = seed_next(random);
        uint8_t kind = 0;
        for (uint8_t left = r % 128; left >= share[kind]; left = (uint8_t)(left - share[kind++])) {
        }
        ops[i] = (struct op){kind, (uint16_t)(r >> 16), (uint16_t)(r >> 32)};
    }
}

static const char *play(const struct ops_config *c, const struct op *ops, size_t n)
{
    size_t at;

    return ops_play(c, ops, n, &at);
}

/* Leaves out what is not needed to fail, in ever smaller pieces. */
static size_t shrink(const struct ops_config *c, struct op *ops, size_t n)
{
    static struct op shorter[OPS];
    int tries = 0;

    for (size_t piece = n / 2; piece >= 1; piece /= 2) {
        for (size_t from = 0; from + piece <= n && tries < SHRINK_TRIES;) {
            memcpy(shorter, ops, from * sizeof *ops);
            memcpy(shorter + from, ops + from + piece, (n - from - piece) * sizeof *ops);
            tries++;
            if (play(c, shorter, n - piece) != NULL) {
                n -= piece;
                memcpy(ops, shorter, n * sizeof *ops);
            } else {
                from += piece;
            }
        }
    }
    return n;
}

static void random_sequences_agree_with_the_model(void **state)
{
    static struct op ops[OPS];
    uint64_t random = seed;
    (void)state;
    for (size_t k = 0; k < ops_nconfigs; k++) {
        const struct ops_config *c = &ops_configs[k];
        size_t at;
        generate(ops, OPS, &random);
        const char *wrong = ops_play(c, ops, OPS, &at);
        if (wrong != NULL) {
            size_t n = shrink(c, ops, at + 1);
            fprintf(stderr, "%s: %s; shrunk to %zu operations:\n", c->name, wrong, n);
            ops_print(ops, n);
            fail_msg("%s: %s (FL_TEST_SEED=%" PRIu64 ")", c->name, wrong, seed);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_sequences_agree_with_the_model),
    };
    seed = seed_read();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
