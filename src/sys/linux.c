/* The real system calls. Nothing else in src/ spells mmap or madvise.
 *
 * In a confined process (confined.c) what glibc's malloc would not call is refused here, -EPERM:
 * mmap, munmap, mprotect, futex and, for realloc, mremap are left. Sources: mmap(2), madvise(2),
 * futex(2), prctl(2); constants that Debian 12's headers lack are given here. */

#include "sys/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/random.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE 103
#endif
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static void *at(uintptr_t addr)
{
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel's interface takes pointers */
    return (void *)addr;
}

_Thread_local unsigned fl_sys_own;

/* libc's function, as a call of the library's own. */
#define OWN(function, ...)                                                                         \
    ({                                                                                             \
        fl_sys_own++;                                                                              \
        __typeof__(fl_libc.function(__VA_ARGS__)) rc_ = fl_libc.function(__VA_ARGS__);             \
        fl_sys_own--;                                                                              \
        rc_;                                                                                       \
    })

static int linux_reserve(size_t len, uintptr_t *out_base)
{
    void *p = OWN(mmap, NULL, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    *out_base = (uintptr_t)p;
    return p != MAP_FAILED ? 0 : -errno;
}

static int linux_map_at(struct fl_range r)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE;
    void *p = OWN(mmap, at(r.base), r.len, PROT_READ | PROT_WRITE, flags, -1, 0);

    if (p == MAP_FAILED) {
        return -errno;
    }
    if ((uintptr_t)p != r.base) { /* a kernel before 4.17 took the address for a mere hint */
        OWN(munmap, p, r.len);
        return -EEXIST;
    }
    return 0;
}

/* Without MAP_NORESERVE: what no touch could get is refused here. */
static int linux_map_hugetlb(struct fl_range r, size_t page)
{
    int size = __builtin_ctzl(page) << MAP_HUGE_SHIFT;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_FIXED | size;

    if (OWN(mmap, at(r.base), r.len, PROT_READ | PROT_WRITE, flags, -1, 0) != MAP_FAILED) {
        return 0;
    }
    int rc = -errno;
    (void)OWN(munmap, at(r.base), r.len); /* the kernel may have done so */
    return rc;
}

static int linux_unmap(struct fl_range r)
{
    return OWN(munmap, at(r.base), r.len) == 0 ? 0 : -errno;
}

static int linux_commit(struct fl_range r)
{
    return OWN(mprotect, at(r.base), r.len, PROT_READ | PROT_WRITE) == 0 ? 0 : -errno;
}

static int linux_protect(struct fl_range r)
{
    return OWN(mprotect, at(r.base), r.len, PROT_NONE) == 0 ? 0 : -errno;
}

/* A new map in place of the old: unlike mprotect it gives the charge back too. */
static int linux_decommit(struct fl_range r)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;

    return OWN(mmap, at(r.base), r.len, PROT_NONE, flags, -1, 0) != MAP_FAILED ? 0 : -errno;
}

static int linux_advise(struct fl_range r, enum fl_sys_advice advice)
{
    static const int how[] = {
        [FL_ADVICE_HUGE] = MADV_HUGEPAGE,         [FL_ADVICE_NO_HUGE] = MADV_NOHUGEPAGE,
        [FL_ADVICE_NO_FORK] = MADV_DONTFORK,      [FL_ADVICE_FORK] = MADV_DOFORK,
        [FL_ADVICE_WIPE] = MADV_WIPEONFORK,       [FL_ADVICE_NO_WIPE] = MADV_KEEPONFORK,
        [FL_ADVICE_NO_DUMP] = MADV_DONTDUMP,      [FL_ADVICE_DUMP] = MADV_DODUMP,
        [FL_ADVICE_COLLAPSE] = MADV_COLLAPSE,     [FL_ADVICE_GUARD] = MADV_GUARD_INSTALL,
        [FL_ADVICE_NO_GUARD] = MADV_GUARD_REMOVE, [FL_ADVICE_SPLIT] = MADV_COLD,
        [FL_ADVICE_DROP] = MADV_DONTNEED,
    };

    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    return OWN(madvise, at(r.base), r.len, how[advice]) == 0 ? 0 : -errno;
}

static int linux_populate(struct fl_range r)
{
    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    while (OWN(madvise, at(r.base), r.len, MADV_POPULATE_WRITE) != 0) {
        if (errno != EAGAIN && errno != EINTR) {
            return -errno;
        }
    }
    return 0;
}

static int linux_remap(struct fl_range from, uintptr_t to)
{
    void *p = OWN(mremap, at(from.base), from.len, from.len, MREMAP_MAYMOVE | MREMAP_FIXED, at(to));

    return p != MAP_FAILED ? 0 : -errno;
}

static int linux_lazy_free(struct fl_range r)
{
    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    return OWN(madvise, at(r.base), r.len, MADV_FREE) == 0 ? 0 : -errno;
}

