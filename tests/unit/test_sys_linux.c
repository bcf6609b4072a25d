/* The real door to the kernel: each slot once, judged by what the memory does. */
#include "sys/sys.h"
#include "cases.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { LEN = 1 << 20 };

static char dir[32], path[64]; /* a folder of the case's own; a file in it */

static void make_folder(void)
{
    snprintf(dir, sizeof dir, "/tmp/fl_test_XXXXXX");
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/file", dir);
}

static void remove_folder(void)
{
    (void)unlink(path);
    assert_int_equal(rmdir(dir), 0);
}

static struct fl_range reserved(void)
{
    struct fl_range r = {0, LEN};

    assert_int_equal(fl_sys_linux.reserve(LEN, &r.base), 0);
    return r;
}

static size_t resident(struct fl_range r)
{
    size_t there = 1;

    assert_int_equal(fl_sys_linux.resident(r, &there), 0);
    return there;
}

CASE(reserved_memory_is_committed_populated_and_decommitted)
{
    struct fl_range r = reserved();
    volatile char *p = (volatile char *)r.base;
    for (int round = 0; round < 2; round++) {
        assert_int_equal(fl_sys_linux.commit(r), 0);
        assert_int_equal(fl_sys_linux.advise(r, FL_ADVICE_NO_HUGE), 0);
        assert_int_equal(resident(r), 0);
        assert_int_equal(p[8192], 0);
        int rc = fl_sys_linux.populate(r);
        assert_true(rc == 0 || rc == -EINVAL);
        p[8192] = 7;
        assert_int_equal(resident(r), rc == 0 ? LEN : 8192);
        assert_int_equal(fl_sys_linux.decommit(r), 0);
        assert_int_equal(resident(r), 0);
        assert_int_not_equal(fl_sys_linux.populate(r), 0); /* no access any more */
    }
    assert_int_equal(fl_sys_linux.unmap(r), 0);
}

CASE(memory_is_mapped_exactly_there_or_refused)
{
    struct fl_range r = reserved();
    assert_int_equal(fl_sys_linux.map_at(r), -EEXIST);
    assert_int_equal(fl_sys_linux.unmap(r), 0);
    assert_int_equal(fl_sys_linux.map_at(r), 0);
    *(volatile char *)r.base = 1;
    assert_int_equal(fl_sys_linux.map_at((struct fl_range){r.base + 4096, 4096}), -EEXIST);
    assert_int_equal(fl_sys_linux.unmap(r), 0);
    assert_int_equal(fl_sys_linux.map_at(r), 0);
    assert_int_equal(*(volatile char *)r.base, 0);
    assert_int_equal(fl_sys_linux.unmap(r), 0);
}

CASE(refusals_are_negative_errno)
{
    struct fl_range odd = {1, 4096};
    uintptr_t base;
    size_t there;
    assert_int_equal(fl_sys_linux.reserve((size_t)1 << 62, &base), -ENOMEM);
    assert_int_equal(fl_sys_linux.commit(odd), -EINVAL);
    assert_int_equal(fl_sys_linux.decommit(odd), -EINVAL);
    assert_int_equal(fl_sys_linux.populate(odd), -EINVAL);
    assert_int_equal(fl_sys_linux.resident(odd, &there), -EINVAL);
    assert_int_equal(fl_sys_linux.unmap(odd), -EINVAL);
}

CASE(memory_and_entropy_are_the_machine_s)
{
    char text[4096];
    uint64_t kib = 0;
    assert_int_equal(fl_sys_linux.read_file("/proc/meminfo", text, sizeof text), 0);
    assert_true(fl_parse_after(text, "MemTotal:", &kib));
    uint64_t swap = 1;
    assert_in_range(fl_sys_linux.memory_total(&swap), kib * 1000, kib * 1100);
    assert_true(fl_parse_after(text, "SwapTotal:", &kib));
    assert_in_range(swap, kib * 1000, kib * 1100);
    assert_true(fl_sys_linux.entropy() == fl_sys_linux.entropy());
    assert_true(fl_sys_linux.entropy() != 0);
}

CASE(files_are_read_whole_or_cut)
{
    char text[64];
    text[0] = 'x';
    assert_int_equal(fl_sys_linux.read_file("/no/such/file", text, sizeof text), -ENOENT);
    assert_string_equal(text, "");
    assert_int_equal(fl_sys_linux.read_file("/proc/self/status", text, 6), 0);
    assert_string_equal(text, "Name:");
    assert_int_equal(fl_sys_linux.read_file("/proc", text, sizeof text), -EISDIR);
}

CASE(files_are_appended_to)
{
    char text[64];
    assert_int_equal(fl_sys_linux.replace_file(path, "", 0), 0);
    assert_int_equal(fl_sys_linux.append_file(path, "one\n", 4), 0);
    assert_int_equal(fl_sys_linux.append_file(path, "two\n", 4), 0);
    assert_int_equal(fl_sys_linux.read_file(path, text, sizeof text), 0);
    assert_string_equal(text, "one\ntwo\n");
    assert_int_equal(fl_sys_linux.append_file("/no/such/file", "x", 1), -ENOENT);
    assert_int_equal(fl_sys_linux.write(-1, "x", 1), -EBADF);
}

