/* Reads the live page of a process, and what it leads to: include/faultless/live.h. Trusts nothing
 * of it: every count, size and address may be forged, and then the answer is wrong or an error, and
 * neither memory nor time is lost over it. Leaves it to others which process that is. */
#ifndef FAULTLESS_FAULTSTAT_TOP_LIVE_H
#define FAULTLESS_FAULTSTAT_TOP_LIVE_H

#include "faultless/live.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* What one reading may cost. */
enum {
    FL_LIVE_READS_MOST = 16384,  /* calls */
    FL_LIVE_BITS_MOST = 8 << 20, /* of one word that points to some */
};

/* Memory of a process. */
struct fl_live_memory {
    /* All of `len` bytes at `at`. 0; -errno, -EFAULT where some of them are not there. */
    int (*read)(const struct fl_live_memory *m, uint64_t at, void *out, size_t len);
    pid_t pid;
};

struct fl_live {
    bool known[FL_LIVE_FIGURES]; /* else it is not there, or could not be read */
    uint64_t value[FL_LIVE_FIGURES];
    char library[sizeof(((struct fl_live_page *)0)->library)];
    uint32_t version; /* of the page; known where it is refused, too */
};

/* The memory of a running process, by process_vm_readv(2): needs the right to trace it. */
struct fl_live_memory fl_live_memory_of(pid_t pid);

/* Find the page by the note of the ELF file that is mapped at `base`. 0; -ENOEXEC: no ELF file;
 * -ENOENT: one without the note; or what `read` said. */
int fl_live_find(const struct fl_live_memory *m, uint64_t base, uint64_t *page);

/* Read the page and all figures. 0; -EAGAIN: the library has not filled it yet; -EPROTONOSUPPORT:
 * of another version; -EPROTO: it contradicts itself; or what `read` said of the page. A figure
 * that cannot be read is not known. Threads: any. */
int fl_live_read(const struct fl_live_memory *m, uint64_t page, struct fl_live *out);

#endif
