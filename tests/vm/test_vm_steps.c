/* Steps on several nodes: no faults, the right node, also when the kernel's balancing is on and
 * when a thread has moved. */
#include "placed.h"

#include <stdlib.h>

enum { TEXT = 64, COUNTED_STEPS = 20 };

static const struct fl_run *steps(const char *mode)
{
    return vm_run(FAULTLESS, FL_ARGV("victim_node_steps", mode, "80"), NULL);
}

static void assert_faults(const struct fl_run *r, const char *what, int node, long most)
{
    if (vm_said(r, what, node) > most) {
        fail_msg("%s %d are more than %ld: %s", what, node, most, r->out);
    }
}

static void assert_faults_everywhere(const struct fl_run *r, long most)
{
    for (int i = 0; i < vm.n; i++) {
        if (vm.has_cpu[i]) {
            assert_faults(r, "faults steps", i, most);
        }
    }
}

static void planned_steps_take_no_fault_and_lie_on_their_threads_node(void **state)
{
    (void)state;
    const struct fl_run *r = steps("steps");
    assert_true(fl_run_stat(r, "plan_steps") > 0);
    assert_faults_everywhere(r, 0);
    vm_assert_each_on_its_own(r, "steps", 99);
}

/* Threads that step at once have no plans (faultless.h): one fault a step at most. */
static void blocks_of_threads_that_step_at_once_lie_on_their_nodes(void **state)
{
    (void)state;
    const struct fl_run *r = steps("beside");
    vm_assert_each_on_its_own(r, "steps", 99);
    assert_faults_everywhere(r, COUNTED_STEPS); /* of 345,120 pages */
}

static void plans_follow_a_thread_that_moved(void **state)
{
    char label[TEXT];

    (void)state;
    const struct fl_run *r = steps("moved");
    snprintf(label, sizeof label, "moved %d", nodes_last_cpu(&vm));
    vm_assert_on(r, label, nodes_last_cpu(&vm), 99);
    assert_faults(r, "faults moved", nodes_last_cpu(&vm), 0);
}

static void glibcs_memory_is_balanced(void **state)
{
    (void)state;
    vm_balance();
    const struct fl_run *r = vm_run(GLIBC, FL_ARGV("victim_node_steps", "hinted", "4"), NULL);
    assert_true(fl_run_said(r, "\nhints ") > 0);
    assert_true(vm_said(r, "faults hinted", nodes_last_cpu(&vm)) > 0);
}

static void no_hinting_faults(void **state)
{
    (void)state;
    vm_balance();
    /* The worker sleeps meanwhile: its stack and the library's data are balanced as any
     * program's. */
    const struct fl_run *r = vm_run(FAULTLESS, FL_ARGV("victim_node_steps", "hinted", "4"),
                                    FL_ENV("FAULTLESS_DECAY_MS=120000"));
    assert_faults(r, "faults hinted", nodes_last_cpu(&vm), 0);
    assert_int_equal(fl_run_said(r, "\nhints "), 0);
}

/* Of the 17,256 pages of a step's blocks none; what the C library maps for itself amid the steps is
 * balanced as any memory is, a page of it now and then. */
static void no_fault_in_steps_that_are_balanced(void **state)
{
    enum { OF_OTHERS = 2 };

    (void)state;
    vm_balance();
    const struct fl_run *r = steps("steps");
    assert_faults_everywhere(r, OF_OTHERS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planned_steps_take_no_fault_and_lie_on_their_threads_node),
        cmocka_unit_test(blocks_of_threads_that_step_at_once_lie_on_their_nodes),
        cmocka_unit_test(plans_follow_a_thread_that_moved),
        cmocka_unit_test_teardown(glibcs_memory_is_balanced, vm_stop_balancing),
        cmocka_unit_test_teardown(no_hinting_faults, vm_stop_balancing),
        cmocka_unit_test_teardown(no_fault_in_steps_that_are_balanced, vm_stop_balancing),
    };

    vm_start();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
