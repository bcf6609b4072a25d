/* libc's functions by which a program changes what its threads are: each tells runtime/host.c
 * first, and then calls libc's.
 *
 * The kernel keeps credentials, filters, namespaces and scheduling for each thread, and refuses
 * some changes to a process of several: a thread of ours would keep what the program gave up, or be
 * in its way. setuid(3) and its like reach every thread that the C library knows, which ours is
 * not. Of calls that name a thread only those that concern the process's first one count: it is
 * what the library's threads are made like. syscall(3) is here since libseccomp, libcap and
 * programs call these by number. A call that is written out in assembly is not seen. */
#include "preload/maps.h"
#include "preload/places.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_landlock_restrict_self
#define SYS_landlock_restrict_self 446
#endif
#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif

/* glibc has it, and no header of its own says so. */
int capset(cap_user_header_t header, cap_user_data_t data);

#define EXPORT __attribute__((visibility("default")))

/* Every function here but syscall, prctl: its name, and how it is called. */
#define SELF_FUNCTIONS(X)                                                                          \
    X(unshare, (int flags), (flags))                                                               \
    X(setns, (int fd, int kind), (fd, kind))                                                       \
    X(capset, (cap_user_header_t header, cap_user_data_t data), (header, data))                    \
    X(setuid, (uid_t id), (id))                                                                    \
    X(setgid, (gid_t id), (id))                                                                    \
    X(seteuid, (uid_t id), (id))                                                                   \
    X(setegid, (gid_t id), (id))                                                                   \
    X(setreuid, (uid_t real, uid_t effective), (real, effective))                                  \
    X(setregid, (gid_t real, gid_t effective), (real, effective))                                  \
    X(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))             \
    X(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))             \
    X(setgroups, (size_t n, const gid_t *ids), (n, ids))                                           \
    X(initgroups, (const char *user, gid_t id), (user, id))                                        \
    X(setfsuid, (uid_t id), (id))                                                                  \
    X(setfsgid, (gid_t id), (id))                                                                  \
    X(nice, (int by), (by))
/* Those that name a thread, and whether it is the first. */
#define SELF_OF_THREAD(X)                                                                          \
    X(sched_setscheduler, is_first(tid), (pid_t tid, int policy, const struct sched_param *p),     \
      (tid, policy, p))                                                                            \
    X(sched_setparam, is_first(tid), (pid_t tid, const struct sched_param *p), (tid, p))           \
    X(sched_setaffinity, is_first(tid), (pid_t tid, size_t len, const cpu_set_t *cpus),            \
      (tid, len, cpus))                                                                            \
    X(setpriority, which != PRIO_PROCESS || is_first((pid_t)who),                                  \
      (__priority_which_t which, id_t who, int value), (which, who, value))                        \
    X(pthread_setaffinity_np, fl_host_is_first(t),                                                 \
      (pthread_t t, size_t len, const cpu_set_t *cpus), (t, len, cpus))                            \
    X(pthread_setschedparam, fl_host_is_first(t),                                                  \
      (pthread_t t, int policy, const struct sched_param *p), (t, policy, p))                      \
    X(pthread_setschedprio, fl_host_is_first(t), (pthread_t t, int value), (t, value))

#define DECLARE(name, args, call) __typeof__(name) *(name);
#define DECLARE_OF_THREAD(name, when, args, call) DECLARE(name, args, call)
static struct {
    SELF_FUNCTIONS(DECLARE)
    SELF_OF_THREAD(DECLARE_OF_THREAD)
    int (*prctl)(int op, ...);
    int (*setrlimit)(__rlimit_resource_t what, const struct rlimit *limit);
    int (*prlimit)(pid_t pid, __rlimit_resource_t what, const struct rlimit *limit,
                   struct rlimit *old);
} next; /* written with the first such call, and each thread that comes writes the same */

/* NOLINTBEGIN(bugprone-macro-parentheses): parameter lists */
#define FIND(name, args, call) *(void **)(void *)&next.name = fl_find_next_of(#name);
#define FIND_OF_THREAD(name, when, args, call) FIND(name, args, call)
static void find_next(void)
{
    SELF_FUNCTIONS(FIND)
    SELF_OF_THREAD(FIND_OF_THREAD)
    *(void **)(void *)&next.prctl = fl_find_next_of("prctl");
    *(void **)(void *)&next.setrlimit = fl_find_next_of("setrlimit");
    *(void **)(void *)&next.prlimit = fl_find_next_of("prlimit");
}

