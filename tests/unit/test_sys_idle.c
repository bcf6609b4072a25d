/* How many help to populate, and where, on machines that are drawn: nodes, the CPUs that the thread
 * may use, where the block lies, and how many threads run. */
#include "sys/crew.h"
#include "cases.h"

/* Lists by node; NULL: there is no such node. */
static struct drawn {
    const char *cpulist[4];
    const char *allowed;
    unsigned here;
    int lies;    /* the node of the block's first page, or -errno */
    int running; /* threads, the caller counted; -1: not told */
    const char *groups;
    const char *file[6][2]; /* of control groups, with what is in them */
} drawn;

static struct fl_cpu_ids cpus_of(const char *list)
{
    struct fl_cpu_ids ids = {{0}};
    uint64_t first, last;

    while (fl_parse_span(&list, &first, &last) == 0) {
        for (uint64_t i = first; i <= last; i++) {
            ids.word[i / 64] |= (uint64_t)1 << i % 64;
        }
    }
    return ids;
}

static int drawn_read_file(const char *path, char *buf, size_t size)
{
    unsigned node;

    if (strcmp(path, "/proc/loadavg") == 0 && drawn.running >= 0) {
        snprintf(buf, size, "31.07 12.50 3.25 %d/4711 98765\n", drawn.running);
        return 0;
    }
    if (sscanf(path, "/sys/devices/system/node/node%u/cpulist", &node) == 1 && node < 4 &&
        drawn.cpulist[node] != NULL) {
        snprintf(buf, size, "%s\n", drawn.cpulist[node]);
        return 0;
    }
    if (strcmp(path, "/proc/self/cgroup") == 0 && drawn.groups != NULL) {
        snprintf(buf, size, "%s", drawn.groups);
        return 0;
    }
    for (size_t i = 0; i < 6 && drawn.file[i][0] != NULL; i++) {
        if (strcmp(path, drawn.file[i][0]) == 0) {
            snprintf(buf, size, "%s\n", drawn.file[i][1]);
            return 0;
        }
    }
    return -ENOENT;
}

static int drawn_here(unsigned *out)
{
    *out = drawn.here;
    return 0;
}

static int drawn_cpus(struct fl_cpu_ids *out)
{
    *out = cpus_of(drawn.allowed);
    return 0;
}

static int drawn_where(size_t n, const uintptr_t addr[], int out_id[])
{
    assert_int_equal(n, 1);
    assert_int_equal(addr[0], 0x200000);
    out_id[0] = drawn.lies;
    return drawn.lies == -EPERM ? -EPERM : 0;
}

/* Two sockets of eight. */
static void draw(void)
{
    drawn = (struct drawn){.cpulist = {"0-3,8-11", "4-7,12-15"}, .allowed = "0-15", .running = 1};
    fl_sys.read_file = drawn_read_file;
    fl_nodes.here = drawn_here;
    fl_nodes.cpus = drawn_cpus;
    fl_nodes.where = drawn_where;
}

static unsigned idle_on(const char *list)
{
    struct fl_crew_cpus cpus;
    struct fl_cpu_ids wanted = cpus_of(list);
    unsigned n = fl_crew_cpus(0x200000, &cpus);

    assert_memory_equal(&cpus.idle, &wanted, sizeof wanted);
    return n;
}

CASE(a_quiet_node_helps_with_all_its_cpus_but_the_caller_s)
{
    assert_int_equal(idle_on("0-3,8-11"), 7);
    drawn.allowed = "0,1,4-15";
    assert_int_equal(idle_on("0,1,8-11"), 5);
    drawn.allowed = "9";
    assert_int_equal(idle_on("9"), 0);
}

CASE(those_of_the_block_s_node_help)
{
    drawn.lies = 1;
    assert_int_equal(idle_on("4-7,12-15"), 8); /* the caller's CPU is none of them */
    drawn.here = 1;
    assert_int_equal(idle_on("4-7,12-15"), 7);
}

CASE(where_the_thread_may_not_run_there_its_own_node_helps)
{
    drawn.lies = 1;
    drawn.allowed = "0-3";
    assert_int_equal(idle_on("0-3"), 3);
    drawn.allowed = "0-15";
    drawn.cpulist[1] = ""; /* memory on a card */
    assert_int_equal(idle_on("0-3,8-11"), 7);
}

CASE(what_the_kernel_does_not_tell_is_done_without)
{
    drawn.lies = -EPERM;
    assert_int_equal(idle_on("0-3,8-11"), 7);
    drawn.lies = -ENOENT;
    assert_int_equal(idle_on("0-3,8-11"), 7);
    drawn.cpulist[0] = NULL; /* no sysfs */
    assert_int_equal(idle_on("0-15"), 15);
    drawn.running = -1;
    assert_int_equal(idle_on("0-15"), 15);
}

CASE(busy_cpus_do_not_help)
{
    static const struct {
        int running;
        unsigned here, elsewhere; /* helpers, on the caller's node and on the other */
    } row[] = {{1, 7, 8}, {2, 6, 7},  {3, 6, 7},  {4, 5, 6},
               {9, 3, 4}, {15, 0, 1}, {16, 0, 0}, {300, 0, 0}};

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        drawn.running = row[i].running;
        drawn.lies = 0;
        assert_int_equal(idle_on("0-3,8-11"), row[i].here);
        drawn.lies = 1;
        assert_int_equal(idle_on("4-7,12-15"), row[i].elsewhere);
    }
}

/* The threads of a process that is bound to a node are on that node. */
CASE(of_a_bound_process_all_that_run_run_there)
{
    drawn.allowed = "0-3,8-11";
    drawn.running = 4;
    assert_int_equal(idle_on("0-3,8-11"), 4);
    drawn.running = 9;
    assert_int_equal(idle_on("0-3,8-11"), 0);
}

/* More helpers would have the kernel stop the container's other threads. */
CASE(a_container_s_cpu_limit_binds_helpers)
{
    static const struct {
        const char *groups;
        const char *file[6][2];
        unsigned helpers;
    } row[] = {
        {"0::/\n", {{"/sys/fs/cgroup/cpu.max", "400000 100000"}}, 3},
        {"0::/\n", {{"/sys/fs/cgroup/cpu.max", "150000 100000"}}, 0},
        {"0::/\n", {{"/sys/fs/cgroup/cpu.max", "20000 100000"}}, 0},
        {"0::/\n", {{"/sys/fs/cgroup/cpu.max", "max 100000"}}, 7},
        {"0::/\n", {{"/sys/fs/cgroup/cpu.max", "6400000 100000"}}, 7},
        {"0::/pod/one\n",
         {{"/sys/fs/cgroup/pod/one/cpu.max", "max 100000"},
          {"/sys/fs/cgroup/pod/cpu.max", "500000 100000"},
          {"/sys/fs/cgroup/cpu.max", "800000 100000"}},
         4},
        {"5:memory:/x\n4:cpu,cpuacct:/a/b\n",
         {{"/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "300000"}, /* the host's path, our mount */
          {"/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000"}},
         2},
        {"1:cpu:/a\n",
         {{"/sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "-1"},
          {"/sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000"}},
         7},
        {"2:cpuacct:/a\n1:cpuset:/a\n", {{NULL}}, 7},
    };

    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        drawn.groups = row[i].groups;
        memcpy(drawn.file, row[i].file, sizeof drawn.file);
        assert_int_equal(idle_on("0-3,8-11"), row[i].helpers);
    }
}

CASES_MAIN(.setup = draw)
