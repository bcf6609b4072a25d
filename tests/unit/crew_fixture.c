#include "unit/crew_fixture.h"

#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct fl_range mapped[16];
static size_t nmapped;

void unmap_all(void)
{
    while (nmapped > 0) {
        assert_int_equal(fl_sys_linux.unmap(mapped[--nmapped]), 0);
    }
}

struct fl_range map(size_t len)
{
    struct fl_range all = {0, len + fl_page.huge};

    assert_int_equal(fl_sys_linux.reserve(all.len, &all.base), 0);
    struct fl_range r = {fl_align_up(all.base, fl_page.huge), len};
    if (r.base != all.base) {
        assert_int_equal(fl_sys_linux.unmap((struct fl_range){all.base, r.base - all.base}), 0);
    }
    struct fl_range rest = {fl_range_end(r), fl_range_end(all) - fl_range_end(r)};
    if (rest.len != 0) {
        assert_int_equal(fl_sys_linux.unmap(rest), 0);
    }
    assert_int_equal(fl_sys_linux.commit(r), 0);
    (void)fl_sys_linux.advise(r, FL_ADVICE_NO_HUGE); /* refused in a confined process */
    assert_true(nmapped < sizeof mapped / sizeof mapped[0]);
    return mapped[nmapped++] = r;
}

void empty(struct fl_range r)
{
    assert_int_equal(madvise((void *)r.base, r.len, MADV_DONTNEED), 0);
}

size_t resident(struct fl_range r)
{
    size_t n = 0;

    assert_int_equal(fl_sys_linux.resident(r, &n), 0);
    return n;
}

bool has_uring(void)
{
    char params[256] = {0};
    long fd = syscall(SYS_io_uring_setup, 4, params);

    if (fd >= 0) {
        close((int)fd);
    }
    return FL_HAVE_URING && fd >= 0;
}

/* However busy this machine is. */
static int read_of_idle_machine(const char *path, char *buf, size_t size)
{
    if (strcmp(path, "/proc/loadavg") == 0) {
        snprintf(buf, size, "0.00 0.00 0.00 1/100 4711\n");
        return 0;
    }
    return fl_sys_linux.read_file(path, buf, size);
}

bool can_share(const char *test)
{
    cpu_set_t cpus;

    fl_sys.read_file = read_of_idle_machine;
    fl_sys_boot();
    fl_home_settle();
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) < 2) {
        printf("SKIP %s: needs two CPUs\n", test);
        return false;
    }
    struct fl_range r = map(fl_page.huge);
    int rc = fl_sys_linux.populate(r);
    if (rc != 0) {
        printf("SKIP %s: needs MADV_POPULATE_WRITE, got %d\n", test, rc);
    }
    unmap_all();
    return rc == 0;
}

struct fl_range part(struct fl_range r, size_t from, size_t len)
{
    return (struct fl_range){r.base + from, len};
}

void refuse(int nr, unsigned answer, int third)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)nr, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)third, 0, (unsigned char)(third >= 0)),
        BPF_STMT(BPF_RET | BPF_K, answer),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof code[0], code};

    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

int status_of_child(void (*meanwhile)(void), int (*f)(void))
{
    int ends[2], status;
    char c;

    fflush(NULL);
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[1]);
        (void)!read(ends[0], &c, 1); /* until the parent closes it */
        close(ends[0]);
        _exit(f());
    }
    assert_true(pid > 0);
    close(ends[0]);
    if (meanwhile != NULL) {
        meanwhile();
    }
    close(ends[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

unsigned descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    closedir(d);
    return n;
}