/* How many names the folder has. */
static unsigned names(void)
{
    DIR *d = opendir(dir);
    unsigned n = 0;

    assert_non_null(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        n += e->d_name[0] != '.';
    }
    closedir(d);
    return n;
}

CASE(files_are_replaced_whole_or_not_at_all)
{
    char text[64], longest[1100] = "";
    mode_t mask = umask(02);
    assert_int_equal(fl_sys_linux.replace_file(path, "first and long", 14), 0);
    (void)umask(mask);
    assert_int_equal(fl_sys_linux.read_file(path, text, sizeof text), 0);
    assert_int_equal(fl_sys_linux.replace_file(path, "second", 6), 0);
    assert_int_equal(fl_sys_linux.read_file(path, text, sizeof text), 0);
    assert_string_equal(text, "second");
    assert_int_equal(names(), 1);
    assert_int_equal(fl_sys_linux.replace_file(path, NULL, 6), -EFAULT);
    assert_int_equal(names(), 1);
    assert_int_equal(fl_sys_linux.read_file(path, text, sizeof text), 0);
    assert_string_equal(text, "second");
    assert_int_equal(fl_sys_linux.replace_file("/no/such/file", "x", 1), -ENOENT);
    assert_int_equal(fl_sys_linux.replace_file(dir, "x", 1), -EINVAL);
    assert_int_equal(fl_sys_linux.replace_file("/dev/null", "x", 1), -EINVAL);
    memset(longest, 'a', sizeof longest - 1);
    assert_int_equal(fl_sys_linux.replace_file(longest, "x", 1), -ENAMETOOLONG);
}

/* By the signal of a file that gets too long. */
CASE(a_process_that_ends_amid_it_leaves_no_file_behind)
{
    static const char data[65536];
    int status;
    for (unsigned there = 0; there < 2; there++) {
        pid_t child = fork();
        if (child == 0) {
            const struct rlimit page = {4096, 4096}, none = {0, 0};
            (void)setrlimit(RLIMIT_CORE, &none);
            (void)setrlimit(RLIMIT_FSIZE, &page);
            _exit(fl_sys_linux.replace_file(path, data, sizeof data) == 0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ);
        assert_int_equal(names(), there);
        assert_int_equal(fl_sys_linux.replace_file(path, "whole", 5), 0);
    }
}

/* In a folder that is all that there is: no file without a name can be given one. */
CASE(without_proc_files_are_replaced_too)
{
    char text[8];
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (chroot(dir) != 0 && (unshare(CLONE_NEWUSER) != 0 || chroot(dir) != 0)) {
            _exit(2);
        }
        _exit(chdir("/") != 0 || fl_sys_linux.replace_file("/file", "first", 5) != 0 ||
              fl_sys_linux.replace_file("file", "second", 6) != 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (status == 0) {
        assert_int_equal(fl_sys_linux.read_file(path, text, sizeof text), 0);
        assert_string_equal(text, "second");
        assert_int_equal(names(), 1);
    }
    if (WEXITSTATUS(status) == 2) {
        skip(); /* needs root, or namespaces of users */
    }
    assert_int_equal(status, 0);
}

CASE(a_file_keeps_its_mode)
{
    const mode_t modes[] = {0600, 0640, 0444, 0666};
    struct stat s;
    assert_int_equal(fl_sys_linux.replace_file(path, "", 0), 0);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        assert_int_equal(fl_sys_linux.replace_file(path, "x", 1), 0);
        assert_int_equal(stat(path, &s), 0);
        assert_int_equal(s.st_mode & 07777, modes[i]);
    }
}

/* What it led to has a mode that would have the new file refused. */
CASE(a_link_is_replaced_and_lends_no_mode)
{
    char link[64], text[8];
    struct stat s;
    snprintf(link, sizeof link, "%s/link", dir);
    assert_int_equal(fl_sys_linux.replace_file(path, "old", 3), 0);
    assert_int_equal(chmod(path, 0666), 0);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(fl_sys_linux.replace_file(link, "new", 3), 0);
    assert_int_equal(lstat(link, &s), 0);
    assert_true(S_ISREG(s.st_mode) && (s.st_mode & 022) == 0);
    assert_int_equal(fl_sys_linux.read_file(path, text, sizeof text), 0);
    assert_string_equal(text, "old");
    unlink(link);
    assert_int_equal(symlink("/dev/null", link), 0);
    assert_int_equal(fl_sys_linux.replace_file(link, "new", 3), 0);
    unlink(link);
}

CASE(limits_and_clock_are_the_process_s)
{
    struct rlimit r;
    assert_int_equal(getrlimit(RLIMIT_DATA, &r), 0);
    uint64_t want = r.rlim_cur == RLIM_INFINITY ? UINT64_MAX : r.rlim_cur;
    assert_true(fl_sys_linux.limit(RLIMIT_DATA) == want);
    uint64_t before = fl_sys_linux.now_ns();
    assert_true(fl_sys_linux.now_ns() >= before && before != 0);
}

CASE(waiting_ends_by_value_or_time)
{
    _Atomic uint32_t word = 1;
    assert_int_equal(fl_sys_linux.wait(&word, 0, 0), -EAGAIN);
    assert_int_equal(fl_sys_linux.wait(&word, 1, 1000), -ETIMEDOUT);
    assert_int_equal(fl_sys_linux.wake(&word, 1), 0);
}

CASES_MAIN(.setup = make_folder, .teardown = remove_folder)
