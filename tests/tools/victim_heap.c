/* Holds blocks of known lengths that functions of known names ask for, says so, and waits for the
 * end of its standard input.
 *
 *   victim_heap sites    f, g and h hold some; k held 8 MiB for a while
 *   victim_heap grow     f's block grew, where it was and elsewhere, in r
 *   victim_heap threads  t holds one in each of four threads, two of which have ended
 *   victim_heap fork     f holds some, its child freed them and holds another, in c. A line each
 *   victim_heap steps    s holds one amid a step of which a plan serves the rest
 *   victim_heap mixed    f and g hold 300 MiB each, in blocks of different lengths
 *   victim_heap signals  f holds some, asked for while a handler asks for others and frees them
 *   victim_heap filter   f holds some; then no system call but read, write and exit
 */
#include <dlfcn.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { KIB = 1 << 10, MIB = 1 << 20, THREADS = 4, STEPS = 60, ASKS = 3000 };

/* Nothing is known of it any more: the call stays, and is no tail of its function. */
static void *seen(void *p)
{
    __asm__ volatile("" : "+r"(p) : : "memory");
    if (p == NULL) {
        _exit(3);
    }
    return p;
}

/* A function of that name that asks for a block so. */
#define SITE(name, parameters, asked)                                                              \
    void *name parameters;                                                                         \
    __attribute__((noinline)) void *name parameters                                                \
    {                                                                                              \
        return seen(asked);                                                                        \
    }
SITE(f, (size_t len), malloc(len))
SITE(g, (size_t len), calloc(1, len))
SITE(k, (size_t len), malloc(len))
SITE(c, (size_t len), malloc(len))
SITE(s, (size_t len), malloc(len))
SITE(r, (void *p, size_t len), realloc(p, len))
SITE(t, (void *len), malloc(*(size_t *)len))

void *h(size_t len);

__attribute__((noinline)) void *h(size_t len)
{
    void *p = NULL;
    return seen(posix_memalign(&p, 64, len) == 0 ? p : NULL);
}

static void sites(void)
{
    for (int i = 0; i < 3; i++) {
        (void)f(MIB);
    }
    (void)g(2 * MIB);
    (void)g(2 * MIB);
    void *p = k(8 * MIB);
    free(p);
    (void)h(300000);
}

static void grow(void)
{
    void *last = f(MIB); /* what lies behind it is free */
    last = r(last, MIB + 64 * KIB);
    void *behind = f(2 * MIB);
    (void)behind;
    (void)r(last, 20 * MIB);
}

static void *ends(void *len)
{
    (void)t(len);
    return NULL;
}

static void *stays(void *len)
{
    void *p = t(len);
    for (;;) {
        pause();
    }
    return p;
}

static void threads(void)
{
    static size_t len = MIB;
    pthread_t thread[THREADS];
    for (int i = 0; i < THREADS; i++) {
        if (pthread_create(&thread[i], NULL, i % 2 == 0 ? ends : stays, &len) != 0) {
            _exit(3);
        }
    }
    pthread_join(thread[0], NULL);
    pthread_join(thread[2], NULL);
    usleep(200000); /* the others are asked about in the end, and then are there for long */
}

static void wait_for_end(void)
{
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
}

static void say(void)
{
    char line[32];
    int n = snprintf(line, sizeof(line), "%d\n", (int)getpid());
    (void)!write(STDOUT_FILENO, line, (size_t)n);
}

static void fork_one(void)
{
    void *a = f(MIB);
    void *b = f(MIB);
    pid_t child = fork();
    if (child == 0) {
        free(a);
        free(b);
        (void)c(3 * MIB);
        say();
        wait_for_end();
        exit(0);
    }
    say();
    wait_for_end();
    waitpid(child, NULL, 0);
    exit(0);
}

static void steps(void)
{
    int (*begin)(void *);
    int (*end)(void *);
    *(void **)&begin = seen(dlsym(RTLD_DEFAULT, "fl_step_begin"));
    *(void **)&end = seen(dlsym(RTLD_DEFAULT, "fl_step_end"));
    for (int i = 0;; i++) {
        (void)begin(NULL);
        void *a = f(MIB);
        void *b = s(3 * MIB);
        if (i == STEPS) {
            return;
        }
        free(a);
        free(b);
        (void)end(NULL);
        usleep(2000); /* the worker packs meanwhile */
    }
}

static void mixed(void)
{
    for (int i = 0; i < 75; i++) { /* 300 MiB each */
        for (int n = 0; n < 16; n++) {
            (void)f(256 * KIB);
        }
        (void)g(4 * MIB);
    }
}

static void ask(int unused)
{
    (void)unused;
    free(k(256 * KIB));
}

static void signals(void)
{
    struct sigaction action = {.sa_handler = ask, .sa_flags = SA_RESTART};
    struct itimerval often = {{0, 200}, {0, 200}}, off = {{0, 0}, {0, 0}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < ASKS; i++) {
        void *p = g(MIB);
        free(f(128 * KIB));
        free(p);
    }
    setitimer(ITIMER_REAL, &off, NULL);
    (void)f(5 * MIB);
}

static void filter(void)
{
    (void)f(5 * MIB);
    say();
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) {
        _exit(4);
    }
    void *p = f(MIB);
    free(p);
    wait_for_end();
    syscall(SYS_exit, 0);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } mode[] = {{"sites", sites}, {"grow", grow},   {"threads", threads}, {"fork", fork_one},
                {"steps", steps}, {"mixed", mixed}, {"signals", signals}, {"filter", filter}};
    for (size_t i = 0; argc == 2 && i < sizeof(mode) / sizeof(mode[0]); i++) {
        if (strcmp(argv[1], mode[i].name) == 0) {
            mode[i].run();
            say();
            wait_for_end();
            return 0;
        }
    }
    return 2;
}
