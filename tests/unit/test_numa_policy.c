/* What the launch said: policies with their flags, cpusets, CPUs, FAULTLESS_NUMA; and one process's
 * view of it all. */
#include "cases.h"
#include "unit/fake_sys.h"
#include "unit/numa_fixture.h"

#include <linux/mempolicy.h>

enum { WEIGHTED = 6, RELATIVE = 1 << 14, STATIC = 1 << 15 };

static struct fl_topology t;
static struct fl_numa_scratch scratch;
static struct fl_numa_process process;
static struct fl_options options;

CASE(each_mode_of_the_kernel_is_known)
{
    static const struct {
        int mode;
        const char *ids, *allowed;
        enum fl_policy_mode want;
        const char *nodes;
    } table[] = {
        {MPOL_DEFAULT, NULL, "0-3", FL_POLICY_DEFAULT, NULL},
        {MPOL_LOCAL, NULL, "0-3", FL_POLICY_LOCAL, NULL},
        {MPOL_PREFERRED, NULL, "0-3", FL_POLICY_LOCAL, NULL}, /* before 5.14 */
        {MPOL_PREFERRED, "2", "0-3", FL_POLICY_PREFERRED, "2"},
        {MPOL_PREFERRED_MANY, "1-2", "0-3", FL_POLICY_PREFERRED_MANY, "1-2"},
        {MPOL_BIND, "1,3", "0-3", FL_POLICY_BIND, "1,3"},
        {MPOL_INTERLEAVE, "0-3", "0-3", FL_POLICY_INTERLEAVE, "0-3"},
        {WEIGHTED, "0,3", "0-3", FL_POLICY_WEIGHTED, "0,3"},
        {MPOL_BIND | MPOL_F_NUMA_BALANCING, "0", "0-3", FL_POLICY_BIND, "0"},
        {MPOL_BIND | STATIC, "1-5", "2-3", FL_POLICY_BIND, "1-3"},
        {MPOL_BIND | RELATIVE, "0", "2-3", FL_POLICY_BIND, "2"},
        {MPOL_BIND | RELATIVE, "1", "1,3", FL_POLICY_BIND, "3"},
        {MPOL_INTERLEAVE | RELATIVE, "0-3", "1,3", FL_POLICY_INTERLEAVE, "1,3"},
        {MPOL_INTERLEAVE | RELATIVE, "5", "0,2-3", FL_POLICY_INTERLEAVE, "3"},
    };
    struct fl_policy p;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        draw_and_read(&drawn_four, &t);
        drawn_thread.mode = table[i].mode;
        drawn_thread.nodes = ids_of(table[i].ids);
        assert_int_equal(fl_policy_read(&t, set_of(&t, table[i].allowed), &p), 0);
        assert_int_equal(p.mode, table[i].want);
        assert_true(p.nodes == set_of(&t, table[i].nodes));
    }
}

CASE(what_is_not_known_is_the_default)
{
    struct fl_policy p = {FL_POLICY_BIND, 1};
    draw_and_read(&drawn_two, &t);
    drawn_thread.mode = WEIGHTED + 1;
    drawn_thread.nodes = ids_of("1");
    assert_int_equal(fl_policy_read(&t, 3, &p), -EINVAL);
    assert_true(p.mode == FL_POLICY_DEFAULT && p.nodes == 0);
    drawn_thread.rc = -EPERM;
    p.mode = FL_POLICY_BIND;
    assert_int_equal(fl_policy_read(&t, 3, &p), -EPERM);
    assert_int_equal(p.mode, FL_POLICY_DEFAULT);
}

