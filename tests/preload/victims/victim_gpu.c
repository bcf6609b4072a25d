/* A program that may use the GPU functions of whatever it runs under. The environment names a
 * driver. */
#include "victim.h"

#include "faultless/gpu.h"

#include <dlfcn.h>
#include <sys/wait.h>

static int is_loaded(void)
{
    char line[512];
    int found = 0;
    FILE *f = fopen("/proc/self/maps", "r");

    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        found |= strstr(line, "libcuda") != NULL;
    }
    fclose(f);
    return found;
}

static void *symbol(const char *name)
{
    void *p = dlsym(RTLD_DEFAULT, name);

    CHECK(p != NULL);
    return p;
}

/* Large and small requests, a child; nothing of GPUs. */
static void unused(void)
{
    free(calloc(1, 3 * MIB));
    pid_t child = fork();
    if (child == 0) {
        _exit(is_loaded());
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    printf("loaded %d\n", is_loaded());
}

static void opened(void)
{
    int (*open_gpu)(int, struct fl_gpu **) = (int (*)(int, struct fl_gpu **))symbol("fl_gpu_open");
    int (*close_gpu)(struct fl_gpu *) = (int (*)(struct fl_gpu *))symbol("fl_gpu_close");
    struct fl_gpu *gpu = NULL, *other = NULL;
    int status;

    CHECK(open_gpu(0, &gpu) == 0);
    pid_t child = fork();
    if (child == 0) {
        CHECK(open_gpu(0, &other) == -ECHILD);
        CHECK(close_gpu(gpu) == -ECHILD);
        free(calloc(1, 3 * MIB));
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(open_gpu(0, &other) == 0);
    CHECK(other == gpu);
    CHECK(close_gpu(other) == 0);
    CHECK(close_gpu(gpu) == 0);
    printf("loaded %d\n", is_loaded());
}

/* Two tensors that are there at the exit. */
static void counted(void)
{
    int (*open_gpu)(int, struct fl_gpu **) = (int (*)(int, struct fl_gpu **))symbol("fl_gpu_open");
    void *(*alloc)(ssize_t, int, void *) =
        (void *(*)(ssize_t, int, void *))symbol("fl_gpu_torch_alloc");
    struct fl_gpu *gpu = NULL;

    CHECK(open_gpu(0, &gpu) == 0);
    CHECK(alloc(4 * MIB, 0, NULL) != NULL);
    CHECK(alloc(4 * MIB, 0, NULL) != NULL);
}

static void absent(void)
{
    int (*open_gpu)(int, struct fl_gpu **) = (int (*)(int, struct fl_gpu **))symbol("fl_gpu_open");
    const char *(*error)(void) = (const char *(*)(void))symbol("fl_gpu_error");
    struct fl_gpu *gpu = NULL;

    CHECK(open_gpu(0, &gpu) == -ENODEV);
    CHECK(gpu == NULL && error()[0] != '\0');
    printf("loaded %d\n", is_loaded());
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*body)(void);
    } modes[] = {{"unused", unused}, {"opened", opened}, {"absent", absent}, {"counted", counted}};

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (argc > 1 && strcmp(argv[1], modes[i].name) == 0) {
            modes[i].body();
            return 0;
        }
    }
    return 2;
}
