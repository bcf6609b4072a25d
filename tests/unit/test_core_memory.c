/* What may still be taken and held: the machine, the cgroups above us, the limits that count
 * maps. */
#include "cases.h"
#include "unit/memory_fixture.h"

/* `room` of `total` is left, half of which stays for what is touched. */
static void assert_left(uint64_t room, uint64_t total)
{
    struct fl_memory m = look();

    assert_int_equal(m.headroom, room);
    assert_int_equal(m.eager, room > total / 2 ? room - total / 2 : 0);
}

CASE(memavailable_alone)
{
    assert_left(GIB(14), GIB(16));
    assert_int_equal(look().most, GIB(16));
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388609 kB\n");
    assert_left(GIB(8) + 1024, GIB(16));
    assert_int_equal(look().eager, 1024);
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n");
    assert_left(GIB(8), GIB(16));
    assert_int_equal(look().eager, 0);
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 0 kB\n");
    assert_left(0, GIB(16));
    assert_false(look().bounded); /* the machine is shared */
    assert_true(look().keep == UINT64_MAX);
}

static void assert_unknown(void)
{
    struct fl_memory m = look();

    assert_true(m.headroom == UINT64_MAX && m.eager == UINT64_MAX && m.keep == UINT64_MAX);
    assert_false(m.bounded);
}

CASE(unknown_is_no_limit)
{
    fake_file("/proc/meminfo", NULL);
    assert_unknown();
    fake_file("/proc/meminfo", "MemTotal: 1 kB\n"); /* before Linux 3.14 */
    assert_unknown();
}

CASE(cgroup_v2_room_is_limit_less_usage)
{
    fake_file("/proc/self/cgroup", "0::/job\n");
    GROUP_V2("job/", "4294967296\n", "3221225472\n");
    assert_left(GIB(1), GIB(4));
}

CASE(the_lower_of_max_and_high_counts)
{
    static const struct {
        const char *max, *high;
        uint64_t limit;
    } table[] = {
        {"4294967296\n", "max\n", GIB(4)},        {"4294967296\n", NULL, GIB(4)},
        {"4294967296\n", "3221225472\n", GIB(3)}, {"3221225472\n", "4294967296\n", GIB(3)},
        {"max\n", "3221225472\n", GIB(3)},        {NULL, "3221225472\n", GIB(3)},
    };
    fake_file("/proc/self/cgroup", "0::/job\n");
    fake_file("/sys/fs/cgroup/job/memory.current", "1073741824\n");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        fake_file("/sys/fs/cgroup/job/memory.max", table[i].max);
        fake_file("/sys/fs/cgroup/job/memory.high", table[i].high);
        assert_left(table[i].limit - GIB(1), table[i].limit);
        assert_true(look().bounded);
        assert_int_equal(look().unused, table[i].limit - GIB(1));
    }
    fake_file("/sys/fs/cgroup/job/memory.max", "max\n");
    fake_file("/sys/fs/cgroup/job/memory.high", "max\n");
    assert_left(GIB(14), GIB(16));
    assert_false(look().bounded);
}

/* What could be reclaimed is read only where it can make a difference. */
CASE(statistics_are_read_where_they_count)
{
    fake_file("/proc/self/cgroup", "0::/job\n");
    fake_file("/sys/fs/cgroup/job/memory.max", "34359738368\n"); /* 32 of 16 GiB */
    fake_file("/sys/fs/cgroup/job/memory.current", "1073741824\n");
    fake_file("/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 1073741824\n");
    (void)look();
    fake_forget();
    struct fl_memory m = look_again();
    assert_int_equal(fake.count[FAKE_READ_FILE], 2); /* meminfo, memory.current */
    assert_int_equal(m.headroom, GIB(14));
    assert_int_equal(m.eager, GIB(6));
    assert_int_equal(m.unused, GIB(31));
    assert_true(m.bounded);
    fake_file("/sys/fs/cgroup/job/memory.current", "12884901888\n"); /* 20 left, 4 of them eager */
    fake_forget();
    m = look_again();
    assert_int_equal(fake.count[FAKE_READ_FILE], 3);
    assert_int_equal(m.headroom, GIB(14));
    assert_int_equal(m.eager, GIB(5));
    assert_int_equal(m.unused, GIB(20));
    /* Of 10 GiB 7 are unused, 2 of them eager; the machine has 9, and 1. */
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 9437184 kB\n");
    GROUP_V2("job/", "10737418240\n", "3221225472\n");
    m = look();
    assert_int_equal(m.headroom, GIB(8));
    assert_int_equal(m.eager, GIB(1));
}

