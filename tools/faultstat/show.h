/* The forms in which a comparison is shown. */
#ifndef FAULTLESS_FAULTSTAT_SHOW_H
#define FAULTLESS_FAULTSTAT_SHOW_H

#include "faultstat/analysis.h"

/* For people: the machine, medians, ratios, warnings, and the verdict at the end. No line is wider
 * than the terminal, as far as words allow. */
void fl_show_table(const struct fl_comparison *c, const struct fl_analysis *a, FILE *file);

/* The same in Markdown. */
void fl_show_markdown(const struct fl_comparison *c, const struct fl_analysis *a, FILE *file);

/* A line for each run, as RFC 4180 has it. */
void fl_show_csv(const struct fl_comparison *c, FILE *file);

/* The whole record. Returns a new reference; NULL: no memory. */
json_t *fl_show_json(const struct fl_comparison *c, const struct fl_analysis *a);

#endif
