/* Changes what its thread is or may do, and asks whether every thread is so.
 *
 *   victim_host_guest CALL VIA
 *
 * VIA: libc, or syscall. Says the call's result, then "all alike" or what differs between main and
 * another thread. */
#include "worker.h"

#include <dirent.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static bool by_number;

static void say(const char *what, long result)
{
    int e = errno;
    dprintf(1, "%s %ld %s\n", what, result, result < 0 ? strerror(e) : "");
}

static int do_unshare(int flags)
{
    return by_number ? (int)syscall(SYS_unshare, flags) : unshare(flags);
}

MODE_IS(unshare_user, say("unshare", do_unshare(CLONE_NEWUSER)))
MODE_IS(unshare_mounts, say("unshare", do_unshare(CLONE_NEWNS)))

static void enter(const char *path, int kind)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    say("setns", by_number ? syscall(SYS_setns, fd, kind) : setns(fd, kind));
    close(fd);
}

MODE_IS(setns_mounts, enter("/proc/self/ns/mnt", CLONE_NEWNS))
MODE_IS(setns_time, enter("/proc/self/ns/time", CLONE_NEWTIME))

/* libc exports it and has no header for it. */
int capset(struct __user_cap_header_struct *, const struct __user_cap_data_struct *);

MODE(drop_capabilities)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    const struct __user_cap_data_struct none[2] = {{0}};
    say("capset", by_number ? syscall(SYS_capset, &header, none) : capset(&header, none));
}

MODE(become_other)
{
    const gid_t group = 65533;
    if (by_number) { /* for the calling thread alone, as the kernel has it */
        say("setgroups", syscall(SYS_setgroups, 1, &group));
        say("setresgid", syscall(SYS_setresgid, 65534, 65534, 65534));
        say("setresuid", syscall(SYS_setresuid, 65534, 65534, 65534));
    } else {
        say("setgroups", setgroups(1, &group));
        say("setresgid", setresgid(65534, 65534, 65534));
        say("setresuid", setresuid(65534, 65534, 65534));
    }
    say("dumpable", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)); /* so that /proc can be read */
}

MODE(become_by_setuid)
{
    say("setgid", by_number ? syscall(SYS_setgid, 65534) : setgid(65534));
    say("setuid", by_number ? syscall(SYS_setuid, 65534) : setuid(65534));
    say("dumpable", prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

static long do_prctl(int option, unsigned long value)
{
    return by_number ? syscall(SYS_prctl, option, value, 0, 0, 0) : prctl(option, value, 0, 0, 0);
}

MODE_IS(no_new_privileges, say("prctl", do_prctl(PR_SET_NO_NEW_PRIVS, 1)))
MODE_IS(drop_bounding, say("prctl", do_prctl(PR_CAPBSET_DROP, CAP_SYS_TIME)))

MODE(restrict_by_landlock)
{
    struct landlock_ruleset_attr attr = {.handled_access_fs = LANDLOCK_ACCESS_FS_MAKE_SOCK};
    long fd = syscall(SYS_landlock_create_ruleset, &attr, sizeof attr, 0);
    say("ruleset", fd < 0 ? -1 : 0);
    say("prctl", do_prctl(PR_SET_NO_NEW_PRIVS, 1));
    say("restrict", syscall(SYS_landlock_restrict_self, fd, 0));
}

MODE(become_batch)
{
    const struct sched_param none = {0};
    say("scheduler", by_number ? syscall(SYS_sched_setscheduler, 0, SCHED_BATCH, &none)
                               : sched_setscheduler(0, SCHED_BATCH, &none));
}

MODE(take_one_cpu)
{
    cpu_set_t cpus;
    int last = 0;
    CHECK(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        last = CPU_ISSET(cpu, &cpus) ? cpu : last;
    }
    CPU_ZERO(&cpus);
    CPU_SET(last, &cpus);
    say("affinity", by_number ? syscall(SYS_sched_setaffinity, 0, sizeof cpus, &cpus)
                              : sched_setaffinity(0, sizeof cpus, &cpus));
}

MODE(be_nice)
{
    say("priority",
        by_number ? syscall(SYS_setpriority, PRIO_PROCESS, 0, 7) : setpriority(PRIO_PROCESS, 0, 7));
}

static void read_task(const char *tid, const char *name, char text[8192])
{
    char path[128];
    snprintf(path, sizeof path, "/proc/self/task/%s/%s", tid, name);
    (void)proc_text(text, path, "");
}

/* The line of `status` that begins with `key`, after it; "" where it has none. */
static void line_of(const char *status, const char *key, char value[256])
{
    const char *p = strstr(status, key);

    p = p != NULL ? p + strlen(key) : "";
    snprintf(value, 256, "%.*s", (int)strcspn(p, "\n"), p);
}

static bool same_status(const char *tid, const char *main_tid)
{
    static const char *const keys[] = {
        "\nCapInh:", "\nCapPrm:", "\nCapEff:", "\nCapBnd:",  "\nCapAmb:",       "\nNoNewPrivs:",
        "\nUid:",    "\nGid:",    "\nGroups:", "\nSeccomp:", "\nCpus_allowed:", "\nMems_allowed:",
    };
    static char ours[8192], mains[8192], name[8192];
    char a[256], b[256];
    bool same = true;

    read_task(tid, "comm", name);
    read_task(tid, "status", ours);
    read_task(main_tid, "status", mains);
    if (ours[0] == '\0') {
        return true; /* it has ended meanwhile */
    }
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        line_of(ours, keys[i], a);
        line_of(mains, keys[i], b);
        if (strcmp(a, b) != 0) {
            dprintf(1, "%.*s: %s%s, main: %s\n", (int)strcspn(name, "\n"), name, keys[i] + 1, a, b);
            same = false;
        }
    }
    return same;
}

static bool same_namespaces(const char *tid, const char *main_tid)
{
    static const char *const names[] = {"user", "mnt", "time", "net",
                                        "pid",  "uts", "ipc",  "cgroup"};
    bool same = true;

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128], a[64] = "", b[64] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/ns/%s", tid, names[i]);
        bool there = readlink(path, a, sizeof a - 1) > 0;
        snprintf(path, sizeof path, "/proc/self/task/%s/ns/%s", main_tid, names[i]);
        if (there && readlink(path, b, sizeof b - 1) > 0 && strcmp(a, b) != 0) {
            dprintf(1, "another thread's namespace: %s, main's: %s\n", a, b);
            same = false;
        }
    }
    return same;
}

