/* What the kernel says of single pages: /proc/thread-self/pagemap. Source: kernel docs
 * admin-guide/mm/pagemap. */
#include "sys/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

/* Debian 12's headers are older than the call. */
struct scan_region {
    uint64_t start, end, categories;
};
struct scan_arg {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define FL_PAGEMAP_SCAN _IOWR('f', 16, struct scan_arg)
enum { IS_PRESENT = 1 << 3, IS_SWAPPED = 1 << 4, IS_ZERO = 1 << 5, IS_HUGE = 1 << 6 };
static const uint64_t present_bit = (uint64_t)1 << 63, swapped_bit = (uint64_t)1 << 62,
                      own_bit = (uint64_t)1 << 56;

static int open_pagemap(void)
{
    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    /* Of the thread: the process's own has no memory behind it once main has ended by pthread_exit,
     * and kernels from 6.7 on fault when they scan it. */
    long fd = fl_call(SYS_openat, AT_FDCWD, "/proc/thread-self/pagemap", O_RDONLY | O_CLOEXEC);

    return (int)fd;
}

/* The system call itself: libc's functions may be another's by now, and pread(2) ends a cancelled
 * thread. */
static int scan(int fd, struct scan_arg *arg)
{
    return (int)fl_call(SYS_ioctl, fd, FL_PAGEMAP_SCAN, arg);
}

enum { ENTRIES = 32 }; /* read at once: stacks may be short */

static bool read_entries(int fd, uintptr_t from, uint64_t entry[], size_t n)
{
    off_t at = (off_t)((from >> fl_page.shift) * sizeof entry[0]);
    size_t len = n * sizeof entry[0];

    return fl_call(SYS_pread64, fd, entry, len, at) == (ssize_t)len;
}

int fl_linux_find_split(struct fl_range r, struct fl_range *out)
{
    struct scan_region found = {0, 0, 0};
    struct scan_arg arg = {
        .size = sizeof arg,
        .start = r.base,
        .end = fl_range_end(r),
        .vec = (uintptr_t)&found,
        .vec_len = 1,
        .category_inverted = IS_HUGE,
        .category_mask = IS_PRESENT | IS_HUGE,
        .return_mask = IS_PRESENT,
    };
    int fd = open_pagemap();

    if (fd < 0) {
        return fd;
    }
    int n = scan(fd, &arg);
    int rc = n > 0 ? 0 : n == 0 ? -ENOENT : n == -ENOTTY ? -ENOSYS : n;
    (void)fl_call(SYS_close, fd);
    if (rc == 0) {
        out->base = fl_align_down(found.start, fl_page.huge);
        out->len = fl_align_up(found.end, fl_page.huge) - out->base;
    }
    return rc;
}

static FL_APART int read_survey(int fd, struct fl_range r, size_t *out_present, size_t *out_own)
{
    uint64_t entry[ENTRIES];

    fl_assert((r.base | r.len) % fl_page.base == 0);
    *out_present = *out_own = 0;
    for (size_t done = 0; done < r.len;) {
        size_t n = fl_min((r.len - done) >> fl_page.shift, ENTRIES);
        if (!read_entries(fd, r.base + done, entry, n)) {
            return -EIO;
        }
        for (size_t i = 0; i < n; i++) {
            bool present = (entry[i] & present_bit) != 0; /* NOLINT: the kernel wrote it */
            *out_present += present ? fl_page.base : 0;
            *out_own += present && (entry[i] & own_bit) != 0 ? fl_page.base : 0;
        }
        done += n << fl_page.shift;
    }
    return 0;
}

int fl_linux_survey(struct fl_range r, size_t *out_present, size_t *out_own)
{
    int fd = open_pagemap();

    *out_present = *out_own = 0;
    if (fd < 0) {
        return fd;
    }
    int rc = read_survey(fd, r, out_present, out_own);
    (void)fl_call(SYS_close, fd);
    return rc;
}

/* What holds pages of any of these `kinds` that are `all` of those too, lowest first. What was read
 * alone is the kernel's page of zeros, and is left out. -ENOTTY before Linux 6.7. */
static int scan_held(int fd, struct fl_range r, uint64_t kinds, uint64_t all,
                     struct scan_region found[], unsigned most)
{
    struct scan_arg arg = {
        .size = sizeof arg,
        .start = r.base,
        .end = fl_range_end(r),
        .vec = (uintptr_t)found,
        .vec_len = most,
        .category_inverted = IS_ZERO,
        .category_mask = IS_ZERO | all,
        .category_anyof_mask = kinds,
        .return_mask = kinds,
    };

