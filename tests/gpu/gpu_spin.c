#include "gpu/gpu_spin.h"

#include <dlfcn.h>
#include <string.h>

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
};

static void find(void *library, const char *name, void *out)
{
    void *found = dlsym(library, name);

    memcpy(out, &found, sizeof found);
}

/* The module stays with the process: one a context, which tests have one of. */
fl_CUresult gpu_spin(void *library, void *stream, unsigned ms)
{
    static fl_CUfunction spin;
    struct kernel_calls c;
    unsigned long long ns = (unsigned long long)ms * 1000000;
    void *parameters[] = {&ns};
    fl_CUresult code = FL_CUDA_SUCCESS;

    find(library, "cuModuleLoadData", &c.load);
    find(library, "cuModuleGetFunction", &c.get);
    find(library, "cuLaunchKernel", &c.launch);
    if (c.load == NULL || c.get == NULL || c.launch == NULL) {
        return FL_CUDA_ERROR_NOT_FOUND;
    }
    if (spin == NULL) {
        fl_CUmodule module;
        code = c.load(&module, ptx);
        code = code != FL_CUDA_SUCCESS ? code : c.get(&spin, module, "spin");
    }
    return code != FL_CUDA_SUCCESS ? code
                                   : c.launch(spin, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}
