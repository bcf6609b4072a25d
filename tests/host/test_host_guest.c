/* What a program changes of its rights, its namespaces and its scheduling, the library's thread has
 * too, and does not hinder.
 *
 *   test_host_guest          what every user may do
 *   test_host_guest root     what only root may do */
#include "host.h"

static void check_call(const char *call)
{
    static struct fl_run plain;
    static const char *const via[] = {"libc", "syscall"};
    struct fl_host_tally tally = {0};

    for (size_t i = 0; i < 2; i++) {
        struct fl_how how = {.argv = FL_ARGV("victim_host_guest", call, via[i]), .preload = ""};
        plain = *fl_run_how(&how);
        fl_run_assert_clean(&plain);
        how.preload = NULL;
        how.env = FL_ENV("FAULTLESS_DECAY_MS=200", "FAULTLESS_STATS=0");
        const struct fl_run *r = fl_run_how(&how);
        tally.rows++;
        if (strcmp(r->out, plain.out) != 0 || strcmp(r->err, plain.err) != 0 ||
            r->exit_status != plain.exit_status || r->timed_out) {
            fl_host_failed(&tally, "by %s\nglibc: %sours: %s%s%s\n", via[i], plain.out, r->out,
                           r->err, r->exit_status == 0 ? "" : fl_host_end(r));
        }
    }
    fl_host_judge(&tally);
}

#define CALL(call) CASE_IS(after_##call, check_call(#call))
CALL(unshare_user)
CALL(no_new_privileges)
CALL(restrict_by_landlock)
CALL(become_batch)
CALL(take_one_cpu)
CALL(be_nice)

#define ROOTS_CALL(call) CASE_IS(as_root_after_##call, check_call(#call))
ROOTS_CALL(unshare_mounts)
ROOTS_CALL(setns_mounts)
ROOTS_CALL(setns_time)
ROOTS_CALL(drop_capabilities)
ROOTS_CALL(become_other)
ROOTS_CALL(become_by_setuid)
ROOTS_CALL(drop_bounding)
ROOTS_CALL(inherit)

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "root") == 0) {
        FL_SKIP_UNLESS(geteuid() == 0, "test_host_guest@root", "needs root");
        cmocka_set_test_filter("as_root_*");
    } else {
        cmocka_set_skip_filter("as_root_*");
    }
    return RUN_CASES();
}
