/* Who helps to populate where the system refuses: each refusal is made by a seccomp filter, in a
 * child of its own. And what a child has that was forked in the middle of it. */
#include "cases.h"
#include "unit/crew_fixture.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KILLED = 200, POPULATE_WRITE = 23 };

static bool uring_here;

/* `nr` gets `answer`, where its third argument is `third` (any, if negative). The child is of this
 * machine: that the number means what it means here is not looked at. */
static void refuse(int nr, unsigned answer, int third)
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

static void refuse_threads(void)
{
    refuse(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS, -1);
    refuse(SYS_clone, SECCOMP_RET_ERRNO | EPERM, -1);
}

/* Runs f in a child. What it returned, or KILLED when it was killed for a call. */
static int child(int (*f)(void))
{
    int status;

    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        fl_home_settle();
        _exit(f());
    }
    assert_true(pid > 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) {
        return KILLED;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The kind that helped; 100 + errno for a refusal; 99 when pages are missing. */
static int populate_as(enum fl_crew_kind allowed)
{
    struct fl_range r = map(MIB(SHARED));
    enum fl_crew_kind used;
    int rc = fl_crew_populate(r, 2, allowed, &used);
    int answer = rc != 0 ? 100 - rc : resident(r) != r.len ? 99 : (int)used;

    assert_int_equal(fl_sys_linux.unmap(r), 0);
    return answer;
}

/* Runs f in a child that boots under the filter which its parent has too. */
static int child_of_a_container(int (*f)(void))
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        fl_sys_load();
        fl_sys_boot();
        fl_home_settle();
        _exit(f());
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : 97;
}

static int populate_twice(void)
{
    int first = populate_as(FL_CREW_URING);
    refuse(SYS_io_uring_setup, SECCOMP_RET_KILL_PROCESS, -1);
    int second = populate_as(FL_CREW_URING);
    return first == second ? first : 98;
}

static int in_a_container(void)
{
    refuse(SYS_io_uring_setup, SECCOMP_RET_ERRNO | EPERM, -1);
    return child_of_a_container(populate_twice);
}

CASE(refused_io_uring_means_threads_and_is_asked_for_once)
{
    assert_int_equal(child(in_a_container), FL_CREW_THREADS);
}

static int in_a_sandbox_of_its_own(void)
{
    int before = populate_as(FL_CREW_URING);

    refuse(SYS_io_uring_setup, SECCOMP_RET_KILL_PROCESS, -1);
    refuse(SYS_clone3, SECCOMP_RET_KILL_PROCESS, -1);
    refuse(SYS_clone, SECCOMP_RET_KILL_PROCESS, -1);
    refuse(SYS_madvise, SECCOMP_RET_KILL_PROCESS, POPULATE_WRITE);
    fl_sys_confine(true);
    int after = populate_as(FL_CREW_URING);
    return before == (uring_here ? FL_CREW_URING : FL_CREW_THREADS) ? after : 98;
}

CASE(a_program_that_confines_itself_is_not_killed_for_helpers)
{
    assert_int_equal(child(in_a_sandbox_of_its_own), 100 + EPERM);
}

static int without_threads(void)
{
    refuse_threads();
    return populate_as(FL_CREW_URING);
}

static int without_either(void)
{
    refuse(SYS_io_uring_setup, SECCOMP_RET_ERRNO | ENOSYS, -1);
    return child_of_a_container(without_threads);
}

/* Around one program alone: its parent has no such filter. */
static int in_a_sandbox_around_it(void)
{
    refuse(SYS_clone, SECCOMP_RET_KILL_PROCESS, -1);
    refuse(SYS_madvise, SECCOMP_RET_KILL_PROCESS, POPULATE_WRITE);
    fl_sys_load();
    fl_sys_boot();
    return populate_as(FL_CREW_URING);
}

CASE(a_filter_around_the_program_alone_is_not_tried)
{
    assert_int_equal(child(in_a_sandbox_around_it), 100 + EPERM);
}

