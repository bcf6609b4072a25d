#include "faultstat/record/ring.h"

#include "faultstat/proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const size_t ring_most = (size_t)8 << 20;   /* bytes */
static const size_t ring_least = (size_t)1 << 17;  /* bytes: what any user may map on any CPU */
static const size_t rings_most = (size_t)64 << 20; /* bytes, all together */

static int open_event(struct perf_event_attr *attr, int cpu)
{
    long fd = syscall(SYS_perf_event_open, attr, 0, cpu, -1, PERF_FLAG_FD_CLOEXEC);
    return fd < 0 ? -errno : (int)fd;
}

/* What all events have in common. */
static struct perf_event_attr basic_attr(const struct fl_rings *rings)
{
    return (struct perf_event_attr){
        .size = sizeof(struct perf_event_attr),
        .type = PERF_TYPE_SOFTWARE,
        .disabled = 1,
        .inherit = 1,
        .enable_on_exec = 1,
        .exclude_kernel = rings->user_only,
        .exclude_hv = 1,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
}

static struct perf_event_attr fault_attr(const struct fl_rings *rings,
                                         const struct fl_rings_spec *spec, int role)
{
    struct perf_event_attr attr = basic_attr(rings);
    bool is_first = role == FL_ROLE_MINOR; /* it alone reports mappings and processes */
    attr.config = is_first ? PERF_COUNT_SW_PAGE_FAULTS_MIN : PERF_COUNT_SW_PAGE_FAULTS_MAJ;
    attr.sample_type = rings->layout.fault_type;
    attr.sample_regs_user = FL_REG_MASK;
    attr.sample_stack_user = spec->stack_len;
    if ((attr.sample_type & PERF_SAMPLE_REGS_USER) == 0) {
        attr.sample_regs_user = attr.sample_stack_user = 0;
        attr.exclude_callchain_kernel = 1;
    }
    /* Never with PERF_SAMPLE_PERIOD: the kernel then samples each software event. And not by
     * frequency: the period that a sample bears is the next one's. */
    attr.sample_period = spec->every;
    attr.mmap = attr.mmap2 = attr.mmap_data = is_first;
    attr.task = attr.comm = attr.comm_exec = is_first;
    return attr;
}

/* The tracepoint of faults in user mode; 0: not to be seen. */
static uint64_t find_tracepoint(struct fl_event_layout *layout)
{
    static const char *const folder[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};
    char path[96];
    char text[32];
    for (size_t i = 0; i < sizeof(folder) / sizeof(folder[0]); i++) {
        snprintf(path, sizeof(path), "%s/events/exceptions/page_fault_user/id", folder[i]);
        if (fl_proc_read_text(path, text, sizeof(text)) > 0) {
            layout->protect_addr = 8; /* bytes; the first 8 are common to all tracepoints */
            layout->protect_error = 24;
            return strtoull(text, NULL, 10);
        }
    }
    return 0;
}

/* Open the tracepoint on one CPU. Its filter keeps faults on pages that are present: bit 0 of the
 * error code of x86. Returns the descriptor, or -errno. */
static int open_protect(struct fl_rings *rings, int cpu, uint64_t tracepoint)
{
    static char filter[] = "error_code & 1";
    struct perf_event_attr attr = basic_attr(rings);
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = tracepoint;
    attr.sample_type = FL_SAMPLE_COMMON | PERF_SAMPLE_RAW;
    attr.sample_period = 1;
    int fd = open_event(&attr, cpu);
    if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_FILTER, filter) != 0) {
        close(fd);
        return -errno;
    }
    return fd;
}

/* Open the clock on one CPU. Where the kernel may not be seen it drops the ticks that meet it. */
static int open_clock(struct fl_rings *rings, int cpu)
{
    struct perf_event_attr attr = basic_attr(rings);
    attr.config = PERF_COUNT_SW_CPU_CLOCK;
    attr.sample_type = FL_SAMPLE_COMMON;
    attr.sample_period = FL_CLOCK_NS;
#ifdef __x86_64__
    attr.sample_type |= PERF_SAMPLE_REGS_USER;
    attr.sample_regs_user = FL_REG_IP_MASK;
    rings->layout.clock_has_ip = true;
#endif
    return open_event(&attr, cpu);
}

