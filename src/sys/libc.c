/* libc's functions that we interpose, behind our own: raw system calls, until boot has found
 * libc's. */
#include "sys/sys.h"

#include <errno.h>

#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* As libc's functions have it. */
static long raw_call(long nr, long a0, long a1, long a2, long a3, long a4, long a5)
{
    long rc = fl_call_by_number(nr, a0, a1, a2, a3, a4, a5);

    if (rc < 0 && rc > -4096) {
        errno = (int)-rc;
        return -1;
    }
    return rc;
}

/* syscall(3) is interposed too. Six arguments are passed whatever the call takes, as there: what
 * lies behind the last one is read and means nothing, which a sanitizer cannot know. */
__attribute__((no_sanitize("address", "undefined"))) static long raw_syscall(long nr, ...)
{
    long a[6];
    va_list args;

    va_start(args, nr);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(args, long);
    }
    va_end(args);
    return raw_call(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void *raw_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's answer is an address */
    return (void *)raw_call(SYS_mmap, (long)addr, (long)len, prot, flags, fd, offset);
}

static int raw_munmap(void *addr, size_t len)
{
    return (int)raw_call(SYS_munmap, (long)addr, (long)len, 0, 0, 0, 0);
}

static int raw_mprotect(void *addr, size_t len, int prot)
{
    return (int)raw_call(SYS_mprotect, (long)addr, (long)len, prot, 0, 0, 0);
}

static int raw_pkey_mprotect(void *addr, size_t len, int prot, int pkey)
{
    return (int)raw_call(SYS_pkey_mprotect, (long)addr, (long)len, prot, pkey, 0, 0);
}

static int raw_madvise(void *addr, size_t len, int advice)
{
    return (int)raw_call(SYS_madvise, (long)addr, (long)len, advice, 0, 0, 0);
}

static void *raw_mremap(void *addr, size_t old_len, size_t new_len, int flags, ...)
{
    void *to = NULL;

    if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) != 0) {
        va_list args;
        va_start(args, flags);
        to = va_arg(args, void *);
        va_end(args);
    }
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's answer is an address */
    return (void *)raw_call(SYS_mremap, (long)addr, (long)old_len, (long)new_len, flags, (long)to,
                            0);
}

static int raw_mlock(const void *addr, size_t len)
{
    return (int)raw_call(SYS_mlock, (long)addr, (long)len, 0, 0, 0, 0);
}

static int raw_mlock2(const void *addr, size_t len, unsigned flags)
{
    return (int)raw_call(SYS_mlock2, (long)addr, (long)len, (long)flags, 0, 0, 0);
}

static int raw_mlockall(int flags)
{
    return (int)raw_call(SYS_mlockall, flags, 0, 0, 0, 0, 0);
}

static int raw_munlockall(void)
{
    return (int)raw_call(SYS_munlockall, 0, 0, 0, 0, 0, 0);
}

struct fl_libc fl_libc = {
    .syscall = raw_syscall,
    .mmap = raw_mmap,
    .munmap = raw_munmap,
    .mprotect = raw_mprotect,
    .pkey_mprotect = raw_pkey_mprotect,
    .madvise = raw_madvise,
    .mremap = raw_mremap,
    .mlock = raw_mlock,
    .mlock2 = raw_mlock2,
    .mlockall = raw_mlockall,
    .munlockall = raw_munlockall,
    .memset = memset,
    .memcpy = memcpy,
};