static int lethal_in_a_container(void)
{
    refuse(SYS_userfaultfd, SECCOMP_RET_KILL_PROCESS, -1);
    return child_of_a_container(without_threads);
}

CASE(a_container_that_kills_is_tried_by_a_child_alone)
{
    assert_int_equal(child(lethal_in_a_container), 100 + EPERM);
}

CASE(refused_threads_too_mean_alone)
{
    assert_int_equal(child(without_either), FL_CREW_ALONE);
}

static int without_descriptors(void)
{
    struct rlimit now, none = {0, 0};

    (void)getrlimit(RLIMIT_NOFILE, &now);
    none.rlim_max = now.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &none);
    int first = populate_as(FL_CREW_URING);
    (void)setrlimit(RLIMIT_NOFILE, &now);
    int second = populate_as(FL_CREW_URING);
    return first == FL_CREW_THREADS ? second : 98;
}

CASE(want_of_a_descriptor_is_of_the_moment)
{
    assert_int_equal(child(without_descriptors), uring_here ? FL_CREW_URING : FL_CREW_THREADS);
}

static int on_an_old_kernel(void)
{
    refuse(SYS_madvise, SECCOMP_RET_ERRNO | EINVAL, POPULATE_WRITE);
    refuse(SYS_io_uring_setup, SECCOMP_RET_KILL_PROCESS, -1);
    refuse(SYS_clone3, SECCOMP_RET_KILL_PROCESS, -1);
    refuse(SYS_clone, SECCOMP_RET_KILL_PROCESS, -1);
    return populate_as(FL_CREW_URING);
}

CASE(a_kernel_that_cannot_says_so_before_a_helper_is_called)
{
    assert_int_equal(child(on_an_old_kernel), 100 + EINVAL);
}

static int on_a_program_s_thread(void)
{
    struct fl_range r = map(MIB(SHARED));

    refuse(SYS_io_uring_setup, SECCOMP_RET_KILL_PROCESS, -1);
    return fl_sys_linux.populate_shared(r, 2) == 0 && resident(r) == r.len ? 0 : 99;
}

static int on_a_thread_of_ours(void)
{
    fl_thread = FL_THREAD_APART;
    return on_a_program_s_thread();
}

CASE(only_threads_of_ours_have_rings)
{
    assert_int_equal(child(on_a_program_s_thread), 0);
    assert_int_equal(child(on_a_thread_of_ours), FL_HAVE_URING ? KILLED : 0);
}

static volatile sig_atomic_t forked;

static void fork_once(int sig)
{
    (void)sig;
    if (forked == 0) {
        forked = 1;
        forked = fork() == 0 ? 2 : 3;
    }
}

/* The helpers are not in the child: it must neither wait for them nor count on them. */
static int fork_in_a_handler(void)
{
    struct fl_range r = map(MIB(SHARED));
    int status = 0;

    (void)signal(SIGALRM, fork_once);
    for (int us = 500; us < 20000; us += 1500) {
        struct itimerval soon = {.it_value = {0, us}};
        empty(r);
        forked = 0;
        (void)setitimer(ITIMER_REAL, &soon, NULL);
        int rc = fl_crew_populate(r, 2, FL_CREW_THREADS, NULL);
        bool whole = rc == 0 && resident(r) == r.len;
        if (forked == 2) {
            _exit(whole ? 0 : 1);
        }
        while (forked == 0) {
            pause();
        }
        if (forked == 2) {
            _exit(0);
        }
        if (!whole || wait(&status) < 0 || status != 0) {
            return 1;
        }
    }
    return 0;
}

CASE(a_handler_may_fork_meanwhile)
{
    assert_int_equal(child(fork_in_a_handler), 0);
}

int main(void)
{
    if (!can_share("test_sys_crew_refused")) {
        return CANNOT_SHARE;
    }
    uring_here = has_uring();
    return RUN_CASES();
}
