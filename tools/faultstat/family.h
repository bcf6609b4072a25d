/* The processes of one command: itself and its descendants, as far as they were seen. Leaves to
 * proc.h the reading of one. The caller owns the table; Lock: the caller's. */
#ifndef FAULTLESS_FAULTSTAT_FAMILY_H
#define FAULTLESS_FAULTSTAT_FAMILY_H

#include "faultstat/proc.h"
#include "faultstat/served.h"

#include <stddef.h>

enum { FL_FAMILY_MAX = 256 };

struct fl_member {
    pid_t pid;
    bool is_alive;         /* when last looked for */
    struct fl_usage usage; /* as last read */
    uint64_t image;        /* what it executes: inode and device, mixed; changes with exec */
    struct fl_served served;
};

struct fl_family {
    struct fl_member member[FL_FAMILY_MAX]; /* the first is the command */
    size_t count;
    size_t lost;         /* that found no room */
    size_t looks;        /* how often it was looked who serves one */
    const char *library; /* what is preloaded, "" for none; NULL: it is not asked who serves them */
};

/* Look for new descendants of `root` and of every member that lives, and read them all: also those
 * whose parent has ended, once they were seen. Threads: one at a time on one table.
 * Cost: a file for each thread and four for each process, about 10 us each. */
void fl_family_update(struct fl_family *family, pid_t root);

/* Send a signal to all that live. */
void fl_family_kill(const struct fl_family *family, int signal_number);

/* What all used, and their reaped descendants that were never seen; of living processes as now.
 * Threads: as above. */
struct fl_usage fl_family_usage(const struct fl_family *family);

/* Who serves the process that faulted most, of those where that is certain; else of those where it
 * is not. */
struct fl_served fl_family_served(const struct fl_family *family);

#endif
