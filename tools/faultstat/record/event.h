/* One record of a perf ring, decoded. Pure: bytes in, fields out; tests feed it recorded bytes.
 * Leaves the rings to ring.h and what a record means to recorder.h. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_EVENT_H
#define FAULTLESS_FAULTSTAT_RECORD_EVENT_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What each event asks for beside identifier, thread and time, which all have. */
#define FL_SAMPLE_COMMON (PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME)

/* User registers of x86-64, a bit each as in asm/perf_regs.h: what call frame information needs. */
enum { FL_REG_BX, FL_REG_BP, FL_REG_SP, FL_REG_IP, FL_REG_R12, FL_REG_COUNT = FL_REG_R12 + 4 };
#define FL_REG_MASK UINT64_C(0xf001c2)
#define FL_REG_IP_MASK UINT64_C(0x100)

/* The events of a CPU, in the order of fl_event_layout.id. */
enum fl_role { FL_ROLE_MINOR, FL_ROLE_MAJOR, FL_ROLE_PROTECT, FL_ROLE_CLOCK, FL_ROLE_COUNT };

enum fl_event_type {
    FL_EVENT_OTHER,
    FL_EVENT_FAULT,
    FL_EVENT_PROTECT, /* a fault on a page that is present: a copy on write comes next */
    FL_EVENT_CLOCK,   /* a tick of the processor's clock met the thread */
    FL_EVENT_MAP,
    FL_EVENT_FORK,
    FL_EVENT_EXEC,
    FL_EVENT_EXIT,
    FL_EVENT_LOST,
};

/* A field that the type has no use for is 0. Pointers lead into the record. */
struct fl_event {
    enum fl_event_type type;
    bool is_major;   /* fault */
    bool is_kernel;  /* clock: the thread was in the kernel */
    bool is_no_page; /* fault: no page of the process's own is there: the kernel's zero page */
    pid_t pid;
    pid_t tid;
    pid_t parent;               /* fork: the process that forked */
    uint64_t time_ns;           /* CLOCK_MONOTONIC */
    uint64_t addr;              /* fault, protect: touched; clock: the user's next instruction, 0
                                 * = not said; map: first byte */
    uint64_t len;               /* map: bytes */
    uint64_t offset;            /* map: of the file, bytes */
    uint32_t prot;              /* map: PROT_ */
    uint32_t flags;             /* map: MAP_ */
    const char *name;           /* map, exec */
    uint64_t page_size;         /* fault: of the page that is there now, bytes; 0 = not said */
    const uint64_t *reg;        /* fault: FL_REG_COUNT registers, by enum; NULL: none */
    const unsigned char *stack; /* fault: the dump, from the stack pointer up */
    size_t stack_len;
    const uint64_t *chain; /* fault: call chain by frame pointers, innermost first; NULL: none */
    size_t chain_len;
    uint64_t lost; /* lost: records that found no room */
};

/* What the events were opened with: how their samples are laid out. */
struct fl_event_layout {
    uint64_t fault_type;    /* sample_type of the two fault events */
    const uint64_t *id;     /* identifiers, FL_ROLE_COUNT a CPU, by enum fl_role; 0: none */
    size_t ids;             /* entries of `id` */
    bool clock_has_ip;      /* ticks say where the user goes on */
    unsigned protect_error; /* offsets in the raw data of the tracepoint, bytes */
    unsigned protect_addr;
};

/* Decode a record of `len` bytes, header included.
 * Returns 0; -EPROTO when it is cut or its sizes contradict each other.  Threads: any. */
int fl_event_decode(const struct fl_event_layout *layout, const void *record, size_t len,
                    struct fl_event *out);

#endif
