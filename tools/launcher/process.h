/* `faultless --check PID`: what serves a running process and its descendants.
 *
 * process    one process, read from outside: it does nothing, and is not stopped
 * tree       all of them, from the command to its exit status
 * show_tree  what was found, as text and as JSON
 * State: none; all is in struct fl_tree, which tree.c owns. */
#ifndef FAULTLESS_LAUNCHER_PROCESS_H
#define FAULTLESS_LAUNCHER_PROCESS_H

#include "faultstat/served.h"
#include "launcher/allocators.h"
#include "launcher/lines.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

enum { FL_PROCESS_OWN = 8 };

enum fl_verdict {
    FL_VERDICT_UNKNOWN, /* it may not be looked at, or has ended meanwhile */
    FL_VERDICT_SERVED,
    FL_VERDICT_IDLE, /* it would be, and has made no large request yet */
    FL_VERDICT_NOT,
};

struct fl_process {
    pid_t pid;
    char name[16];
    enum fl_verdict verdict;
    char reason[160];         /* why not, or what is not known; "": none */
    char library[PATH_MAX];   /* ours, as it is mapped; "": it is not */
    uint64_t anonymous, ours; /* bytes in memory; FL_UNLIMITED: not known */
    bool thp_off;             /* prctl(2) PR_SET_THP_DISABLE, without the exception for advice */
    uint64_t as, data, group; /* limits */
    struct fl_own own[FL_PROCESS_OWN];
    unsigned nown;
    char *environment; /* as it began; its names end with NUL */
    size_t environment_len;
};

/* 0; -ESRCH, -EACCES and others: there is nothing to be read, and the verdict is UNKNOWN.
 * Cost: the strings of each file that it has mapped, once: some 0.1 s for a large program. */
int fl_process_read(pid_t pid, struct fl_process *p);
void fl_process_end(struct fl_process *p);
/* What its environment says; NULL: it is not set. `p`: a struct fl_process. */
const char *fl_process_value(void *p, const char *name);

enum { FL_TREE_MOST = 256 };

struct fl_tree {
    struct fl_process *process[FL_TREE_MOST]; /* the first is the one that was asked about */
    unsigned count, served;                   /* in all; of these, SERVED or IDLE */
    unsigned left;                            /* that found no room */
};
void fl_tree_print(const struct fl_tree *t, FILE *out);
void fl_tree_print_json(const struct fl_tree *t, FILE *out);
/* All of it. `json`: the file for JSON, NULL: text. Exit status: 0 all are served; 1 not all; 126:
 * `pid` may not be looked at; 127: there is none. */
int fl_tree_main(pid_t pid, const char *json);

#endif
