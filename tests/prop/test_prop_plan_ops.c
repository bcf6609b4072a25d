/* Random sequences on the planner against the model of plan_ops.c, each in a process of its own. A
 * failure is shrunk by halving and printed with its seed. FL_TEST_OPS: how many operations. */
#include "prop/plan_ops.h"
#include "prop/seed.h"
#include "prop/shrink.h"
#include "unit/cmocka_all.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { OPS_IN_ALL = 60000 };
#else
enum { OPS_IN_ALL = 400000 };
#endif
enum { OPS = 20000, SHRINK_TRIES = 300, PATIENCE_S = 60 };

static uint64_t seed;

/* What the child leaves. */
static struct report {
    _Atomic size_t at; /* the operation under way */
    char wrong[128];
    struct fl_plan_stats stats;
} * report;

/* Did it fail? */
static bool play(const struct plan_ops_config *c, const struct plan_op *ops, size_t n, bool silent)
{
    int status = 0;

    memset(report, 0, sizeof *report);
    (void)fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(PATIENCE_S);
        (void)signal(SIGSEGV, SIG_DFL); /* which cmocka handles */
        (void)signal(SIGBUS, SIG_DFL);
        if (silent) {
            (void)freopen("/dev/null", "w", stderr);
        }
        const char *wrong = plan_ops_play(c, ops, n, &report->at, &report->stats);
        (void)strncpy(report->wrong, wrong != NULL ? wrong : "", sizeof report->wrong - 1);
        exit(wrong != NULL); /* not _exit, which leaves no coverage */
    }
    bool ended = pid > 0 && waitpid(pid, &status, 0) == pid;
    if (ended && WIFSIGNALED(status)) {
        (void)strncpy(report->wrong, strsignal(WTERMSIG(status)), sizeof report->wrong - 1);
    }
    return !ended || status != 0;
}

static char first_wrong[sizeof report->wrong];

static bool fails_so(const void *config, const void *ops, size_t n)
{
    return play(config, ops, n, true) && strcmp(report->wrong, first_wrong) == 0;
}

static void fail_with(const struct plan_ops_config *c, struct plan_op *ops, size_t done)
{
    static struct plan_op shorter[OPS];
    size_t at = report->at;

    memcpy(first_wrong, report->wrong, sizeof first_wrong);
    (void)fprintf(stderr, "%s: %s, after %zu operations\n", c->name, first_wrong, done + at);
    size_t n = shrink((char *)ops, at + 1, sizeof *ops, (char *)shorter, SHRINK_TRIES, fails_so, c);
    for (size_t i = 0; i < n; i++) {
        (void)fprintf(stderr, "    {PLAN_%s, %u, %u},\n", plan_op_names[ops[i].kind], ops[i].a,
                      ops[i].b);
    }
    (void)play(c, ops, n, false); /* now with what it says */
    fail_msg("%s: %s; shrunk to %zu operations (FL_TEST_SEED=%" PRIu64 ")", c->name, first_wrong, n,
             seed);
}

static void whatever_a_program_does_no_byte_is_lost(void **state)
{
    static struct plan_op ops[OPS];
    const char *given = getenv("FL_TEST_OPS");
    size_t all = given != NULL ? strtoull(given, NULL, 0) : OPS_IN_ALL;
    struct fl_plan_stats sum = {0};
    (void)state;
    for (size_t done = 0; done < all; done += OPS, seed++) {
        const struct plan_ops_config *c = &plan_ops_configs[seed % PLAN_CONFIGS];
        plan_ops_draw(ops, OPS, seed);
        if (play(c, ops, OPS, false)) {
            fail_with(c, ops, done);
        }
        sum.hits += report->stats.hits;
        sum.misses += report->stats.misses;
        sum.steps += report->stats.steps;
        sum.layouts += report->stats.layouts;
        sum.drops += report->stats.drops;
    }
    print_message("  hits %" PRIu64 " misses %" PRIu64 " steps %" PRIu64 " layouts %" PRIu64
                  " drops %" PRIu64 "\n",
                  sum.hits, sum.misses, sum.steps, sum.layouts, sum.drops);
    assert_true(sum.hits > all / 20 && sum.hits > sum.misses);
    assert_true(sum.layouts > 0 && sum.drops > 0 && sum.misses > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_a_program_does_no_byte_is_lost),
    };
    report = mmap(NULL, sizeof *report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    seed = seed_read();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
