#include "gpu/gpu_spin.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

/* Loops until the device's clock in nanoseconds has gone on by the argument. */
static const char ptx[] = ".version 6.4\n"
                          ".target sm_75\n"
                          ".address_size 64\n"
                          ".visible .entry spin(.param .u64 ns)\n"
                          "{\n"
                          "    .reg .u64 %start, %now, %len;\n"
                          "    .reg .pred %p;\n"
                          "    ld.param.u64 %len, [ns];\n"
                          "    mov.u64 %start, %globaltimer;\n"
                          "again:\n"
                          "    mov.u64 %now, %globaltimer;\n"
                          "    sub.u64 %now, %now, %start;\n"
                          "    setp.lt.u64 %p, %now, %len;\n"
                          "    @%p bra again;\n"
                          "    ret;\n"
                          "}\n";

struct kernel_calls {
    fl_CUresult (*load)(fl_CUmodule *module, const void *image);
    fl_CUresult (*get)(fl_CUfunction *function, fl_CUmodule module, const char *name);
    fl_CUresult (*launch)(fl_CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                          unsigned bx, unsigned by, unsigned bz, unsigned shared,
                          fl_CUstream stream, void **parameters, void **extra);
    fl_CUresult (*call_host)(fl_CUstream stream, void (*fn)(void *arg), void *arg);
};

static void find(void *library, const char *name, void *out)
{
    void *found = dlsym(library, name);

    memcpy(out, &found, sizeof found);
}

static void sleep_ms(void *ms)
{
    uintptr_t n = (uintptr_t)ms;
    struct timespec t = {.tv_sec = (time_t)(n / 1000), .tv_nsec = (long)(n % 1000) * 1000000};

    (void)nanosleep(&t, NULL);
}

/* Without the driver's compiler (libnvidia-ptxjitcompiler.so.1 is a file of its own, and not in
 * every container) the host holds the stream. */
static fl_CUresult hold_by_host(const struct kernel_calls *c, void *stream, unsigned ms)
{
    return c->call_host != NULL
               ? c->call_host(stream, sleep_ms, (void *)(uintptr_t)ms) /* NOLINT: a number */
               : FL_CUDA_ERROR_NOT_FOUND;
}

static void find_calls(void *library, struct kernel_calls *c)
{
    find(library, "cuModuleLoadData", &c->load);
    find(library, "cuModuleGetFunction", &c->get);
    find(library, "cuLaunchKernel", &c->launch);
    find(library, "cuLaunchHostFunc", &c->call_host);
}

/* The module stays with the process: one a context, which tests have one of. */
static fl_CUfunction spin;

fl_CUresult gpu_spin_load(void *library)
{
    struct kernel_calls c;
    fl_CUmodule module;
    fl_CUresult code = FL_CUDA_SUCCESS;

    find_calls(library, &c);
    if (c.load == NULL || c.get == NULL || c.launch == NULL) {
        return FL_CUDA_ERROR_NOT_FOUND;
    }
    if (spin == NULL) {
        code = c.load(&module, ptx);
        code = code != FL_CUDA_SUCCESS ? code : c.get(&spin, module, "spin");
    }
    return code;
}

fl_CUresult gpu_spin(void *library, void *stream, unsigned ms)
{
    struct kernel_calls c;
    unsigned long long ns = (unsigned long long)ms * 1000000;
    void *parameters[] = {&ns};

    find_calls(library, &c);
    return gpu_spin_load(library) != FL_CUDA_SUCCESS
               ? hold_by_host(&c, stream, ms)
               : c.launch(spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}
