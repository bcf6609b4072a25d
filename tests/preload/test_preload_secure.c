/* A program that runs with rights that its caller has not takes no options from it. A copy of the
 * victim, in a folder of its own, belongs to another group and has the set-group-ID bit; nothing of
 * the machine changes. */
#include "run.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { GROUP = 65533 };

static char folder[] = "/tmp/fl-secure-XXXXXX", program[64], stats[64];

static const struct fl_run *run(const char *const env[])
{
    return FL_RUN((const char *const[]){program, NULL}, .env = env, .preload = "");
}

CASE(options_are_ignored_under_at_secure)
{
    const char *entry = text_as("FAULTLESS_STATS=%s", stats);
    assert_int_equal(chown(program, (uid_t)-1, GROUP), 0);
    assert_int_equal(chmod(program, 02755), 0);
    const struct fl_run *r = fl_run_assert_clean(run(FL_ENV(
        "FAULTLESS_CONFIRM=1", "FAULTLESS_DISABLE=all", "FAULTLESS_LOG=info", "FAULTLESS_STRICT=1",
        "FAULTLESS_NONSENSE=1", entry, "FAULTLESS_GPU_DRIVER=" FL_FAKE_CUDA)));
    assert_string_equal(r->out, "secure 1 active 1 requests 1 driver 0\n");
    assert_int_equal(access(stats, F_OK), -1);
}

/* The same program without the bit obeys: so it was the bit. */
CASE(without_the_bit_they_are_obeyed)
{
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

static void clean(void)
{
    unlink(program);
    unlink(stats);
    (void)rmdir(folder);
}

int main(void)
{
    FL_SKIP_UNLESS(geteuid() == 0, "test_preload_secure",
                   "needs root, to make a set-group-ID program");
    FL_SKIP_UNLESS(mkdtemp(folder) != NULL, "test_preload_secure", "needs a folder under /tmp");
    if (!copy_runs()) {
        clean();
        FL_SKIP_UNLESS(false, "test_preload_secure", "needs a folder where programs may be run");
    }
    return RUN_CASES(.group_teardown = clean);
}
