/* A program that may use the GPU functions of whatever it runs under. The environment names a
 * driver. */
#include "api.h"

static int is_loaded(void)
{
    return maps_have("libcuda");
}

/* Large and small requests, a child; nothing of GPUs. */
MODE(unused)
{
    free(calloc(1, 3 * MIB));
    pid_t child = fork();
    if (child == 0) {
        _exit(is_loaded());
    }
    ends_well(child);
    printf("loaded %d\n", is_loaded());
}

MODE(opened)
{
    struct fl_gpu *gpu = NULL, *other = NULL;
    CHECK(CALL(fl_gpu_open)(0, &gpu) == 0);
    IN_CHILD
    {
        CHECK(CALL(fl_gpu_open)(0, &other) == -ECHILD);
        CHECK(CALL(fl_gpu_close)(gpu) == -ECHILD);
        free(calloc(1, 3 * MIB));
    }
    CHECK(CALL(fl_gpu_open)(0, &other) == 0);
    CHECK(other == gpu);
    CHECK(CALL(fl_gpu_close)(other) == 0);
    CHECK(CALL(fl_gpu_close)(gpu) == 0);
    printf("loaded %d\n", is_loaded());
}

/* Two tensors that are there at the exit. */
MODE(counted)
{
    struct fl_gpu *gpu = NULL;

    CHECK(CALL(fl_gpu_open)(0, &gpu) == 0);
    CHECK(CALL(fl_gpu_torch_alloc)(4 * MIB, 0, NULL) != NULL);
    CHECK(CALL(fl_gpu_torch_alloc)(4 * MIB, 0, NULL) != NULL);
}

MODE(absent)
{
    struct fl_gpu *gpu = NULL;

    CHECK(CALL(fl_gpu_open)(0, &gpu) == -ENODEV);
    CHECK(gpu == NULL && CALL(fl_gpu_error)()[0] != '\0');
    printf("loaded %d\n", is_loaded());
}

MAIN()
