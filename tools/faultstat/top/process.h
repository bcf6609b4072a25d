/* The processes under faultless, as they are now. Leaves the live page to live.h, showing to
 * show.h. The caller owns the table; Threads: one. */
#ifndef FAULTLESS_FAULTSTAT_TOP_PROCESS_H
#define FAULTLESS_FAULTSTAT_TOP_PROCESS_H

#include "faultstat/proc.h"
#include "faultstat/top/live.h"

enum { FL_TOP_PIDS = 64, FL_TOP_NAME = 16 };

struct fl_top_process {
    pid_t pid;
    uid_t uid;
    char name[FL_TOP_NAME]; /* as the process calls itself: any bytes */
    uint64_t image;         /* what it executes; changes with exec */
    uint64_t page;          /* address of its live page; 0: none */
    int error;              /* -errno of the live page: `live` holds nothing */
    struct fl_live live;
    struct fl_usage usage;
    uint64_t rss;            /* bytes, of now */
    struct fl_rollup rollup; /* zeros: not to be had */
    double remote_pct;       /* NAN: one node, or not to be had */
    double faults_s;         /* minor faults a second */
    double requests_s;       /* large requests a second; NAN: not known */
    uint64_t at_ns;          /* when `usage` was read, by fl_proc_now_ns */
    uint64_t walk_due_ns;    /* when the kernel may be asked to walk its page tables again */
    bool is_here;            /* in this look */
};

struct fl_top {
    bool all_users;
    pid_t only[FL_TOP_PIDS]; /* these alone */
    size_t onlys;            /* 0: all that run */
    struct fl_top_process *process;
    size_t count, room;
    struct fl_top_seen *seen; /* processes that are not under faultless, so as not to look again */
    size_t seens, seen_room;
};

/* Look at all of them. Rates are since the last look at that process, at the first one since it
 * began. 0, or -ENOMEM.
 * Cost: six small files and some 90 reads of memory a process; and a walk of its page tables by
 * the kernel, which takes 1 % of one CPU at most. */
int fl_top_look(struct fl_top *top);

/* Is `pid` in the table; else why not: -ENOENT: it is not under faultless, or what the kernel
 * said. */
int fl_top_find(const struct fl_top *top, pid_t pid);

/* The address of the live page of a process; *out 0: it is not under faultless. 0, or -errno of why
 * that is not known. */
int fl_top_find_page(pid_t pid, uint64_t *out);

/* Where the library's file is mapped in a process, from its first byte on: its address, by one line
 * of /proc/PID/maps; 0: it is another file's line. */
uint64_t fl_top_map_of(const char *line);

void fl_top_free(struct fl_top *top);

#endif
