/* As many threads or processes as the limit allows, and again when they have gone.
 *
 *   victim_host_places KIND PLACES ROUNDS [limit]
 *   victim_host_places hold_all PLACES 1
 *
 * Large blocks come and go meanwhile. limit: sets the user's limit itself, after the first blocks,
 * to what it has then and PLACES. Prints how many there were in each round. Each waits for the end
 * of its standard input, a pipe. */
#include "victim.h"

#include <dirent.h>
#include <pty.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <threads.h>

enum { MOST = 64, STACK = 65536, SECONDS = 3 };

extern char **environ;

static const char *kind;
static char self[512];
static int held_open; /* the pipe's end for writing */
static pthread_t thread[MOST];
static thrd_t c11[MOST];
static pid_t child[MOST];
static FILE *shell[MOST];
static char stacks[MOST][STACK];

static bool is(const char *word)
{
    return strcmp(kind, word) == 0;
}

static int hold(void *unused)
{
    char byte;

    (void)unused;
    while (read(0, &byte, 1) > 0) {
    }
    return 0;
}

static void *hold_as_thread(void *arg)
{
    (void)pthread_setname_np(pthread_self(), "held");
    (void)hold(arg);
    return NULL;
}

static int hold_as_c11(void *arg)
{
    (void)hold_as_thread(arg);
    return 0;
}

static int hold_as_process(void *arg)
{
    (void)close(held_open);
    return hold(arg);
}

static pid_t by_number(long nr, void *args, size_t len)
{
    return (pid_t)syscall(nr, args, len, NULL, NULL, NULL);
}

static pid_t fork_by_kind(void)
{
    if (is("fork")) {
        return fork();
    }
    if (is("_Fork")) {
        return _Fork();
    }
    if (is("forkpty")) {
        int fd;
        return forkpty(&fd, NULL, NULL, NULL);
    }
    if (is("SYS_clone")) {
        return by_number(SYS_clone, (void *)(long)SIGCHLD, 0); /* NOLINT */
    }
    if (is("SYS_clone3")) {
        uint64_t args[8] = {[4] = SIGCHLD};
        return by_number(SYS_clone3, args, sizeof args);
    }
    errno = ENOSYS;
    return -1;
}

static pid_t vfork_and_run(void)
{
    pid_t pid = vfork();

    if (pid == 0) {
        execl(self, self, "held", (char *)NULL);
        _exit(1);
    }
    return pid;
}

static pid_t spawn(int i)
{
    char *const argv[] = {self, "held", NULL};
    int rc = is("posix_spawn") ? posix_spawn(&child[i], self, NULL, NULL, argv, environ)
                               : posix_spawnp(&child[i], self, NULL, NULL, argv, environ);

    errno = rc;
    return rc == 0 ? child[i] : -1;
}

/* One more. False: refused, as it should be told. */
static bool make(int i)
{
    errno = 0;
    if (is("pthread_create") || is("system")) {
        int rc = pthread_create(&thread[i], NULL, hold_as_thread, NULL);
        CHECK(rc == 0 || rc == EAGAIN);
        return rc == 0;
    }
    if (is("thrd_create")) {
        return thrd_create(&c11[i], hold_as_c11, NULL) == thrd_success;
    }
    if (is("popen")) {
        shell[i] = popen("read x", "r");
        return shell[i] != NULL;
    }
    if (is("clone")) {
        child[i] = clone(hold_as_process, stacks[i] + STACK, SIGCHLD, NULL);
    } else if (is("vfork")) {
        child[i] = vfork_and_run();
    } else if (is("posix_spawn") || is("posix_spawnp")) {
        child[i] = spawn(i);
    } else {
        child[i] = fork_by_kind();
        if (child[i] == 0) {
            if (is("forkpty")) {
                pause();
            }
            _exit(hold_as_process(NULL));
        }
    }
    CHECK(child[i] > 0 || errno == EAGAIN);
    return child[i] > 0;
}

static void end(int i)
{
    if (is("pthread_create") || is("system")) {
        CHECK(pthread_join(thread[i], NULL) == 0);
    } else if (is("thrd_create")) {
        CHECK(thrd_join(c11[i], NULL) == thrd_success);
    } else if (is("popen")) {
        (void)pclose(shell[i]);
    } else {
        if (is("forkpty")) {
            (void)kill(child[i], SIGKILL);
        }
        CHECK(waitpid(child[i], NULL, 0) == child[i]);
    }
}

/* The kernel forgets a thread a moment after it is joined. */
static bool is_one_there(void)
{
    DIR *tasks = opendir("/proc/self/task");
    bool found = false;

    CHECK(tasks != NULL);
    for (struct dirent *d; (d = readdir(tasks)) != NULL;) {
        char path[300], name[8192];
        (void)snprintf(path, sizeof path, "/proc/self/task/%s/comm", d->d_name);
        found |= strncmp(proc_text(name, path, ""), "held", 4) == 0;
    }
    CHECK(closedir(tasks) == 0);
    return found;
}

static void use_memory(void)
{
    for (int i = 0; i < 3; i++) {
        use(32 * MIB);
    }
}

static void open_pipe(void)
{
    int ends[2];

    CHECK(pipe(ends) == 0 && dup2(ends[0], 0) == 0 && close(ends[0]) == 0);
    CHECK(fcntl(ends[1], F_SETFD, FD_CLOEXEC) == 0);
    held_open = ends[1];
}

static void fill(int places)
{
    int n = 0, threads = is("system") ? places - 1 : places;

    open_pipe();
    while (n < threads && make(n)) {
        n++;
    }
    printf("%d", n);
    if (is("system")) {
        errno = ENOTTY;
        int rc = system("exit 3");
        printf(", exit %d, errno %d", WEXITSTATUS(rc), errno);
    } else {
        printf(", then %s", make(n) ? "one more" : "none");
    }
    printf("\n");
    (void)close(held_open);
    for (int i = 0; i < n; i++) {
        end(i);
    }
    while (is_one_there()) {
        (void)sched_yield();
    }
}

/* Until all programs of the user have theirs, or one was refused one. */
static void hold_all(int places)
{
    int n = 0;

    kind = "pthread_create";
    open_pipe();
    use_memory();
    while (n < places && make(n)) {
        n++;
        use_memory();
    }
    printf("%d held\n", n);
    (void)fflush(stdout);
    (void)sleep(SECONDS); /* the others find them there; more time proves no more */
    (void)close(held_open);
    for (int i = 0; i < n; i++) {
        end(i);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc > 1 && readlink("/proc/self/exe", self, sizeof self - 1) > 0);
    kind = argv[1];
    if (is("held")) {
        return hold(NULL);
    }
    int places = atoi(argv[2]);
    if (is("hold_all")) {
        hold_all(places);
        return 0;
    }
    use_memory();
    if (argc > 4) {
        const struct rlimit limit = {(rlim_t)places + 1, (rlim_t)places + 1};
        CHECK(setrlimit(RLIMIT_NPROC, &limit) == 0);
    }
    for (int round = 0; round < atoi(argv[3]); round++) {
        fill(places);
        use_memory();
    }
    return 0;
}