static int linux_resident(struct fl_range r, size_t *out_bytes)
{
    unsigned char present[256]; /* stacks may be small */
    size_t step = sizeof present * fl_page.base;

    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    *out_bytes = 0;
    for (size_t done = 0; done < r.len; done += step) {
        size_t len = fl_min(step, r.len - done);
        int rc = (int)fl_call(SYS_mincore, r.base + done, len, present);
        if (rc != 0) {
            return rc;
        }
        for (size_t i = 0; i < len / fl_page.base; i++) {
            /* NOLINTNEXTLINE(clang-analyzer-core.*): the kernel has written it */
            *out_bytes += (present[i] & 1) != 0 ? fl_page.base : 0;
        }
    }
    return 0;
}

static int linux_name(struct fl_range r, const char *name)
{
    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    return (int)fl_call(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, r.base, r.len, name);
}

static uint64_t linux_now_ns(void)
{
    struct timespec t;

    fl_linux_clock(fl_sys_is_confined() ? CLOCK_MONOTONIC_COARSE : CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t linux_own_ns(void)
{
    struct timespec t = {0};

    if (!fl_sys_is_confined()) {
        fl_linux_clock(CLOCK_THREAD_CPUTIME_ID, &t);
    }
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int read_all(long fd, char *buf, size_t size)
{
    size_t have = 0;
    int rc = 0;

    while (have + 1 < size) {
        long n = fl_call(SYS_read, fd, buf + have, size - 1 - have);
        if (n == -EINTR) {
            continue;
        }
        rc = n < 0 ? (int)n : 0;
        if (n <= 0) {
            break;
        }
        have += (size_t)n;
    }
    buf[have] = '\0';
    return rc;
}

static int linux_read_file(const char *path, char *buf, size_t size)
{
    buf[0] = '\0';
    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    long fd = fl_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return (int)fd;
    }
    int rc = read_all(fd, buf, size);
    (void)fl_call(SYS_close, fd);
    return rc;
}

static uint64_t linux_limit(int resource)
{
    struct rlimit r = {0}; /* without one: UINT64_MAX */

    if (fl_sys_is_confined() || fl_call(SYS_prlimit64, 0, resource, 0, &r) != 0) {
        return UINT64_MAX;
    }
    return r.rlim_cur;
}

static uint64_t linux_memory_total(uint64_t *swap)
{
    struct sysinfo info = {0};
    bool known = !fl_sys_is_confined() && fl_call(SYS_sysinfo, &info) == 0;

    if (swap != NULL) {
        *swap = known ? (uint64_t)info.totalswap * info.mem_unit : 0;
    }
    return known ? (uint64_t)info.totalram * info.mem_unit : 0;
}

static uint64_t linux_entropy(void)
{
    const void *bytes = at(fl_sys_auxval(AT_RANDOM));
    uint64_t v = 0;

    if (bytes != NULL) {
        memcpy(&v, bytes, sizeof v);
    }
    return v;
}

static int linux_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec t = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    struct timespec *limit = timeout_ns == 0 ? NULL : &t;

    return (int)fl_call(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, limit);
}

static int linux_wake(_Atomic uint32_t *word, int count)
{
    long woken = fl_call(SYS_futex, word, FUTEX_WAKE_PRIVATE, count);

    return woken >= 0 ? 0 : (int)woken;
}

int fl_linux_write(int fd, const char *text, size_t len)
{
    while (len > 0) {
        long n = fl_call(SYS_write, fd, text, len);
        if (n < 0 && n != -EINTR) {
            return (int)n;
        }
        if (n > 0) {
            text += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

static int linux_append_file(const char *path, const char *text, size_t len)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC };

    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    long fd = fl_call(SYS_openat, AT_FDCWD, path, FLAGS, 0666);
    if (fd < 0) {
        return (int)fd;
    }
    int rc = fl_linux_write((int)fd, text, len);
    (void)fl_call(SYS_close, fd);
    return rc;
}

/* Written once, for the constant and for the copy that tests overwrite. */
#define LINUX_TABLE                                                                                \
    {                                                                                              \
        .reserve = linux_reserve, .map_at = linux_map_at, .map_hugetlb = linux_map_hugetlb,        \
        .unmap = linux_unmap, .commit = linux_commit, .decommit = linux_decommit,                  \
        .advise = linux_advise, .populate = linux_populate,                                        \
        .populate_shared = fl_linux_populate_shared, .remap = linux_remap,                         \
        .lazy_free = linux_lazy_free, .move_begin = fl_linux_move_begin,                           \
        .move_pages = fl_linux_move_pages, .move_end = fl_linux_move_end,                          \
        .touch_open = fl_linux_touch_open, .touch_arm = fl_linux_touch_arm,                        \
        .touch_read = fl_linux_touch_read, .find_split = fl_linux_find_split,                      \
        .survey = fl_linux_survey, .touched = fl_linux_touched, .huge = fl_linux_huge,             \
        .filled = fl_linux_filled, .resident = linux_resident, .present = fl_linux_present,        \
        .name = linux_name, .now_ns = linux_now_ns, .own_ns = linux_own_ns,                        \
        .read_file = linux_read_file, .limit = linux_limit, .memory_total = linux_memory_total,    \
        .entropy = linux_entropy, .wait = linux_wait, .wake = linux_wake, .write = fl_linux_write, \
        .append_file = linux_append_file, .replace_file = fl_linux_replace_file,                   \
        .protect = linux_protect                                                                   \
    }

const struct fl_sys fl_sys_linux = LINUX_TABLE;
struct fl_sys fl_sys = LINUX_TABLE;
