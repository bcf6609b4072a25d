/* The files that code lies in: where a byte of the file is by its own addresses, what call frame
 * information says there, and the name of the function. ELF files by elfutils' libdw; code that a
 * program generates by the map /tmp/perf-PID.map, which Python 3.12 and several JITs write.
 * M1: a module's number is its place in the table and never changes; 0 is "no module". */
#ifndef FAULTLESS_FAULTSTAT_RECORD_MODULE_H
#define FAULTLESS_FAULTSTAT_RECORD_MODULE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum { FL_ROW_REGS = 8, FL_BASE_FRAME = -1, FL_BASE_SAME = -2, FL_BASE_LOST = -3 };

/* Where one register of the caller's is: at the frame address, or at what a register of this frame
 * holds (functions that align their stack), plus an offset in bytes. */
struct fl_saved {
    int8_t base; /* a register, FL_BASE_FRAME, FL_BASE_SAME: as it is, or FL_BASE_LOST */
    int32_t offset;
};

/* How the caller's registers are found from a place in the code. Registers are those of
 * record/event.h. */
struct fl_row {
    bool is_known; /* false: no call frame information, or more than this can say */
    bool is_last;  /* nothing called this function */
    bool is_deref; /* the frame address is what lies at base + offset */
    uint8_t base;  /* register the frame address is reckoned from */
    int32_t offset;
    struct fl_saved saved[FL_ROW_REGS]; /* the instruction pointer's is the return address */
};

struct fl_jit_name {
    uint64_t start;
    uint64_t len;
    char *name;
};

struct fl_module {
    char *path;
    bool is_jit;    /* `path` is a perf map */
    bool is_opened; /* what follows was tried */
    Dwfl *dwfl;     /* NULL: not readable */
    Dwfl_Module *dw;
    uint64_t bias; /* dw's addresses less the file's own */
    int fd;        /* of the file, for its code; -1: not open */
    Dwarf_CFI *cfi;
    Dwarf_Addr cfi_bias;
    struct fl_jit_name *jit; /* sorted by start */
    size_t jit_count;
};

struct fl_modules {
    struct fl_module *module;
    size_t count;
    size_t capacity;
    time_t began; /* a perf map that was last written before is none of ours; 0: each is */
};

/* The number of the module at `path`, made when new; 0: no memory. */
uint32_t fl_modules_get(struct fl_modules *modules, const char *path);

/* The number of the module of code that process `pid` generated. */
uint32_t fl_modules_get_jit(struct fl_modules *modules, pid_t pid);

/* The address that the byte at `offset` of the file has by its program headers; `offset` itself
 * where that is not known. */
uint64_t fl_modules_address(struct fl_modules *modules, uint32_t module, uint64_t offset);

/* Call frame information at an address of the module. */
struct fl_row fl_modules_row(struct fl_modules *modules, uint32_t module, uint64_t address);

/* Does a call end right before the byte at `offset` of the file? x86-64. */
bool fl_modules_follows_call(struct fl_modules *modules, uint32_t module, uint64_t offset);

/* Name of the function at an address, demangled and without its arguments, or NULL when no symbol
 * covers it. Good until the next call. */
const char *fl_modules_name(struct fl_modules *modules, uint32_t module, uint64_t address);

/* "file.c:12" of an address, by debug information; NULL: there is none. Good until the next
 * call. */
const char *fl_modules_line(struct fl_modules *modules, uint32_t module, uint64_t address);

/* The file's name without its folders; "?" for 0. */
const char *fl_modules_file(const struct fl_modules *modules, uint32_t module);

void fl_modules_clear(struct fl_modules *modules);

#endif
