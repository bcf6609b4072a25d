/* How the worker sleeps and is woken; and descriptors to wait for, in a table of its own.
 *
 * Other threads do not see that table, so they wake by a signal to the one thread, which blocks it
 * and takes it by sigtimedwait, or polls a signalfd where it waits for other descriptors too. Which
 * signal? A signalfd also takes what was sent to the whole process: with SIGURG, say, we would take
 * from a program what it waits for (PostgreSQL's latches are SIGURG in a signalfd). And a pending
 * signal that is ignored by default is dropped when a program sets its action. So it is the
 * kernel's first real-time signal, 32, which the C library keeps for thread cancellation: it lets
 * no program wait for it, sends it to single threads alone, and the worker is never cancelled. A
 * thread that has got a seccomp filter since boot does none of this: see confined.c. Sources:
 * close_range(2), signalfd(2), tgkill(2), ppoll(2), nptl(7). */
#include "sys/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef CLOSE_RANGE_UNSHARE
#define CLOSE_RANGE_UNSHARE (1u << 1)
#endif

enum { WAKE_SIGNAL = 32 };
static const uint64_t wake_set = 1ull << (WAKE_SIGNAL - 1); /* the kernel's form of a signal set */

static int answer(long rc)
{
    return rc >= 0 ? 0 : (int)rc;
}

static int linux_own_table(void)
{
    return fl_sys_is_confined() ? -EPERM
                                : answer(fl_call(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE));
}

static int linux_close(int fd)
{
    return answer(fl_call(SYS_close, fd));
}

static int linux_take(int fd)
{
    char bytes[sizeof(struct signalfd_siginfo)]; /* of a signalfd: one signal */

    (void)fl_call(SYS_lseek, fd, 0L, SEEK_SET);
    return answer(fl_call(SYS_read, fd, bytes, sizeof bytes));
}

static int linux_wake_send(int pid, int tid)
{
    return fl_sys_is_confined() ? -EPERM : answer(fl_call(SYS_tgkill, pid, tid, WAKE_SIGNAL));
}

/* The C library's own call would leave this signal out of the set. */
static int linux_wake_open(int *out_fd)
{
    int rc = answer(fl_call(SYS_rt_sigprocmask, SIG_BLOCK, &wake_set, NULL, sizeof wake_set));

    if (rc != 0) {
        return rc;
    }
    long fd = fl_call(SYS_signalfd4, -1, &wake_set, sizeof wake_set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (fd < 0) {
        return (int)fd;
    }
    rc = linux_wake_send(fl_call_pid(), fl_call_tid());
    if (rc == 0) {
        rc = linux_take((int)fd);
    }
    if (rc != 0) {
        (void)linux_close((int)fd);
        return rc;
    }
    *out_fd = (int)fd;
    return 0;
}

static int linux_await_wake(uint64_t timeout_ns)
{
    struct timespec t = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    struct timespec *limit = timeout_ns == UINT64_MAX ? NULL : &t;

    return answer(fl_call(SYS_rt_sigtimedwait, &wake_set, NULL, limit, sizeof wake_set));
}

static int linux_open(const char *path, bool writable, int *out_fd)
{
    int flags = (writable ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC;

    *out_fd = -1;
    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    long fd = fl_call(SYS_openat, AT_FDCWD, path, flags);
    *out_fd = fd >= 0 ? (int)fd : -1;
    return answer(fd);
}

static int linux_counter(int *out_fd)
{
    long fd = fl_call(SYS_eventfd2, 0u, EFD_NONBLOCK | EFD_CLOEXEC);

    *out_fd = fd >= 0 ? (int)fd : -1;
    return answer(fd);
}

static int linux_tell(int fd, const char *text, size_t len)
{
    return answer(fl_call(SYS_write, fd, text, len));
}

static int linux_poll(struct pollfd *p, unsigned n, uint64_t timeout_ns)
{
    struct timespec t = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    struct timespec *limit = timeout_ns == UINT64_MAX ? NULL : &t;

    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    long ready = fl_call(SYS_ppoll, p, n, limit, NULL, 0L);
    return (int)ready;
}

/* Written once, for the constant and for the copy that tests overwrite. */
#define LINUX_TABLE                                                                                \
    {                                                                                              \
        .own_table = linux_own_table, .wake_open = linux_wake_open, .wake_send = linux_wake_send,  \
        .await_wake = linux_await_wake, .open = linux_open, .counter = linux_counter,              \
        .tell = linux_tell, .take = linux_take, .close = linux_close, .poll = linux_poll           \
    }

const struct fl_events fl_events_linux = LINUX_TABLE;
struct fl_events fl_events = LINUX_TABLE;