/* Send what `role` writes to the ring of the first event. */
static void join_ring(struct fl_ring *ring, int role, uint64_t *id)
{
    if (ring->fd[role] >= 0 &&
        (ioctl(ring->fd[role], PERF_EVENT_IOC_SET_OUTPUT, ring->fd[FL_ROLE_MINOR]) != 0 ||
         ioctl(ring->fd[role], PERF_EVENT_IOC_ID, &id[role]) != 0)) {
        close(ring->fd[role]);
        ring->fd[role] = -1;
    }
}

static int open_cpu(struct fl_rings *rings, const struct fl_rings_spec *spec, int cpu)
{
    struct fl_ring *ring = &rings->ring[rings->count];
    uint64_t *id = &rings->id[rings->count * FL_ROLE_COUNT];
    struct perf_event_attr attr = fault_attr(rings, spec, FL_ROLE_MINOR);
    for (int role = 0; role < FL_ROLE_COUNT; role++) {
        ring->fd[role] = -1;
    }
    ring->fd[FL_ROLE_MINOR] = open_event(&attr, cpu);
    if (ring->fd[FL_ROLE_MINOR] < 0) {
        return ring->fd[FL_ROLE_MINOR];
    }
    size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    void *base = mmap(NULL, page_len + rings->len, PROT_READ | PROT_WRITE, MAP_SHARED,
                      ring->fd[FL_ROLE_MINOR], 0);
    if (base == MAP_FAILED ||
        ioctl(ring->fd[FL_ROLE_MINOR], PERF_EVENT_IOC_ID, &id[FL_ROLE_MINOR]) != 0) {
        int rc = -errno;
        close(ring->fd[FL_ROLE_MINOR]);
        return rc;
    }
    ring->page = base;
    attr = fault_attr(rings, spec, FL_ROLE_MAJOR);
    ring->fd[FL_ROLE_MAJOR] = open_event(&attr, cpu);
    join_ring(ring, FL_ROLE_MAJOR, id);
    uint64_t tracepoint = spec->copies ? find_tracepoint(&rings->layout) : 0;
    if (tracepoint != 0) {
        ring->fd[FL_ROLE_PROTECT] = open_protect(rings, cpu, tracepoint);
        join_ring(ring, FL_ROLE_PROTECT, id);
    }
    rings->sees_protection = ring->fd[FL_ROLE_PROTECT] >= 0;
    ring->fd[FL_ROLE_CLOCK] = open_clock(rings, cpu);
    join_ring(ring, FL_ROLE_CLOCK, id);
    rings->has_clock = ring->fd[FL_ROLE_CLOCK] >= 0;
    rings->count++;
    return 0;
}

/* Find what the kernel accepts: with faults in system calls or without, with page sizes or not,
 * with physical addresses or not. These take CAP_PERFMON; their value is never kept. */
static int settle(struct fl_rings *rings, const struct fl_rings_spec *spec)
{
#ifdef __x86_64__
    const uint64_t where = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
#else
    const uint64_t where = PERF_SAMPLE_CALLCHAIN; /* by frame pointers */
#endif
    int fd = -EACCES;
    for (int attempt = 0; attempt < 6 && fd < 0; attempt++) {
        rings->sees_zero_page = attempt % 3 == 0;
        rings->has_page_size = attempt % 3 < 2;
        rings->user_only = attempt / 3 != 0;
        rings->layout.fault_type =
            FL_SAMPLE_COMMON | PERF_SAMPLE_ADDR | where |
            (rings->sees_zero_page ? (uint64_t)PERF_SAMPLE_PHYS_ADDR : 0) |
            (rings->has_page_size ? (uint64_t)PERF_SAMPLE_DATA_PAGE_SIZE : 0);
        struct perf_event_attr attr = fault_attr(rings, spec, FL_ROLE_MINOR);
        fd = open_event(&attr, -1);
    }
    if (fd < 0) {
        return fd;
    }
    close(fd);
    return 0;
}