CASE(cgroup_inactive_files_count_as_room)
{
    fake_file("/proc/self/cgroup", "0::/job\n");
    GROUP_V2("job/", "4294967296\n", "4294967296\n");
    assert_left(0, GIB(4));
    fake_file("/sys/fs/cgroup/job/memory.stat",
              "anon 1\nfile 9\nactive_file 7\ninactive_file 2147483648\n");
    assert_left(GIB(2), GIB(4));
    fake_file("/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 99999999999\n");
    assert_left(GIB(4), GIB(4)); /* never more than the limit */
}

CASE(cgroup_ancestors_bind_too)
{
    fake_file("/proc/self/cgroup", "0::/user/job/task\n");
    GROUP_V2("user/job/task/", "max\n", "10\n");
    GROUP_V2("user/job/", "6442450944\n", "1073741824\n");
    assert_left(GIB(5), GIB(6));
    GROUP_V2("user/", "1073741824\n", "2147483648\n");
    assert_left(0, GIB(1)); /* over its limit already */
}

/* Paths may hold what looks like a controller's name, and v1 mounts several controllers at once. */
CASE(cgroup_is_known_by_its_controllers_alone)
{
    fake_file("/proc/self/cgroup", "1:name=memory:/one\n0::/a:memory:b,memory:c\n");
    GROUP_V2("a:memory:b,memory:c/", "6442450944\n", "1073741824\n");
    assert_left(GIB(5), GIB(6));
    fake_file("/proc/self/cgroup", "5:cpu,cpuacct:/two\n4:memory,pids:/one\n0::/a\n");
    GROUP_V1("one/", "4294967296\n", "1073741824\n");
    assert_left(GIB(3), GIB(4));
    fake_file("/proc/self/cgroup", "4:pids,memory:/one");
    assert_left(GIB(3), GIB(4));
}

CASE(cgroup_of_the_root_or_with_max_does_not_bind)
{
    fake_file("/proc/self/cgroup", "0::/\n");
    assert_left(GIB(14), GIB(16));
    fake_file("/proc/self/cgroup", "0::/job\n");
    GROUP_V2("job/", "max\n", "1\n");
    assert_left(GIB(14), GIB(16));
}

CASE(cgroup_namespace_root_has_its_limit_at_the_mount)
{
    fake_file("/proc/self/cgroup", "0::/\n");
    GROUP_V2("", "2147483648\n", "1073741824\n");
    assert_left(GIB(1), GIB(2));
    fake_forget();
    (void)look(); /* cgroup, memory.max, .high, .current, .stat, overcommit_memory, meminfo: once */
    assert_int_equal(fake.count[FAKE_READ_FILE], 7);
}

CASE(cgroup_v1_counts_what_is_below_it)
{
    fake_file("/proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/docker/abc\n1:name=systemd:/x\n");
    GROUP_V1("docker/abc/", "3221225472\n", "2147483648\n");
    fake_file("/sys/fs/cgroup/memory/docker/abc/memory.stat",
              "inactive_file 1\ntotal_inactive_file 1073741824\n");
    assert_left(GIB(2), GIB(3));
}

CASE(cgroup_v1_path_that_is_not_mounted_leaves_the_ancestors)
{
    fake_file("/proc/self/cgroup", "5:memory:/docker/abc\n0::/\n");
    GROUP_V1("", "1073741824\n", "0\n");
    assert_left(GIB(1), GIB(1));
}

CASE(cgroup_v1_without_limit_says_a_huge_number)
{
    fake_file("/proc/self/cgroup", "5:memory:/\n");
    GROUP_V1("", "9223372036854771712\n", "1\n");
    assert_left(GIB(14), GIB(16));
    fake_file("/proc/meminfo", NULL);
    assert_unknown();
}

/* The kernel has each controller in one hierarchy: files of the other are not looked for. */
CASE(the_version_that_has_memory_counts)
{
    fake_file("/proc/self/cgroup", "5:memory:/a\n0::/b\n");
    GROUP_V1("a/", "3221225472\n", "0\n");
    fake_forget();
    assert_left(GIB(3), GIB(3));
    fake_forget();
    (void)look();
    /* cgroup, limits of the group and the mount, overcommit_memory, meminfo, usage, statistics */
    assert_int_equal(fake.count[FAKE_READ_FILE], 7);
    fake_file("/proc/self/cgroup", "5:cpu:/a\n0::/b\n");
    GROUP_V2("b/", "2147483648\n", "0\n");
    assert_left(GIB(2), GIB(2));
    fake_file("/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 1048576 kB\n");
    assert_left(GIB(1), GIB(1));
}

