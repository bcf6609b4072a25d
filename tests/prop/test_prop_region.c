/* Random sequences on the region against the model of ops.c, in each configuration. A failure is
 * shrunk by halving and printed with its seed. */
#include "prop/ops.h"
#include "prop/seed.h"
#include "prop/shrink.h"
#include "unit/cmocka_all.h"

#if defined(__SANITIZE_THREAD__)
enum { OPS = 400 }; /* there each mapping costs its shadow */
#else
enum { OPS = 2000 };
#endif
enum { SHRINK_TRIES = 400 };

static uint64_t seed;

static void generate(struct op *ops, size_t n, uint64_t *random)
{
#define OP_SHARE(name, share) share,
    static const uint8_t share[OP_KINDS] = {OPS(OP_SHARE)};

    for (size_t i = 0; i < n; i++) {
        uint64_t r = seed_next(random);
        uint8_t kind = 0;
        for (uint8_t left = r % 128; left >= share[kind]; left = (uint8_t)(left - share[kind++])) {
        }
        ops[i] = (struct op){kind, (uint16_t)(r >> 16), (uint16_t)(r >> 32)};
    }
}

static bool fails(const void *config, const void *ops, size_t n)
{
    size_t at;

    return ops_play(config, ops, n, &at) != NULL;
}

static void random_sequences_agree_with_the_model(void **state)
{
    static struct op ops[OPS], shorter[OPS];
    uint64_t random = seed;
    (void)state;
    for (size_t k = 0; k < ops_nconfigs; k++) {
        const struct ops_config *c = &ops_configs[k];
        size_t at;
        generate(ops, OPS, &random);
        const char *wrong = ops_play(c, ops, OPS, &at);
        if (wrong != NULL) {
            size_t n =
                shrink((char *)ops, at + 1, sizeof *ops, (char *)shorter, SHRINK_TRIES, fails, c);
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
