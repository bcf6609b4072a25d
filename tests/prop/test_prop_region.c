/* Random sequences on the region against the model of world.h, in each configuration by turns. A
 * failure is shrunk by halving and printed with the seed of its sequence; what ends the process, or
 * stops it, with the last operations.
 *   FL_TEST_SEED  the first sequence's, which is the one that fails where it is the printed one
 *   FL_TEST_OPS   how many operations, in all */
#include "prop/ops.h"
#include "prop/seed.h"
#include "prop/shrink.h"
#include "unit/cmocka_all.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__)
enum { OPS = 400 }; /* there each mapping costs its shadow */
#else
enum { OPS = 1500 };
#endif
enum { SHRINK_TRIES = 400, LAST = 12, PATIENCE_S = 120 };

/* The sequence that is played. */
static struct sequence {
    const struct ops_config *config;
    uint64_t seed;
    size_t before; /* operations of those before it */
    struct op ops[OPS];
    volatile size_t at;
} now;

static uint64_t seed;

static void generate(struct op *ops, size_t n, uint64_t random)
{
#define OP_SHARE(name, f, share) share,
    static const uint8_t share[OP_KINDS] = {OPS(OP_SHARE)};

    for (size_t i = 0; i < n; i++) {
        uint64_t r = seed_next(&random);
        uint8_t kind = 0;
        for (uint8_t rest = r % 256; rest >= share[kind]; rest = (uint8_t)(rest - share[kind++])) {
        }
        ops[i] = (struct op){kind, (uint16_t)(r >> 16), (uint16_t)(r >> 32)};
    }
}

static void say(const char *wrong)
{
    fprintf(stderr, "%s: %s, after %zu operations (FL_TEST_SEED=%" PRIu64 ")\n", now.config->name,
            wrong, now.before + now.at, now.seed);
}

/* A crash; or the alarm: a lock that is never released, say. */
static void end_by_signal(int signal)
{
    size_t n = now.at + 1 < LAST ? now.at + 1 : LAST;

    say(strsignal(signal));
    ops_print(now.ops + now.at + 1 - n, n);
    _exit(1);
}

static void watch_signals(void)
{
    static const int ends[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM};

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        (void)signal(ends[i], end_by_signal);
    }
}

static const char *first_wrong;

static bool fails_so(const void *config, const void *ops, size_t n)
{
    size_t at;
    const char *wrong = ops_play(config, ops, n, &at);

    return wrong != NULL && strcmp(wrong, first_wrong) == 0;
}

static void fail_with(const char *wrong)
{
    static struct op shorter[OPS];

    say(wrong);
    (void)alarm(SHRINK_TRIES);
    first_wrong = wrong;
    size_t n = shrink((char *)now.ops, now.at + 1, sizeof *now.ops, (char *)shorter, SHRINK_TRIES,
                      fails_so, now.config);
    fprintf(stderr, "shrunk to %zu operations:\n", n);
    ops_print(now.ops, n);
    fail_msg("%s: %s (FL_TEST_SEED=%" PRIu64 ")", now.config->name, wrong, now.seed);
}

static void random_sequences_agree_with_the_model(void **state)
{
    const char *given = getenv("FL_TEST_OPS");
    size_t all = given != NULL ? strtoull(given, NULL, 0) : OPS * ops_nconfigs;
    (void)state;
    watch_signals();
    for (size_t done = 0; done < all; done += OPS, seed++) {
        now.config = &ops_configs[seed % ops_nconfigs];
        now.seed = seed;
        now.before = done;
        now.at = 0;
        generate(now.ops, OPS, seed);
        (void)alarm(PATIENCE_S);
        const char *wrong = ops_play(now.config, now.ops, OPS, &now.at);
        (void)alarm(0);
        if (wrong != NULL) {
            fail_with(wrong);
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
