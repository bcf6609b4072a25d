/* libc's functions on maps, behind the interposed ones: raw system calls, until boot has found libc's own. */
#include "sys/sys.h"

#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

static void *raw_mmap(void *addr, size_t len, int prot, int flags, int fd, off_t offset)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's answer is an address */
    return (void *)syscall(SYS_mmap, addr, len, prot, flags, fd, offset);
}

static int raw_munmap(void *addr, size_t len)
{
    return (int)syscall(SYS_munmap, addr, len);
}

static int raw_mprotect(void *addr, size_t len, int prot)
{
    return (int)syscall(SYS_mprotect, addr, len, prot);
}

static int raw_pkey_mprotect(void *addr, size_t len, int prot, int pkey)
{
    return (int)syscall(SYS_pkey_mprotect, addr, len, prot, pkey);
}

static int raw_madvise(void *addr, size_t len, int advice)
{
    return (int)syscall(SYS_madvise, addr, len, advice);
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
    return (void *)syscall(SYS_mremap, addr, old_len, new_len, flags, to);
}

static int raw_mlock(const void *addr, size_t len)
{
    return (int)syscall(SYS_mlock, addr, len);
}

static int raw_mlock2(const void *addr, size_t len, unsigned flags)
{
    return (int)syscall(SYS_mlock2, addr, len, flags);
}

struct fl_libc fl_libc = {
    .mmap = raw_mmap,
    .munmap = raw_munmap,
    .mprotect = raw_mprotect,
    .pkey_mprotect = raw_pkey_mprotect,
    .madvise = raw_madvise,
    .mremap = raw_mremap,
    .mlock = raw_mlock,
    .mlock2 = raw_mlock2,
};
