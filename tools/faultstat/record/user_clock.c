/* A cpu-clock event that excludes the kernel: its timer runs always, and a tick in the kernel
 * leaves no record. The ring is mapped read-only, so the kernel writes over it and never stops: its
 * head alone tells how many records there were. */
#include "faultstat/record/user_clock.h"

#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const double tick_ns = 100003; /* a prime: no multiple of the kernel's own tick */
enum { FL_RECORD_LEN = 16 };          /* bytes: header and identifier */

bool fl_user_clock_open(struct fl_user_clock *clock)
{
    struct perf_event_attr attr = {
        .size = sizeof(attr),
        .type = PERF_TYPE_SOFTWARE,
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = (uint64_t)tick_ns,
        .sample_type = PERF_SAMPLE_IDENTIFIER,
        .exclude_kernel = 1,
        .exclude_hv = 1,
    };
    size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    clock->page = MAP_FAILED;
    clock->fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    if (clock->fd >= 0) {
        clock->page = mmap(NULL, 2 * page_len, PROT_READ, MAP_SHARED, clock->fd, 0);
    }
    if (clock->page == MAP_FAILED) {
        fl_user_clock_close(clock);
    }
    return clock->fd >= 0;
}

double fl_user_clock_ns(const struct fl_user_clock *clock)
{
    if (clock->fd < 0) {
        return 0;
    }
    return (double)(__atomic_load_n(&clock->page->data_head, __ATOMIC_ACQUIRE) / FL_RECORD_LEN) *
           tick_ns;
}

void fl_user_clock_close(struct fl_user_clock *clock)
{
    if (clock->page != MAP_FAILED) {
        munmap(clock->page, 2 * (size_t)sysconf(_SC_PAGESIZE));
        clock->page = MAP_FAILED;
    }
    if (clock->fd >= 0) {
        close(clock->fd);
        clock->fd = -1;
    }
}
