/* Every call of the driver's that loading it, opening and closing a device makes is refused, one
 * after the other: a status, and nothing left behind. Loading happens once a process: a child for
 * each. */
#include "gpu/gpu_fixture.h"

#include <sys/wait.h>

enum { NOT_REACHED, REFUSED, ABSORBED, STUCK, WRONG };

static const int codes[] = {
    FL_CUDA_ERROR_OUT_OF_MEMORY,        FL_CUDA_ERROR_INVALID_VALUE, FL_CUDA_ERROR_UNKNOWN,
    FL_CUDA_ERROR_CONTEXT_IS_DESTROYED, FL_CUDA_ERROR_NOT_PERMITTED,
};

/* Not retained: a context that is left behind would be seen by the fake. */
static int with_refusal(unsigned n, int code)
{
    struct fl_gpu *g = NULL;
    fl_CUcontext c = NULL;

    fake->reset(false);
    fake->refuse(NULL, n, code, false);
    int rc = fl_gpu_open(1, &g);
    bool fired = fake->refused(), good = (rc == 0) == (g != NULL) && (fired || rc == 0);
    fake->refuse(NULL, 0, 0, false);
    good = good && (rc == 0 ? fl_gpu_close(g) == 0 : fl_gpu_error()[0] != '\0');
    if (fl_cuda.cuCtxGetCurrent != NULL) {
        good = good && (fl_cuda.cuCtxGetCurrent(&c) == 0 || rc == -ENODEV);
    }
    good = good && fake->retained(1) == 0 && fake->live() == 0 && fake->report()[0] == '\0';
    if (!good || !fired) {
        return good ? NOT_REACHED : WRONG;
    }
    return c != NULL ? STUCK : rc == 0 ? ABSORBED : REFUSED;
}

CASE(opening)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        unsigned count[WRONG + 1] = {0}, n = 0;
        while (count[NOT_REACHED] == 0) {
            int status = -1;
            n++;
            pid_t child = fork();
            if (child == 0) {
                _exit(with_refusal(n, codes[i]));
            }
            assert_int_equal(waitpid(child, &status, 0), child);
            if (!WIFEXITED(status) || WEXITSTATUS(status) >= WRONG) {
                fail_msg("call %u refused with %d: %d", n, codes[i], status);
            }
            count[WEXITSTATUS(status)]++;
        }
        assert_true(n >= 48 && count[REFUSED] >= 30); /* every call is asked for by name */
        assert_int_equal(count[STUCK], 1); /* it was putting the context back that was refused */
        /* No node is known; the name of an error; the capture mode; what is optional. */
        assert_in_range(count[ABSORBED], 1, 10);
    }
}

CASE(closing)
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

int main(void)
{
    fl_sys_boot();
    fl_options_read(&gpu_options, environ);
    fl_gpu_start(NULL, &gpu_options);
    gpu_find_fake();
    return RUN_CASES();
}
