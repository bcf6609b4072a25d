/* libc's functions that change how memory is mapped: each one comparison and one call. What they do
 * to the program's blocks is noted before it is done (region/special/user_remapped.c), so that
 * free(3) leaves none of it behind.
 *
 * Where pages are given back, huge pages at both ends are split first, so that the kernel has them
 * at once. Advice that leaves nothing is not noted, so madvise(MADV_HUGEPAGE) of each array, as
 * NumPy does, costs a few instructions. What a device has by its physical addresses
 * (region/special/pin.h) the kernel would part from it without a word: such calls are refused,
 * EBUSY.
 *
 * No lock, no allocation, errno untouched else: these are called by handlers, before boot, and
 * after vfork(2). */
#include "preload/maps.h"
#include "alloc/alloc.h"
#include "runtime/runtime.h"

#include <errno.h>
#include <linux/userfaultfd.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define EXPORT __attribute__((visibility("default")))

/* Advice on what the next access or the next fork(2) meets, but nothing that stays and matters. */
enum {
    ADVICE_BITS = 32,
    QUIET_ADVICE = 1 << MADV_NORMAL | 1 << MADV_RANDOM | 1 << MADV_SEQUENTIAL | 1 << MADV_WILLNEED |
                   1 << MADV_DONTNEED | 1 << MADV_FREE | 1 << MADV_REMOVE | 1 << MADV_DOFORK |
                   1 << MADV_UNMERGEABLE | 1 << MADV_HUGEPAGE | 1 << MADV_DODUMP |
                   1 << MADV_KEEPONFORK | 1 << MADV_COLD | 1 << MADV_PAGEOUT |
                   1 << 22 /* POPULATE_READ */ | 1 << 23 /* POPULATE_WRITE */ |
                   1 << 24 /* DONTNEED_LOCKED */ | 1 << 25 /* COLLAPSE */
};

static const unsigned remap_to = MREMAP_FIXED | 4 /* MREMAP_DONTUNMAP */;

/* Does [p, p + len) reach into the window? Empty until boot. */
static inline bool is_ours(const void *p, size_t len)
{
    return (uintptr_t)p + (len - 1) - fl_route.window_base < fl_route.window_len + (len - 1);
}

static FL_COLD void note(const void *p, size_t len)
{
    fl_region_note_remapped(fl_route.region, (struct fl_range){(uintptr_t)p, len});
}

/* They get a flag that free(3) has to take off. */
static FL_COLD void note_flagged(const void *p, size_t len)
{
    fl_region_note_flagged(fl_route.region, (struct fl_range){(uintptr_t)p, len});
}

/* The range's pages are to be the kernel's. */
static FL_COLD void note_dropped(const void *p, size_t len)
{
    int saved = errno;

    fl_region_note_dropped(fl_route.region, (struct fl_range){(uintptr_t)p, len});
    errno = saved;
}

/* Advice that takes pages away, and what would have fork(2) copy them: libraries that have pinned a
 * range themselves say it when they are done. */
enum {
    TAKING_ADVICE = 1 << MADV_DONTNEED | 1 << MADV_FREE | 1 << MADV_REMOVE | 1 << MADV_PAGEOUT |
                    1 << 24 /* DONTNEED_LOCKED */,
    DROPPING_ADVICE = 1 << MADV_DONTNEED | 1 << 24, /* the kernel splits for MADV_FREE by itself */
    LOOSE_ADVICE = DROPPING_ADVICE | 1 << MADV_FREE | 1 << MADV_PAGEOUT | 1 << MADV_COLD,
    FLAGGING_ADVICE = 1 << MADV_DONTDUMP | 1 << MADV_NOHUGEPAGE | 1 << MADV_MERGEABLE,
    SHARING_ADVICE = 1 << MADV_DOFORK | 1 << MADV_KEEPONFORK,
    GUARD_INSTALL = 102 /* Linux 6.13 */
};

static FL_COLD bool is_pinned(const void *p, size_t len)
{
    return fl_region_is_pinned(fl_route.region, (struct fl_range){(uintptr_t)p, len});
}

/* The call is to be made. Else: false, with errno. */
static FL_COLD bool may_unmap(const void *p, size_t len)
{
    if (is_pinned(p, len)) {
        errno = EBUSY;
        return false;
    }
    note(p, len);
    return true;
}

