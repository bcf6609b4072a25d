/* First touches, told to a thread of ours: userfaultfd(2) in missing mode, for faults of system
 * calls too.
 *
 * Such a descriptor needs CAP_SYS_PTRACE, vm.unprivileged_userfaultfd=1 or /dev/userfaultfd (Linux
 * 6.1). Without, a system call that touches such memory would fail (EFAULT), so there is no such
 * mode then. Source: kernel docs admin-guide/mm/userfaultfd. */
#include "sys/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xAA, 0x00)
#endif
#ifndef UFFD_FEATURE_MOVE
#define UFFD_FEATURE_MOVE (1 << 16)
#endif

static int open_any(void)
{
    int flags = O_CLOEXEC | O_NONBLOCK;
    long fd = fl_call(SYS_userfaultfd, flags);

    if (fd < 0) {
        long door = fl_call(SYS_openat, AT_FDCWD, "/dev/userfaultfd", O_RDWR | O_CLOEXEC);
        fd = door;
        if (door >= 0) {
            fd = fl_call(SYS_ioctl, door, USERFAULTFD_IOC_NEW, flags);
            (void)fl_call(SYS_close, door);
        }
    }
    return (int)fd;
}

int fl_linux_touch_open(int *out_fd)
{
    struct uffdio_api api = {.api = UFFD_API, .features = UFFD_FEATURE_THREAD_ID};
    int fd = fl_sys_is_confined() ? -EPERM : open_any();

    if (fd < 0) {
        return fd;
    }
    if (fl_call(SYS_ioctl, fd, UFFDIO_API, &api) != 0 || (api.features & UFFD_FEATURE_MOVE) == 0) {
        (void)fl_call(SYS_close, fd);
        return -ENOSYS;
    }
    *out_fd = fd;
    return 0;
}

int fl_linux_touch_arm(int fd, struct fl_range r, bool on)
{
    struct uffdio_register reg = {.range = {r.base, r.len}, .mode = UFFDIO_REGISTER_MODE_MISSING};

    /* What waits for a page there is woken by the second, and meets the kernel's own fault. */
    return (int)fl_call(SYS_ioctl, fd, on ? UFFDIO_REGISTER : UFFDIO_UNREGISTER, &reg);
}

int fl_linux_touch_read(int fd, uintptr_t *out_addr, int *out_tid)
{
    struct uffd_msg m = {0};

    for (;;) {
        long n = fl_call(SYS_read, fd, &m, sizeof m);
        if (n != (long)sizeof m) {
            return n < 0 ? (int)n : -EIO;
        }
        if (m.event == UFFD_EVENT_PAGEFAULT) {
            *out_addr = m.arg.pagefault.address;
            *out_tid = (int)m.arg.pagefault.feat.ptid;
            return 0;
        }
    }
}
