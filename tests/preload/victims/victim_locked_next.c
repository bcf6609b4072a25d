/* A next allocator with one lock that is not recursive, as an allocator's lock is: in a chosen
 * request, with the lock held, a signal arrives. A handler that called the allocator would wait for
 * ever. */
#include "victim.h"

#include <signal.h>
#include <sys/mman.h>

static int held;
int trap_armed; /* set by the victim */

static void enter(void)
{
    if (held++ != 0) {
        static const char text[] = "a signal handler came back into the next allocator\n";
        (void)!write(2, text, sizeof text - 1);
        _exit(3);
    }
    if (trap_armed) {
        trap_armed = 0;
        raise(SIGUSR1);
    }
}

static void leave(void)
{
    held--;
}

static char arena[64 << 20] __attribute__((aligned(64)));
static size_t used;

__attribute__((visibility("default"))) void *memalign(size_t align, size_t n)
{
    enter();
    size_t at = (used + 16 + align - 1) & ~(align - 1);
    char *p = at + n <= sizeof arena ? arena + at : NULL;
    if (p != NULL) {
        memcpy(p - 8, &n, 8);
        used = (at + n + 15) & ~(size_t)15;
    }
    leave();
    return p;
}
__attribute__((visibility("default"))) void *malloc(size_t n)
{
    return memalign(16, n);
}
__attribute__((visibility("default"))) void *calloc(size_t k, size_t n)
{
    return memalign(16, k * n); /* never reused, so zero */
}
__attribute__((visibility("default"))) void free(void *p)
{
    (void)p;
}
__attribute__((visibility("default"))) void *realloc(void *p, size_t n)
{
    void *q = memalign(16, n);
    size_t old = 0;
    if (p != NULL && q != NULL) {
        memcpy(&old, (char *)p - 8, 8);
        memcpy(q, p, old < n ? old : n);
    }
    return q;
}
