/* Memory lies where its thread runs, whichever thread had it before. Each bar is also put to glibc,
 * where the kernel places by first touch: a guest that did not do that would prove nothing. */
#include "placed.h"

static const double bar = 99;
/* In percent, of glibc: elsewhere lies what its heaps share, and what balancing moves. */
static const double control = 90;

CASE(a_guest_has_the_nodes_that_were_drawn)
{
    assert_true(vm.n >= 2);
    assert_true(nodes_first_cpu(&vm) != nodes_last_cpu(&vm));
    for (int i = 0; i < vm.n; i++) {
        assert_true(vm.has_memory[i]);
        nodes_run_on(&vm, vm.has_cpu[i] ? i : nodes_first_cpu(&vm));
    }
}

CASE(pages_move_by_the_rung_of_this_kernel)
{
    const char *rung = getenv("VM_RUNG");
    const struct fl_run *r =
        FL_RUN(FL_ARGV("victim_nodes", "policy"), FL_ENV("FAULTLESS_LOG=info"));

    assert_non_null(rung);
    assert_int_equal(r->exit_status, 0);
    if (strcmp(rung, "move") == 0) {
        assert_non_null(strstr(r->err, "faultless: pages move by userfaultfd\n"));
        assert_int_equal(fl_run_stat(r, "rung"), 0);
    } else {
        assert_non_null(strstr(r->err, "faultless: pages move by mremap"));
        assert_int_equal(fl_run_stat(r, "rung"), 1);
    }
}

static void lies_where_its_thread_runs(const char *mode, const char *label, const char *env)
{
    vm_assert_each_on_its_own(vm_run(FAULTLESS, FL_ARGV("victim_nodes", mode), FL_ENV(env)), label,
                              bar);
}

CASE(under_glibc_memory_lies_where_it_is_touched)
{
    static const char *const rows[][2] = {{"bound", "large"}, {"turns", "turn"}, {"apart", "part"}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        vm_assert_each_on_its_own(vm_run(GLIBC, FL_ARGV("victim_nodes", rows[i][0]), NULL),
                                  rows[i][1], control);
    }
}

/* Its cache serves it on each node, with what lies there, and asks anew after set_mempolicy. */
CASE(what_a_thread_frees_serves_it_again_where_it_is)
{
    const struct fl_run *r = vm_run(FAULTLESS, FL_ARGV("victim_nodes", "again"), NULL);
    vm_assert_each_on_its_own(r, "first", bar);
    vm_assert_each_on_its_own(r, "again", bar);
    for (int i = 0; i < vm.n; i++) {
        char label[NODES_TEXT];
        snprintf(label, sizeof label, "told %d", i);
        if (vm.has_memory[i]) {
            vm_assert_on(r, label, i, bar);
        }
    }
    assert_true(fl_run_stat(r, "cache_hits") >= fl_run_stat(r, "requests") / 2);
}

static void producer_and_consumer(enum allocator who)
{
    const struct fl_run *r = vm_run(who, FL_ARGV("victim_nodes", "pair"), NULL);
    char label[NODES_TEXT];
    int producer = nodes_first_cpu(&vm), consumer = nodes_last_cpu(&vm);

    snprintf(label, sizeof label, "produced %d", producer);
    vm_assert_on(r, label, producer, bar);
    snprintf(label, sizeof label, "consumed %d", consumer);
    vm_assert_on(r, label, consumer, bar);
}

CASE_IS(producer_and_consumer_under_glibc, producer_and_consumer(GLIBC))
CASE_IS(producer_and_consumer_on_two_nodes, producer_and_consumer(FAULTLESS))

#define LIES(name, ...) CASE_IS(name, lies_where_its_thread_runs(__VA_ARGS__))
LIES(bound_threads_small_blocks, "bound", "small", NULL)
LIES(bound_threads_large_blocks, "bound", "large", NULL)
LIES(bound_threads_giant_blocks, "bound", "giant", NULL)
LIES(freed_by_one_node_and_taken_by_another, "turns", "turn", NULL)
LIES(touched_in_parallel_with_first_touch, "apart", "part", "FAULTLESS_NUMA=first-touch")

int main(void)
{
    vm_start();
    return RUN_CASES();
}
