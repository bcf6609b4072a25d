/* libc's functions that make a thread or a process. A user or a control group may have so many and
 * no more; where the kernel refuses one more, the library's own threads end, and the call is made
 * again once, so that the program has every place that it has under glibc.
 *
 * What was refused was not done: no child is there, and libc has undone its part. The handlers of
 * pthread_atfork(3) run for each of the two attempts. The library's threads come back a tenth of a
 * second later at the earliest, if a place is free (sys/places.c). vfork(2) is not here: it returns
 * twice, on one stack, and the second time a frame of ours would be what the child has left of it.
 * A call that is written out in assembly is not seen, nor what libc makes for itself
 * (timer_create(2), aio_read(3)). */
#include "preload/places.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <pthread.h>
#include <pty.h>
#include <sched.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

#define BY_CODE (rc == EAGAIN)
#define BY_ERRNO (rc == -1 && errno == EAGAIN)

/* What it returns, its name, when it was refused, and how it is called. */
#define PLACE_FUNCTIONS(X)                                                                         \
    X(int, pthread_create, BY_CODE,                                                                \
      (pthread_t * t, const pthread_attr_t *a, void *(*run)(void *), void *arg), (t, a, run, arg)) \
    X(int, thrd_create, rc == thrd_error /* its word for all but memory */,                        \
      (thrd_t * t, thrd_start_t run, void *arg), (t, run, arg))                                    \
    X(pid_t, fork, BY_ERRNO, (void), ())                                                           \
    X(pid_t, _Fork, BY_ERRNO, (void), ())                                                          \
    X(int, forkpty, BY_ERRNO,                                                                      \
      (int *fd, char *name, const struct termios *term, const struct winsize *size),               \
      (fd, name, term, size))                                                                      \
    X(int, daemon, BY_ERRNO, (int stays, int speaks), (stays, speaks))                             \
    X(FILE *, popen, rc == NULL && (errno == EAGAIN || errno == ENOMEM),                           \
      (const char *command, const char *mode), (command, mode))                                    \
    X(int, posix_spawn, BY_CODE,                                                                   \
      (pid_t * pid, const char *path, const posix_spawn_file_actions_t *acts,                      \
       const posix_spawnattr_t *a, char *const argv[], char *const env[]),                         \
      (pid, path, acts, a, argv, env))                                                             \
    X(int, posix_spawnp, BY_CODE,                                                                  \
      (pid_t * pid, const char *file, const posix_spawn_file_actions_t *acts,                      \
       const posix_spawnattr_t *a, char *const argv[], char *const env[]),                         \
      (pid, file, acts, a, argv, env))

#define DECLARE(type, name, refused, args, call) __typeof__(name) *(name);
static struct {
    PLACE_FUNCTIONS(DECLARE)
    int (*clone)(int (*run)(void *), void *stack, int flags, void *arg, ...);
    int (*system)(const char *command);
} next; /* written with the first such call, and each thread that comes writes the same */

/* NOLINTBEGIN(bugprone-macro-parentheses): parameter lists */
#define FIND(type, name, refused, args, call) *(void **)(void *)&next.name = fl_find_next_of(#name);
static void find_next(void)
{
    PLACE_FUNCTIONS(FIND)
    *(void **)(void *)&next.clone = fl_find_next_of("clone");
    *(void **)(void *)&next.system = fl_find_next_of("system");
}

/* NULL before the first such call. */
static inline void be_ready(const void *known)
{
    if (FL_UNLIKELY(known == NULL)) {
        find_next();
    }
}

/* True: the call is to be made again. */
static FL_COLD bool make_room(void)
{
    bool begun = fl_host_begin_change();

    fl_host_end_change(begun); /* at once: a child of fork is not to have it to do */
    return begun;
}

#define INTERPOSE(type, name, refused, args, call)                                                 \
    EXPORT type name args                                                                          \
    {                                                                                              \
        be_ready((const void *)next.name);                                                         \
        type rc = next.name call;                                                                  \
        return FL_UNLIKELY(refused) && make_room() ? next.name call : rc;                          \
    }

PLACE_FUNCTIONS(INTERPOSE)
/* NOLINTEND(bugprone-macro-parentheses) */

/* All three are passed on, whatever the flags say: what lies behind the last one is read and means
 * nothing. The child does not come back here. */
EXPORT int clone(int (*run)(void *), void *stack, int flags, void *arg, ...)
{
    va_list args;

    va_start(args, arg);
    void *parent_tid = va_arg(args, void *), *tls = va_arg(args, void *);
    void *child_tid = va_arg(args, void *);
    va_end(args);
    be_ready((const void *)next.clone);
    int rc = next.clone(run, stack, flags, arg, parent_tid, tls, child_tid);
    return FL_UNLIKELY(BY_ERRNO) && make_room()
               ? next.clone(run, stack, flags, arg, parent_tid, tls, child_tid)
               : rc;
}

/* Where no shell could be made it answers as if the shell had ended with 127, and sets errno. */
EXPORT int system(const char *command)
{
    enum { NO_SHELL = 127 << 8 };
    int saved = errno;

    be_ready((const void *)next.system);
    errno = 0;
    int rc = next.system(command);
    if (FL_UNLIKELY(rc == NO_SHELL && errno == EAGAIN) && make_room()) {
        errno = 0;
        rc = next.system(command);
    }
    errno = errno != 0 ? errno : saved;
    return rc;
}

bool fl_places_after(long nr, long rc)
{
    return (nr == SYS_clone || nr == SYS_clone3
#ifdef SYS_fork
            || nr == SYS_fork
#endif
            ) &&
           BY_ERRNO && make_room();
}