/* NULL before the first such call, and where libc has no such function: then the dynamic linker
 * found none behind us either. True: the call is to end with fl_host_end_change. */
static bool begin(const void *known, bool counts)
{
    if (FL_UNLIKELY(known == NULL)) {
        find_next();
    }
    return counts && fl_host_begin_change();
}

static bool is_first(pid_t tid)
{
    return !fl_sys_is_confined() &&
           (tid == 0 ? fl_host_is_first(pthread_self()) : tid == fl_call_pid());
}

#define INTERPOSE_OF_THREAD(name, when, args, call)                                                \
    EXPORT int name args                                                                           \
    {                                                                                              \
        bool begun = begin((const void *)next.name, when);                                         \
        int rc = next.name call;                                                                   \
        fl_host_end_change(begun);                                                                 \
        return rc;                                                                                 \
    }
#define INTERPOSE(name, args, call) INTERPOSE_OF_THREAD(name, true, args, call)

SELF_FUNCTIONS(INTERPOSE)
SELF_OF_THREAD(INTERPOSE_OF_THREAD)
/* NOLINTEND(bugprone-macro-parentheses) */

/* Operations of prctl(2) that change the calling thread's privileges or its place among others. */
static bool changes_thread(int op)
{
    switch (op) {
    case PR_SET_KEEPCAPS:
    case PR_CAPBSET_DROP:
    case PR_SET_SECUREBITS:
    case PR_SET_NO_NEW_PRIVS:
    case PR_CAP_AMBIENT:
    case PR_SET_SPECULATION_CTRL:
    case PR_SCHED_CORE:
        return true;
    default:
        return false;
    }
}

/* A filter is a program or nothing: libseccomp asks with NULL what the kernel can do. */
static bool is_filter(unsigned long mode, const void *program)
{
    return mode == SECCOMP_MODE_STRICT || (mode == SECCOMP_MODE_FILTER && program != NULL);
}

EXPORT int prctl(int op, ...)
{
    unsigned long a[4];
    va_list args;

    va_start(args, op);
    for (int i = 0; i < 4; i++) {
        a[i] = va_arg(args, unsigned long);
    }
    va_end(args);
    bool begun = begin((const void *)next.prctl, changes_thread(op));
    bool strict = a[0] == SECCOMP_MODE_STRICT;
    bool filters =
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's interface takes numbers */
        op == PR_SET_SECCOMP && is_filter(a[0], (const void *)a[1]) && fl_host_begin_filter(strict);
    int rc = next.prctl(op, a[0], a[1], a[2], a[3]);
    fl_host_end_filter(filters, rc >= 0, strict);
    fl_host_end_change(begun);
    return rc;
}

/* Does the call limit this process's maps? What counts maps counts those of our free memory. */
static bool limits_maps(pid_t pid, int what, const struct rlimit *limit)
{
    return limit != NULL && (what == RLIMIT_AS || what == RLIMIT_DATA) && !fl_sys_is_confined() &&
           (pid == 0 || pid == fl_call_pid()) && limit->rlim_cur != RLIM_INFINITY;
}

/* A limit of threads: one of the library's may have the last place. It comes back if there are
 * enough (sys/places.c). */
static bool limits_places(pid_t pid, int what)
{
    return what == RLIMIT_NPROC && (pid == 0 || pid == fl_call_pid());
}

static int end_limit(int rc, bool limits, bool places)
{
    if (rc == 0 && limits) {
        fl_host_note_limit();
    }
    if (rc == 0 && places) {
        fl_host_end_change(fl_host_begin_change());
    }
    return rc;
}

EXPORT int setrlimit(__rlimit_resource_t what, const struct rlimit *limit)
{
    (void)begin((const void *)next.setrlimit, false);
    return end_limit(next.setrlimit(what, limit), limits_maps(0, (int)what, limit),
                     limits_places(0, (int)what));
}