static bool same_scheduling(const char *tid, const char *main_tid)
{
    id_t t = (id_t)atoi(tid), m = (id_t)atoi(main_tid);
    int policy = sched_getscheduler((pid_t)t), mains = sched_getscheduler((pid_t)m);
    int nice_of = getpriority(PRIO_PROCESS, t), mains_nice = getpriority(PRIO_PROCESS, m);

    if (policy >= 0 && (policy != mains || nice_of != mains_nice)) {
        dprintf(1, "another thread has policy %d, nice %d; main %d, %d\n", policy, nice_of, mains,
                mains_nice);
        return false;
    }
    return true;
}

static bool all_alike(void)
{
    char main_tid[16];
    bool same = true;
    DIR *d = opendir("/proc/self/task");

    CHECK(d != NULL);
    snprintf(main_tid, sizeof main_tid, "%d", getpid());
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.' && strcmp(e->d_name, main_tid) != 0) {
            same &= same_status(e->d_name, main_tid);
            same &= same_namespaces(e->d_name, main_tid);
            same &= same_scheduling(e->d_name, main_tid);
        }
    }
    closedir(d);
    return same;
}

/* Memory to give back, to fill ahead, and time for that. */
static void be_large(void)
{
    for (size_t i = 0; i < 4; i++) {
        use((24 + 8 * i) * MIB);
        nap(20);
    }
}

/* A thread in real time, on one CPU, makes the first large request. */
static void *in_real_time(void *arg)
{
    const struct sched_param urgent = {.sched_priority = 10};
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    CHECK(sched_setscheduler(0, SCHED_FIFO, &urgent) == 0);
    *(pid_t *)arg = (pid_t)syscall(SYS_gettid);
    for (size_t i = 0; i < 3; i++) {
        use((32 + 16 * i) * MIB);
        nap(20);
    }
    return arg;
}

/* pthread_join returns while the kernel still ends the thread, which is among the tasks until
 * then. */
static void wait_until_ended(pid_t tid)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/task/%d", tid);
    while (access(path, F_OK) == 0) {
        nap(1);
    }
}

static void inherit(void)
{
    pid_t tid = 0;
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, in_real_time, &tid) == 0);
    pthread_join(thread, NULL);
    wait_until_ended(tid);
    bool same = all_alike();
    for (int i = 0; i < 10 && same; i++) {
        nap(20);
        same = all_alike();
    }
    dprintf(1, "%s", same ? "all alike\n" : "");
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    by_number = strcmp(argv[2], "syscall") == 0;
    if (strcmp(argv[1], "inherit") == 0) {
        inherit();
        return 0;
    }
    be_large();
    CHECK(run_mode(argv[1]) == 0);
    bool same = all_alike();
    for (int i = 0; i < 8 && same; i++) {
        be_large();
        same = all_alike();
    }
    dprintf(1, "%s", same ? "all alike\n" : "");
    return 0;
}
