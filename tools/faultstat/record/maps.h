/* What lies where in each process that is recorded, as the kernel told it: a mapping a range, newer
 * ones over older. Unmapping is not told, so a range may be gone; nothing faults there then.
 * P1: the ranges of a process are disjoint and ascend. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_MAPS_H
#define FAULTLESS_FAULTSTAT_RECORD_MAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum fl_map_kind { FL_MAP_ANON, FL_MAP_HEAP, FL_MAP_STACK, FL_MAP_FILE, FL_MAP_SHARED };

struct fl_map {
    uint64_t start;
    uint64_t end;
    uint64_t whole;  /* bytes of the mapping as it was made; a later one may have cut it */
    uint64_t offset; /* of the file, at `start` */
    uint32_t module; /* of fl_modules: for code; 0 = none */
    enum fl_map_kind kind;
    bool is_writable;
    bool is_private;
};

struct fl_process {
    pid_t pid;
    struct fl_map *map;
    size_t count;
    size_t capacity;
    bool has_forked;  /* or was forked: some of its pages are shared until they are written */
    uint64_t read_ns; /* when /proc/PID/maps was read last; 0 = never */
    int pagemap_fd;   /* -1: not open */
};

struct fl_processes {
    struct fl_process **process;
    size_t count;
    size_t capacity;
};

/* The process, made when new. NULL: no memory. */
struct fl_process *fl_processes_get(struct fl_processes *all, pid_t pid);

/* A process was forked: it has what its parent had. A thread: nothing to do. */
void fl_processes_fork(struct fl_processes *all, pid_t parent, pid_t pid);

/* It runs another program: nothing is left. */
void fl_process_exec(struct fl_process *process);

/* Put a mapping over what is there. Returns 0; -ENOMEM: it is not noted. */
int fl_process_map(struct fl_process *process, const struct fl_map *map);

/* The mapping that holds `addr`, or NULL. A stack grows downward without a word: what lies at most
 * 8 MiB below one is its. */
const struct fl_map *fl_process_find(const struct fl_process *process, uint64_t addr);

/* The kind of a mapping by the name and flags that the kernel gives it. */
enum fl_map_kind fl_map_kind_of(const char *name, uint32_t flags);

void fl_processes_clear(struct fl_processes *all);

#endif
