/* Turns what was seen into lines of text and into JSON. Leaves it to screen.h and main.c where they
 * go. Text is UTF-8 without control characters, whatever a process calls itself. */
#ifndef FAULTLESS_FAULTSTAT_TOP_SHOW_H
#define FAULTLESS_FAULTSTAT_TOP_SHOW_H

#include "faultstat/top/figures.h"

#include <jansson.h>
#include <stdio.h>

enum { FL_TOP_LINE = 512 };

/* Lines, without their ends, of at most `columns` columns: sums over all; titles; a process; and
 * what could not be read, "" when all could. */
void fl_top_sums(const struct fl_top *top, size_t columns, char line[FL_TOP_LINE]);
void fl_top_titles(size_t columns, char line[FL_TOP_LINE]);
void fl_top_line(const struct fl_top_process *p, size_t columns, char line[FL_TOP_LINE]);
void fl_top_note(const struct fl_top *top, size_t columns, char line[FL_TOP_LINE]);
/* Line `i` of what columns and keys mean, likewise. False: there are no more. */
bool fl_top_legend(size_t i, size_t columns, char line[FL_TOP_LINE]);

/* All of it as text. */
void fl_top_print(const struct fl_top *top, size_t columns, FILE *file);

/* One round as an object; a figure that is not known has no key. A new reference; NULL: no
 * memory. */
json_t *fl_top_json(const struct fl_top *top, long round);

#endif
