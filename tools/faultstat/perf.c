/* The two software events; a software event needs no PMU, so it works in virtual machines too. */
#include "faultstat/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

static int open_event(pid_t pid, uint64_t config, int user_only)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attr),
        .config = config,
        .disabled = 1,
        .inherit = 1,
        .enable_on_exec = 1,
        .exclude_kernel = user_only != 0,
        .exclude_hv = 1,
    };
    long fd = syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

int fl_perf_start(struct fl_perf *perf, pid_t pid)
{
    *perf = (struct fl_perf){.minor_fd = -1, .major_fd = -1};
    int fd = open_event(pid, PERF_COUNT_SW_PAGE_FAULTS_MIN, 0);
    if (fd == -EACCES || fd == -EPERM) {
        perf->user_only = 1;
        fd = open_event(pid, PERF_COUNT_SW_PAGE_FAULTS_MIN, 1);
    }
    if (fd < 0) {
        return perf->error = fd;
    }
    perf->minor_fd = fd;
    fd = open_event(pid, PERF_COUNT_SW_PAGE_FAULTS_MAJ, perf->user_only);
    if (fd < 0) {
        close(perf->minor_fd);
        perf->minor_fd = -1;
        return perf->error = fd;
    }
    perf->major_fd = fd;
    return 0;
}

int fl_perf_stop(struct fl_perf *perf, uint64_t *minor, uint64_t *major)
{
    *minor = *major = 0;
    if (perf->error != 0) {
        return perf->error;
    }
    if (read(perf->minor_fd, minor, sizeof(*minor)) != sizeof(*minor) ||
        read(perf->major_fd, major, sizeof(*major)) != sizeof(*major)) {
        perf->error = -EIO;
    }
    close(perf->minor_fd);
    close(perf->major_fd);
    return perf->error;
}
