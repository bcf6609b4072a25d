/* perf_event_open(2), "Overflow handling": the order of fields below is the kernel's. */
#include "faultstat/record/event.h"

#include <errno.h>
#include <string.h>

/* Bytes not yet read. `bad` is set at the first read past the end; what follows gives zeros. */
struct reader {
    const unsigned char *at;
    const unsigned char *end;
    bool bad;
};

static const void *take(struct reader *r, uint64_t len)
{
    if (len > (uint64_t)(r->end - r->at)) {
        r->bad = true;
        return NULL;
    }
    const void *at = r->at;
    r->at += len;
    return at;
}

static uint64_t take64(struct reader *r)
{
    uint64_t value = 0;
    const void *at = take(r, sizeof(value));
    if (at != NULL) {
        memcpy(&value, at, sizeof(value));
    }
    return value;
}

static uint32_t take32(struct reader *r)
{
    uint32_t value = 0;
    const void *at = take(r, sizeof(value));
    if (at != NULL) {
        memcpy(&value, at, sizeof(value));
    }
    return value;
}

/* Which of a CPU's events it is, of enum fl_role; -1: none of ours. */
static int role_of(const struct fl_event_layout *layout, uint64_t id)
{
    for (size_t i = 0; i < layout->ids; i++) {
        if (layout->id[i] == id && id != 0) {
            return (int)(i % FL_ROLE_COUNT);
        }
    }
    return -1;
}

static void take_thread(struct reader *r, struct fl_event *out)
{
    out->pid = (pid_t)take32(r);
    out->tid = (pid_t)take32(r);
}

static void decode_protect(const struct fl_event_layout *layout, struct reader *r,
                           struct fl_event *out)
{
    take_thread(r, out);
    out->time_ns = take64(r);
    uint32_t len = take32(r);
    const unsigned char *raw = take(r, len);
    if (raw == NULL || len < layout->protect_addr + 8 || len < layout->protect_error + 8) {
        r->bad = true;
        return;
    }
    memcpy(&out->addr, raw + layout->protect_addr, sizeof(out->addr));
    out->type = FL_EVENT_PROTECT;
}

static void take_chain(struct reader *r, struct fl_event *out)
{
    out->chain_len = take64(r);
    if (out->chain_len > (size_t)(r->end - r->at) / sizeof(uint64_t)) {
        r->bad = true;
        out->chain_len = 0;
        return;
    }
    out->chain = take(r, out->chain_len * sizeof(uint64_t));
}

static void take_stack(struct reader *r, struct fl_event *out)
{
    uint64_t len = take64(r);
    out->stack = take(r, len);
    if (len != 0 && out->stack != NULL) {
        uint64_t used = take64(r);
        out->stack_len = used < len ? used : len;
    }
}

static void decode_fault(uint64_t type, struct reader *r, struct fl_event *out)
{
    out->type = FL_EVENT_FAULT;
    take_thread(r, out);
    out->time_ns = take64(r);
    out->addr = take64(r);
    if ((type & PERF_SAMPLE_CALLCHAIN) != 0) {
        take_chain(r, out);
    }
    if ((type & PERF_SAMPLE_REGS_USER) != 0 && take64(r) == PERF_SAMPLE_REGS_ABI_64) {
        out->reg = take(r, FL_REG_COUNT * sizeof(uint64_t));
    }
    if ((type & PERF_SAMPLE_STACK_USER) != 0) {
        take_stack(r, out);
    }
    if ((type & PERF_SAMPLE_PHYS_ADDR) != 0) {
        out->is_no_page = take64(r) == 0;
    }
    if ((type & PERF_SAMPLE_DATA_PAGE_SIZE) != 0) {
        out->page_size = take64(r);
    }
}

static void decode_clock(const struct fl_event_layout *layout, struct reader *r, uint16_t misc,
                         struct fl_event *out)
{
    out->type = FL_EVENT_CLOCK;
    out->is_kernel = (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
    take_thread(r, out);
    out->time_ns = take64(r);
    if (layout->clock_has_ip && take64(r) == PERF_SAMPLE_REGS_ABI_64) {
        out->addr = take64(r);
    }
}

static void decode_sample(const struct fl_event_layout *layout, struct reader *r, uint16_t misc,
                          struct fl_event *out)
{
    int role = role_of(layout, take64(r));
    if (role == FL_ROLE_PROTECT) {
        decode_protect(layout, r, out);
    } else if (role == FL_ROLE_CLOCK) {
        decode_clock(layout, r, misc, out);
    } else if (role >= 0) {
        decode_fault(layout->fault_type, r, out);
        out->is_major = role == FL_ROLE_MAJOR;
    }
}

/* A text inside the record; "" when it has no end. */
static const char *take_name(struct reader *r)
{
    const char *name = (const char *)r->at;
    if (memchr(r->at, '\0', (size_t)(r->end - r->at)) == NULL) {
        r->bad = true;
        return "";
    }
    return name;
}

static void decode_map(struct reader *r, struct fl_event *out)
{
    enum { FL_FILE_IDENTITY = 24 }; /* device, inode, generation */
    out->type = FL_EVENT_MAP;
    take_thread(r, out);
    out->addr = take64(r);
    out->len = take64(r);
    out->offset = take64(r);
    (void)take(r, FL_FILE_IDENTITY);
    out->prot = take32(r);
    out->flags = take32(r);
    out->name = take_name(r);
}

static void decode_task(struct reader *r, struct fl_event *out, uint32_t type)
{
    out->type = type == PERF_RECORD_FORK ? FL_EVENT_FORK : FL_EVENT_EXIT;
    out->pid = (pid_t)take32(r);
    out->parent = (pid_t)take32(r);
    out->tid = (pid_t)take32(r);
}

/* The end of every record but a sample: thread, time, identifier. */
static void decode_tail(const unsigned char *record, size_t len, struct fl_event *out)
{
    enum { FL_TIME_FROM_END = 16, FL_TAIL = 24 };
    if (len >= sizeof(struct perf_event_header) + FL_TAIL) {
        memcpy(&out->time_ns, record + len - FL_TIME_FROM_END, sizeof(out->time_ns));
    }
}

int fl_event_decode(const struct fl_event_layout *layout, const void *record, size_t len,
                    struct fl_event *out)
{
    struct perf_event_header head;
    memset(out, 0, sizeof(*out));
    if (len < sizeof(head)) {
        return -EPROTO;
    }
    memcpy(&head, record, sizeof(head));
    const unsigned char *bytes = record;
    struct reader r = {bytes + sizeof(head), bytes + len, head.size != len};
    switch (head.type) {
    case PERF_RECORD_SAMPLE:
        decode_sample(layout, &r, head.misc, out);
        return r.bad ? -EPROTO : 0;
    case PERF_RECORD_MMAP2:
        decode_map(&r, out);
        break;
    case PERF_RECORD_FORK:
    case PERF_RECORD_EXIT:
        decode_task(&r, out, head.type);
        break;
    case PERF_RECORD_COMM:
        take_thread(&r, out);
        out->name = take_name(&r);
        out->type = (head.misc & PERF_RECORD_MISC_COMM_EXEC) != 0 ? FL_EVENT_EXEC : FL_EVENT_OTHER;
        break;
    case PERF_RECORD_LOST:
        (void)take64(&r);
        out->lost = take64(&r);
        out->type = FL_EVENT_LOST;
        break;
    default:
        break;
    }
    decode_tail(bytes, len, out);
    return r.bad ? -EPROTO : 0;
}