static FL_COLD bool may_drop(const void *p, size_t len)
{
    bool may = may_unmap(p, len);

    if (may) {
        note_dropped(p, len);
    }
    return may;
}

/* What is moved leaves huge pages in parts, as what is dropped does. */
static FL_COLD bool may_remap(const void *p, size_t len, size_t new_len)
{
    bool may = may_unmap(p, len);
    size_t kept = new_len < len ? fl_align_up(new_len, fl_page.base) : 0;

    if (may && kept < len) {
        note_dropped((const char *)p + kept, len - kept);
    }
    return may;
}

static bool is_one_of(int advice, unsigned set)
{
    return advice >= 0 && advice < ADVICE_BITS && (set >> advice & 1) != 0;
}

/* 1: the call is to be made; 0: it is done; -1: with errno. */
static FL_COLD int judge_advice(const void *p, size_t len, int advice)
{
    bool takes = is_one_of(advice, TAKING_ADVICE) || advice == GUARD_INSTALL;

    if (is_one_of(advice, LOOSE_ADVICE) &&
        fl_region_drop_hugetlb(fl_route.region, (struct fl_range){(uintptr_t)p, len},
                               is_one_of(advice, DROPPING_ADVICE))) {
        return 0;
    }
    if ((takes || is_one_of(advice, SHARING_ADVICE)) && is_pinned(p, len)) {
        errno = takes ? EBUSY : errno;
        return takes ? -1 : 0;
    }
    if (is_one_of(advice, FLAGGING_ADVICE)) {
        note_flagged(p, len);
    } else if (!is_one_of(advice, QUIET_ADVICE)) {
        note(p, len);
    }
    if (is_one_of(advice, DROPPING_ADVICE) || advice == GUARD_INSTALL) {
        note_dropped(p, len);
    }
    return 1;
}

/* ---- what comes before each call: 1, it is to be made; 0, it is done; -1, with errno ---- */

static int before_mmap(const void *p, size_t len, int flags)
{
    bool fixed = (flags & MAP_FIXED) != 0;

    return FL_UNLIKELY(fixed && is_ours(p, len)) && !may_drop(p, len) ? -1 : 1;
}

static int before_munmap(const void *p, size_t len)
{
    return FL_UNLIKELY(is_ours(p, len)) && !may_drop(p, len) ? -1 : 1;
}

static int before_mprotect(const void *p, size_t len, int prot, bool key)
{
    if (FL_UNLIKELY((key || prot != (PROT_READ | PROT_WRITE)) && is_ours(p, len))) {
        note(p, len);
    }
    return 1;
}

static int before_madvise(const void *p, size_t len, int advice)
{
    return FL_UNLIKELY(is_ours(p, len)) ? judge_advice(p, len, advice) : 1;
}

static int before_mlock(const void *p, size_t len)
{
    if (FL_UNLIKELY(is_ours(p, len))) {
        note_flagged(p, len);
    }
    return 1;
}

static int before_mremap(const void *p, size_t old_len, size_t new_len, int flags, const void *to)
{
    if ((flags & MREMAP_FIXED) != 0 && is_ours(to, new_len) && !may_drop(to, new_len)) {
        return -1;
    }
    return is_ours(p, old_len) && !may_remap(p, old_len, new_len) ? -1 : 1;
}

/* ---- the calls ---- */

EXPORT void *mmap(void *p, size_t len, int prot, int flags, int fd, off_t offset)
{
    return before_mmap(p, len, flags) > 0 ? fl_libc.mmap(p, len, prot, flags, fd, offset)
                                          : MAP_FAILED;
}

EXPORT void *mmap64(void *p, size_t len, int prot, int flags, int fd, off_t offset)
    __attribute__((alias("mmap")));

EXPORT int munmap(void *p, size_t len)
{
    return before_munmap(p, len) > 0 ? fl_libc.munmap(p, len) : -1;
}

EXPORT int mprotect(void *p, size_t len, int prot)
{
    (void)before_mprotect(p, len, prot, false);
    return fl_libc.mprotect(p, len, prot);
}

