/* Policies, CPUs and the nodes of pages as the real kernel tells them; whatever nodes the machine
 * has. */
#include "sys/sys.h"
#include "cases.h"

#include <numaif.h>
#include <sched.h>
#include <sys/mman.h>

static struct fl_node_ids allowed;
static int first, last; /* of the nodes allowed */

static bool has(const struct fl_node_ids *ids, int id)
{
    return (ids->word[id / 64] >> (id % 64) & 1) != 0;
}

static struct fl_node_ids only(int id)
{
    struct fl_node_ids ids = {{0}};

    ids.word[id / 64] = (uint64_t)1 << (id % 64);
    return ids;
}

/* A kernel without NUMA, and a sandbox that lets none of this through, have nothing to be
 * tested. */
static int is_refused(void)
{
    int rc = fl_nodes_linux.allowed(&allowed);

    first = FL_NODE_IDS;
    for (int i = 0; rc == 0 && i < FL_NODE_IDS; i++) {
        if (has(&allowed, i)) {
            first = first == FL_NODE_IDS ? i : first;
            last = i;
        }
    }
    return rc;
}

static void each(void)
{
    assert_int_equal(fl_nodes_linux.set_policy(MPOL_DEFAULT, NULL), 0);
}

static void assert_policy(int mode, const struct fl_node_ids *ids)
{
    struct fl_node_ids got;
    int got_mode = -1;

    memset(&got, 0xff, sizeof got);
    assert_int_equal(fl_nodes_linux.policy(&got_mode, &got), 0);
    assert_int_equal(got_mode, mode);
    assert_memory_equal(&got, ids, sizeof got);
}

CASE(a_policy_that_is_set_is_told)
{
    static const int modes[] = {MPOL_PREFERRED, MPOL_BIND, MPOL_INTERLEAVE};
    const struct fl_node_ids none = {{0}};
    assert_policy(MPOL_DEFAULT, &none);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        struct fl_node_ids ids = only(last);
        assert_int_equal(fl_nodes_linux.set_policy(modes[i], &ids), 0);
        assert_policy(modes[i], &ids);
    }
    assert_int_equal(fl_nodes_linux.set_policy(MPOL_LOCAL, &none), 0);
    assert_policy(MPOL_LOCAL, &none);
}

CASE(wrong_policies_are_refused)
{
    struct fl_node_ids ids = only(first), none = {{0}};
    assert_int_equal(fl_nodes_linux.set_policy(MPOL_BIND, &none), -EINVAL);
    assert_int_equal(fl_nodes_linux.set_policy(1000, &ids), -EINVAL);
    assert_int_equal(fl_nodes_linux.bind((struct fl_range){1, 1}, MPOL_BIND, &ids), -EINVAL);
    ids = only(FL_NODE_IDS - 1);
    if (!has(&allowed, FL_NODE_IDS - 1)) {
        assert_int_equal(fl_nodes_linux.set_policy(MPOL_BIND, &ids), -EINVAL);
    }
}

CASE(the_node_of_this_cpu_is_one)
{
    unsigned id = FL_NODE_IDS;
    assert_int_equal(fl_nodes_linux.here(&id), 0);
    assert_true(id < FL_NODE_IDS);
}

CASE(cpus_are_those_of_sched_getaffinity)
{
    struct fl_cpu_ids all, one = {{0}}, got;
    cpu_set_t set;
    assert_int_equal(fl_nodes_linux.cpus(&all), 0);
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    size_t cpu = 0;
    for (size_t i = 0; i < CPU_SETSIZE; i++) {
        bool in = (all.word[i / 64] >> (i % 64) & 1) != 0;
        assert_int_equal(in, CPU_ISSET(i, &set) != 0);
        cpu = in ? i : cpu;
    }
    one.word[cpu / 64] = (uint64_t)1 << (cpu % 64);
    assert_int_equal(fl_nodes_linux.set_cpus(&one), 0);
    assert_int_equal(fl_nodes_linux.cpus(&got), 0);
    assert_memory_equal(&got, &one, sizeof one);
    assert_int_equal(fl_nodes_linux.set_cpus(&all), 0);
}

CASE(pages_lie_where_their_range_is_bound)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct fl_range r = {(uintptr_t)p, 4 * page};
    uintptr_t addr[] = {r.base, r.base + page, r.base + 3 * page};
    struct fl_node_ids ids = only(last);
    int id[3] = {-1, -1, -1};
    assert_ptr_not_equal(p, MAP_FAILED);
    assert_int_equal(fl_nodes_linux.bind(r, MPOL_BIND, &ids), 0);
    *(volatile char *)p = 1;
    *((volatile char *)p + 3 * page) = 1;
    assert_int_equal(fl_nodes_linux.where(3, addr, id), 0);
    assert_int_equal(id[0], last);
    assert_int_equal(id[1], -ENOENT);
    assert_int_equal(id[2], last);
    assert_int_equal(fl_nodes_linux.bind(r, MPOL_DEFAULT, NULL), 0);
    munmap(p, r.len);
    assert_int_equal(fl_nodes_linux.bind(r, MPOL_BIND, &ids), -EFAULT);
}

int main(void)
{
    int rc;

    fl_sys_boot();
    rc = is_refused();
    if (rc != 0) {
        print_message("SKIP test_sys_nodes: needs get_mempolicy(2), got %s\n", strerror(-rc));
        return 77;
    }
    return RUN_CASES(.setup = each);
}
