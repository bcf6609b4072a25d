/* Every call of the driver's that opening and closing a device makes is refused, at every n: a
 * status, nothing left behind, and the next attempt works. */
#include "gpu/gpu_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int codes[] = {
    FL_CUDA_ERROR_OUT_OF_MEMORY,        FL_CUDA_ERROR_INVALID_VALUE, FL_CUDA_ERROR_UNKNOWN,
    FL_CUDA_ERROR_CONTEXT_IS_DESTROYED, FL_CUDA_ERROR_NOT_PERMITTED,
};

static unsigned stuck;

/* Not retained: a context that is left behind would be seen by the fake. */
static void nothing_is_left(void)
{
    fl_CUcontext c;

    assert_int_equal(fl_cuda.cuCtxGetCurrent(&c), 0);
    if (c != NULL) { /* it was putting the context back that was refused */
        stuck++;
        assert_int_equal(fl_cuda.cuCtxPopCurrent(&c), 0);
    }
    assert_int_equal(fake->retained(1), 0);
    assert_int_equal(fake->live(), 0);
    assert_int_equal(fake->races() + fake->violations(), 0);
}

/* Device 1, which nothing else has open. */
static unsigned sweep(int code)
{
    unsigned refused_at = 0, nabsorbed = 0;

    stuck = 0;

    for (unsigned n = 1;; n++) {
        struct fl_gpu *g = NULL;
        fake->reset(true);
        fake->refuse(NULL, n, code, false);
        int rc = fl_gpu_open(1, &g);
        bool fired = fake->refused();
        fake->refuse(NULL, 0, 0, false);
        assert_true((rc == 0) == (g != NULL));
        if (rc == 0) {
            nabsorbed += fired;
            assert_int_equal(fl_gpu_close(g), 0);
        } else {
            assert_true(fired);
            assert_true(fl_gpu_error()[0] != '\0');
        }
        if (!fired) {
            break;
        }
        refused_at = n;
        nothing_is_left();
    }
    assert_true(refused_at >= 8);
    assert_int_equal(stuck, 1);
    return nabsorbed;
}

GPU_TEST_WITHIN(opening, NULL, NULL)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        /* No node is known; the name of an error; putting a context back; the capture mode. */
        assert_in_range(sweep(codes[i]), 1, 10);
    }
}

GPU_TEST_WITHIN(closing, NULL, NULL)
{
    struct fl_gpu *g;

    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        fake->reset(true);
        assert_int_equal(fl_gpu_open(1, &g), 0);
        fake->refuse("cuDevicePrimaryCtxRelease", 1, codes[i], false);
        /* A context that has gone needs no release. */
        assert_int_equal(fl_gpu_close(g) == 0, codes[i] == FL_CUDA_ERROR_CONTEXT_IS_DESTROYED);
        assert_true(fake->refused());
        assert_int_equal(fl_gpu_close(g), -EINVAL); /* whatever was said, it is closed */
        assert_int_equal(fl_cuda.cuDevicePrimaryCtxRelease(1), 0); /* which the fake still has */
    }
    fake->reset(true);
}

/* Loading happens once a process: a child for each n. Its status is whether the n-th call was
 * reached. */
static int load_with_refusal(unsigned n)
{
    struct fl_gpu *g = NULL;
    int status;
    pid_t child = fork();

    if (child == 0) {
        fake->reset(false);
        fake->refuse(NULL, n, FL_CUDA_ERROR_UNKNOWN, false);
        int rc = fl_gpu_open(0, &g);
        bool fired = fake->refused(), good = (rc == 0) == (g != NULL) && (fired || rc == 0);
        good = good && (rc == 0 || fl_gpu_error()[0] != '\0');
        _exit(good ? fired : 2);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

int main(void)
{
    unsigned n = 1;

    fl_sys_boot();
    fl_options_read(&gpu_options, environ);
    fl_gpu_start(NULL, &gpu_options);
    gpu_find_fake();
    for (int fired = 1; fired == 1; n++) {
        fired = load_with_refusal(n);
        if (fired == 2) {
            printf("loading with call %u refused: not a status\n", n);
            return EXIT_FAILURE;
        }
    }
    if (n < 40) { /* every call is asked for by name */
        printf("loading made %u calls\n", n);
        return EXIT_FAILURE;
    }
    gpu_main("test_fault_gpu_driver", NULL);
    return gpu_tests(NULL);
}