CASE(the_cpuset_is_read_in_sandboxes_too)
{
    static const struct {
        const char *status;
        uint64_t set;
    } table[] = {
        {"Name:\tx\nMems_allowed:\t00000000,00000004\nMems_allowed_list:\t2\nend:\t1\n", 4},
        {"Name:\tMems_allowed_list:\t0\nMems_allowed_list:\t1-2\n", 6},
        {"Mems_allowed_list:\n", 15},
        {"Name:\tx\nMems_allowed_list:\t7\n", 15}, /* no node that is known: no bound */
        {NULL, 15},
    };
    draw_and_read(&drawn_four, &t);
    drawn_thread.allowed = ids_of("1,3,900");
    assert_int_equal(fl_cpuset_read(&t, &scratch), 10);
    drawn_thread.rc = -EPERM;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        drawn_thread.status = table[i].status;
        assert_true(fl_cpuset_read(&t, &scratch) == table[i].set);
    }
    draw_and_read(&drawn_bare, &t);
    assert_int_equal(fl_cpuset_read(&t, &scratch), 5); /* node 1 has no memory to allow */
}

CASE(cpus_say_the_nodes)
{
    draw_and_read(&drawn_cxl, &t);
    assert_int_equal(fl_affinity_read(&t, "/drawn", &scratch), 3);
    drawn_thread.cpus = (struct fl_cpu_ids){{1 << 5}};
    assert_int_equal(fl_affinity_read(&t, "/drawn", &scratch), 2);
    drawn_thread.cpus = (struct fl_cpu_ids){{1 << 3 | 1 << 4}};
    assert_int_equal(fl_affinity_read(&t, "/drawn", &scratch), 3);
    drawn_thread.cpus = (struct fl_cpu_ids){{1 << 20}}; /* a CPU of no node */
    assert_int_equal(fl_affinity_read(&t, "/drawn", &scratch), 3);
    drawn_thread.rc = -EPERM;
    assert_int_equal(fl_affinity_read(&t, "/drawn", &scratch), 3);
}

static void read_options(const char *entry)
{
    char text[64] = "", *env[] = {text, NULL};

    (void)strncpy(text, entry, sizeof text - 1);
    fl_options_read(&options, env);
}

CASE(the_choice_has_nodes_that_are_there)
{
    static const struct {
        const char *entry;
        bool good;
        enum fl_numa mode;
        uint64_t nodes;
    } table[] = {
        {"FAULTLESS_NUMA=auto", true, FL_NUMA_AUTO, 0},
        {"FAULTLESS_NUMA=local", true, FL_NUMA_LOCAL, 0},
        {"FAULTLESS_NUMA=interleave", true, FL_NUMA_INTERLEAVE, 0},
        {"FAULTLESS_NUMA=interleave:all", true, FL_NUMA_INTERLEAVE, 7},
        {"FAULTLESS_NUMA=interleave:0-4", true, FL_NUMA_INTERLEAVE, 3},
        {"FAULTLESS_NUMA=bind:5", true, FL_NUMA_BIND, 4},
        {"FAULTLESS_NUMA=bind:1,3-4", false, FL_NUMA_AUTO, 0},
        {"FAULTLESS_DISABLE=numa", true, FL_NUMA_OFF, 0},
    };
    struct fl_numa_choice choice;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        draw_and_read(&drawn_gaps, &t);
        read_options(table[i].entry);
        assert_int_equal(fl_numa_choice_read(&t, &options, &choice), table[i].good);
        assert_int_equal(choice.mode, table[i].mode);
        assert_true(choice.nodes == table[i].nodes);
    }
}

static void start(const struct drawn_machine *m, const char *entry)
{
    draw(m);
    read_options(entry);
    fl_numa_start(&process, &options, "/drawn");
}

static const char *described(void)
{
    static char text[256];
    struct fl_text out = fl_text_on(text, sizeof text);

    fl_numa_describe(&process, &out);
    return text;
}

CASE(one_node_is_read_and_left_alone)
{
    struct fl_numa_request q = {.len = (size_t)1 << 30};
    struct fl_placement p;
    start(&drawn_one, "");
    assert_false(process.active);
    fl_numa_place(&process, &q, &p);
    assert_int_equal(p.kind, FL_PLACE_ANYWHERE);
    assert_int_equal(drawn_thread.npolicy, 0);
    assert_int_equal(drawn_reads, 1);
    assert_string_equal(described(), "nodes 0, placing nothing");
    start(&drawn_half, "FAULTLESS_NUMA=bind:0");
    assert_false(process.active);
    assert_string_equal(described(), "nodes 0-1 (memory on 0), placing nothing");
    start(&drawn_two, "FAULTLESS_NUMA=off");
    assert_false(process.active);
    assert_int_equal(drawn_thread.npolicy, 0);
}

