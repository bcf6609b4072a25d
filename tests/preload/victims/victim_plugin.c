/* A C program that loads a C++ library with RTLD_LOCAL, uses it, unloads it, and again. */
#include "victim.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
    CHECK(dlerror() == NULL);
    for (int i = 0; i < 3; i++) {
        void *lib = dlopen(argc > 1 ? argv[1] : "", RTLD_NOW | RTLD_LOCAL);
        CHECK(lib != NULL);
        int (*run)(void) = (int (*)(void))dlsym(lib, "plugin_run");
        CHECK(run != NULL && run() == 3);
        CHECK(dlclose(lib) == 0);
        free(malloc(2 * MIB));
    }
    return 0;
}
