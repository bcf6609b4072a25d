/* Allocators beside malloc: which file has one, and what its user can set. The table is
 * allocators.def. Holds no state. */
#ifndef FAULTLESS_LAUNCHER_ALLOCATORS_H
#define FAULTLESS_LAUNCHER_ALLOCATORS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

/* jemalloc's settings, behind a library's prefix: freed memory stays as long as this library's
 * does; and is in huge pages. */
#define FL_JEMALLOC_STAYS "dirty_decay_ms:10000,muzzy_decay_ms:10000"
#define FL_JEMALLOC_HUGE "thp:always," FL_JEMALLOC_STAYS

struct fl_allocator {
    const char *what, *mark, *package, *system, *better; /* as allocators.def has them */
};

/* One that was found. */
struct fl_own {
    const struct fl_allocator *kind;
    char where[NAME_MAX + 1]; /* the file, or the package */
    char better[160];         /* as the table has it, with its name filled in; "": nothing */
    bool is_package;          /* it is there to be imported: whether it will be is not known */
};

/* Does the ELF file `path` have one? False as well: it cannot be read, or replaces malloc.
 * Cost: reads the file's strings, some 2 ms for 10 MiB of them.  Threads: one. */
bool fl_allocators_find(const char *path, struct fl_own *out);

/* Those of the Python packages beside `interpreter`, which is not to be resolved: a virtual
 * environment has a link. Returns how many were found, at most `most`. */
unsigned fl_allocators_packages(const char *interpreter, struct fl_own *out, unsigned most);

/* One sentence on it, for a process with the environment `value_of` (NULL: not set). False: it
 * uses malloc there, for it is set so. */
bool fl_allocators_say(const struct fl_own *own,
                       const char *(*value_of)(void *with, const char *name), void *with,
                       char *text, size_t size);

#endif
