/* Children of a process whose threads are allocating. */
#include "victim.h"

#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <ucontext.h>

extern char **environ;
static atomic_bool stop;

static void *churn(void *arg)
{
    uint64_t seed = (uintptr_t)arg + 1;
    while (!stop) {
        size_t n = 10 * KIB + next_random(&seed) % (2 * MIB);
        char *p = written(n, seed);
        CHECK(is_stamped(p, n, seed));
        free(p);
    }
    return NULL;
}

static void *work_once(void *arg)
{
    for (size_t i = 0; i < 5; i++) {
        size_t n = 100 * KIB + i * MIB;
        char *p = written(n, i);
        CHECK(is_stamped(p, n, i));
        free(p);
    }
    return arg;
}

static void live_in_child(char *inherited, int depth)
{
    pthread_t t[2];
    CHECK(is_stamped(inherited, 3 * MIB, 9));
    stamp(inherited, 3 * MIB, 10);
    char *grown = realloc(inherited, 5 * MIB);
    CHECK(is_stamped_part(grown, 3 * MIB, 3 * MIB, 10));
    start_threads(t, 2, work_once);
    work_once(NULL);
    join_threads(t, 2);
    if (depth > 0) {
        stamp(grown, 3 * MIB, 9);
        CHECK(grown[3 * MIB - 1] == 9);
        IN_CHILD
        {
            live_in_child(grown, depth - 1);
        }
    }
    free(grown);
}

static void forks(int n, int depth, int by_exit)
{
    pthread_t t[3];
    char *p = written(3 * MIB, 9);
    start_threads(t, 3, churn);
    for (int i = 0; i < n; i++) {
        IN_CHILD
        {
            live_in_child(p, depth);
            if (by_exit) {
                exit(0);
            }
        }
        CHECK(is_stamped(p, 3 * MIB, 9));
    }
    stop = 1;
    join_threads(t, 3);
    free(p);
}

MODE_IS(nested, forks(5, 3, 0))
MODE_IS(by_exit, forks(20, 0, 1))

/* The child frees what threads that it does not have had in their caches. */
MODE(others_blocks)
{
    enum { N = 64 };
    char *p[N];
    for (size_t i = 0; i < 4; i++) {
        in_thread(work_once, NULL);
    }
    for (size_t i = 0; i < N; i++) {
        p[i] = written(100 * KIB * (i + 1), i);
    }
    IN_CHILD
    {
        for (size_t i = 0; i < N; i++) {
            CHECK(is_stamped(p[i], 100 * KIB * (i + 1), i));
            memset(p[i], 0xee, 100 * KIB);
            free(p[i]);
        }
        malloc_trim(0);
    }
    for (size_t i = 0; i < N; i++) {
        CHECK(is_stamped(p[i], 100 * KIB * (i + 1), i));
        free(p[i]);
    }
}

static void with_churn(void (*f)(void))
{
    pthread_t t[2];
    start_threads(t, 2, churn);
    for (long i = 0; i < at_most(30); i++) {
        f();
    }
    stop = 1;
    join_threads(t, 2);
}
static char self[] = "/proc/self/exe", mode_after[] = "after_exec";
static char *const after[] = {self, mode_after, NULL};

static void one_vfork(void)
{
    pid_t pid = vfork();
    if (pid == 0) {
        execv(self, after);
        _exit(9);
    }
    ends_well(pid);
}
static void one_spawn(void)
{
    pid_t pid;
    CHECK(posix_spawn(&pid, self, NULL, NULL, after, environ) == 0);
    ends_well(pid);
}
static void one_system(void)
{
    CHECK(system("exit 0") == 0);
}
MODE_IS(vforks, with_churn(one_vfork))
MODE_IS(spawns, with_churn(one_spawn))
MODE_IS(systems, with_churn(one_system))
MODE_IS(after_exec, work_once(NULL))
MODE(exec_amid)
{
    pthread_t t;
    for (size_t i = 0; i < 3; i++) {
        CHECK(pthread_create(&t, NULL, churn, (void *)i) == 0);
    }
    usleep(20000);
    execv(self, after);
}

/* What is huge before a fork is huge after it, when the child has ended. */
MODE(keeps_huge)
{
    char *p = written(64 * MIB, 1);
    size_t before = huge_kib();
    pid_t pid = fork();
    if (pid == 0) {
        _exit(is_stamped(p, 64 * MIB, 1) ? 0 : 1);
    }
    ends_well(pid);
    stamp(p, 64 * MIB, 2);
    printf("before %zu after %zu\n", before, huge_kib());
    free(p);
}

/* A fork amid another one. In a handler of fork's that was there before all others: the last that
 * runs before a fork, and the first after it. */
static int forks_in_handler, steps_in_parent;

static void fork_once(void)
{
    IN_CHILD
    {
        work_once(NULL);
    }
}

/* In a handler of signals: after so many instructions, by the processor's trap flag. Negative: not
 * at all. */
static long fork_at, steps;

static void step(int on)
{
#if defined(__x86_64__)
    unsigned long flags = __builtin_ia32_readeflags_u64();
    __builtin_ia32_writeeflags_u64(on ? flags | 0x100 : flags & ~0x100ul);
#else
    (void)on;
#endif
}

static void on_step(int signal, siginfo_t *info, void *context)
{
    int saved = errno;
    (void)signal;
    (void)info;
    if (steps++ == fork_at) {
        fork_once();
#if defined(__x86_64__)
        ((ucontext_t *)context)->uc_mcontext.gregs[REG_EFL] &= ~0x100ll;
#endif
    }
    (void)context;
    errno = saved;
}

static void before_a_fork(void)
{
    step(0);
    if (forks_in_handler != 0) {
        forks_in_handler = 0;
        fork_once();
    }
}

static void after_a_fork(void)
{
    if (steps_in_parent != 0) {
        steps_in_parent = 0;
        step(1);
    }
}

static void before_all_others(void)
{
    CHECK(pthread_atfork(before_a_fork, after_a_fork, NULL) == 0);
}
__attribute__((section(".preinit_array"),
               used)) static void (*const first)(void) = before_all_others;

MODE(amid_a_fork)
{
    work_once(NULL);
    for (int i = 0; i < 2; i++) {
        forks_in_handler = 1;
        fork_once();
        work_once(NULL);
    }
}

/* Returns how many instructions fork's handlers before it have, or those after it in the parent. */
static long fork_in_steps(int in_parent, long at)
{
    fork_at = at;
    steps = 0;
    steps_in_parent = in_parent;
    step(!in_parent);
    pid_t pid = fork();
    step(0);
    if (pid == 0) {
        work_once(NULL);
        _exit(0);
    }
    ends_well(pid);
    return steps;
}

/* The first are looked at closely. */
MODE(amid_a_fork_by_signal)
{
    enum { CLOSELY = 700, EVERY = 7, OTHERS = 16 };
    struct sigaction on = {.sa_sigaction = on_step, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGTRAP, &on, NULL) == 0);
    work_once(NULL);
    for (int in_parent = 0; in_parent < 2; in_parent++) {
        long n = fork_in_steps(in_parent, -1);
        for (long at = 0; at < n; at += at < CLOSELY ? EVERY : n / OTHERS + EVERY) {
            (void)fork_in_steps(in_parent, at);
        }
    }
    work_once(NULL);
}

MAIN()
