/* What a process pays that makes no large request, over what glibc costs it: system calls, page
 * faults, memory. Counts, of the least of a few runs. */
#include "run.h"

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum {
    CALLS_MORE = 14,
    FAULTS_MORE = 20,
    KIB_SHARE = 139, /* hundredths: how much is mapped around a fault is the page cache's */
    RUNS = 20
};

struct cost {
    long calls, faults, kib;
};

static void become(const char *preload)
{
    static char entry[4200];
    static char program[] = "/bin/true";
    char *const argv[] = {program, NULL};
    char *const with[] = {entry, NULL}, *const without[] = {NULL};

    (void)snprintf(entry, sizeof entry, "LD_PRELOAD=%s", preload);
    (void)execve(argv[0], argv, preload[0] != '\0' ? with : without);
    _exit(127);
}

/* The most that was in memory, of the program alone: wait4(2) tells what there was before exec. */
static long most_kib(pid_t pid)
{
    return (long)fl_read_number(text_as("/proc/%d/status", (int)pid), "VmHWM:");
}

/* From the stop after exec on. -1: processes may not be traced here. */
static long count_calls(const char *preload, long *out_kib)
{
    long stops = 0;
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) {
            _exit(126);
        }
        become(preload);
    }
    while (waitpid(pid, &status, 0) == pid && WIFSTOPPED(status)) {
        bool ends = status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8);
        if (stops == 0) {
            (void)ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACEEXIT);
        }
        *out_kib = ends ? most_kib(pid) : *out_kib;
        stops += WSTOPSIG(status) == SIGTRAP && !ends;
        (void)ptrace(PTRACE_SYSCALL, pid, NULL, NULL);
    }
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? stops / 2 : -1;
}

static struct cost measure(const char *preload)
{
    struct cost least = {.faults = 1L << 40, .kib = -1};

    least.calls = count_calls(preload, &least.kib);
    for (int i = 0; i < RUNS && least.calls >= 0; i++) {
        long kib = least.kib;
        (void)count_calls(preload, &kib);
        least.kib =
            kib < least.kib ? kib : least.kib; /* the kernel maps more around a fault or less */
    }
    for (int i = 0; i < RUNS; i++) {
        struct rusage u;
        int status = 0;
        pid_t pid = vfork();
        if (pid == 0) {
            become(preload);
        }
        assert_int_equal(wait4(pid, &status, 0, &u), pid);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        least.faults = u.ru_minflt < least.faults ? u.ru_minflt : least.faults;
    }
    print_message("           %s: %ld calls, %ld faults, %ld KiB\n",
                  preload[0] != '\0' ? "faultless" : "glibc", least.calls, least.faults, least.kib);
    return least;
}

CASE(a_process_without_large_requests_pays_little)
{
    struct cost glibc = measure(""), ours = measure(FL_LIB_PATH);

    assert_true(ours.faults <= glibc.faults + FAULTS_MORE);
    if (glibc.calls < 0) {
        print_message("           only faults are counted: processes may not be traced here\n");
        return;
    }
    assert_true(100 * ours.kib <= KIB_SHARE * glibc.kib);
    assert_true(ours.calls <= glibc.calls + CALLS_MORE);
}

CASES_MAIN()