/* Open all CPUs' events with rings of `len` bytes. -EPERM: so much may not be locked. */
static int open_all(struct fl_rings *rings, const struct fl_rings_spec *spec, size_t len)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);
    rings->len = len;
    rings->ring = calloc((size_t)cpus, sizeof(*rings->ring));
    rings->id = calloc((size_t)cpus * FL_ROLE_COUNT, sizeof(*rings->id));
    int rc = rings->ring != NULL && rings->id != NULL ? 0 : -ENOMEM;
    for (int cpu = 0; cpu < (int)cpus && rc == 0; cpu++) {
        rc = open_cpu(rings, spec, cpu);
        rc = rc == -ENODEV ? 0 : rc; /* a CPU that is offline */
    }
    if (rc != 0) {
        fl_rings_close(rings);
    }
    return rc;
}

int fl_rings_open(struct fl_rings *rings, const struct fl_rings_spec *spec)
{
    memset(rings, 0, sizeof(*rings));
    int rc = settle(rings, spec);
    if (rc != 0) {
        return rc;
    }
    size_t len = ring_most;
    while (len > ring_least && len * (size_t)sysconf(_SC_NPROCESSORS_CONF) > rings_most) {
        len /= 2;
    }
    while ((rc = open_all(rings, spec, len)) == -EPERM && len > ring_least) {
        len /= 2;
    }
    rings->layout.id = rings->id;
    rings->layout.ids = rings->count * FL_ROLE_COUNT;
    return rc;
}

static void drain_one(struct fl_ring *ring, size_t len, unsigned char *scratch,
                      void (*take)(void *arg, const void *record, size_t len), void *arg)
{
    const unsigned char *data = (const unsigned char *)ring->page + ring->page->data_offset;
    /* Acquire: the records are written before the head that covers them. */
    uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
    uint64_t tail = ring->page->data_tail;
    while (tail < head) {
        struct perf_event_header header;
        size_t at = tail % len;
        memcpy(&header, data + at, sizeof(header)); /* records are multiples of 8 bytes */
        if (header.size < sizeof(header)) {
            tail = head;
            break;
        }
        if (at + header.size > len) {
            memcpy(scratch, data + at, len - at);
            memcpy(scratch + (len - at), data, header.size - (len - at));
            take(arg, scratch, header.size);
        } else {
            take(arg, data + at, header.size);
        }
        tail += header.size;
    }
    /* Release: the records are read before the kernel may write over them. */
    __atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

void fl_rings_drain(struct fl_rings *rings, void (*take)(void *arg, const void *record, size_t len),
                    void *arg)
{
    static _Alignas(8) unsigned char scratch[UINT16_MAX + 1]; /* a record's size is 16 bits wide */
    for (size_t i = 0; i < rings->count; i++) {
        drain_one(&rings->ring[i], rings->len, scratch, take, arg);
    }
}

void fl_rings_enable(struct fl_rings *rings)
{
    for (size_t i = 0; i < rings->count; i++) {
        for (int role = 0; role < FL_ROLE_COUNT; role++) {
            if (rings->ring[i].fd[role] >= 0) {
                ioctl(rings->ring[i].fd[role], PERF_EVENT_IOC_ENABLE, 0);
            }
        }
    }
}

void fl_rings_count(const struct fl_rings *rings, uint64_t *minor, uint64_t *major)
{
    *minor = *major = 0;
    for (size_t i = 0; i < rings->count; i++) {
        uint64_t value;
        if (read(rings->ring[i].fd[FL_ROLE_MINOR], &value, sizeof(value)) == sizeof(value)) {
            *minor += value;
        }
        if (rings->ring[i].fd[FL_ROLE_MAJOR] >= 0 &&
            read(rings->ring[i].fd[FL_ROLE_MAJOR], &value, sizeof(value)) == sizeof(value)) {
            *major += value;
        }
    }
}

void fl_rings_close(struct fl_rings *rings)
{
    size_t page_len = (size_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < rings->count; i++) {
        munmap(rings->ring[i].page, page_len + rings->len);
        for (int role = 0; role < FL_ROLE_COUNT; role++) {
            if (rings->ring[i].fd[role] >= 0) {
                close(rings->ring[i].fd[role]);
            }
        }
    }
    free(rings->ring);
    free(rings->id);
    rings->ring = NULL;
    rings->id = NULL;
    rings->count = 0;
}
