/* Turns records into JSON (jansson) and writes it. */
#ifndef FAULTLESS_FAULTSTAT_JSON_H
#define FAULTLESS_FAULTSTAT_JSON_H

#include "faultstat/metrics.h"

#include <jansson.h>

enum { FL_JSON_SCHEMA = 1 }; /* raised when a key changes its meaning or goes away */

/* An object of every figure that is not NAN, by its key. Returns a new reference; NULL: no
 * memory. */
json_t *fl_json_metrics(const double value[static FL_METRIC_COUNT]);

/* An array of a command's arguments; bytes that are not UTF-8 become '?'. As above. */
json_t *fl_json_command(char *const argv[]);

/* An array with one object a step. As above. */
json_t *fl_json_steps(const struct fl_steps *steps);

/* The numbers of the last line `SUMMARY {...}` of a command's output, as a new object, or NULL when
 * there is no such line or it is not JSON. */
json_t *fl_json_reported(const char *text);

/* Write `value` and a newline to the file `path`, or to standard output for "-".
 * Returns 0; -errno. The file is complete or, on a full disk, named by the error. */
int fl_json_write(const json_t *value, const char *path);

#endif