CASE(the_launch_is_described)
{
    start(&drawn_two, "");
    assert_string_equal(described(), "nodes 0-1, launch default, CPUs of 0-1, placing auto");
    draw(&drawn_cxl);
    drawn_thread.mode = MPOL_BIND;
    drawn_thread.nodes = ids_of("0,2");
    drawn_thread.cpus = (struct fl_cpu_ids){{1}};
    drawn_thread.allowed = ids_of("0-2");
    read_options("FAULTLESS_NUMA=interleave:0,2-3");
    fl_numa_start(&process, &options, "/drawn");
    assert_string_equal(described(), "nodes 0-3, cpuset 0-2, launch bind 0,2, CPUs of 0, placing "
                                     "interleave 0,2-3");
}

CASE(nodes_that_are_not_there_have_one_line)
{
    start(&drawn_two, "FAULTLESS_NUMA=bind:2-7");
    assert_true(process.active);
    assert_int_equal(process.choice.mode, FL_NUMA_AUTO);
    assert_string_equal(
        fake.said,
        "faultless: FAULTLESS_NUMA=bind:2-7 names no node that has memory; using auto\n");
    fake_forget();
    draw(&drawn_two);
    read_options("FAULTLESS_NUMA=bind:2-7");
    options.value[FL_OPTION_log] = FL_LOG_NONE;
    fl_numa_start(&process, &options, "/drawn");
    assert_string_equal(fake.said, "");
}

static unsigned home(size_t len)
{
    struct fl_numa_request q = {.len = len};
    struct fl_placement p;

    fl_numa_place(&process, &q, &p);
    assert_int_equal(p.kind, FL_PLACE_NODE);
    return fl_placement_node(&process.topology, &p, 0, 0, 0);
}

CASE(a_threads_policy_and_node_of_the_moment_count)
{
    start(&drawn_four, "");
    drawn_thread.here = 2;
    assert_int_equal(home(4096), 2);
    drawn_thread.here = 3;
    assert_int_equal(home(4096), 3);
    drawn_thread.mode = MPOL_PREFERRED;
    drawn_thread.nodes = ids_of("1");
    assert_int_equal(home(4096), 1);
    drawn_thread.mode = MPOL_DEFAULT;
    assert_int_equal(home(4096), 3);
}

CASE(where_the_policy_is_refused_the_launchs_counts)
{
    draw(&drawn_four);
    drawn_thread.mode = MPOL_BIND;
    drawn_thread.nodes = ids_of("1");
    read_options("");
    fl_numa_start(&process, &options, "/drawn");
    drawn_thread.rc = -EPERM; /* a filter has come */
    assert_int_equal(home((size_t)1 << 30), 1);
    drawn_thread.rc = 0;
    drawn_thread.here = 3;
    drawn_thread.mode = 1000; /* of this thread alone: none that is known, so none */
    assert_int_equal(home(4096), 3);
    drawn_thread.mode = MPOL_BIND;
    assert_int_equal(home(4096), 1);
}

CASE(a_sandbox_is_asked_once)
{
    draw(&drawn_four);
    drawn_thread.rc = -EPERM;
    read_options("");
    fl_numa_start(&process, &options, "/drawn");
    assert_true(process.active);
    unsigned asked = drawn_thread.npolicy;
    assert_int_equal(home(4096), 0);
    assert_int_equal(drawn_thread.npolicy, asked);
}

CASE(a_cpuset_that_is_changed_is_seen)
{
    start(&drawn_four, "");
    assert_int_equal(home(4096), 0);
    drawn_thread.allowed = ids_of("2-3");
    assert_int_equal(home(4096), 0); /* not yet */
    assert_true(fl_numa_refresh(&process));
    assert_int_equal(home(4096), 2);
    assert_false(fl_numa_refresh(&process));
    drawn_thread.allowed = ids_of("0-3");
    assert_true(fl_numa_refresh(&process));
    assert_int_equal(home(4096), 0);
}

CASES_MAIN(.setup = fake_install)