EXPORT int prlimit(pid_t pid, __rlimit_resource_t what, const struct rlimit *limit,
                   struct rlimit *old)
{
    (void)begin((const void *)next.prlimit, false);
    return end_limit(next.prlimit(pid, what, limit, old), limits_maps(pid, (int)what, limit),
                     limit != NULL && limits_places(pid, (int)what));
}

/* As in glibc for 64 bits, where both are one function. */
EXPORT int setrlimit64(__rlimit_resource_t what, const struct rlimit64 *limit)
{
    return setrlimit(what, (const struct rlimit *)(const void *)limit);
}

EXPORT int prlimit64(pid_t pid, __rlimit_resource_t what, const struct rlimit64 *limit,
                     struct rlimit64 *old)
{
    return prlimit(pid, what, (const struct rlimit *)(const void *)limit,
                   (struct rlimit *)(void *)old);
}

static bool limits_by_number(long nr, const long a[static 6])
{
    /* NOLINTBEGIN(performance-no-int-to-ptr): the kernel's interface takes numbers */
    return (nr == SYS_setrlimit && limits_maps(0, (int)a[0], (const struct rlimit *)a[1])) ||
           (nr == SYS_prlimit64 &&
            limits_maps((pid_t)a[0], (int)a[1], (const struct rlimit *)a[2]));
    /* NOLINTEND(performance-no-int-to-ptr) */
}

static bool changes_thread_by_number(long nr, const long a[static 6])
{
    switch (nr) {
    case SYS_unshare:
    case SYS_setns:
    case SYS_capset:
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setresuid:
    case SYS_setresgid:
    case SYS_setgroups:
    case SYS_setfsuid:
    case SYS_setfsgid:
    case SYS_landlock_restrict_self:
        return true;
    case SYS_exit: /* the process would outlive its only thread */
        return fl_host_is_first(pthread_self());
    case SYS_prctl:
        return changes_thread((int)a[0]);
    case SYS_sched_setscheduler:
    case SYS_sched_setparam:
    case SYS_sched_setattr:
    case SYS_sched_setaffinity:
        return is_first((pid_t)a[0]);
    case SYS_setpriority:
    case SYS_ioprio_set:
        return a[0] != PRIO_PROCESS || is_first((pid_t)a[1]);
    default:
        return false;
    }
}

/* The same call by seccomp(2) and by prctl(2). */
static bool filters_by_number(long nr, const long a[static 6])
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's interface takes numbers */
    const void *program = (const void *)a[2];

    return (nr == SYS_prctl && a[0] == PR_SET_SECCOMP && is_filter((unsigned long)a[1], program)) ||
           (nr == SYS_seccomp && (a[0] == SECCOMP_SET_MODE_STRICT ||
                                  (a[0] == SECCOMP_SET_MODE_FILTER && program != NULL)));
}

static bool is_strict(long nr, const long a[static 6])
{
    return nr == SYS_prctl ? a[1] == SECCOMP_MODE_STRICT : a[0] == SECCOMP_SET_MODE_STRICT;
}

/* Six arguments are passed on, whatever the call takes: what lies behind the last one is read and
 * means nothing. */
EXPORT long syscall(long nr, ...)
{
    long a[6];
    va_list args;

    va_start(args, nr);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(args, long);
    }
    va_end(args);
    long rc = fl_maps_before(nr, a);
    if (FL_UNLIKELY(rc <= 0)) {
        return rc;
    }
    bool begun = changes_thread_by_number(nr, a) && fl_host_begin_change();
    if (FL_UNLIKELY(nr == SYS_exit)) { /* it does not return */
        fl_host_end_change(begun);
        begun = false;
    }
    bool filters = filters_by_number(nr, a) && fl_host_begin_filter(is_strict(nr, a));
    rc = fl_libc.syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    fl_maps_after(nr, a, rc);
    fl_host_end_filter(filters, rc >= 0, is_strict(nr, a));
    fl_host_end_change(begun);
    if (FL_UNLIKELY(fl_places_after(nr, rc))) {
        rc = fl_libc.syscall(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    if (FL_UNLIKELY(rc == 0 && limits_by_number(nr, a))) {
        fl_host_note_limit();
    }
    if (FL_UNLIKELY(nr == SYS_set_mempolicy)) { /* libnuma's, too */
        fl_thread_unsettle();
    }
    return rc;
}
