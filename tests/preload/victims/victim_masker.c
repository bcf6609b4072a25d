/* A library that wraps the functions of maps and the clock, and blocks all signals about each call,
 * as libfaketimeMT does about a lock of its own. */
#include "victim.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

static void block_and_restore(void)
{
    sigset_t all, old;

    CHECK(sigfillset(&all) == 0 && pthread_sigmask(SIG_SETMASK, &all, &old) == 0 &&
          pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
}

#define WRAP(type, name, parameters, ...)                                                          \
    type name parameters                                                                           \
    {                                                                                              \
        static type(*next) parameters;                                                             \
        if (next == NULL) {                                                                        \
            *(void **)(void *)&next = dlsym(RTLD_NEXT, #name);                                     \
        }                                                                                          \
        block_and_restore();                                                                       \
        return next(__VA_ARGS__);                                                                  \
    }

WRAP(void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at), p, n, prot, flags,
     fd, at)
WRAP(int, munmap, (void *p, size_t n), p, n)
WRAP(int, mprotect, (void *p, size_t n, int prot), p, n, prot)
WRAP(int, madvise, (void *p, size_t n, int advice), p, n, advice)
WRAP(int, clock_gettime, (clockid_t clock, struct timespec *out), clock, out)
