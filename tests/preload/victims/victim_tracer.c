/* Holds up, or ends, one thread of another process. Started by victim_stuck, never preloaded.
 *
 *   victim_tracer MODE PID TID SEEN
 *
 * hold: keeps the thread stopped where it would sleep. kill: ends it there.
 * hold_in, kill_in: the same as it enters a kind of system call that is not in SEEN, futex apart. A
 * kind is the call's number and, of calls that are many in one, what it is to do: "28:11"; SEEN has
 * a comma before and behind each.
 * slow: stops it for a while, again and again. stop: stops and continues the whole process, then
 * its group, by signals. Says "ready" on stdout when the thread may be counted on to be in its
 * state (hold, kill) or is followed; on stderr what was done and in which call. Ends when the
 * thread does. */
#include "victim.h"

#include <elf.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <time.h>

#include <linux/ptrace.h>

enum { SYSCALL_STOP = SIGTRAP | 0x80, STOPS = 200 };

static pid_t pid, tid;
static struct __ptrace_syscall_info call; /* the one it is about to make */

static void nap_us(long us)
{
    const struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

/* Until its next stop. False: it has ended. */
static int wait_for_stop(int *signal)
{
    int status;
    CHECK(waitpid(tid, &status, __WALL) == tid);
    *signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
    return WIFSTOPPED(status);
}

static int seize(void)
{
    int signal;
    CHECK(ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACESYSGOOD) == 0);
    return ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 && wait_for_stop(&signal);
}

/* On to the next call that it enters; its number. -1: it has ended. */
static long next_call(void)
{
    int signal = 0;

    for (;;) {
        /* Signals of its own it has none; what stops it besides calls is not passed on. */
        if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL) != 0 || !wait_for_stop(&signal)) {
            return -1;
        }
        if (signal == SYSCALL_STOP) {
            CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof call, &call) > 0);
            if (call.op == PTRACE_SYSCALL_INFO_ENTRY) {
                return (long)call.entry.nr;
            }
        }
    }
}

/* restart_syscall: a sleep with an end that seizing the thread interrupted. */
static int sleeps_in(long nr)
{
    static const long calls[] = {
        SYS_futex,       SYS_restart_syscall, SYS_io_uring_enter,  SYS_read,  SYS_pselect6,
        SYS_epoll_pwait, SYS_nanosleep,       SYS_clock_nanosleep, SYS_ppoll,
#ifdef SYS_poll /* newer machines have the longer forms alone */
        SYS_poll,        SYS_select,          SYS_epoll_wait,
#endif
    };

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        if (calls[i] == nr) {
            return 1;
        }
    }
    return 0;
}

static long follow_to_sleep(void)
{
    long nr = next_call();

    while (nr >= 0 && !sleeps_in(nr)) {
        nr = next_call();
    }
    return nr;
}

static const char *kind_of(const struct __ptrace_syscall_info *info)
{
    static char kind[64];
    long nr = (long)info->entry.nr;
    unsigned long what = nr == SYS_madvise ? info->entry.args[2]
                         : nr == SYS_ioctl || nr == SYS_prctl || nr == SYS_fcntl
                             ? info->entry.args[nr == SYS_prctl ? 0 : 1]
                             : 0;
    snprintf(kind, sizeof kind, what != 0 ? ",%ld:%lu," : ",%ld,", nr, what);
    return kind;
}

static const char *follow_to_new_kind(const char *seen)
{
    for (long nr; (nr = next_call()) >= 0;) {
        const char *kind = kind_of(&call);
        if (nr != SYS_futex && nr != SYS_restart_syscall && strstr(seen, kind) == NULL) {
            return kind;
        }
    }
    return NULL;
}

static void stay(void)
{
    int signal;
    while (wait_for_stop(&signal)) {
    }
}

/* The call that it is about to make becomes exit. */
static void end_thread(void)
{
#if defined(__x86_64__)
    CHECK(ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, regs.orig_rax), SYS_exit) == 0);
#elif defined(__aarch64__)
    int nr = SYS_exit;
    struct iovec from = {&nr, sizeof nr};
    CHECK(ptrace(PTRACE_SETREGSET, tid, NT_ARM_SYSTEM_CALL, &from) == 0);
#else
#error "how the number of a call is changed on this architecture"
#endif
    CHECK(ptrace(PTRACE_CONT, tid, NULL, NULL) == 0);
    stay();
}

static void act(const char *mode, const char *kind)
{
    if (kind == NULL) {
        return;
    }
    if (strncmp(mode, "kill", 4) == 0) {
        end_thread();
        dprintf(2, "done in %s\n", kind);
    } else {
        dprintf(2, "done in %s\n", kind);
        stay();
    }
}

static void slow(void)
{
    int signal;
    do {
        nap_us(4000);
        if (ptrace(PTRACE_CONT, tid, NULL, NULL) != 0) {
            break;
        }
        nap_us(1000);
    } while (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) == 0 && wait_for_stop(&signal));
}

/* As `kill -STOP` and `kill -CONT` with the thread's number, which the kernel takes for the whole
 * process. */
static void stop_and_continue(void)
{
    for (int i = 0; i < STOPS && getppid() == pid; i++) {
        pid_t whom = i < STOPS / 2 ? tid : -pid;
        kill(whom, SIGSTOP);
        nap_us(1000 + i % 7 * 500);
        kill(whom, SIGCONT);
        nap_us(1000 + i % 5 * 1000);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    const char *mode = argv[1];
    pid = atoi(argv[2]);
    tid = atoi(argv[3]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(mode, "stop") == 0) {
        puts("ready");
        stop_and_continue();
        return 0;
    }
    CHECK(seize());
    if (strcmp(mode, "slow") == 0) {
        puts("ready");
        slow();
    } else if (strchr(mode, '_') != NULL) {
        puts("ready");
        act(mode, follow_to_new_kind(argv[4]));
    } else {
        long nr = follow_to_sleep();
        CHECK(nr >= 0);
        if (strcmp(mode, "kill") == 0) {
            end_thread();
            puts("ready");
        } else {
            puts("ready");
            stay();
        }
    }
    return 0;
}
