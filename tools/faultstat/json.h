/* Turns records into JSON (jansson) and writes it. */
#ifndef FAULTLESS_FAULTSTAT_JSON_H
#define FAULTLESS_FAULTSTAT_JSON_H

#include "faultstat/metrics.h"

#include <jansson.h>
#include <stdio.h>

enum { FL_JSON_SCHEMA = 2 }; /* raised when a key changes its meaning or goes away */

/* An object of every figure that is not NAN, by its key. Returns a new reference; NULL: no
 * memory. */
json_t *fl_json_metrics(const double value[static FL_METRIC_COUNT]);

/* A string; bytes that are not UTF-8 become U+FFFD. As above. */
json_t *fl_json_text(const char *text);

/* An array of a command's arguments, each as fl_json_text. As above. */
json_t *fl_json_command(char *const argv[]);

/* An array with one object a step. As above. */
json_t *fl_json_steps(const struct fl_steps *steps);

/* The numbers of the last line `SUMMARY {...}` of a command's output, as a new object, or NULL when
 * there is no such line or it is not JSON. */
json_t *fl_json_reported(const char *text);

/* Write `value` and a newline; errors stay in `file`. */
void fl_json_print(const json_t *value, FILE *file);

#endif
