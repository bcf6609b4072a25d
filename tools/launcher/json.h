/* JSON, as the launcher writes it. Each but fl_put_quote begins with a comma: ", "name": value". */
#ifndef FAULTLESS_LAUNCHER_JSON_H
#define FAULTLESS_LAUNCHER_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

void fl_put_quote(FILE *out, const char *text);
void fl_put_member(FILE *out, const char *name, const char *text); /* "" and NULL: null */
void fl_put_bytes(FILE *out, const char *name, uint64_t value);    /* FL_UNLIMITED: null */
void fl_put_truth(FILE *out, const char *name, bool value);
void fl_put_list(FILE *out, const char *name, const char *const text[], unsigned n);

#endif