/* The least headroom and the least eager part need not come from the same bound. */
CASE(each_figure_is_the_least_of_all_bounds)
{
    fake_file("/proc/self/cgroup", "5:memory:/a/b/c\n");
    GROUP_V1("a/b/", "8589934592\n", "2147483648\n");   /* 6, 2 */
    GROUP_V1("a/", "12884901888\n", "5368709120\n");    /* 7, 1 */
    GROUP_V1("a/b/c/", "6442450944\n", "1073741824\n"); /* 5, 2 */
    struct fl_memory m = look();
    assert_int_equal(m.headroom, GIB(5));
    assert_int_equal(m.eager, GIB(1));
    assert_int_equal(m.most, GIB(6));
    assert_true(m.bounded);
    assert_true(m.keep == UINT64_MAX); /* cgroups count pages, not maps */
}

CASE(limits_that_count_maps_keep_an_eighth)
{
    static const struct {
        uint64_t as, data;
        const char *mode;
        uint64_t keep;
        bool bounded;
    } table[] = {
        {UINT64_MAX, UINT64_MAX, "0\n", UINT64_MAX, false},
        {UINT64_MAX, UINT64_MAX, "1\n", UINT64_MAX, false},
        {UINT64_MAX, UINT64_MAX, NULL, UINT64_MAX, false},
        {GIB(4), UINT64_MAX, "0\n", GIB(4) / 8, true},
        {UINT64_MAX, GIB(2), "0\n", GIB(2) / 8, true},
        {GIB(4), GIB(2), "0\n", GIB(2) / 8, true},
        {GIB(1), GIB(2), "0\n", GIB(1) / 8, true},
        {0, UINT64_MAX, "0\n", 0, true},
        {UINT64_MAX, UINT64_MAX, "2\n", GIB(8) / 8, true}, /* CommitLimit */
        {GIB(16), UINT64_MAX, "2\n", GIB(8) / 8, true},
        {GIB(4), UINT64_MAX, "2\n", GIB(4) / 8, true},
    };
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 14680064 kB\n"
                               "CommitLimit:     8388608 kB\nCommitted_AS:  1 kB\n");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        fake.limit_as = table[i].as;
        fake.limit_data = table[i].data;
        fake_file("/proc/sys/vm/overcommit_memory", table[i].mode);
        struct fl_memory m = look();
        assert_true(m.keep == table[i].keep);
        assert_int_equal(m.bounded, table[i].bounded);
        assert_left(GIB(14), GIB(16)); /* what may be taken is another matter */
    }
    fake_file("/proc/meminfo", NULL); /* the limits hold without it */
    assert_true(look().keep == GIB(4) / 8 && look().headroom == UINT64_MAX);
}

/* Deeper than there is room to remember, and longer than a path may be. */
CASE(deep_cgroups_are_survived)
{
    static char line[2048] = "0::", file[FL_CGROUP_LEVELS + 2][FL_CGROUP_PATH + 16];
    static char current[FL_CGROUP_PATH + 16];
    char folder[FL_CGROUP_PATH] = "/sys/fs/cgroup";
    for (size_t i = 0; i < FL_CGROUP_LEVELS + 2; i++) {
        strcat(folder, "/d");
        strcat(line, "/d");
        snprintf(file[i], sizeof file[i], "%s/memory.max", folder);
        fake_file(file[i], "8589934592\n");
    }
    snprintf(current, sizeof current, "%s/memory.current", folder);
    fake_file(current, "1073741824\n");
    fake_file("/proc/self/cgroup", line);
    assert_left(GIB(7), GIB(8));
    assert_int_equal(scratch.nlevel, FL_CGROUP_LEVELS);
    memset(line + 3, '/', sizeof line - 4); /* each of them a level */
    fake_file("/proc/self/cgroup", line);
    assert_left(GIB(14), GIB(16));
    memset(line + 3, 'x', sizeof line - 4);
    line[3] = '/';
    assert_left(GIB(14), GIB(16));
}

CASES_MAIN(.setup = each)
