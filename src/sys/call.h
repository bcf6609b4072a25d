/* System calls by the library's own instruction. Included by sys.h.
 *
 * libc's functions for them are names that other preloaded libraries define too, and some of those
 * allocate (torsocks and uid_wrapper in syscall(3), at its first call): amid the library's own work
 * none of them may run. What follows is no name of the dynamic linker's. errno stays. */
#ifndef FL_SYS_CALL_H
#define FL_SYS_CALL_H

#include <sys/syscall.h>

/* What the kernel returns: -errno where it refuses. */
static inline long fl_call_by_number(long nr, long a0, long a1, long a2, long a3, long a4, long a5)
{
    long rc;

#if defined(__x86_64__)
    register long r10 __asm__("r10") = a3, r8 __asm__("r8") = a4, r9 __asm__("r9") = a5;
    __asm__ volatile("syscall"
                     : "=a"(rc)
                     : "a"(nr), "D"(a0), "S"(a1), "d"(a2), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = nr, x0 __asm__("x0") = a0, x1 __asm__("x1") = a1;
    register long x2 __asm__("x2") = a2, x3 __asm__("x3") = a3, x4 __asm__("x4") = a4;
    register long x5 __asm__("x5") = a5;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    rc = x0;
#else
#error "a system call by number is not written for this machine"
#endif
    return rc;
}

/* fl_call(SYS_close, fd): the number, and up to six arguments, numbers or pointers. */
#define fl_call(...) FL_CALL_FILLED(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define FL_CALL_FILLED(nr, a0, a1, a2, a3, a4, a5, ...)                                            \
    fl_call_by_number(nr, (long)(a0), (long)(a1), (long)(a2), (long)(a3), (long)(a4), (long)(a5))

/* The calling process, and the calling thread, by the kernel's numbers. */
static inline int fl_call_pid(void)
{
    return (int)fl_call(SYS_getpid);
}
static inline int fl_call_tid(void)
{
    return (int)fl_call(SYS_gettid);
}

#endif
