/* Is this process under a seccomp filter that may kill for a call which glibc's malloc would not
 * make?
 *
 * A filter that the program installs: preload/ sees the call and says so. No more such calls from
 * then on. A filter that is there at boot is either a container's, which answers EPERM and lets
 * processes fork, or a sandbox's around this one program. Where the parent process has as many
 * filters, or is in no namespace of ours, it is a container's: then a child that shares our memory
 * and nothing else tries all that is doubtful, once. Where the child is killed, and around one
 * program alone, the process counts as confined: what reads these files are calls that the dynamic
 * linker has just made.
 * Sources: seccomp(2), proc(5) (Seccomp_filters: Linux 5.9), the kernel's documentation of
 * seccomp_filter. */
#include "sys/internal.h"

#include <fcntl.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STATUS_BYTES = 4096, TRIAL_STACK = 64 * FL_KIB, TRIED = 42 };

static FL_AT_START _Atomic bool confined;

bool fl_sys_is_confined(void)
{
    return atomic_load_explicit(&confined, memory_order_relaxed);
}

void fl_sys_confine(bool yes)
{
    atomic_store(&confined, yes);
}

struct status {
    uint64_t mode, filters, parent;
};

static uint64_t field(const char *text, const char *name)
{
    uint64_t v = 0;

    return fl_parse_after(text, name, &v) ? v : 0;
}

/* By one read: the kernel gives all of such a file at once, where there is room. Each process
 * comes here. */
static bool read_text(const char *path, char *text, size_t size)
{
    long fd = fl_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    long n = fd >= 0 ? fl_call(SYS_read, fd, text, size - 1) : 0;

    if (fd >= 0) {
        (void)fl_call(SYS_close, fd);
    }
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

static bool read_status(const char *path, struct status *out)
{
    static char text[STATUS_BYTES]; /* the start's alone: its caller's stack may be small */

    if (!read_text(path, text, sizeof text)) {
        return false;
    }
    *out = (struct status){.mode = field(text, "\nSeccomp:"),
                           .filters = field(text, "\nSeccomp_filters:"),
                           .parent = field(text, "\nPPid:")};
    return true;
}

/* The parent has it too, so it has forked under it; or it is of another PID namespace. */
static bool is_a_container_s(const struct status *own)
{
    char path[64];
    struct fl_text t = fl_text_on(path, sizeof path);
    struct status parent;

    if (own->parent == 0) {
        return true;
    }
    fl_text_str(&t, "/proc/");
    fl_text_u64(&t, own->parent);
    fl_text_str(&t, "/status");
    return read_status(path, &parent) && parent.mode == own->mode && parent.filters == own->filters;
}

/* Each call that is beyond what malloc does, so that it changes nothing. In the child of try_all,
 * by number: a filter that kills ends the child. */
static int make_all(void *unused)
{
    static const struct timespec at_once = {0, 0};
    static const long calls[][6] = {
        {SYS_getpid},
        {SYS_gettid},
        {SYS_getuid},
        {SYS_sysinfo, 0},
        {SYS_prlimit64, 0, RLIMIT_AS, 0, 0},
        {SYS_prctl, PR_GET_DUMPABLE},
        {SYS_sched_getaffinity, 0, 0, 0},
        {SYS_sched_setaffinity, 0, 0, 0},
        {SYS_sched_getscheduler, 0},
        {SYS_sched_setscheduler, 0, -1, 0},
        {SYS_getpriority, PRIO_PROCESS, 0},
        {SYS_setpriority, -1, 0, 0},
        {SYS_getcpu, 0, 0, 0},
        {SYS_get_mempolicy, 0, 0, 0, 0, 0},
        {SYS_set_mempolicy, -1, 0, 0},
        {SYS_mbind, 0, 0, MPOL_DEFAULT, 0, 0},
        {SYS_move_pages, 0, 0, 0, 0, 0},
        {SYS_madvise, 0, 0, MADV_HUGEPAGE},
        {SYS_mincore, 0, 0, 0},
        {SYS_userfaultfd, -1},
        {SYS_ioctl, -1, 0, 0},
        {SYS_close_range, ~0u, ~0u, 0},
        {SYS_signalfd4, -1, 0, 0, 0},
        {SYS_eventfd2, 0, -1},
        {SYS_ppoll, 0, 0, (long)&at_once, 0, 0},
        {SYS_tgkill, -1, -1, 0},
        {SYS_rt_sigprocmask, SIG_BLOCK, 0, 0, 8},
        {SYS_lseek, -1, 0, 0},
        {SYS_pread64, -1, 0, 0, 0},
        {SYS_unlinkat, -1, 0, 0},
        {SYS_linkat, -1, 0, -1, 0, 0},
        {SYS_renameat, -1, 0, -1, 0},
        {SYS_fsync, -1},
        {SYS_futex, 0, -1, 0, 0, 0},
        {SYS_mremap, 0, 0, 0, 0, 0},
        {SYS_io_uring_setup, 0, 0},
    };

    (void)unused;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        const long *c = calls[i];
        (void)fl_call(c[0], c[1], c[2], c[3], c[4], c[5]);
    }
    return TRIED;
}

/* True: none of them kills. The child sends no signal when it ends, and no wait of the program's
 * sees it. */
static bool try_all(void)
{
    enum { RW = PROT_READ | PROT_WRITE, ANON = MAP_PRIVATE | MAP_ANONYMOUS };
    int status = 0;
    long at = fl_call(SYS_mmap, 0, TRIAL_STACK, RW, ANON, -1, 0);
    char *stack = (char *)at; /* NOLINT(performance-no-int-to-ptr) */

    if (at < 0) {
        return false;
    }
    uint64_t signals = fl_signals_block();
    int child = __clone(make_all, stack + TRIAL_STACK, CLONE_VM | CLONE_VFORK, NULL);
    bool ended = child > 0 && fl_call(SYS_wait4, child, &status, __WALL, 0) == child;
    fl_signals_restore(signals);
    (void)fl_call(SYS_munmap, stack, TRIAL_STACK);
    return ended && WIFEXITED(status) && WEXITSTATUS(status) == TRIED;
}

void fl_sys_note_confinement(void)
{
    struct status own;

    if (read_status("/proc/self/status", &own) && own.mode != 0) {
        fl_sys_confine(!is_a_container_s(&own) || !try_all());
    }
}
