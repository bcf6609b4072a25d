/* Confines itself to a list of calls, then goes on with large blocks.
 *
 *   victim_host_filter HOW ACTION THREADS BEFORE_MIB LIST
 *
 * HOW: none, prctl, seccomp (the system call), tsync (the same for all threads), library
 * (libseccomp). */
#include "worker.h"

#include "filter.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <ucontext.h>

enum { SPARSE = 12 * MIB };

static atomic_long trapped;
static pthread_barrier_t begin;

static void say(const char *text)
{
    CHECK(write(1, text, strlen(text)) == (ssize_t)strlen(text));
}

/* The call fails with -1, EPERM, and the program goes on. */
static void on_sigsys(int sig, siginfo_t *info, void *context)
{
    (void)sig;
    (void)info;
#if defined(__x86_64__)
    ((ucontext_t *)context)->uc_mcontext.gregs[REG_RAX] = -1;
#elif defined(__aarch64__)
    ((ucontext_t *)context)->uc_mcontext.regs[0] = (unsigned long long)-1;
#else
#error "where the result of a call is on this machine"
#endif
    trapped++;
}

static void with_library(const char *list, unsigned action)
{
    void *so = dlopen("libseccomp.so.2", RTLD_NOW);
    CHECK(so != NULL);
    void *(*init)(unsigned) = dlsym(so, "seccomp_init");
    int (*add)(void *, unsigned, int, unsigned) = dlsym(so, "seccomp_rule_add");
    int (*load)(void *) = dlsym(so, "seccomp_load");
    CHECK(init != NULL && add != NULL && load != NULL);
    void *context = init(action);
    CHECK(context != NULL);
    for (const char *p = list; *p != '\0'; p += strcspn(p, ",") + 1) {
        CHECK(add(context, SECCOMP_RET_ALLOW, atoi(p), 0) == 0);
        if (strchr(p, ',') == NULL) {
            break;
        }
    }
    CHECK(load(context) == 0);
}

static void confine(const char *how, const char *action, const char *list)
{
    static struct filter f;
    unsigned flags = strcmp(how, "tsync") == 0 ? SECCOMP_FILTER_FLAG_TSYNC : 0;

    filter_make(&f, list, filter_action(action));
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (strcmp(how, "none") == 0) {
        return;
    }
    if (strcmp(how, "library") == 0) {
        with_library(list, filter_action(action));
    } else if (strcmp(how, "prctl") == 0) {
        CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &f.program) == 0);
    } else {
        CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &f.program) == 0);
    }
}

/* What is copied over and over takes a fault for each page of each copy. */
static void grow_bit_by_bit(void)
{
    enum { STEP = 64 * KIB, LEN = 24 * MIB };
    char *p = taken(STEP);
    long before = faults_of(RUSAGE_THREAD);

    for (size_t n = STEP; n <= LEN; n += STEP) {
        CHECK((p = realloc(p, n)) != NULL);
        stamp(p + n - STEP, STEP, n);
    }
    long took = faults_of(RUSAGE_THREAD) - before;
    for (size_t n = STEP; n <= LEN; n += STEP) {
        CHECK(is_stamped(p + n - STEP, STEP, n));
    }
    free(p);
    CHECK(took < (long)(8 * LEN / 4096));
}

static void go_on(void)
{
    static const size_t mib[] = {40, 53, 66};
    enum { N = sizeof mib / sizeof mib[0] };
    char *kept[N];

    for (size_t i = 0; i < N; i++) {
        char *p = written(mib[i] * MIB, i);
        p = realloc(p, (mib[i] + 9) * MIB);
        CHECK(p != NULL && is_stamped_part(p, mib[i] * MIB, mib[i] * MIB, i));
        p = realloc(p, 200 * KIB);
        CHECK(p != NULL);
        free(p);
        use(100 * KIB);
        kept[i] = written((i + 1) * MIB, i);
    }
    nap(500); /* for what acts in the background */
    for (size_t i = 0; i < N; i++) {
        CHECK(is_stamped(kept[i], (i + 1) * MIB, i));
        free(kept[i]);
    }
    use(20 * MIB);
    grow_bit_by_bit();
    int (*begin)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "fl_step_begin");
    int (*end)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "fl_step_end");
    for (int step = 0; step < 8; step++) {
        bool declared = begin != NULL && begin(NULL) == 0;
        for (int i = 0; i < 8; i++) {
            use(100 * KIB);
        }
        CHECK(!declared || end(NULL) == 0);
    }
}

/* A block of which little was touched before: what of it has to be cleared is not asked any
 * more. */
static void reuse(char *sparse, size_t n)
{
    free(sparse);
    char *p = calloc(1, n);
    CHECK(p != NULL && is_all(p, n, 0));
    free(p);
}

/* Blocks of which little was touched before, with others behind them: glibc moves them by
 * mremap. */
struct sparse_block {
    size_t mib;
    char *p, *behind;
};
static struct sparse_block large[] = {{.mib = 96}, {.mib = 2048}};
enum { LARGE = sizeof large / sizeof large[0] };

static void hold(struct sparse_block *b)
{
    b->p = malloc(b->mib * MIB);
    b->behind = malloc(b->mib * MIB);
    CHECK(b->p != NULL && b->behind != NULL);
    stamp(b->p, 8 * MIB, b->mib);
    b->p[b->mib * MIB - 1] = 'x';
    b->behind[0] = 'y';
}

static void grow(struct sparse_block *b)
{
    char *p = realloc(b->p, (b->mib + b->mib / 4) * MIB);

    CHECK(p != NULL && is_stamped_part(p, 8 * MIB, 8 * MIB, b->mib));
    CHECK(p[b->mib * MIB - 1] == 'x' && b->behind[0] == 'y');
    p[(b->mib + b->mib / 4) * MIB - 1] = 'z';
    free(p);
    free(b->behind);
}

static void *run_thread(void *arg)
{
    use(300 * KIB);
    pthread_barrier_wait(&begin); /* it has started: what that calls is over before the filter */
    pthread_barrier_wait(&begin);
    go_on();
    pthread_barrier_wait(&begin);
    return arg;
}

int main(int argc, char **argv)
{
    struct sigaction sa = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};
    pthread_t thread;

    CHECK(argc == 6);
    unsigned threads = (unsigned)atoi(argv[3]);
    CHECK(sigaction(SIGSYS, &sa, NULL) == 0);
    CHECK(pthread_barrier_init(&begin, NULL, threads + 1) == 0);
    for (unsigned i = 0; i < threads; i++) {
        CHECK(pthread_create(&thread, NULL, run_thread, NULL) == 0);
    }
    use((size_t)atoi(argv[4]) * MIB);
    char *sparse = taken(SPARSE);
    sparse[0] = 1;
    for (size_t i = 0; i < LARGE; i++) {
        hold(&large[i]);
    }
    if (threads > 0) {
        pthread_barrier_wait(&begin);
    }
    nap(100);
    confine(argv[1], argv[2], argv[5]);
    say("confined\n");
    if (threads > 0) {
        pthread_barrier_wait(&begin);
    }
    reuse(sparse, SPARSE);
    for (size_t i = 0; i < LARGE; i++) {
        grow(&large[i]);
    }
    go_on();
    if (threads > 0) {
        pthread_barrier_wait(&begin);
    }
    say(trapped == 0 ? "none trapped\n" : "some trapped\n");
    nap(700);
    say("survived\n");
    _exit(0);
}
