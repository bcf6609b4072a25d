/* Whatever driver there is, or is not: a status. Each case is a process of its own, for a process
 * looks for the driver once. */
#include "gpu/gpu_fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>

/* What a child finds wrong it says and ends with; no cmocka there. */
#define WANT(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%d: %s; the error is: %s\n", __LINE__, #condition, fl_gpu_error());   \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void in_child(void (*body)(void))
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

#define IN_CHILD(name)                                                                             \
    static void name##_here(void);                                                                 \
    CASE(name)                                                                                     \
    {                                                                                              \
        in_child(name##_here);                                                                     \
    }                                                                                              \
    static void name##_here(void)

/* As boot would. */
static void start(const char *path)
{
    static struct fl_options options;
    static char entry[4096];
    char *environment[] = {entry, NULL};

    (void)snprintf(entry, sizeof entry, "FAULTLESS_GPU_DRIVER=%s", path);
    fl_options_read(&options, environment);
    fl_gpu_start(NULL, &options);
    void *library = dlopen(path, RTLD_NOW);
    fake = library == NULL ? NULL : dlsym(library, "fake_cuda");
}

static void start_fake(void)
{
    start(FL_FAKE_CUDA);
    WANT(fake != NULL);
    fake->reset(false);
}

static const struct absent {
    const char *path, *reason;
    enum fake_cuda_setting setting; /* of the fake, which is now so */
    uint64_t value;
    const char *hidden, *refused; /* calls */
} absent[] = {
    {"/nowhere/libcuda.so.1", "/nowhere/libcuda.so.1", .hidden = NULL},
    {FL_NO_DRIVER, "the driver has no cuInit", .hidden = NULL},
    {FL_FAKE_CUDA_OLD, "the driver is older than CUDA 12.0", .hidden = NULL},
    {FL_FAKE_CUDA, "cuInit: error 34", FAKE_CUDA_INIT_CODE, 34, NULL, NULL},
    {FL_FAKE_CUDA, "cuInit: CUDA_ERROR_NO_DEVICE (100)", FAKE_CUDA_DEVICES, 0, NULL, NULL},
    {FL_FAKE_CUDA, "cuDeviceGetCount: CUDA_ERROR_UNKNOWN (999)", .refused = "cuDeviceGetCount"},
    {FL_FAKE_CUDA, "the driver has no cuMemHostRegister", .hidden = "cuMemHostRegister"},
};
static const struct absent *which;

static void is_absent(void)
{
    struct fl_gpu *g = NULL;

    start(which->path);
    if (strcmp(which->path, FL_FAKE_CUDA) == 0) {
        bool plain = which->hidden != NULL || which->refused != NULL;
        fake->reset(false);
        fake->set(plain ? FAKE_CUDA_GONE : which->setting, which->value);
        fake->refuse(which->refused, which->refused != NULL, FL_CUDA_ERROR_UNKNOWN, false);
        fake->hide(which->hidden != NULL ? which->hidden : "");
    }
    for (int i = 0; i < 2; i++) { /* the second time it is not looked for */
        WANT(fl_gpu_open(0, &g) == -ENODEV);
        WANT(strstr(fl_gpu_error(), which->reason) != NULL);
        WANT(g == NULL);
    }
    WANT(fake == NULL || fake->calls("cuInit") <= 1);
}

CASE(no_driver_is_a_status)
{
    for (which = absent; which < absent + sizeof absent / sizeof absent[0]; which++) {
        in_child(is_absent);
    }
}

static void want_open(void)
{
    struct fl_gpu *g = NULL;

    WANT(fl_gpu_open(0, &g) == 0);
    WANT(g->total > 0);
    WANT(fl_gpu_close(g) == 0);
    WANT(fake->report()[0] == '\0');
}

IN_CHILD(old_without_what_is_optional)
{
    struct fl_gpu *g = NULL;

    start_fake();
    fake->set(FAKE_CUDA_VERSION, 12000);
    WANT(fl_gpu_open(0, &g) == 0);
    WANT(!g->has_batch);
    WANT(fl_gpu_close(g) == 0);
}

IN_CHILD(shut_down)
{
    struct fl_gpu *g = NULL, *again = NULL;
    struct fl_gpu_guard guard;

    start_fake();
    WANT(fl_gpu_open(0, &g) == 0);
    fake->set(FAKE_CUDA_GONE, 1);
    WANT(fl_gpu_enter(g, &guard) == -ESHUTDOWN);
    uint64_t calls = fake->calls(NULL);
    WANT(fl_gpu_open(0, &again) == -ESHUTDOWN);
    WANT(fl_gpu_enter(g, &guard) == -ESHUTDOWN);
    WANT(fl_gpu_close(g) == 0);
    WANT(fake->calls(NULL) == calls); /* what has ended is not asked again */
}

IN_CHILD(a_childs_handle)
{
    struct fl_gpu *g = NULL, *mine = NULL;
    struct fl_gpu_guard guard;
    int status;

    start_fake();
    WANT(fl_gpu_open(0, &g) == 0);
    uint64_t calls = fake->calls(NULL);
    pid_t child = fork();
    if (child == 0) {
        fl_gpu_fork_child();
        WANT(fl_gpu_is_forked());
        WANT(fl_gpu_open(0, &mine) == -ECHILD);
        WANT(fl_gpu_enter(g, &guard) == -ECHILD);
        WANT(fl_gpu_close(g) == -ECHILD);
        WANT(fl_gpu_error()[0] != '\0');
        WANT(fake->calls(NULL) == calls);
        _exit(0);
    }
    WANT(waitpid(child, &status, 0) == child && status == 0);
    WANT(!fl_gpu_is_forked());
    WANT(fl_gpu_close(g) == 0);
}

IN_CHILD(a_child_of_who_has_no_driver)
{
    int status;

    start_fake();
    pid_t child = fork();
    if (child == 0) { /* its parent never asked: the driver is the child's to open */
        fl_gpu_fork_child();
        want_open();
        _exit(0);
    }
    WANT(waitpid(child, &status, 0) == child && status == 0);
    want_open();
}

static int forks, right;

static void fork_amid(void *unused)
{
    struct fl_gpu *g = NULL;
    int status;
    pid_t child = fork();

    (void)unused;
    if (child == 0) {
        (void)alarm(20);
        fl_gpu_fork_child();
        _exit(fl_gpu_open(0, &g) != -ECHILD);
    }
    forks++;
    right += waitpid(child, &status, 0) == child && status == 0;
}

IN_CHILD(a_child_of_who_opens_it)
{
    start_fake();
    fake->amid("cuDeviceGetCount", fork_amid, NULL);
    want_open();
    WANT(forks > 0 && right == forks);
}

IN_CHILD(raised_privileges)
{
    static struct fl_options options;

    fl_options_read(&options, NULL); /* as boot does under AT_SECURE */
    fl_gpu_start(NULL, &options);
    fake = dlsym(dlopen(FL_FAKE_CUDA, RTLD_NOW), "fake_cuda");
    WANT(options.text[FL_OPTION_gpu_driver] == NULL);
}

static void *open_one(void *out)
{
    (void)fl_gpu_open(0, out);
    return NULL;
}

IN_CHILD(all_at_once)
{
    enum { N = 8 };
    pthread_t t[N];
    struct fl_gpu *g[N] = {NULL};

    start_fake();
    for (int i = 0; i < N; i++) {
        WANT(pthread_create(&t[i], NULL, open_one, &g[i]) == 0);
    }
    for (int i = 0; i < N; i++) {
        WANT(pthread_join(t[i], NULL) == 0);
        WANT(g[i] != NULL && g[i] == g[0]);
    }
    WANT(fake->calls("cuInit") == 1);
    WANT(fake->calls("cuDevicePrimaryCtxRetain") == N);
    for (int i = 0; i < N; i++) {
        WANT(fl_gpu_close(g[i]) == 0);
    }
    WANT(fake->calls("cuDevicePrimaryCtxRelease") == N);
    WANT(fake->report()[0] == '\0');
}

int main(void)
{
    fl_sys_boot();
    return RUN_CASES();
}
