/* Who helps to populate where the system refuses: each refusal is made by a seccomp filter, in a
 * child of its own. And what a child has that was forked in the middle of it. */
#include "cases.h"
#include "unit/crew_fixture.h"

#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { KILLED = 200, WITH_RING = 201, POPULATE_WRITE = 23 };

static bool uring_here;

static void refuse_threads(void)
{
    refuse(SYS_clone3, SECCOMP_RET_ERRNO | ENOSYS, -1);
    refuse(SYS_clone, SECCOMP_RET_ERRNO | EPERM, -1);
}

static int (*run)(void);

static int settle_and_run(void)
{
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    fl_home_settle();
    return run();
}

/* What a child returned, or KILLED when it was killed for a call. */
static int answer_of(int status)
{
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

static int (*run_inside)(void);

static int boot_and_run(void)
{
    fl_sys_load();
    fl_sys_boot();
    fl_home_settle();
    return run_inside();
}

/* Runs f in a child that boots under the filter which its parent has too. */
static int child_of_a_container(int (*f)(void))
{
    run_inside = f;
    return answer_of(status_of_child(NULL, boot_and_run));
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

static int lethal_in_a_container(void)
{
    refuse(SYS_userfaultfd, SECCOMP_RET_KILL_PROCESS, -1);
    return child_of_a_container(without_threads);
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

static int on_an_old_kernel(void)
{
    refuse(SYS_madvise, SECCOMP_RET_ERRNO | EINVAL, POPULATE_WRITE);
    refuse(SYS_io_uring_setup, SECCOMP_RET_KILL_PROCESS, -1);
    refuse(SYS_clone3, SECCOMP_RET_KILL_PROCESS, -1);
    refuse(SYS_clone, SECCOMP_RET_KILL_PROCESS, -1);
    return populate_as(FL_CREW_URING);
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

CASE(each_refusal_has_its_answer)
{
    static const struct {
        const char *what;
        int (*f)(void);
        int answer;
    } table[] = {
        {"refused io_uring means threads, and is asked for once", in_a_container, FL_CREW_THREADS},
        {"a program that confines itself is not killed for helpers", in_a_sandbox_of_its_own,
         100 + EPERM},
        {"a filter around the program alone is not tried", in_a_sandbox_around_it, 100 + EPERM},
        {"a container that kills is tried by a child alone", lethal_in_a_container, 100 + EPERM},
        {"refused threads, too, mean alone", without_either, FL_CREW_ALONE},
        {"want of a descriptor is of the moment", without_descriptors, WITH_RING},
        {"a kernel that cannot says so before a helper is called", on_an_old_kernel, 100 + EINVAL},
        {"threads of the program have no rings", on_a_program_s_thread, 0},
        {"threads of ours have", on_a_thread_of_ours, FL_HAVE_URING ? KILLED : 0},
        {"a handler may fork meanwhile", fork_in_a_handler, 0},
    };

    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        int wanted = table[i].answer != WITH_RING ? table[i].answer
                     : uring_here                 ? FL_CREW_URING
                                                  : FL_CREW_THREADS;
        run = table[i].f;
        int answer = answer_of(status_of_child(NULL, settle_and_run));
        if (answer != wanted) {
            fail_msg("%s: %d, not %d", table[i].what, answer, wanted);
        }
    }
}

int main(void)
{
    if (!can_share("test_sys_crew_refused")) {
        return CANNOT_SHARE;
    }
    uring_here = has_uring();
    return RUN_CASES();
}
