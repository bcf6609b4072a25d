/* What the worker thread does, seen from /proc. */
#include "victim.h"

#include <dirent.h>
#include <pthread.h>
#include <time.h>

static void nap(long ms)
{
    const struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static size_t rss_mib(void)
{
    char text[128];
    int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return strtoull(strchr(text, ' '), NULL, 10) / 256;
}

/* /proc/self/task/ID of the thread named fl-uffd; empty when there is none. */
static char task[300];
static int find_worker(void)
{
    DIR *d = opendir("/proc/self/task");
    struct dirent *e;
    task[0] = '\0';
    while ((e = readdir(d)) != NULL) {
        char path[300], name[64];
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, name, sizeof name - 1) : 0;
        close(fd);
        if (n > 0 && strncmp(name, "fl-uffd\n", 8) == 0) {
            snprintf(task, sizeof task, "/proc/self/task/%s/status", e->d_name);
        }
    }
    closedir(d);
    return task[0] != '\0';
}

static void use(size_t n)
{
    char *p = malloc(n);
    memset(p, 1, n);
    free(p);
}

static void wait_until_small(size_t mib)
{
    for (int i = 0; rss_mib() > mib; i++) {
        CHECK(i < 1000); /* 10 s */
        nap(10);
    }
}

static void gives_back(void)
{
    for (int i = 0; i < 3; i++) {
        use(100 * MIB);
        use(30 * MIB);
        wait_until_small(30);
    }
    CHECK(find_worker());
}

/* Freed by another thread, which has ended since; kept in its cache, and in this one's. */
static void *use_some(void *arg)
{
    use(60 * MIB);
    use(61 * MIB);
    return arg;
}
static void gives_back_from_caches(void)
{
    pthread_t t;
    use(40 * MIB);
    CHECK(pthread_create(&t, NULL, use_some, NULL) == 0 && pthread_join(t, NULL) == 0);
    wait_until_small(30);
}

static void keeps_live(void)
{
    char *p = malloc(50 * MIB);
    stamp(p, 50 * MIB, 1);
    use(50 * MIB);
    wait_until_small(90);
    CHECK(is_stamped(p, 50 * MIB, 1));
    free(p);
}

static void blocks_all_signals(void)
{
    use(64 * MIB);
    for (int i = 0; !find_worker(); i++) {
        CHECK(i < 1000);
        nap(10);
    }
    char text[4096];
    int fd = open(task, O_RDONLY | O_CLOEXEC);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *p = strstr(text, "SigBlk:\t");
    CHECK(p != NULL);
    /* all but KILL and STOP, which nobody can block, and libc's own 32 and 33 */
    uint64_t blocked = strtoull(p + 8, NULL, 16),
             must = ~((1ull << 8) | (1ull << 18) | (1ull << 31) | (1ull << 32));
    CHECK((blocked & must) == must);
}

static void idles(void)
{
    use(64 * MIB);
    wait_until_small(30);
    CHECK(find_worker());
    /* It may tick a few times more to see that nothing is left. Then it sleeps for good. */
    for (size_t last = 0, same = 0, i = 0; same < 10; i++) {
        size_t now = proc_number(task, "nonvoluntary_ctxt_switches:") +
                     proc_number(task, "voluntary_ctxt_switches:");
        same = now == last ? same + 1 : 0;
        last = now;
        CHECK(i < 200);
        nap(100); /* ten of these are ten decay times */
    }
    use(64 * MIB); /* and wakes up again */
    wait_until_small(30);
}

static void none_below_16_mib(void)
{
    for (int i = 0; i < 100; i++) {
        use(10 * MIB);
        nap(2);
    }
    CHECK(!find_worker());
    CHECK(proc_number("/proc/self/status", "Threads:") == 1);
}

static void none_when_disabled(void)
{
    use(100 * MIB);
    nap(300);
    CHECK(!find_worker() && rss_mib() >= 100);
    CHECK(malloc_trim(0) == 1 && rss_mib() < 30);
}

/* Thread-local storage counts against a thread's stack: the worker must not be refused for it. */
#ifdef VICTIM_TLS
static volatile __thread char much[VICTIM_TLS];
#else
static volatile __thread char much[1];
#endif
static void much_tls(void)
{
    much[0] = 1;
    use(64 * MIB);
    wait_until_small(30);
    CHECK(find_worker());
}

#include <sys/wait.h>
static void in_child(void)
{
    use(64 * MIB);
    pid_t pid = fork();
    if (pid == 0) {
        use(64 * MIB);
        wait_until_small(30);
        CHECK(find_worker());
        _exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    wait_until_small(30);
}

MAIN(MODE(gives_back), MODE(gives_back_from_caches), MODE(keeps_live), MODE(blocks_all_signals),
     MODE(idles), MODE(none_below_16_mib), MODE(none_when_disabled), MODE(much_tls), MODE(in_child))
