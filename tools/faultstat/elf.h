/* The few facts of an ELF file that say whether a library can be preloaded into it, and its
 * strings. The file may be anything: libelf trusts nothing of it. Holds no state. */
#ifndef FAULTLESS_FAULTSTAT_ELF_H
#define FAULTLESS_FAULTSTAT_ELF_H

#include <stdbool.h>
#include <stddef.h>

struct fl_elf {
    bool is_other_class;   /* 32-bit, where we are 64-bit: nothing else is known then */
    bool is_other_machine; /* likewise, of another processor */
    bool has_loader;       /* it names a dynamic loader: else LD_PRELOAD does nothing */
    bool has_malloc;       /* it defines `malloc` for others */
    bool has_sanitizer;    /* a sanitizer's runtime is in it, or linked to it */
};

/* Read the file `path`. Returns 0; -errno of open; -ENOEXEC when it is no ELF file.
 * Threads: one. */
int fl_elf_read(const char *path, struct fl_elf *out);

/* Hands out what holds the file's strings: its read-only data, and the names of its dynamic symbols
 * and of its sections. Ends when `take` says true. Returns as above.
 * Cost: reads all of them. Threads: one. */
int fl_elf_each_text(const char *path, bool (*take)(void *with, const char *bytes, size_t len),
                     void *with);

#endif