    return scan(fd, &arg);
}

static FL_APART int find_held(int fd, struct fl_range r, uint64_t kinds, uint64_t all,
                              struct fl_range out[], unsigned most)
{
    struct scan_region found[FL_TOUCHED_MOST] = {0};
    int n = scan_held(fd, r, kinds, all, found, most < FL_TOUCHED_MOST ? most : FL_TOUCHED_MOST);

    for (int i = 0; i < n; i++) {
        out[i] = (struct fl_range){found[i].start, found[i].end - found[i].start};
    }
    return n;
}

/* One after the other into `out`, which holds `n`. Returns how many it holds then. */
static unsigned add_page(struct fl_range out[], unsigned n, uintptr_t page)
{
    fl_assert(n == 0 || fl_range_end(out[n - 1]) <= page);
    if (n != 0 && fl_range_end(out[n - 1]) == page) {
        out[n - 1].len += fl_page.base;
        return n;
    }
    out[n] = (struct fl_range){page, fl_page.base};
    return n + 1;
}

static bool holds_something(uint64_t entry)
{
    return (entry & (present_bit | swapped_bit)) != 0;
}

/* An emulator's addresses are not the kernel's; and a program that closes what it did not open may
 * have put another file in the place. What is certainly there must be told of. */
static bool knows_us(int fd)
{
    uint64_t here = 1;

    return read_entries(fd, (uintptr_t)&here, &here, 1) && holds_something(here);
}

static FL_APART int read_touched(int fd, struct fl_range r, struct fl_range out[], unsigned most)
{
    uint64_t entry[ENTRIES];
    unsigned found = 0;

    fl_assert(most != 0 && (r.base | r.len) % fl_page.base == 0);
    if (!knows_us(fd)) {
        return -EIO;
    }
    for (size_t done = 0; done < r.len;) {
        size_t n = fl_min((r.len - done) >> fl_page.shift, ENTRIES);
        if (!read_entries(fd, r.base + done, entry, n)) {
            return -EIO;
        }
        for (size_t i = 0; i < n; i++, done += fl_page.base) {
            bool there = holds_something(entry[i]);
            if (there && found == most && fl_range_end(out[found - 1]) != r.base + done) {
                return (int)found;
            }
            found = there ? add_page(out, found, r.base + done) : found;
        }
    }
    return (int)found;
}

int fl_linux_touched(struct fl_range r, struct fl_range out[], unsigned most)
{
    int fd = fl_sys_is_confined() ? -EPERM : open_pagemap(); /* a program's thread asks */

    if (fd < 0) {
        return fd;
    }
    /* mincore(2) will not do: it calls a page absent that is swapped out. */
    int n = find_held(fd, r, IS_PRESENT | IS_SWAPPED, 0, out, most);
    if (n == -ENOTTY || n == -EINVAL) {
        n = read_touched(fd, r, out, most);
    }
    (void)fl_call(SYS_close, fd);
    return n;
}

int fl_linux_huge(struct fl_range r, struct fl_range out[], unsigned most)
{
    int fd = open_pagemap();

    if (fd < 0) {
        return fd;
    }
    int n = find_held(fd, r, IS_PRESENT, IS_HUGE, out, most);
    (void)fl_call(SYS_close, fd);
    return n;
}

/* As scan_held. */
static int scan_present(int fd, struct fl_range r, size_t *out_bytes)
{
    enum { AT_ONCE = 16 };
    struct scan_region found[AT_ONCE] = {0};
    int n = AT_ONCE;

    while (n == AT_ONCE && r.len != 0) {
        uintptr_t end = fl_range_end(r);
        n = scan_held(fd, r, IS_PRESENT, 0, found, AT_ONCE);
        for (int i = 0; i < n; i++) {
            *out_bytes += found[i].end - found[i].start;
            r.base = found[i].end;
        }
        r.len = end - r.base;
    }
    return n < 0 ? n : 0;
}

int fl_linux_present(struct fl_range r, size_t *out_bytes)
{
    size_t own;
    int fd = open_pagemap();

    *out_bytes = 0;
    if (fd < 0) {
        return fd;
    }
    int rc = scan_present(fd, r, out_bytes);
    if (rc == -ENOTTY || rc == -EINVAL) {
        rc = knows_us(fd) ? read_survey(fd, r, out_bytes, &own) : -EIO;
    }
    (void)fl_call(SYS_close, fd);
    return rc;
}
