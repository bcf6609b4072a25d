/* Where the check goes: to standard output, or to the file of --json. */
#ifndef FAULTLESS_LAUNCHER_OUTPUT_H
#define FAULTLESS_LAUNCHER_OUTPUT_H

#include <stdbool.h>
#include <stdio.h>

/* `path`: NULL and "-" are standard output. Returns NULL after a line on standard error. */
FILE *fl_output_open(const char *path);

/* Closes what fl_output_open returned for `path`. False after a line on standard error: not all was
 * written. */
bool fl_output_close(FILE *out, const char *path);

#endif
