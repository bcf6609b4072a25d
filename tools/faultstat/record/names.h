/* From the stacks of places to stacks of names, each once. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_NAMES_H
#define FAULTLESS_FAULTSTAT_RECORD_NAMES_H

#include "faultstat/record/recorder.h"

#include <jansson.h>

/* Put "frames" and "stacks" into `root`: frames are functions (name, file, at), a stack is their
 * numbers, outermost first, its site, kind, mapping and faults. A function without a symbol is the
 * file's name in brackets. Returns 0; -ENOMEM. */
int fl_names_save(struct fl_recorder *recorder, json_t *root);

#endif
