/* The real door to the kernel: each slot once, judged by what the memory does. */
#include "sys/sys.h"
#include "unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { LEN = 1 << 20 };

static struct fl_range reserved(void)
{
    struct fl_range r = {0, LEN};

    assert_int_equal(fl_sys_linux.reserve(0, LEN, &r.base), 0);
    return r;
}

static void reserved_memory_is_committed_populated_and_purged(void **state)
{
    struct fl_range r = reserved();
    size_t there = 1;
    volatile char *p = (volatile char *)r.base;
    (void)state;
    assert_int_equal(fl_sys_linux.commit(r), 0);
    assert_int_equal(fl_sys_linux.advise(r, FL_ADVICE_NO_HUGE), 0);
    assert_int_equal(fl_sys_linux.resident(r, &there), 0);
    assert_int_equal(there, 0);
    int rc = fl_sys_linux.populate(r);
    assert_true(rc == 0 || rc == -EINVAL);
    p[4096] = 7;
    assert_int_equal(fl_sys_linux.resident(r, &there), 0);
    assert_int_equal(there, rc == 0 ? LEN : 4096);
    assert_int_equal(fl_sys_linux.purge(r), 0);
    assert_int_equal(fl_sys_linux.resident(r, &there), 0);
    assert_int_equal(there, 0);
    assert_int_equal(p[4096], 0);
    assert_int_equal(fl_sys_linux.unreserve(r), 0);
}

static void a_hint_is_taken_exactly_or_refused(void **state)
{
    struct fl_range r = reserved();
    uintptr_t base = 0;
    (void)state;
    assert_int_equal(fl_sys_linux.reserve(r.base, LEN, &base), -EEXIST);
    assert_int_equal(fl_sys_linux.map_at(r), -EEXIST);
    assert_int_equal(fl_sys_linux.unreserve(r), 0);
    assert_int_equal(fl_sys_linux.map_at(r), 0);
    *(volatile char *)r.base = 1;
    assert_int_equal(fl_sys_linux.unreserve(r), 0);
    assert_int_equal(fl_sys_linux.reserve(r.base, LEN, &base), 0);
    assert_true(base == r.base);
    assert_int_equal(fl_sys_linux.unreserve(r), 0);
}

static void refusals_are_negative_errno(void **state)
{
    struct fl_range odd = {1, 4096};
    uintptr_t base;
    size_t there;
    (void)state;
    assert_int_equal(fl_sys_linux.reserve(0, (size_t)1 << 62, &base), -ENOMEM);
    assert_int_equal(fl_sys_linux.commit(odd), -EINVAL);
    assert_int_equal(fl_sys_linux.purge(odd), -EINVAL);
    assert_int_equal(fl_sys_linux.populate(odd), -EINVAL);
    assert_int_equal(fl_sys_linux.resident(odd, &there), -EINVAL);
    assert_int_equal(fl_sys_linux.unreserve(odd), -EINVAL);
}

static void files_are_read_whole_or_cut(void **state)
{
    char text[64];
    (void)state;
    text[0] = 'x';
    assert_int_equal(fl_sys_linux.read_file("/no/such/file", text, sizeof text), -ENOENT);
    assert_string_equal(text, "");
    assert_int_equal(fl_sys_linux.read_file("/proc/self/status", text, 6), 0);
    assert_string_equal(text, "Name:");
    assert_int_equal(fl_sys_linux.read_file("/proc", text, sizeof text), -EISDIR);
}

static void files_are_appended_to(void **state)
{
    char path[] = "/tmp/fl_test_XXXXXX", text[64];
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(fl_sys_linux.append_file(path, "one\n", 4), 0);
    assert_int_equal(fl_sys_linux.append_file(path, "two\n", 4), 0);
    assert_int_equal(fl_sys_linux.read_file(path, text, sizeof text), 0);
    assert_string_equal(text, "one\ntwo\n");
    unlink(path);
    assert_int_equal(fl_sys_linux.append_file("/no/such/file", "x", 1), -ENOENT);
    assert_int_equal(fl_sys_linux.write(-1, "x", 1), -EBADF);
}

static void limits_and_clock_are_the_process_s(void **state)
{
    struct rlimit r;
    (void)state;
    assert_int_equal(getrlimit(RLIMIT_DATA, &r), 0);
    uint64_t want = r.rlim_cur == RLIM_INFINITY ? UINT64_MAX : r.rlim_cur;
    assert_true(fl_sys_linux.limit(RLIMIT_DATA) == want);
    uint64_t before = fl_sys_linux.now_ns();
    assert_true(fl_sys_linux.now_ns() >= before && before != 0);
}

static void waiting_ends_by_value_or_time(void **state)
{
    _Atomic uint32_t word = 1;
    (void)state;
    assert_int_equal(fl_sys_linux.wait(&word, 0, 0), -EAGAIN);
    assert_int_equal(fl_sys_linux.wait(&word, 1, 1000), -ETIMEDOUT);
    assert_int_equal(fl_sys_linux.wake(&word, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reserved_memory_is_committed_populated_and_purged),
        cmocka_unit_test(a_hint_is_taken_exactly_or_refused),
        cmocka_unit_test(refusals_are_negative_errno),
        cmocka_unit_test(files_are_read_whole_or_cut),
        cmocka_unit_test(files_are_appended_to),
        cmocka_unit_test(limits_and_clock_are_the_process_s),
        cmocka_unit_test(waiting_ends_by_value_or_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
