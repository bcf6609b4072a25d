/* Several nodes where the kernel refuses to be told of them, as sandboxes have it; and where it is
 * left to balance them itself. */
#include "placed.h"
#include "preload/refuse.h"

#include <sys/syscall.h>

#define WARNING                                                                                    \
    "faultless: no placement: the kernel refuses mbind, so memory lies where the thread runs "     \
    "that brings it in\n"
enum { TEXT = 64, PATIENCE = 100 };

/* It ends well, and says what is missing, once. */
static const struct fl_run *run_refused(const char *const argv[])
{
    static unsigned calls[] = {SYS_mbind, 0};
    const struct fl_run *r = FL_RUN(argv, .in_child = fl_refuse, .arg = calls, .seconds = PATIENCE);

    assert_int_equal(r->exit_status, 0);
    assert_string_equal(r->err, WARNING);
    assert_true(fl_run_stat(r, "requests") > 0);
    return r;
}

static void without_mbind_the_populating_thread_places(void **state)
{
    (void)state;
    const struct fl_run *r = run_refused(FL_ARGV("victim_nodes", "bound"));
    vm_assert_each_on_its_own(r, "small", 99);
    vm_assert_each_on_its_own(r, "large", 99);
}

static void without_mbind_plans_lie_on_their_threads_node(void **state)
{
    (void)state;
    const struct fl_run *r = run_refused(FL_ARGV("victim_node_steps", "steps", "80"));
    vm_assert_each_on_its_own(r, "steps", 99);
}

static void without_mbind_plans_follow_a_thread_that_moved(void **state)
{
    char label[TEXT];

    (void)state;
    const struct fl_run *r = run_refused(FL_ARGV("victim_node_steps", "moved", "80"));
    snprintf(label, sizeof label, "moved %d", nodes_last_cpu(&vm));
    vm_assert_on(r, label, nodes_last_cpu(&vm), 99);
    assert_int_equal(vm_said(r, "faults moved", nodes_last_cpu(&vm)), 0);
}

/* FAULTLESS_NUMA=balance: memory as the kernel would have it, with its hinting faults. */
static void the_kernel_may_balance(void **state)
{
    (void)state;
    vm_balance();
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
        cmocka_unit_test_teardown(the_kernel_may_balance, vm_stop_balancing),
    };

    vm_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
