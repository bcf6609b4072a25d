/* What may still be taken: MemAvailable and the cgroups above us, each less an eighth of its whole. */
#include "core/core.h"
#include "unit/cmocka_all.h"
#include "unit/fake_sys.h"

#define GIB(n) ((uint64_t)(n) << 30)

static int each(void **state)
{
    (void)state;
    fake_install();
    return 0;
}

static void assert_available(uint64_t available, uint64_t total)
{
    assert_true(fl_memory_available() == (available > total / 8 ? available - total / 8 : 0));
}

static void memavailable_alone(void **state)
{
    (void)state;
    assert_available(GIB(8), GIB(16));
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 2097153 kB\n");
    assert_available(GIB(2) + 1024, GIB(16));
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 2097152 kB\n");
    assert_available(0, GIB(16));
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 0 kB\n");
    assert_available(0, GIB(16));
}

static void unknown_is_no_limit(void **state)
{
    (void)state;
    fake_file("/proc/meminfo", NULL);
    assert_true(fl_memory_available() == UINT64_MAX);
    fake_file("/proc/meminfo", "MemTotal: 1 kB\n"); /* before Linux 3.14 */
    assert_true(fl_memory_available() == UINT64_MAX);
}

static void cgroup_v2_room_is_limit_less_usage(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "0::/job\n");
    fake_file("/sys/fs/cgroup/job/memory.max", "4294967296\n");
    fake_file("/sys/fs/cgroup/job/memory.current", "3221225472\n");
    assert_available(GIB(1), GIB(4));
}

static void cgroup_inactive_files_count_as_room(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "0::/job\n");
    fake_file("/sys/fs/cgroup/job/memory.max", "4294967296\n");
    fake_file("/sys/fs/cgroup/job/memory.current", "4294967296\n");
    assert_available(0, GIB(4));
    fake_file("/sys/fs/cgroup/job/memory.stat",
              "anon 1\nfile 9\nactive_file 7\ninactive_file 2147483648\n");
    assert_available(GIB(2), GIB(4));
    fake_file("/sys/fs/cgroup/job/memory.stat", "anon 1\ninactive_file 99999999999\n");
    assert_available(GIB(4), GIB(4)); /* never more than the limit */
}

static void cgroup_ancestors_bind_too(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "0::/user/job/task\n");
    fake_file("/sys/fs/cgroup/user/job/task/memory.max", "max\n");
    fake_file("/sys/fs/cgroup/user/job/task/memory.current", "10\n");
    fake_file("/sys/fs/cgroup/user/job/memory.max", "6442450944\n");
    fake_file("/sys/fs/cgroup/user/job/memory.current", "1073741824\n");
    assert_available(GIB(5), GIB(6));
    fake_file("/sys/fs/cgroup/user/memory.max", "1073741824\n");
    fake_file("/sys/fs/cgroup/user/memory.current", "2147483648\n");
    assert_available(0, GIB(1)); /* over its limit already */
}

static void cgroup_of_the_root_or_with_max_does_not_bind(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "0::/\n");
    assert_available(GIB(8), GIB(16));
    fake_file("/proc/self/cgroup", "0::/job\n");
    fake_file("/sys/fs/cgroup/job/memory.max", "max\n");
    fake_file("/sys/fs/cgroup/job/memory.current", "1\n");
    assert_available(GIB(8), GIB(16));
}

static void cgroup_namespace_root_has_its_limit_at_the_mount(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "0::/\n");
    fake_file("/sys/fs/cgroup/memory.max", "2147483648\n");
    fake_file("/sys/fs/cgroup/memory.current", "1073741824\n");
    assert_available(GIB(1), GIB(2));
}

static void cgroup_v1_counts_what_is_below_it(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "12:cpu,cpuacct:/x\n5:memory:/docker/abc\n1:name=systemd:/x\n");
    fake_file("/sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes", "3221225472\n");
    fake_file("/sys/fs/cgroup/memory/docker/abc/memory.usage_in_bytes", "2147483648\n");
    fake_file("/sys/fs/cgroup/memory/docker/abc/memory.stat",
              "inactive_file 1\ntotal_inactive_file 1073741824\n");
    assert_available(GIB(2), GIB(3));
}

static void cgroup_v1_path_that_is_not_mounted_leaves_the_ancestors(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "5:memory:/docker/abc\n0::/\n");
    fake_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "1073741824\n");
    fake_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "0\n");
    assert_available(GIB(1), GIB(1));
}

static void cgroup_v1_without_limit_says_a_huge_number(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "5:memory:/\n");
    fake_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    fake_file("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1\n");
    assert_available(GIB(8), GIB(16));
    fake_file("/proc/meminfo", NULL);
    assert_true(fl_memory_available() == UINT64_MAX);
}

static void the_tighter_of_the_two_versions_counts(void **state)
{
    (void)state;
    fake_file("/proc/self/cgroup", "5:memory:/a\n0::/b\n");
    fake_file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "3221225472\n");
    fake_file("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "0\n");
    fake_file("/sys/fs/cgroup/b/memory.max", "2147483648\n");
    fake_file("/sys/fs/cgroup/b/memory.current", "0\n");
    assert_available(GIB(2), GIB(2));
    fake_file("/proc/meminfo", "MemTotal: 1048576 kB\nMemAvailable: 1048576 kB\n");
    assert_available(GIB(1), GIB(1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(memavailable_alone, each),
        cmocka_unit_test_setup(unknown_is_no_limit, each),
        cmocka_unit_test_setup(cgroup_v2_room_is_limit_less_usage, each),
        cmocka_unit_test_setup(cgroup_inactive_files_count_as_room, each),
        cmocka_unit_test_setup(cgroup_ancestors_bind_too, each),
        cmocka_unit_test_setup(cgroup_of_the_root_or_with_max_does_not_bind, each),
        cmocka_unit_test_setup(cgroup_namespace_root_has_its_limit_at_the_mount, each),
        cmocka_unit_test_setup(cgroup_v1_counts_what_is_below_it, each),
        cmocka_unit_test_setup(cgroup_v1_path_that_is_not_mounted_leaves_the_ancestors, each),
        cmocka_unit_test_setup(cgroup_v1_without_limit_says_a_huge_number, each),
        cmocka_unit_test_setup(the_tighter_of_the_two_versions_counts, each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
