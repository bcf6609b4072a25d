/* Several nodes where the kernel refuses to be told of them, as sandboxes have it; and where it is
 * left to balance them itself. */
#include "placed.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BALANCING "/proc/sys/kernel/numa_balancing"
#define TUNING "/sys/kernel/debug/sched/numa_balancing/"
#define WARNING                                                                                    \
    "faultless: no placement: the kernel refuses mbind, so memory lies where the thread runs "     \
    "that brings it in\n"
enum { TEXT = 64, PATIENCE = 100 };

#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, what)
#define IF_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no)

static void install(const struct sock_filter *code, size_t n)
{
    const struct sock_fprog program = {(unsigned short)n, (struct sock_filter *)(uintptr_t)code};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        _exit(1);
    }
    fl_is_contained = true;
}

static void refuse_mbind(void *arg)
{
    static const struct sock_filter code[] = {
        LOAD(offsetof(struct seccomp_data, nr)),
        IF_EQUAL(SYS_mbind, 0, 1),
        ANSWER(SECCOMP_RET_ERRNO | EPERM),
        ANSWER(SECCOMP_RET_ALLOW),
    };

    (void)arg;
    install(code, sizeof code / sizeof code[0]);
}

/* It ends well, and says what is missing, once. */
static const struct fl_run *run_refused(const char *const argv[], void (*refuse)(void *))
{
    const struct fl_run *r =
        fl_run_how(&(struct fl_how){.argv = argv, .in_child = refuse, .seconds = PATIENCE});

    assert_int_equal(r->exit_status, 0);
    assert_string_equal(r->err, WARNING);
    assert_true(fl_run_stat(r, "requests") > 0);
    return r;
}

static void without_mbind_the_populating_thread_places(void **state)
{
    (void)state;
    const struct fl_run *r = run_refused(FL_ARGV("victim_nodes", "bound"), refuse_mbind);
    vm_assert_each_on_its_own(r, "small", 99);
    vm_assert_each_on_its_own(r, "large", 99);
}

static void without_mbind_plans_lie_on_their_threads_node(void **state)
{
    (void)state;
    const struct fl_run *r = run_refused(FL_ARGV("victim_node_steps", "steps", "80"), refuse_mbind);
    vm_assert_each_on_its_own(r, "steps", 99);
}

static void moved(const struct fl_run *r)
{
    char label[TEXT];

    snprintf(label, sizeof label, "moved %d", nodes_last_cpu(&vm));
    vm_assert_on(r, label, nodes_last_cpu(&vm), 99);
    assert_int_equal(vm_said(r, "faults moved", nodes_last_cpu(&vm)), 0);
}

static void without_mbind_plans_follow_a_thread_that_moved(void **state)
{
    (void)state;
    moved(run_refused(FL_ARGV("victim_node_steps", "moved", "80"), refuse_mbind));
}

static int stop_balancing(void **state)
{
    (void)state;
    fl_sysctl_restore();
    return 0;
}

/* FAULTLESS_NUMA=balance: memory as the kernel would have it, with its hinting faults. */
static void the_kernel_may_balance(void **state)
{
    (void)state;
    assert_true(fl_sysctl_set(BALANCING, "1"));
    (void)fl_sysctl_set(TUNING "scan_delay_ms", "100");
    (void)fl_sysctl_set(TUNING "scan_period_min_ms", "100");
    (void)fl_sysctl_set(TUNING "scan_period_max_ms", "200");
    const struct fl_run *r = vm_run(FAULTLESS, FL_ARGV("victim_node_steps", "hinted", "4"),
                                    FL_ENV("FAULTLESS_NUMA=balance"));
    assert_true(fl_run_said(r, "\nhints ") > 0);
    assert_true(vm_said(r, "faults hinted", nodes_last_cpu(&vm)) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_mbind_the_populating_thread_places),
        cmocka_unit_test(without_mbind_plans_lie_on_their_threads_node),
        cmocka_unit_test(without_mbind_plans_follow_a_thread_that_moved),
        cmocka_unit_test_teardown(the_kernel_may_balance, stop_balancing),
    };

    vm_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
