/* What the kernel says of single pages: /proc/self/pagemap. Source: kernel docs admin-guide/mm/pagemap. */
#include "sys/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Debian 12's headers are older than the call. */
struct scan_region {
    uint64_t start, end, categories;
};
struct scan_arg {
    uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
    uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};
#define FL_PAGEMAP_SCAN _IOWR('f', 16, struct scan_arg)
enum { IS_PRESENT = 1 << 3, IS_HUGE = 1 << 6 };
static const uint64_t present_bit = (uint64_t)1 << 63, own_bit = (uint64_t)1 << 56;

static int open_pagemap(void)
{
    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

    return fd < 0 ? -errno : (int)fd;
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
    int n = ioctl(fd, FL_PAGEMAP_SCAN, &arg);
    int rc = n > 0 ? 0 : n == 0 ? -ENOENT : errno == ENOTTY ? -ENOSYS : -errno;
    syscall(SYS_close, fd);
    if (rc == 0) {
        out->base = fl_align_down(found.start, fl_page.huge);
        out->len = fl_align_up(found.end, fl_page.huge) - out->base;
    }
    return rc;
}

int fl_linux_survey(struct fl_range r, size_t *out_present, size_t *out_own)
{
    uint64_t entry[128];
    int fd = open_pagemap(), rc = 0;

    *out_present = *out_own = 0;
    if (fd < 0) {
        return fd;
    }
    for (size_t done = 0; done < r.len && rc == 0;) {
        size_t n = fl_min((r.len - done) >> fl_page.shift, sizeof entry / sizeof entry[0]);
        off_t at = (off_t)(((r.base + done) >> fl_page.shift) * sizeof entry[0]);
        rc = pread(fd, entry, n * sizeof entry[0], at) == (ssize_t)(n * sizeof entry[0]) ? 0 : -EIO;
        for (size_t i = 0; i < n && rc == 0; i++) {
            bool present = (entry[i] & present_bit) != 0;
            *out_present += present ? fl_page.base : 0;
            *out_own += present && (entry[i] & own_bit) != 0 ? fl_page.base : 0;
        }
        done += n << fl_page.shift;
    }
    syscall(SYS_close, fd);
    return rc;
}
