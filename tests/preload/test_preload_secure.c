/* A program that runs with rights that its caller has not takes no options from it. A copy of the
 * victim, in a folder of its own, belongs to another group and has the set-group-ID bit; nothing of
 * the machine changes. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { GROUP = 65533 };

static char folder[] = "/tmp/fl-secure-XXXXXX", program[64], stats[64];

static const struct fl_run *run(const char *const env[])
{
    return fl_run_how(
        &(struct fl_how){.argv = (const char *const[]){program, NULL}, .env = env, .preload = ""});
}

static void options_are_ignored_under_at_secure(void **state)
{
    char entry[128];
    (void)state;
    snprintf(entry, sizeof entry, "FAULTLESS_STATS=%s", stats);
    assert_int_equal(chown(program, (uid_t)-1, GROUP), 0);
    assert_int_equal(chmod(program, 02755), 0);
    const struct fl_run *r = run(FL_ENV(
        "FAULTLESS_CONFIRM=1", "FAULTLESS_DISABLE=all", "FAULTLESS_LOG=info", "FAULTLESS_STRICT=1",
        "FAULTLESS_NONSENSE=1", entry, "FAULTLESS_GPU_DRIVER=" FL_FAKE_CUDA));
    fl_run_assert_clean(r);
    assert_string_equal(r->out, "secure 1 active 1 requests 1 driver 0\n");
    assert_int_equal(access(stats, F_OK), -1);
}

/* The same program without the bit obeys: so it was the bit. */
static void without_the_bit_they_are_obeyed(void **state)
{
    (void)state;
    assert_int_equal(chmod(program, 0755), 0);
    const struct fl_run *r = run(FL_ENV("FAULTLESS_DISABLE=all", "FAULTLESS_LOG=info",
                                        "FAULTLESS_GPU_DRIVER=" FL_FAKE_CUDA));
    assert_string_equal(r->err, "faultless: inactive: every request goes to the next allocator\n");
    assert_string_equal(r->out, "secure 0 active 0 requests 0 driver 1\n");
}

static bool copy_runs(void)
{
    snprintf(program, sizeof program, "%s/program", folder);
    snprintf(stats, sizeof stats, "%s/stats", folder);
    if (!fl_copy_program(FL_VICTIM_DIR "/victim_secure", program) || chmod(folder, 0777) != 0) {
        return false;
    }
    return run(NULL)->exit_status == 0;
}

static int clean(void **state)
{
    (void)state;
    unlink(program);
    unlink(stats);
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_are_ignored_under_at_secure),
        cmocka_unit_test(without_the_bit_they_are_obeyed),
    };
    FL_SKIP_UNLESS(geteuid() == 0, "test_preload_secure",
                   "needs root, to make a set-group-ID program");
    FL_SKIP_UNLESS(mkdtemp(folder) != NULL, "test_preload_secure", "needs a folder under /tmp");
    if (!copy_runs()) {
        (void)clean(NULL);
        FL_SKIP_UNLESS(false, "test_preload_secure", "needs a folder where programs may be run");
    }
    return cmocka_run_group_tests(tests, NULL, clean);
}
