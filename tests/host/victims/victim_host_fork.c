/* Forks while other threads do what takes the C library's locks.
 *
 *   victim_host_fork MODE COUNT
 *
 * The costly modes fork a third as often. Every mode but those named solo_ has other threads. Under
 * glibc each ends by itself. */
#include "forking.h"

#include <dlfcn.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/time.h>

extern char **environ;

/* Until `wanted` forks were made by the threads that run `fork_some`, of which there are two,
 * beside the others. */
static void *fork_some(void *arg)
{
    while (forks < wanted) {
        pid_t pid = fork();
        if (pid == 0) {
            if (arg != NULL) {
                live_as_child();
            }
            _exit(0);
        }
        reap(pid);
    }
    return NULL;
}

static void run_beside(void *(*first)(void *), void *(*second)(void *), size_t children_live)
{
    pthread_t forker[2], other[3];

    make_inherited();
    start(&other[0], first, 1);
    start(&other[1], second, 2);
    start(&other[2], second, 3);
    for (size_t i = 0; i < 2; i++) {
        start(&forker[i], fork_some, children_live);
    }
    join_threads(forker, 2);
    stop = 1;
    join_threads(other, 3);
    check_inherited();
}

/* A file of four lines of 200 KB each. */
static char lines_path[] = "/tmp/fl-host-lines-XXXXXX";

static void make_lines(void)
{
    static char line[200000];
    int fd = mkstemp(lines_path);

    CHECK(fd >= 0);
    memset(line, 'x', sizeof line);
    line[sizeof line - 1] = '\n';
    for (int i = 0; i < 4; i++) {
        CHECK(write(fd, line, sizeof line) == sizeof line);
    }
    close(fd);
}

static void *flush_all(void *arg)
{
    while (!stop) {
        fflush(NULL);
    }
    return arg;
}

static void *read_lines(void *arg)
{
    while (!stop) {
        FILE *f = fopen(lines_path, "r");
        char *line = NULL;
        size_t size = 0;
        CHECK(f != NULL);
        while (getline(&line, &size, f) > 0) {
        }
        free(line);
        fclose(f);
    }
    return arg;
}

MODE(stdio)
{
    make_lines();
    run_beside(flush_all, read_lines, 0);
    unlink(lines_path);
}

/* The same, and the children use what they have. */
MODE(stdio_live)
{
    make_lines();
    run_beside(flush_all, read_lines, 1);
    unlink(lines_path);
}

static void *run_commands(void *arg)
{
    char text[64];

    while (!stop) {
        FILE *f = popen("echo here", "r");
        CHECK(f != NULL && fgets(text, sizeof text, f) != NULL && strcmp(text, "here\n") == 0);
        CHECK(pclose(f) == 0);
    }
    return arg;
}

MODE_IS(popens, run_beside(run_commands, churn, 1))

static void *load_libraries(void *arg)
{
    while (!stop) {
        void *library = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
        void *other = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
        CHECK(library != NULL && other != NULL);
        work(150 * KIB, 1);
        CHECK(dlclose(other) == 0 && dlclose(library) == 0);
    }
    return arg;
}

MODE_IS(dlopens, run_beside(load_libraries, churn, 1))
MODE_IS(allocating, run_beside(churn, churn, 1))

static void nested_child(int depth)
{
    pthread_t t;

    CHECK(pthread_create(&t, NULL, churn, NULL) == 0);
    if (depth > 0) {
        IN_CHILD
        {
            stop = 0;
            nested_child(depth - 1);
            live_as_child();
        }
    }
    stop = 1;
    pthread_join(t, NULL);
}

MODE(nested)
{
    pthread_t t;

    make_inherited();
    start(&t, churn, 1);
    while (forks < wanted) {
        pid_t pid = fork();
        if (pid == 0) {
            nested_child(3);
            live_as_child();
            _exit(0);
        }
        reap(pid);
    }
    stop = 1;
    pthread_join(t, NULL);
}

static void *spawn_some(void *arg)
{
    static char name[] = "true";
    static char *const argv[] = {name, NULL};

    while (forks < wanted) {
        pid_t pid;
        CHECK(posix_spawnp(&pid, name, NULL, NULL, argv, environ) == 0);
        reap(pid);
    }
    return arg;
}

MODE(spawns)
{
    pthread_t t[4];

    start(&t[0], spawn_some, 1);
    start(&t[1], spawn_some, 2);
    start(&t[2], churn, 3);
    start(&t[3], churn, 4);
    for (size_t i = 0; i < 4; i++) {
        stop = i >= 2;
        pthread_join(t[i], NULL);
    }
}

/* By the system call alone, so no handler of fork is called. The child asks for what glibc serves
 * without a lock that another thread might have held: glibc passes this too. */
MODE(raw_clones)
{
    pthread_t t[3];
    uint64_t seed = 1;

    mallopt(M_MMAP_THRESHOLD, (int)(64 * KIB));
    for (size_t i = 0; i < 3; i++) {
        start(&t[i], churn, i);
    }
    nap(20);
    make_inherited();
    while (forks < wanted) {
        size_t n = 200 * KIB + next_random(&seed) % (3 * MIB);
        work(n, seed);
        work(4 * MIB + n, seed);
        long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pid == 0) {
            check_inherited();
            free(inherited[0]);
            work(5 * MIB, 1);
            work(n, 2);
            inherited[1] = realloc(inherited[1], 3 * MIB);
            CHECK(is_stamped_part(inherited[1], inherited_size(1), inherited_size(1), 1));
            _exit(0);
        }
        reap((pid_t)pid);
    }
    stop = 1;
    join_threads(t, 3);
}

/* A handler forks that interrupts malloc, free and realloc, in a program without other threads. */
static volatile sig_atomic_t is_child, may_continue;

static void fork_in_handler(int sig)
{
    int saved = errno;
    (void)sig;
    if (is_child) {
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        if (!may_continue) {
            _exit(0);
        }
        is_child = 1;
    } else {
        reap(pid);
    }
    errno = saved;
}

static void interrupted(size_t least, size_t most, int children_continue)
{
    uint64_t seed = 1;
    int rounds = 0;

    may_continue = children_continue;
    make_inherited();
    work(32 * MIB, 1);
    CHECK(signal(SIGALRM, fork_in_handler) != SIG_ERR);
    while (forks < wanted) {
        const struct itimerval once = {.it_value = {0, 1 + (long)(next_random(&seed) % 200)}};
        CHECK(setitimer(ITIMER_REAL, &once, NULL) == 0);
        work(least + next_random(&seed) % (most - least), seed);
        rounds += is_child;
        if (rounds == 20) {
            check_inherited();
            _exit(0);
        }
    }
    signal(SIGALRM, SIG_IGN);
}

MODE_IS(solo_interrupted_small, interrupted(1, 2 * KIB, 0))
MODE_IS(solo_interrupted_large, interrupted(70 * KIB, 3 * MIB, 0))
MODE_IS(solo_interrupted_giant, interrupted(8 * MIB, 80 * MIB, 0))
MODE_IS(solo_children_continue, interrupted(1, 1 * MIB, 1))

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    wanted = atol(argv[2]);
    if (strcmp(argv[1], "nested") == 0 || strcmp(argv[1], "raw_clones") == 0 ||
        strcmp(argv[1], "solo_interrupted_giant") == 0) {
        wanted = (wanted + 2) / 3;
    }
    return run_mode(argv[1]);
}
