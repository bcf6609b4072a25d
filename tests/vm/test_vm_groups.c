/* The memory control groups that tests make for themselves (tests/preload/cgroup.h), on the
 * machines that there are: each is built here in mounts, namespaces and groups of a child. A group
 * must kill what grows beyond its limit, and leave nothing behind. */
#include "preload/cgroup.h"
#include "preload/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define ROOT "/sys/fs/cgroup"
#define BOX ROOT "/box"

enum { NOBODY = 65534, LIMIT_MIB = 16 };

static void check(bool good, const char *what)
{
    if (!good) {
        printf("# %s does not hold (errno %d)\n", what, errno);
        fflush(stdout);
        _exit(1);
    }
}
#define CHECK(x) check(x, #x)

static void tell(const char *file, const char *text)
{
    check(fl_write_text(file, text), file);
}

static bool holds(const char *file, const char *text)
{
    char all[4096];
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, all, sizeof all - 1) : -1;

    check(n >= 0, file);
    close(fd);
    all[n] = '\0';
    return strstr(all, text) != NULL;
}

static bool nothing_is_left(void)
{
    bool clean = true;
    DIR *d = opendir(ROOT);

    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        clean = clean && strncmp(e->d_name, "faultless", strlen("faultless")) != 0;
    }
    closedir(d);
    return clean;
}

/* The signal that ends a process which touches so much memory inside; 0: none. */
static int signal_of(size_t mib)
{
    int status;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        fl_cgroup_join(NULL);
        char *p = mmap(NULL, mib << 20, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
        _exit(p != MAP_FAILED ? 0 : 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status);
}

static void works(void)
{
    if (!fl_cgroup_make(LIMIT_MIB)) {
        check(false, fl_cgroup_missing());
    }
    CHECK(signal_of(LIMIT_MIB / 2) == 0);
    CHECK(fl_cgroup_kills() == 0);
    CHECK(signal_of(2 * LIMIT_MIB) == SIGKILL);
    CHECK(fl_cgroup_kills() == 1);
    CHECK(fl_cgroup_limit(4 * LIMIT_MIB));
    CHECK(signal_of(2 * LIMIT_MIB) == 0);
    fl_cgroup_remove();
    CHECK(nothing_is_left());
}

static void is_refused(const char *word)
{
    CHECK(!fl_cgroup_make(LIMIT_MIB));
    check(strstr(fl_cgroup_missing(), word) != NULL, fl_cgroup_missing());
    CHECK(nothing_is_left());
}

static void own_mounts(int namespaces)
{
    CHECK(unshare(CLONE_NEWNS | namespaces) == 0);
    CHECK(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
}

static void ordinary_user(void)
{
    CHECK(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
}

static void delegated(void)
{
    static const char *const files[] = {BOX, BOX "/cgroup.procs", BOX "/cgroup.subtree_control",
                                        BOX "/own", BOX "/own/cgroup.procs"};

    tell(BOX "/cgroup.subtree_control", "+memory");
    CHECK(mkdir(BOX "/own", 0755) == 0);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        CHECK(chown(files[i], NOBODY, NOBODY) == 0);
    }
    tell(BOX "/own/cgroup.procs", "0");
    ordinary_user();
    works();
}

static void contained(void)
{
    char file[64];

    tell(BOX "/cgroup.procs", "0");
    own_mounts(CLONE_NEWCGROUP);
    CHECK(umount2(ROOT, MNT_DETACH) == 0);
    CHECK(mount("none", ROOT, "cgroup2", 0, NULL) == 0);
    pid_t other = fork();
    CHECK(other >= 0);
    if (other == 0) {
        pause();
        _exit(0);
    }
    works();
    snprintf(file, sizeof file, "/proc/%d/cgroup", other);
    CHECK(holds(file, "0::/\n") && holds("/proc/self/cgroup", "0::/\n"));
    CHECK(!holds(ROOT "/cgroup.subtree_control", "memory"));
    CHECK(kill(other, SIGKILL) == 0 && waitpid(other, NULL, 0) == other);
}

static void switched_off(void)
{
    tell(ROOT "/cgroup.subtree_control", "-memory");
    works();
    CHECK(!holds(ROOT "/cgroup.subtree_control", "memory"));
    tell(ROOT "/cgroup.subtree_control", "+memory");
}

static void not_mounted(void)
{
    own_mounts(0);
    CHECK(umount2(ROOT, MNT_DETACH) == 0);
    works();
}

static void read_only(void)
{
    own_mounts(0);
    CHECK(mount(NULL, ROOT, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) == 0);
    is_refused("got none in " ROOT ": Read-only file system");
}

static void without_rights(void)
{
    ordinary_user();
    is_refused("got none in " ROOT ": Permission denied");
}

static void without_rights_or_mount(void)
{
    own_mounts(0);
    CHECK(umount2(ROOT, MNT_DETACH) == 0);
    ordinary_user();
    is_refused("nor the right to mount one: Operation not permitted");
}

/* In a child, which has a group of its own to play in. */
static void in_child(void (*body)(void))
{
    int status;

    assert_int_equal(mkdir(BOX, 0755), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    (void)rmdir(BOX "/own");
    assert_int_equal(rmdir(BOX), 0);
    assert_int_equal(status, 0);
}

CASE_IS(root_makes_one_in_the_mount, in_child(works))
CASE_IS(a_controller_that_is_off_is_switched_on_for_a_while, in_child(switched_off))
CASE_IS(what_is_not_mounted_is, in_child(not_mounted))
CASE_IS(processes_in_the_way_are_moved_and_come_back, in_child(contained))
CASE_IS(an_ordinary_user_makes_one_where_that_is_delegated, in_child(delegated))
CASE_IS(a_mount_that_is_read_only_is_said, in_child(read_only))
CASE_IS(a_user_without_rights_is_said, in_child(without_rights))
CASE_IS(a_user_without_a_mount_is_said, in_child(without_rights_or_mount))

CASES_MAIN()