EXPORT int pkey_mprotect(void *p, size_t len, int prot, int pkey)
{
    (void)before_mprotect(p, len, prot, true);
    return fl_libc.pkey_mprotect(p, len, prot, pkey);
}

EXPORT int madvise(void *p, size_t len, int advice)
{
    int verdict = before_madvise(p, len, advice);

    return verdict > 0 ? fl_libc.madvise(p, len, advice) : verdict;
}

EXPORT int mlock(const void *p, size_t len)
{
    (void)before_mlock(p, len);
    return fl_libc.mlock(p, len);
}

EXPORT int mlock2(const void *p, size_t len, unsigned flags)
{
    (void)before_mlock(p, len);
    return fl_libc.mlock2(p, len, flags);
}

/* What is mapped from now on is to stay in memory, or no longer: so is what is free of ours. */
static void after_mlockall(int rc, bool future)
{
    if (rc == 0) {
        fl_region_note_locked(fl_route.region, future);
    }
}

EXPORT int mlockall(int flags)
{
    int rc = fl_libc.mlockall(flags);

    after_mlockall(rc, (flags & MCL_FUTURE) != 0);
    return rc;
}

EXPORT int munlockall(void)
{
    int rc = fl_libc.munlockall();

    after_mlockall(rc, false);
    return rc;
}

EXPORT void *mremap(void *p, size_t old_len, size_t new_len, int flags, ...)
{
    void *to = NULL;

    if (((unsigned)flags & remap_to) != 0) {
        va_list args;
        va_start(args, flags);
        to = va_arg(args, void *);
        va_end(args);
    }
    return before_mremap(p, old_len, new_len, flags, to) > 0
               ? fl_libc.mremap(p, old_len, new_len, flags, to)
               : MAP_FAILED;
}

/* A range of the program's own userfaultfd(2): faults in what lies there next would be told to it.
 * After the call, which has read what is read here. */
static void after_ioctl(unsigned long request, const void *arg, int rc)
{
    const struct uffdio_register *r = arg;

    if (FL_UNLIKELY((unsigned)request == UFFDIO_REGISTER && rc == 0 && fl_sys_own == 0)) {
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's interface takes numbers */
        const void *p = (const void *)(uintptr_t)r->range.start;
        if (is_ours(p, r->range.len)) {
            note(p, r->range.len);
        }
    }
}

static int (*next_ioctl)(int fd, unsigned long request, ...); /* written with the first call */

EXPORT int ioctl(int fd, unsigned long request, ...)
{
    va_list args;

    va_start(args, request);
    void *arg = va_arg(args, void *);
    va_end(args);
    if (FL_UNLIKELY(next_ioctl == NULL)) {
        *(void **)(void *)&next_ioctl = fl_find_next_of("ioctl");
    }
    int rc = next_ioctl(fd, request, arg);
    after_ioctl(request, arg, rc);
    return rc;
}

void fl_maps_after(long nr, const long a[static 6], long rc)
{
    if (nr == SYS_ioctl) {
        /* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's interface takes numbers */
        after_ioctl((unsigned long)a[1], (const void *)a[2], (int)rc);
    }
    if (nr == SYS_mlockall || nr == SYS_munlockall) {
        after_mlockall((int)rc, nr == SYS_mlockall && (a[0] & MCL_FUTURE) != 0);
    }
}

/* Not by the functions above: libc's may be another allocator's, which makes its calls by
 * number. */
int fl_maps_before(long nr, const long a[static 6])
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's interface takes numbers */
    const void *p = (const void *)a[0], *to = (const void *)a[4];
    size_t len = (size_t)a[1];

    if (fl_sys_own != 0) {
        return 1;
    }
    switch (nr) {
    case SYS_mmap:
        return before_mmap(p, len, (int)a[3]);
    case SYS_munmap:
        return before_munmap(p, len);
    case SYS_mprotect:
    case SYS_pkey_mprotect:
        return before_mprotect(p, len, (int)a[2], nr == SYS_pkey_mprotect);
    case SYS_madvise:
        return before_madvise(p, len, (int)a[2]);
    case SYS_mlock:
    case SYS_mlock2:
        return before_mlock(p, len);
    case SYS_mremap:
        return before_mremap(p, len, (size_t)a[2], (int)a[3], to);
    default:
        return 1;
    }
}
