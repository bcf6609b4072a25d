/* Who may not trace a process does not read its live page, and a program that runs with raised
 * privileges has none. */
#include "cases.h"
#include "child.h"
#include "live_victim.h"

#include <grp.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

static void become_nobody(void)
{
    if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0) {
        _exit(99);
    }
}

CASE(another_users_process_is_not_read)
{
    struct fl_live_victim v = fl_live_victim_begin("work", fl_live_victim_still);
    fl_child_run_changed(
        ARGV(FL_FAULTSTAT, "top", "--batch", "-n", "1", "-p", fl_live_victim_text(v.pid)),
        become_nobody);
    assert_int_equal(output.status, 1);
    assert_says(output.err, "Permission denied");
}

/* A copy that runs as another user. */
static void make_setuid(const char *from, const char *copy)
{
    fl_child_ends(0, ARGV("cp", from, copy), NULL);
    assert_int_equal(chown(copy, 65534, 65534), 0);
    assert_int_equal(chmod(copy, 04755), 0);
}

CASE(a_setuid_program_is_not_under_it)
{
    make_setuid(FL_LIVE, FL_LIVE ".setuid");
    struct fl_live_victim v =
        fl_live_victim_start(ARGV(FL_LIVE ".setuid", "files"), fl_live_victim_still);
    (void)fl_live_victim_line(&v);
    TOP(1, "--batch", "-n", "1", "-p", fl_live_victim_text(v.pid));
    unlink(FL_LIVE ".setuid");
    assert_says(output.err, ": not under faultless\n");
}

/* It ignores LD_PRELOAD. */
CASE(compare_says_that_it_is_not_loaded)
{
    make_setuid(FL_LARGE, FL_LARGE ".setuid");
    fl_child_run(
        ARGV(FL_FAULTSTAT, "compare", "-a", "glibc,faultless", "-n", "2", "--", FL_LARGE ".setuid"),
        NULL);
    unlink(FL_LARGE ".setuid");
    assert_int_equal(output.status, 1);
    assert_says(output.out, "not compared: not loaded: raised privileges");
}

int main(void)
{
    struct statvfs where;
    if (geteuid() != 0) {
        printf("SKIP test_tools_top_users: needs root, got user %d\n", (int)geteuid());
        return 77;
    }
    if (statvfs(FL_LIVE, &where) == 0 && (where.f_flag & ST_NOSUID) != 0) {
        printf("SKIP test_tools_top_users: needs a file system with setuid, got nosuid\n");
        return 77;
    }
    return RUN_CASES(.teardown = fl_live_victims_end_well);
}
