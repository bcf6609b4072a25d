/* Reads the figures of one process, and of the system, from /proc. Values are bytes and
 * nanoseconds.
 * Leaves to threads.h what is counted for each thread. Holds no state. */
#ifndef FAULTLESS_FAULTSTAT_PROC_H
#define FAULTLESS_FAULTSTAT_PROC_H

#include <stdint.h>
#include <sys/types.h>

/* What one process, or one thread, has used since it began. */
struct fl_usage {
    uint64_t minor;   /* minor faults */
    uint64_t major;   /* major faults */
    uint64_t user_ns; /* resolution: one clock tick, 10 ms */
    uint64_t sys_ns;  /* the same */
    uint64_t born;    /* start time in ticks after boot; tells two users of one id apart */
};

struct fl_memory {
    uint64_t rss;      /* VmRSS */
    uint64_t rss_peak; /* VmHWM */
};

struct fl_rollup {
    uint64_t anonymous; /* anonymous memory that is resident */
    uint64_t huge;      /* AnonHugePages: the part of it in huge pages */
    uint64_t pss;       /* resident, shared pages divided among those that share them */
};

/* Events since boot, of the whole system: the kernel does not count them for a process. */
struct fl_thp {
    uint64_t fault_alloc;
    uint64_t fault_fallback;
    uint64_t split_page;
    uint64_t split_pmd;
};

/* Read a whole file of /proc or /sys into `text`, cut at `len` - 1 bytes, with a final NUL.
 * Returns the number of bytes, or -errno.  Threads: any. */
ssize_t fl_proc_read_text(const char *path, char *text, size_t len);

/* Read /proc/PID/stat (`tid` 0: all threads, the ended ones included) or /proc/PID/task/TID/stat.
 *   name   receives the command name when not NULL; 16 bytes.
 * Returns 0; -ESRCH or -ENOENT when it has ended; -EPROTO when the line is not understood.
 * Threads: any. */
int fl_proc_read_usage(pid_t pid, pid_t tid, struct fl_usage *out, char name[16]);

/* Read /proc/PID/stat: the process and those descendants that it waited for. Returns as above. */
int fl_proc_read_whole_usage(pid_t pid, struct fl_usage *out);

/* Read /proc/PID/status. Returns 0 or -errno.  Threads: any. */
int fl_proc_read_memory(pid_t pid, struct fl_memory *out);

/* Read /proc/PID/smaps_rollup. Returns 0 or -errno.  Threads: any.
 * Cost: the kernel walks every page table of the process under its mmap lock: 5 to 10 ms/GiB of
 * base pages. */
int fl_proc_read_rollup(pid_t pid, struct fl_rollup *out);

/* Read /proc/vmstat. Returns 0 or -errno; absent counters are 0.  Threads: any. */
int fl_proc_read_thp(struct fl_thp *out);

/* Find the number after `key` at the start of a line of `text`. Returns `otherwise` when there
 * is none.  Threads: any. */
uint64_t fl_proc_find_number(const char *text, const char *key, uint64_t otherwise);

/* CLOCK_MONOTONIC, in nanoseconds.  Threads: any. */
uint64_t fl_proc_now_ns(void);

#endif
