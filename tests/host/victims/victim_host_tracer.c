/* Runs a program and notes its system calls. Never preloaded itself; ends as the program ends.
 *
 *   victim_host_tracer MODE OUT LIST NAME=VALUE... -- PROGRAM ARG...
 *
 * MODE `all`: writes the numbers of all calls to OUT, with commas between; `confined`: of those
 * after the program's prctl(PR_SET_NO_NEW_PRIVS). `outside`: a line for each call, and thread's
 * name, that a filter reports by SECCOMP_RET_TRACE; such a filter with LIST is installed before
 * PROGRAM starts, unless LIST is "-". The calls are made all the same. NAME=VALUE is in the
 * program's environment alone. */
#include "victim.h"

#include "filter.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/ptrace.h>

#include <linux/ptrace.h> /* behind the other of that name */

enum { SYSCALL_STOP = SIGTRAP | 0x80, LINES = 64 };

static bool outside, is_confined;
static bool seen[FILTER_CALLS];
static char line[LINES][96];
static size_t lines;

static void note_outside(pid_t tid, const struct __ptrace_syscall_info *info)
{
    char path[64], name[8192], text[96];

    snprintf(path, sizeof path, "/proc/%d/comm", tid);
    name[strcspn(proc_text(name, path, ""), "\n")] = '\0';
    /* The first two arguments where they are no addresses: the same call is noted once. */
    unsigned long first = info->seccomp.args[0] & 0xffffffff, second = info->seccomp.args[1];
    snprintf(text, sizeof text, "%.31s: call %d (%#lx, %#lx)", name, (int)info->seccomp.nr,
             first < 0x10000 || info->seccomp.nr == SYS_prctl ? first : 0,
             second < 0x10000 ? second : 0);
    for (size_t i = 0; i < lines; i++) {
        if (strcmp(line[i], text) == 0) {
            return;
        }
    }
    if (lines < LINES) {
        strcpy(line[lines++], text);
    }
}

static void look(pid_t tid)
{
    struct __ptrace_syscall_info info;

    if (ptrace(PTRACE_GET_SYSCALL_INFO, tid, sizeof info, &info) <= 0) {
        return;
    }
    if (info.op == PTRACE_SYSCALL_INFO_SECCOMP) {
        note_outside(tid, &info);
    } else if (info.op == PTRACE_SYSCALL_INFO_ENTRY && info.entry.nr < FILTER_CALLS) {
        seen[info.entry.nr] |= is_confined;
        is_confined |= info.entry.nr == SYS_prctl && info.entry.args[0] == PR_SET_NO_NEW_PRIVS;
    }
}

static void write_out(const char *path)
{
    FILE *f = fopen(path, "w");

    CHECK(f != NULL);
    for (size_t i = 0; i < lines; i++) {
        fprintf(f, "%s\n", line[i]);
    }
    for (unsigned nr = 0; !outside && nr < FILTER_CALLS; nr++) {
        if (seen[nr]) {
            fprintf(f, "%u,", nr);
        }
    }
    CHECK(fclose(f) == 0);
}

/* Until the program has ended; its wait status. */
static int follow(pid_t child)
{
    enum __ptrace_request go = outside ? PTRACE_CONT : PTRACE_SYSCALL;
    int status, result = 0;

    for (pid_t tid; (tid = waitpid(-1, &status, __WALL)) > 0;) {
        if (!WIFSTOPPED(status)) {
            if (tid == child) {
                result = status;
            }
            continue;
        }
        int event = status >> 16, signal = WSTOPSIG(status);
        if (signal == SYSCALL_STOP || event == PTRACE_EVENT_SECCOMP) {
            look(tid);
        }
        bool is_theirs = event == 0 && signal != SYSCALL_STOP;
        ptrace(go, tid, NULL, is_theirs ? (long)signal : 0);
    }
    return result;
}

static _Noreturn void become(const char *list, char **argv, int ready)
{
    static struct filter f;
    char byte;

    CHECK(read(ready, &byte, 1) == 1);
    close(ready);
    for (; strcmp(*argv, "--") != 0; argv++) {
        putenv(*argv);
    }
    argv++;
    filter_make(&f, list, SECCOMP_RET_TRACE);
    if (outside && strcmp(list, "-") != 0 && filter_install(&f) != 0) {
        _exit(98);
    }
    execvp(argv[0], argv);
    _exit(99);
}

int main(int argc, char **argv)
{
    int fds[2];

    CHECK(argc > 5 && pipe(fds) == 0);
    outside = strcmp(argv[1], "outside") == 0;
    is_confined = strcmp(argv[1], "all") == 0;
    pid_t child = fork();
    if (child == 0) {
        close(fds[1]);
        become(argv[3], argv + 4, fds[0]);
    }
    long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                   PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP |
                   PTRACE_O_EXITKILL;
    CHECK(ptrace(PTRACE_SEIZE, child, NULL, options) == 0);
    CHECK(outside || ptrace(PTRACE_INTERRUPT, child, NULL, NULL) == 0);
    CHECK(write(fds[1], "x", 1) == 1);
    int status = follow(child);
    write_out(argv[2]);
    if (WIFSIGNALED(status)) {
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    return WEXITSTATUS(status);
}
