/* Writes a recording as one JSON object, with names in the place of addresses. The format is in
 * docs/record.md; `faultstat report` reads it. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_SAVE_H
#define FAULTLESS_FAULTSTAT_RECORD_SAVE_H

#include "faultstat/record/recorder.h"

#include <jansson.h>

enum { FL_RECORD_SCHEMA = 1 }; /* raised when a key changes its meaning or goes away */

#define FL_RECORD_KIND "faultstat record"

struct fl_save_spec {
    char *const *command;
    int warmup;          /* as for fl_steps_summarise */
    uint64_t numa_hints; /* NUMA hint faults of the whole system meanwhile */
};

/* Returns a new reference; NULL: no memory. */
json_t *fl_save_json(struct fl_recorder *recorder, const struct fl_watch *watch,
                     const struct fl_save_spec *spec);

#endif
