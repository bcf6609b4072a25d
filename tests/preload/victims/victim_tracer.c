/* Holds up, or ends, one thread of another process. Started by victim_stuck, never preloaded.
 *
 *   victim_tracer MODE PID TID N
 *
 * hold: keeps the thread stopped where it would sleep. kill: ends it there.
 * hold_in, kill_in: the same as it enters the N-th kind of system call that it makes, futex apart.
 * slow: stops it for a while, again and again. stop: stops and continues the whole process, then its group, by signals.
 * Says "ready" on stdout when the thread may be counted on to be in its state (hold, kill) or is followed, then what was
 * done and in which call. Ends when the thread does. */
#include "victim.h"

#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include <linux/ptrace.h>

enum { SYSCALL_STOP = SIGTRAP | 0x80, KINDS = 64, STOPS = 200 };

static pid_t pid, tid;

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
    struct __ptrace_syscall_info info;
    int signal = 0;

    for (;;) {
        /* Signals of its own it has none; what stops it besides calls is not passed on. */
        if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL) != 0 || !wait_for_stop(&signal)) {
            return -1;
        }
        if (signal == SYSCALL_STOP) {
            CHECK(ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) > 0);
            if (info.op == PTRACE_SYSCALL_INFO_ENTRY) {
                return (long)info.entry.nr;
            }
        }
    }
}

/* restart_syscall: a sleep with an end that seizing the thread interrupted. */
static int sleeps_in(long nr)
{
    static const long calls[] = {
        SYS_futex,     SYS_restart_syscall, SYS_io_uring_enter, SYS_poll,       SYS_ppoll,
        SYS_read,      SYS_select,          SYS_pselect6,       SYS_epoll_wait, SYS_epoll_pwait,
        SYS_nanosleep, SYS_clock_nanosleep,
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

static long follow_to_kind(size_t n)
{
    static long seen[KINDS];
    size_t kinds = 0;

    for (long nr; (nr = next_call()) >= 0;) {
        size_t k = 0;
        while (k < kinds && seen[k] != nr) {
            k++;
        }
        if (k == kinds && nr != SYS_futex && nr != SYS_restart_syscall && kinds < KINDS) {
            seen[kinds++] = nr;
            if (kinds == n) {
                return nr;
            }
        }
    }
    return -1;
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
#ifdef __x86_64__
    CHECK(ptrace(PTRACE_POKEUSER, tid, offsetof(struct user, regs.orig_rax), SYS_exit) == 0);
#else
#error "how the number of a call is changed on this architecture"
#endif
    CHECK(ptrace(PTRACE_CONT, tid, NULL, NULL) == 0);
    stay();
}

static void act(const char *mode, long nr)
{
    if (nr < 0) {
        return;
    }
    if (strncmp(mode, "kill", 4) == 0) {
        end_thread();
        printf("done in %ld\n", nr);
    } else {
        printf("done in %ld\n", nr);
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

/* As `kill -STOP` and `kill -CONT` with the thread's number, which the kernel takes for the whole process. */
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
        act(mode, follow_to_kind(strtoul(argv[4], NULL, 10)));
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
