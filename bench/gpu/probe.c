/* gpu_probe [--smoke] [PROBE...]: the probes, or those whose names begin with a PROBE. Within a
 * minute on a device. A line of JSON an answer on standard output; probe.h says more.
 * FAULTLESS_GPU_DRIVER names another driver than libcuda.so.1. 77: there is none, or no device. 1:
 * a promise is not kept. */
#include "gpu/probe.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 10000, NO_DRIVER = 77, FAILED = 1, GROUP = 6 };

struct probe_calls cu;
void *cu_library;
const struct fake_cuda *fake;
_Atomic size_t *broken;
bool smoke;

static const struct probe *const files[] = {
    probes_of_driver,   probes_of_memory, probes_of_streams,
    probes_of_captures, probes_of_costs,  probes_of_pinned, /* last: it may harm a device most */
};

static void find_calls(void)
{
    const char *path = getenv("FAULTLESS_GPU_DRIVER");

    cu_library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (cu_library == NULL) {
        printf("SKIP gpu_probe: needs a CUDA driver, got: %s\n", dlerror());
        exit(NO_DRIVER);
    }
#define FIND(name, suffix)                                                                         \
    do {                                                                                           \
        void *found = dlsym(cu_library, #name suffix);                                             \
        memcpy(&cu.name, &found, sizeof found);                                                    \
    } while (0);
#define X(need, name, suffix, version, parameters) FIND(name, suffix)
    FL_CUDA_CALLS(X)
#undef X
#define X(name, suffix, parameters) FIND(name, suffix)
    PROBE_CALLS(X)
#undef X
    fake = dlsym(cu_library, "fake_cuda");
}

static void wait_ms(long ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    (void)nanosleep(&t, NULL);
}

/* Of a child that ends with this process, however that ends. */
static pid_t child_of(void (*run)(const void *arg), const void *arg)
{
    pid_t parent = getpid(), child = fork();

    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() == parent) {
            run(arg);
        }
        fflush(stdout);
        _exit(0);
    }
    return child;
}

/* Probes that share a process, and the one that is under way, which its process writes. */
struct group {
    const struct probe *first;
    size_t n;
    _Atomic size_t *now;
};

static void run_group(const void *arg)
{
    const struct group *g = arg;

    for (size_t i = 0; i < g->n; i++) {
        atomic_store(g->now, i);
        g->first[i].run(g->first[i].variant);
    }
}

/* True: it has ended. A process that the driver holds may outlive SIGKILL; it is left behind. The
 * time begins anew with each probe of a group. */
static bool ends_within(pid_t child, long ms, const struct group *g, int *status)
{
    size_t seen = 0;

    for (long waited = 0; waited <= ms; waited += 2) {
        if (waitpid(child, status, WNOHANG) == child) {
            return true;
        }
        if (g != NULL && atomic_load(g->now) != seen) {
            seen = atomic_load(g->now);
            waited = 0;
        }
        wait_ms(2);
    }
    return false;
}

/* How many of them need not run again: all, or up to the one that ended their process. */
static size_t run_apart(const struct probe *first, size_t n, _Atomic size_t *now)
{
    struct group g = {first, n, now};
    int status = 0;

    atomic_store(now, 0);
    pid_t child = child_of(run_group, &g);
    bool ended = child > 0 && ends_within(child, LIMIT_MS, &g, &status);
    size_t at = atomic_load(now);
    if (!ended) {
        (void)(child > 0 ? kill(child, SIGKILL) : 0);
        (void)(child > 0 && ends_within(child, 2000, NULL, &status));
        fact(first[at].name, "\"outcome\":\"hung\",\"ms\":%d", LIMIT_MS);
    } else if (WIFSIGNALED(status)) {
        fact(first[at].name, "\"outcome\":\"crashed\",\"signal\":%d", WTERMSIG(status));
    } else if (WEXITSTATUS(status) == 0) {
        return n;
    } else if (WEXITSTATUS(status) != FAILED) {
        fact(first[at].name, "\"outcome\":\"ended\",\"status\":%d", WEXITSTATUS(status));
    }
    return at + 1;
}

/* The driver initialises a device anew for the first process that uses it, which takes seconds
 * without a persistence daemon: one process keeps it so. */
static void keep_device(const void *write_to)
{
    probe_context();
    (void)!write(*(const int *)write_to, "", 1);
    for (;;) {
        pause();
    }
}

static pid_t keeper(void)
{
    int ends[2];
    char byte;

    if (pipe(ends) != 0) {
        return -1;
    }
    pid_t child = child_of(keep_device, &ends[1]);
    close(ends[1]);
    (void)!read(ends[0], &byte, 1); /* end of file: it could not; each probe will say why */
    close(ends[0]);
    return child;
}

static bool is_wanted(const char *name, int n, char **prefixes)
{
    bool wanted = n == 0;

    for (int i = 0; i < n && !wanted; i++) {
        wanted = strncmp(name, prefixes[i], strlen(prefixes[i])) == 0;
    }
    return wanted;
}

static void no_device(const void *unused)
{
    int count = 0;
    fl_CUresult code = CALL(cuInit, 0);

    (void)unused;
    code = code == FL_CUDA_SUCCESS ? CALL(cuDeviceGetCount, &count) : code;
    if (code != FL_CUDA_SUCCESS || count < 1) {
        printf("SKIP gpu_probe: needs a CUDA device, got: cuInit says %d, %d devices\n", code,
               count);
        fflush(stdout);
        _exit(NO_DRIVER);
    }
}

/* The probes of one file. */
static void run_file(const struct probe *file, int n, char **prefixes, _Atomic size_t *now)
{
    for (const struct probe *p = file; p->name != NULL;) {
        size_t group = 1;
        if (!is_wanted(p->name, n, prefixes)) {
            p++;
            continue;
        }
        while (p->joined && group < GROUP && p[group].name != NULL && p[group].joined &&
               is_wanted(p[group].name, n, prefixes)) {
            group++;
        }
        p += run_apart(p, group, now);
    }
}

int main(int argc, char **argv)
{
    int status = 0, first = 1;
    _Atomic size_t *now =
        mmap(NULL, 2 * sizeof *now, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    setvbuf(stdout, NULL, _IOLBF, 0);
    find_calls();
    broken = now + 1;
    smoke = argc > first && strcmp(argv[first], "--smoke") == 0;
    first += smoke;
    pid_t asked = now == MAP_FAILED ? -1 : child_of(no_device, NULL);
    if (asked < 0 || !ends_within(asked, 3L * LIMIT_MS, NULL, &status) || status != 0) {
        return WIFEXITED(status) && WEXITSTATUS(status) == NO_DRIVER ? NO_DRIVER : FAILED;
    }
    pid_t kept = fake == NULL ? keeper() : -1;
    for (size_t f = 0; f < sizeof files / sizeof files[0]; f++) {
        run_file(files[f], argc - first, argv + first, now);
    }
    if (kept > 0) {
        kill(kept, SIGKILL);
        (void)ends_within(kept, 2000, NULL, &status);
    }
    return *broken > 0 ? FAILED : 0;
}
