/* Ours against libnuma, on the machine that this runs on: the same nodes, distances, CPUs, sizes;
 * and what libnuma sets, ours reads. */
#include "numa/numa.h"
#include "cases.h"

#include <numa.h>
#include <numaif.h>

static struct fl_topology t;
static struct fl_numa_scratch scratch;

static void each(void)
{
    assert_int_equal(set_mempolicy(MPOL_DEFAULT, NULL, 0), 0);
}

static uint64_t set_of_mask(const struct bitmask *mask)
{
    uint64_t set = 0;

    for (unsigned i = 0; i < t.count; i++) {
        if (numa_bitmask_isbitset(mask, t.id[i]) != 0) {
            set |= (uint64_t)1 << i;
        }
    }
    return set;
}

CASE(nodes_and_distances_are_the_same)
{
    for (unsigned id = 0; id <= (unsigned)numa_max_node(); id++) {
        unsigned node = fl_topology_find(&t, id);
        long long free_bytes, bytes = numa_node_size64((int)id, &free_bytes);
        assert_int_equal(node != FL_NODES && (t.memory >> node & 1) != 0, bytes > 0);
        for (unsigned to = 0; node != FL_NODES && to < t.count; to++) {
            assert_int_equal(t.distance[node][to], numa_distance((int)id, t.id[to]));
        }
    }
}

CASE(cpus_are_the_same)
{
    struct bitmask *cpus = numa_allocate_cpumask();
    struct fl_cpu_ids ours;
    for (unsigned node = 0; node < t.count; node++) {
        uint64_t any = 0;
        assert_int_equal(numa_node_to_cpus(t.id[node], cpus), 0);
        assert_true(fl_topology_cpus(&t, node, "/sys", &scratch, &ours));
        for (unsigned cpu = 0; cpu < FL_CPU_IDS && cpu < cpus->size; cpu++) {
            uint64_t bit = ours.word[cpu / 64] >> (cpu % 64) & 1;
            assert_int_equal(bit, numa_bitmask_isbitset(cpus, cpu));
            any |= bit;
        }
        assert_int_equal(any, t.cpus >> node & 1);
    }
    numa_free_cpumask(cpus);
}

CASE(the_cpuset_is_the_same)
{
    struct bitmask *allowed = numa_get_mems_allowed();
    assert_true(fl_cpuset_read(&t, &scratch) == (set_of_mask(allowed) & t.memory));
    numa_bitmask_free(allowed);
}

static void assert_policy(enum fl_policy_mode mode, uint64_t nodes)
{
    struct fl_policy p;

    assert_int_equal(fl_policy_read(&t, t.memory, &p), 0);
    assert_int_equal(p.mode, mode);
    assert_true(p.nodes == nodes);
}

CASE(what_libnuma_sets_is_read)
{
    uint64_t allowed = fl_cpuset_read(&t, &scratch);
    unsigned last = 63 - (unsigned)__builtin_clzll(allowed);
    struct bitmask *one = numa_allocate_nodemask();
    numa_bitmask_setbit(one, t.id[last]);
    assert_policy(FL_POLICY_DEFAULT, 0);
    numa_set_membind(one);
    assert_policy(FL_POLICY_BIND, (uint64_t)1 << last);
    numa_set_interleave_mask(one);
    assert_policy(FL_POLICY_INTERLEAVE, (uint64_t)1 << last);
    numa_set_preferred(t.id[last]);
    assert_policy(FL_POLICY_PREFERRED, (uint64_t)1 << last);
    numa_set_localalloc();
    assert_policy(FL_POLICY_LOCAL, 0);
    numa_bitmask_free(one);
}

int main(void)
{
    fl_sys_boot();
    if (numa_available() != 0) {
        print_message(
            "SKIP test_numa_libnuma: needs get_mempolicy(2), libnuma says it is not there\n");
        return 77;
    }
    fl_topology_read(&t, "/sys", &scratch);
    return RUN_CASES(.setup = each);
}
