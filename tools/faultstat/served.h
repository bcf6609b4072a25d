/* Which allocator serves a running process: what was preloaded, or another one in its place. Read
 * from the process itself, never from what was asked for. Leaves ELF files to elf.h. */
#ifndef FAULTLESS_FAULTSTAT_SERVED_H
#define FAULTLESS_FAULTSTAT_SERVED_H

#include <stdbool.h>
#include <sys/types.h>

enum fl_served_state {
    FL_SERVED_UNKNOWN, /* it could not be read, or has ended */
    FL_SERVED_OK,
    FL_SERVED_NOT_LOADED,
    FL_SERVED_SHADOWED,
};

struct fl_served {
    enum fl_served_state state;
    bool is_final;   /* the loader has done its work; else it may be read again, for certainty */
    char reason[96]; /* why not, in words; "" when it is OK */
};

/* Say which allocator serves `pid`.
 *   library   what is preloaded into it, a path; "" for the C library's own.
 * Threads: any.  Cost: some files of /proc and the symbols of one or a few libraries, 0.1 to 1
 *                ms. */
void fl_served_read(pid_t pid, const char *library, struct fl_served *out);

/* Say which allocator will serve a program, by its file alone: for one that ended before it was
 * looked at. UNKNOWN where that is no ELF file.
 *   program   as execvp takes it. */
void fl_served_predict(const char *program, const char *library, struct fl_served *out);

/* "not loaded: REASON", "shadowed by REASON", "ok" or "unknown". */
void fl_served_text(const struct fl_served *served, char *text, size_t len);

#endif
