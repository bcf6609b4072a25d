/* From a fault's registers and the dump of its stack to the places in the code that led there.
 *
 * Unwinding by call frame information of a file's every frame anew costs some 10 us a frame; the
 * same few thousand places come again and again, so what the information says of a place is kept
 * and a frame costs one lookup. Code without information (JIT) is left by its frame pointer, or by
 * the nearest return address. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_UNWIND_H
#define FAULTLESS_FAULTSTAT_RECORD_UNWIND_H

#include "faultstat/record/event.h"
#include "faultstat/record/maps.h"
#include "faultstat/record/module.h"

enum { FL_FRAMES_MOST = 96, FL_ROWS = 1 << 15 };

/* A place in the code: by module and its own address, so alike in all processes. */
struct fl_place {
    uint32_t module; /* 0: unknown memory; `address` is then the process's */
    uint64_t address;
};

struct fl_row_slot {
    struct fl_place place;
    struct fl_row row;
    bool is_used;
};

struct fl_unwinder {
    struct fl_modules modules;
    struct fl_row_slot *slot; /* FL_ROWS; NULL: nothing is kept */
};

/* Returns 0; -ENOMEM. */
int fl_unwinder_open(struct fl_unwinder *unwinder);

/* The places of a fault, innermost first; callers by the byte before their return address.
 *   is_cut   set when the stack goes on: the dump was too short, or a frame has no information.
 * Returns how many, at most FL_FRAMES_MOST. */
size_t fl_unwind(struct fl_unwinder *unwinder, const struct fl_process *process,
                 const struct fl_event *fault, struct fl_place place[FL_FRAMES_MOST], bool *is_cut);

void fl_unwinder_close(struct fl_unwinder *unwinder);

#endif
