/* A library that loads others and looks names up for victim_late.c: libc tells by the caller where
 * to look. Its RUNPATH is where it lies.
 * volatile: a jump to libc would leave no trace of this library. */
#include <dlfcn.h>
#include <stdlib.h>

/* Before the program starts, and before whatever is loaded before this. */
__attribute__((constructor)) static void open_early(void)
{
    if (getenv("VICTIM_LATE_EARLY") != NULL) {
        void *volatile found = dlopen("victim_late_now.so", RTLD_NOW | RTLD_DEEPBIND);

        (void)found;
    }
}

void *run_open(const char *file, int mode)
{
    void *volatile found = dlopen(file, mode);

    return found;
}

void *run_open_in(Lmid_t to, const char *file, int mode)
{
    void *volatile found = dlmopen(to, file, mode);

    return found;
}

void *run_next(const char *name)
{
    void *volatile found = dlsym(RTLD_NEXT, name);

    return found;
}
