/* The worker's descriptors and signals and the program's do not get in each other's way. */
#include "seccomp.h"
#include "worker.h"

#include <signal.h>
#include <sys/mman.h>

/* What descriptor `fd` of the worker leads to; false: nothing. */
static int leads_to(int fd, char *to, size_t size)
{
    char name[32];
    snprintf(name, sizeof name, "fd/%d", fd);
    ssize_t n = readlink(worker_file(name), to, size - 1);
    to[n > 0 ? n : 0] = '\0';
    return n > 0;
}

/* How many descriptors of the worker lead to `what`; NULL: anywhere. */
static int worker_has(const char *what)
{
    int n = 0;
    char to[256];
    for (int fd = 0; fd < 64; fd++) {
        n += leads_to(fd, to, sizeof to) && (what == NULL || strcmp(to, what) == 0);
    }
    return n;
}

/* The end of a pipe that is for writing, which the worker might hold; `name` is its name. */
static void open_pipe(int fd[2], char *name, size_t size)
{
    CHECK(pipe(fd) == 0);
    snprintf(name, size, "/proc/self/fd/%d", fd[1]);
    ssize_t n = readlink(name, name, size - 1);
    CHECK(n > 0);
    name[n] = '\0';
}

static void end_pipe(const int fd[2])
{
    char text[2];
    CHECK(close(fd[1]) == 0);
    CHECK(read(fd[0], text, 1) == 0);
}

/* While memory is held: in its first lines the worker gets a table of its own. */
MODE(pipe_ends)
{
    int fd[2];
    char name[64];
    open_pipe(fd, name, sizeof name);
    use(64 * MIB);
    do {
        wait_for_worker();
        fl_between_looks();
    } while (worker_has(name));
    end_pipe(fd);
}

/* Where it cannot: one that has given memory back has its first lines behind it. */
MODE(pipe_is_shared)
{
    int fd[2], shared, any;
    char name[64], id[sizeof worker_id];
    open_pipe(fd, name, sizeof name);
    do {
        use(64 * MIB);
        wait_until_small(30);
        find_worker();
        memcpy(id, worker_id, sizeof id);
        shared = worker_has(name);
        any = worker_has(NULL);
        (void)find_worker();
    } while (any == 0 || strcmp(id, worker_id) != 0); /* it has ended meanwhile, or is about to */
    CHECK(shared == 2);                               /* both ends have one name */
    end_pipe(fd);
}

/* Where the worker shares the process's table it may read a file at that moment. */
static void make_file(int fd)
{
    for (int got; (got = memfd_create("file", 0)) != fd;) {
        CHECK(got > fd && close(got) == 0);
    }
}

/* Closes all it does not know, as daemons do; then its own files have the numbers. */
MODE(closes_all)
{
    enum { FILES = 16 };
    use(64 * MIB);
    wait_for_worker();
    for (int round = 0; round < 3; round++) {
        for (int fd = 0; fd < 1024; fd++) {
            close(fd);
        }
        for (int fd = 0; fd < FILES; fd++) {
            make_file(fd);
        }
        use(64 * MIB);
        use(30 * MIB);
        wait_until_small(30);
        for (int fd = 0; fd < FILES; fd++) {
            CHECK(lseek(fd, 0, SEEK_CUR) == 0 && lseek(fd, 0, SEEK_END) == 0);
        }
    }
}

/* Can this process wait for stalls? */
static int stalls_are_told(void)
{
    int fd = open("/proc/pressure/memory", O_RDWR | O_CLOEXEC);
    static const char trigger[] = "some 150000 2000000";
    int told = fd >= 0 && write(fd, trigger, sizeof trigger) == (ssize_t)sizeof trigger;
    close(fd);
    return told;
}

/* While memory is held, and no longer. */
MODE(watches)
{
    char *live = malloc(64 * MIB);
    int told = stalls_are_told();
    CHECK(live != NULL);
    memset(live, 1, 64 * MIB);
    for (int i = 0; i < 2; i++) {
        do { /* what is held goes back, and then it does not watch any more */
            use(64 * MIB);
            wait_for_worker();
        } while (worker_has("/proc/pressure/memory") != told);
        wait_until_small(90);
        wait_until_gone();
    }
    free(live);
}

/* Sent to the process, blocked in all its threads, taken by one that waits: no other thread may
 * take it. */
