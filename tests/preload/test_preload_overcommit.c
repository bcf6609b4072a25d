/* vm.overcommit_memory=2: what is written to may be charged, what is only reserved may not; at the
 * limit ENOMEM.
 *
 * The limit is drawn close for the victims alone: they run without CAP_SYS_ADMIN, and what
 * vm.admin_reserve_kbytes keeps for processes that have it is all but a little of what is left.
 * All else on the machine has the usual. */
#include "run.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

enum { LEAVE_MIB = 3000 };

static void without_admin(void *arg)
{
    (void)arg;
    if (prctl(PR_CAPBSET_DROP, CAP_SYS_ADMIN, 0, 0, 0) != 0) { /* takes effect at exec */
        _exit(98);
    }
}

static const struct fl_run *run(const char *const argv[], const char *preload)
{
    return FL_RUN(argv, .preload = preload, .in_child = without_admin);
}

/* True when both ended well, the limit was met, and ours got nearly as much, each time. */
static bool is_nearly_as_much(const char *const argv[])
{
    const struct fl_run *plain = run(argv, ""), *ours = run(argv, NULL);
    long first = fl_run_said(plain, "first "), again = fl_run_said(plain, "again ");

    return plain->exit_status == 0 && ours->exit_status == 0 && ours->err[0] == '\0' &&
           first < 2 * LEAVE_MIB && fl_run_stat(ours, "requests") > 0 &&
           fl_run_said(ours, "first ") * 100 >= first * 75 &&
           fl_run_said(ours, "again ") * 100 >= again * 75;
}

/* Others on the machine commit and release meanwhile: one run of a few must be undisturbed. */
static void nearly_as_much(const char *const argv[])
{
    for (int tries = 0; !is_nearly_as_much(argv); tries++) {
        assert_true(tries < 4);
    }
}

CASE(committed_memory_is_used_nearly_in_full)
{
    nearly_as_much(FL_ARGV("victim_fill", "1024", "1", "9000"));
    nearly_as_much(FL_ARGV("victim_fill", "20000", "1", "9000"));
}

CASE(contents_hold)
{
    fl_run_assert_active(run(FL_ARGV("victim_contents", "realloc_random"), NULL));
    fl_run_assert_active(run(FL_ARGV("victim_contents", "calloc_in_pieces"), NULL));
    fl_run_assert_active(run(FL_ARGV("victim_fork", "others_blocks"), NULL));
}

/* Else what is kept for those that have it is kept from this process too, and from its shell. */
static bool has_admin(void)
{
    struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct d[_LINUX_CAPABILITY_U32S_3];

    return syscall(SYS_capget, &h, d) == 0 &&
           (d[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN)) != 0;
}

int main(void)
{
    FL_SKIP_UNLESS(geteuid() == 0 && access("/proc/sys/vm/overcommit_memory", W_OK) == 0,
                   "test_preload_overcommit",
                   "needs to write /proc/sys/vm, as root of a machine may");
    FL_SKIP_UNLESS(has_admin(), "test_preload_overcommit",
                   "needs CAP_SYS_ADMIN, which its victims alone must be without");
    long long limit = fl_read_number("/proc/meminfo", "CommitLimit:");
    long long committed = fl_read_number("/proc/meminfo", "Committed_AS:");
    const char *reserve = text_as("%lld", limit - committed - LEAVE_MIB * 1024LL);
    FL_SKIP_UNLESS(limit - committed > 2LL * LEAVE_MIB * 1024, "test_preload_overcommit",
                   "needs a machine with more memory: 6 GiB must be left of CommitLimit");
    if (!fl_sysctl_set("/proc/sys/vm/admin_reserve_kbytes", reserve) ||
        !fl_sysctl_set("/proc/sys/vm/overcommit_memory", "2")) {
        fl_sysctl_restore();
        FL_SKIP_UNLESS(false, "test_preload_overcommit", "needs to write /proc/sys/vm");
    }
    return RUN_CASES(.group_teardown = fl_sysctl_restore);
}
