/* `faultless --check`: what the library will do on this machine, for this command.
 * docs/diagnose.md.
 *
 * host     what the kernel and the system give, asked without the library
 * target   the command's file: can the library be loaded into it at all? What of its memory is not
 *          malloc's?
 * probe    this program once more, under the library as CMD would have it: what it says of itself
 * advice   what stands in the way, and what would help, in words
 * State: none; all is in struct fl_check, which main owns. */
#ifndef FAULTLESS_LAUNCHER_CHECK_H
#define FAULTLESS_LAUNCHER_CHECK_H

#include "launcher/allocators.h"
#include "launcher/lines.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { FL_EXIT_OWN = 125, FL_EXIT_CANNOT_RUN = 126, FL_EXIT_NOT_FOUND = 127 }; /* as env(1) does */

/* Calls that are tried: 0, or an error's number. */
struct fl_host_calls {
    int populate;  /* madvise(2) MADV_POPULATE_WRITE */
    int uffd;      /* userfaultfd(2) for faults of the program's own */
    int uffd_move; /* its UFFDIO_MOVE; ENOSYS before Linux 6.8 */
    int uffd_all;  /* userfaultfd(2), also for faults of system calls */
    int uring;     /* io_uring(7) */
};

/* Bytes; FL_UNLIMITED: no bound. */
struct fl_host_memory {
    uint64_t total, available;
    uint64_t cgroup; /* the least limit of the process's group and those above it */
    uint64_t as, data, memlock;
    int overcommit; /* vm.overcommit_memory */
};

struct fl_host {
    char kernel[72];
    struct fl_host_calls calls;
    struct fl_host_memory memory;
    char thp[16];     /* always, madvise, never; "": no such kernel */
    bool thp_refused; /* the process has them switched off: prctl(2) PR_SET_THP_DISABLE */
    uint64_t huge;    /* bytes of a huge page */
    char nodes[64];   /* with memory; as 0-1 */
    char allowed[64]; /* of these, the cpuset's */
    const char *policy;
    int seccomp;   /* 0: none, 1: strict, 2: filter */
    unsigned gpus; /* /dev/nvidia0 and so on */
    char driver[128];
};
void fl_host_read(struct fl_host *h);
/* Bytes that the control groups allow which `groups`, a /proc/PID/cgroup, names. */
uint64_t fl_host_group_limit(const char *groups);
/* "yes", or the error's name. */
const char *fl_host_answer(int error);

enum fl_target_kind {
    FL_TARGET_DYNAMIC,
    FL_TARGET_STATIC,
    FL_TARGET_OTHER,   /* another architecture */
    FL_TARGET_UNKNOWN, /* no ELF file */
};

enum { FL_TARGET_OWN = 8 };

struct fl_target {
    int error; /* 0; ENOENT and others: there is no such program */
    char path[PATH_MAX];
    char script[PATH_MAX]; /* that it is the interpreter of; "": none */
    enum fl_target_kind kind;
    bool raised; /* set-user-ID, set-group-ID or file capabilities */
    bool own_malloc;
    struct fl_own own[FL_TARGET_OWN]; /* allocators beside malloc */
    unsigned nown;
};
/* `name`: looked for as execvp(3) does. */
void fl_target_read(struct fl_target *t, const char *name);
/* What the environment of a command says; NULL: it is not set. */
const char *fl_target_value(void *unused, const char *name);
/* Some of the program's own memory is not malloc's. */
bool fl_target_is_part(const struct fl_target *t);
/* Does that library or program define malloc, for others to use? False as well: it cannot be
 * read. */
bool fl_target_has_malloc(const char *path);
/* Is the script `text`, at `path`, one of pyenv's or its like? Then `program` is what it would
 * run. */
bool fl_shim_read(const char *text, size_t len, const char *path, char program[PATH_MAX]);

enum { FL_PROBE_OPTIONS = 96, FL_PROBE_NOTES = 24, FL_PROBE_TEXT = 65536 };

struct fl_probe_option {
    const char *name, *value, *origin;
};

struct fl_probe {
    bool loaded, active;
    unsigned rung; /* 0 userfaultfd, 1 mremap, 2 not at all */
    int status;    /* of the probe: as a shell says it */
    unsigned noptions, nnotes;
    struct fl_probe_option option[FL_PROBE_OPTIONS];
    const char *note[FL_PROBE_NOTES]; /* other lines of the library's */
    char text[FL_PROBE_TEXT];         /* that these point into */
};
/* Starts this program as `faultless --probe`. False: it cannot be started. */
bool fl_probe_run(struct fl_probe *p);
/* That program. */
int fl_probe_main(void);

enum { FL_ADVICE = 16 };

struct fl_check {
    char library[PATH_MAX];
    const char *preloads; /* LD_PRELOAD as it was; NULL: none */
    const char *command;  /* NULL: none */
    struct fl_host host;
    struct fl_target target;
    struct fl_probe probe;
    const char *obstacle; /* why it is not served; NULL: it is */
    const char *advice[FL_ADVICE];
    unsigned nadvice;
};
/* Fills in obstacle and advice. */
void fl_check_judge(struct fl_check *c);
void fl_check_print(const struct fl_check *c, FILE *out);
void fl_check_print_json(const struct fl_check *c, FILE *out);
/* All of it. `command`: NULL without; `json`: the file for JSON, NULL: text. Exit status: 0 served;
 * 1 not; 125 no library; 126, 127: CMD. */
int fl_check_main(const char *command, const char *json);

#endif
