/* Runs one command to its end and returns everything counted about it. Leaves starting to spawn.h,
 * periodic reading to sampler.h, the arithmetic of steps to steps.h. */
#ifndef FAULTLESS_FAULTSTAT_WATCH_H
#define FAULTLESS_FAULTSTAT_WATCH_H

#include "faultstat/spawn.h"
#include "faultstat/steps.h"

#include <regex.h>
#include <sys/resource.h>

enum { FL_INTERVAL_MS = 50, FL_TAIL_LEN = 65536 };

struct fl_watch;

/* Called at each turn of the loop, at least every `every_ms`, and once after the command's end.
 *   pid   the process that marks steps, or the command.
 * It sits between a mark and its step: short, please. */
struct fl_watch_hook {
    void (*call)(void *arg, const struct fl_watch *watch, pid_t pid);
    void *arg;
    int every_ms;
};

struct fl_watch_spec {
    struct fl_spawn_spec spawn;
    bool with_nodes;           /* read on which nodes its memory lies */
    bool forward;              /* show its captured output too, as it comes */
    unsigned interval_ms;      /* of sampling; 0: at marks only */
    double timeout_s;          /* after which it and its descendants are ended; 0: none */
    const regex_t *step_regex; /* each line of its captured output that matches ends a step; NULL:
                                * the command marks its steps itself */
    const char *library;       /* what is preloaded, "" for none; NULL: do not look */
    const struct fl_watch_hook *hook; /* NULL: none */
};

/* The last bytes that came through a pipe, with a final NUL. */
struct fl_tail {
    char text[FL_TAIL_LEN];
    size_t len;
};

struct fl_watch {
    int status;     /* as waitpid(2) gives it */
    int exec_error; /* 0, or why the command could not be executed: -errno */
    int interrupt;  /* a signal that reached us meanwhile: SIGINT, SIGTERM, ...; 0 = none */
    bool is_timed_out;
    double wall_s;
    struct rusage usage;    /* the command and its reaped descendants */
    struct fl_usage helper; /* threads named fl-*, as far as sampled: see fl_threads_sum */
    unsigned helper_lost;   /* helper threads past the table's end */
    struct fl_peaks peaks;
    struct fl_served served; /* of the process that faulted most */
    size_t processes;        /* that were seen: the command and its descendants */
    struct fl_thp thp;       /* events of the whole system while the command ran */
    int perf_error; /* 0, or why the next two are absent: -errno; -ENODATA: not asked for */
    int perf_user_only;
    uint64_t perf_minor;
    uint64_t perf_major;
    struct fl_steps steps;
    struct fl_tail out;
    struct fl_tail err;
};

/* Run a command and watch it until it ends.
 * SIGINT and SIGQUIT are left to the command (the terminal sends them to it too), SIGTERM and
 * SIGHUP are passed on to it.
 *   watch   overwritten; fl_watch_clear releases it, also after an error.
 * Returns 0, whatever became of the command; -errno when it could not be started or watched.
 * Threads: the caller must be the only thread. */
int fl_watch_run(struct fl_watch *watch, const struct fl_watch_spec *spec);

/* Exit status as a shell would give it: the command's own, or 128 + the signal that ended it. */
int fl_watch_exit_status(const struct fl_watch *watch);

/* Minor faults of application threads: all, less the helpers'. */
uint64_t fl_watch_app_minor(const struct fl_watch *watch);

/* Major faults of application threads. */
uint64_t fl_watch_app_major(const struct fl_watch *watch);

/* Release what the record holds. */
void fl_watch_clear(struct fl_watch *watch);

#endif
