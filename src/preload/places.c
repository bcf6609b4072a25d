/* libc's functions that make a thread or a process. A user or a control group may have so many and
 * no more; where the kernel refuses one more, the library's own threads end, and the call is made
 * again once, so that the program has every place that it has under glibc.
 *
 * What was refused was not done: no child is there, and libc has undone its part. The handlers of
 * pthread_atfork(3) run for each of the two attempts. The library's threads come back a tenth of a
 * second later at the earliest, if a place is free (sys/places.c). A call that is written out in
 * assembly is not seen, nor what libc makes for itself (timer_create(2), aio_read(3)). */
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
} next; /* constant after boot */

/* Libc's by a relocation: a call may come before the constructor. */
extern pid_t __vfork(void); /* NOLINT(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
FL_HIDDEN pid_t (*fl_vfork_next)(void) = __vfork;
FL_HIDDEN bool fl_vfork_is_libcs; /* false until it is known */

/* NOLINTBEGIN(bugprone-macro-parentheses): parameter lists */
#define FIND(type, name, refused, args, call) *(void **)(void *)&next.name = fl_find_next_of(#name);
__attribute__((constructor(102))) static void find_next(void)
{
    PLACE_FUNCTIONS(FIND)
    *(void **)(void *)&next.clone = fl_find_next_of("clone");
    *(void **)(void *)&next.system = fl_find_next_of("system");
    fl_vfork_next = (pid_t(*)(void))fl_find_next_of("vfork");
    fl_vfork_is_libcs = fl_vfork_next == (pid_t(*)(void))fl_find_next_of("__vfork");
}

/* NULL before the constructor. */
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

/* ---- vfork(2) ----
 *
 * It returns twice, on one stack: the second time a frame of ours would be what the child has left
 * of it. So it is libc's function over again, which keeps the return address in a register; what
 * the kernel refuses goes on to libc's, with the stack as it was. Straight there, too, where
 * something else has that name behind us, and where a shadow stack has the return address as well.
 * Sources: vfork.S of glibc 2.36, for both machines. */

FL_HIDDEN void fl_vfork_refused(void);
FL_HIDDEN void fl_vfork_refused(void)
{
    (void)make_room();
}

#if defined(__x86_64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl vfork\n"
        ".type vfork, @function\n"
        "vfork:\n"
        ".cfi_startproc\n"
        "    endbr64\n"
        "    cmpb $0, fl_vfork_is_libcs(%rip)\n"
        "    je 2f\n"
        "    xorl %eax, %eax\n"
        "    rdsspq %rax\n" /* does nothing where there is no shadow stack */
        "    testq %rax, %rax\n"
        "    jne 2f\n"
        "    popq %rdi\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "    .cfi_register %rip, %rdi\n"
        "    movl $58, %eax\n" /* SYS_vfork */
        "    syscall\n"
        "    pushq %rdi\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    .cfi_rel_offset %rip, 0\n"
        "    cmpl $-4095, %eax\n"
        "    jae 1f\n"
        "    ret\n"
        "1:  subq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset 8\n"
        "    call fl_vfork_refused\n"
        "    addq $8, %rsp\n"
        "    .cfi_adjust_cfa_offset -8\n"
        "2:  jmpq *fl_vfork_next(%rip)\n"
        ".cfi_endproc\n"
        ".size vfork, . - vfork\n");
#elif defined(__aarch64__)
__asm__(".text\n"
        ".p2align 4\n"
        ".globl vfork\n"
        ".type vfork, %function\n"
        "vfork:\n"
        ".cfi_startproc\n"
        "    hint 34\n" /* bti c */
        "    adrp x9, fl_vfork_is_libcs\n"
        "    ldrb w9, [x9, #:lo12:fl_vfork_is_libcs]\n"
        "    cbz w9, 2f\n"
        "    mov x0, #0x4111\n" /* CLONE_VM | CLONE_VFORK | SIGCHLD */
        "    mov x1, #0\n"      /* on the same stack */
        "    mov x2, #0\n"
        "    mov x3, #0\n"
        "    mov x4, #0\n"
        "    mov x8, #220\n" /* SYS_clone */
        "    svc #0\n"
        "    cmn x0, #4095\n"
        "    b.cs 1f\n"
        "    ret\n"
        "1:  stp x29, x30, [sp, #-16]!\n"
        "    .cfi_adjust_cfa_offset 16\n"
        "    .cfi_rel_offset x29, 0\n"
        "    .cfi_rel_offset x30, 8\n"
        "    bl fl_vfork_refused\n"
        "    ldp x29, x30, [sp], #16\n"
        "    .cfi_adjust_cfa_offset -16\n"
        "    .cfi_restore x29\n"
        "    .cfi_restore x30\n"
        "2:  adrp x9, fl_vfork_next\n"
        "    ldr x9, [x9, #:lo12:fl_vfork_next]\n"
        "    br x9\n"
        ".cfi_endproc\n"
        ".size vfork, . - vfork\n");
#else
#error "vfork(2) is not written for this machine"
#endif