static void takes_each_signal(void)
{
    sigset_t one;
    const struct timespec none = {0, 0}; /* it is pending when kill returns */
    for (int sig = 1; sig <= SIGRTMAX; sig++) {
        if (sig == SIGKILL || sig == SIGSTOP || (sig > 31 && sig < SIGRTMIN)) {
            continue;
        }
        sigemptyset(&one);
        sigaddset(&one, sig);
        for (int i = 0; i < 20; i++) {
            CHECK(kill(getpid(), sig) == 0);
            CHECK(sigtimedwait(&one, NULL, &none) == sig);
        }
    }
}

MODE(signals_are_its_own)
{
    sigset_t all;
    sigfillset(&all);
    CHECK(sigprocmask(SIG_BLOCK, &all, NULL) == 0);
    use(64 * MIB);
    wait_for_worker();
    takes_each_signal();
}

static volatile sig_atomic_t signals;
static void on_signal(int sig)
{
    (void)sig;
    signals = signals + 1;
}

/* Nothing is left for it to do: what happens in the program is not its business. */
MODE(idles_amid_signals)
{
    CHECK(signal(SIGUSR1, on_signal) != SIG_ERR);
    use(64 * MIB);
    wait_for_worker();
    wait_until_small(30);
    wait_until_gone();
    for (int i = 0; i < 1000; i++) {
        CHECK(kill(getpid(), SIGUSR1) == 0);
    }
    CHECK(signals == 1000);
    CHECK(!find_worker());
}

static void *sleeps(void *arg)
{
    pause();
    return arg;
}

/* The C library's own two signals: cancellation goes to one thread, a change of ids to all, ours
 * too. */
MODE(cancels_and_changes_ids)
{
    use(64 * MIB);
    wait_for_worker();
    for (int i = 0; i < 100; i++) {
        pthread_t t;
        void *ended;
        CHECK(pthread_create(&t, NULL, sleeps, NULL) == 0);
        CHECK(pthread_cancel(t) == 0);
        CHECK(pthread_join(t, &ended) == 0 && ended == PTHREAD_CANCELED);
        CHECK(setresuid(getuid(), geteuid(), (uid_t)-1) == 0);
    }
}

static size_t held_mib(int statm)
{
    char text[128];
    ssize_t n = pread(statm, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    return strtoull(strchr(text, ' '), NULL, 10) / 256;
}

/* None may be opened, and fewer are allowed than are open. */
MODE(few_descriptors)
{
    int statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    use(64 * MIB);
    wait_for_worker();
    struct rlimit usual;
    CHECK(getrlimit(RLIMIT_NOFILE, &usual) == 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, usual.rlim_max}) == 0);
    for (int round = 0; round < 3; round++) {
        use(64 * MIB);
        FL_AWAIT(held_mib(statm) <= 30);
    }
    CHECK(open("/dev/null", O_RDONLY | O_CLOEXEC) == -1);
    CHECK(setrlimit(RLIMIT_NOFILE, &usual) == 0);
}

/* A filter that ends the process for what it would not do by itself. */
static void confine(unsigned flags)
{
    static const unsigned short fatal[] = {SYS_close_range, SYS_signalfd4, SYS_eventfd2, SYS_ppoll,
                                           SYS_tgkill};
    static struct filter f;

    filter_begin(&f);
    for (size_t i = 0; i < sizeof fatal / sizeof fatal[0]; i++) {
        filter_answer(&f, fatal[i], SECCOMP_RET_KILL_PROCESS);
    }
    filter_end(&f, SECCOMP_RET_ALLOW);
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &f.program) == 0);
}

static void use_and_wait(void)
{
    for (int i = 0; i < 3; i++) {
        use(64 * MIB);
        wait_until_small(30);
    }
}

MODE(confined_before)
{
    confine(0);
    use_and_wait();
    CHECK(!find_worker());
}

MODE(confined_while_it_ticks)
{
    use(64 * MIB);
    wait_for_worker();
    confine(SECCOMP_FILTER_FLAG_TSYNC);
    use_and_wait();
}

MODE(confined_while_it_idles)
{
    use_and_wait();
    wait_until_gone();
    confine(SECCOMP_FILTER_FLAG_TSYNC);
    use_and_wait();
}

/* This thread alone. */
MODE(confined_alone)
{
    use(64 * MIB);
    wait_for_worker();
    confine(0);
    use_and_wait();
}

MAIN()
