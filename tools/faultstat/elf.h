/* The few facts of an ELF file that say whether a library can be preloaded into it. */
#ifndef FAULTLESS_FAULTSTAT_ELF_H
#define FAULTLESS_FAULTSTAT_ELF_H

#include <stdbool.h>

struct fl_elf {
    bool is_other_class; /* 32-bit, where we are 64-bit: nothing else is known then */
    bool has_loader;     /* it names a dynamic loader: else LD_PRELOAD does nothing */
    bool has_malloc;     /* it defines `malloc` for others */
    bool has_sanitizer;  /* it names a hook of the sanitizers: their runtime is in it */
};

/* Read the file `path`. Returns 0; -errno of open or mmap; -ENOEXEC when it is no ELF file.
 * Threads: any. */
int fl_elf_read(const char *path, struct fl_elf *out);

#endif
