/* What a process that forked has: threads, huge pages, memory that goes back.
 *
 *   victim_host_after_fork MODE */
#include "forking.h"

#include <dirent.h>

/* The threads of the calling process. */
static int threads(void)
{
    DIR *d = opendir("/proc/self/task");
    int n = 0;

    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        n += e->d_name[0] != '.';
    }
    closedir(d);
    return n;
}

/* One thread, now and for a quarter of a second. */
static void has_one_thread(void)
{
    for (int i = 0; i < 25; i++) {
        CHECK(threads() == 1);
        nap(10);
    }
}

static void in_parent_and_child(void)
{
    pid_t pid = fork();
    if (pid == 0) {
        has_one_thread();
        _exit(0);
    }
    has_one_thread();
    reap(pid);
}

MODE(threads_without_requests)
{
    has_one_thread();
    for (int i = 0; i < 3; i++) {
        in_parent_and_child();
    }
    has_one_thread();
}

MODE(threads_with_one_request)
{
    char *kept = written(3 * MIB, 1);
    has_one_thread();
    in_parent_and_child();
    work(100 * KIB, 1);
    has_one_thread();
    in_parent_and_child();
    char *other = malloc(100 * KIB);
    has_one_thread();
    free(other);
    free(kept);
    pid_t pid = fork();
    if (pid == 0) {
        work(100 * KIB, 1);
        has_one_thread();
        _exit(0);
    }
    reap(pid);
}

/* Rewrites while the child is there, which splits every huge page; then makes no request any
 * more. */
MODE(huge_again)
{
    enum { SIZE = 512 };
    char *p = filled(SIZE * MIB);
    wait_until_worker_sleeps(); /* what the request led to is over */
    size_t before = huge_kib();
    int fds[2];
    char byte;
    CHECK(pipe(fds) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(fds[1]);
        _exit(read(fds[0], &byte, 1) == 0 ? 0 : 1);
    }
    for (size_t at = 0; at < SIZE * MIB; at += 4 * KIB) {
        p[at] = 2;
    }
    size_t split = huge_kib();
    close(fds[1]);
    reap(pid);
    FL_AWAIT(huge_kib() * 100 >= before * 95);
    printf("before %zu split %zu after %zu\n", before / KIB, split / KIB, huge_kib() / KIB);
}

/* A child of vfork, which has its parent's memory, asks for much and calls exec. */
MODE(vfork_child_allocates)
{
    char *volatile block;
    pid_t pid = vfork();
    if (pid == 0) {
        block = filled(64 * MIB);
        usleep(20000);
        execl("/bin/true", "true", (char *)NULL);
        _exit(9);
    }
    reap(pid);
    stamp(block, 64 * MIB, 3);
    CHECK(is_stamped(block, 64 * MIB, 3));
    free(block);
    for (int i = 0; i < 4; i++) {
        use(80 * MIB);
    }
    wait_until_small(48);
    printf("small\n");
}

MAIN()
