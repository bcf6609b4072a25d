/* Shows a recording of `faultstat record`: as text, folded stacks, a flame graph, a page.
 * Reads JSON alone; knows nothing of perf events. */
#ifndef FAULTLESS_FAULTSTAT_REPORT_REPORT_H
#define FAULTLESS_FAULTSTAT_REPORT_REPORT_H

#include <jansson.h>
#include <stdio.h>

/* The sites with most faults, and what the recording says of the whole. */
void fl_report_top(const json_t *record, size_t most, FILE *file);

/* A line a stack: functions from the outermost, joined by ';', and the number of faults: what
 * flamegraph.pl, speedscope and others read. */
void fl_report_folded(const json_t *record, FILE *file);

/* A flame graph as SVG, with a title on each box: width is the number of faults. */
void fl_report_flame(const json_t *record, FILE *file);

/* One HTML page with everything inside it; it opens no connection.
 *   compare   what `faultstat compare --json` wrote of the same command, or NULL. */
void fl_report_page(const json_t *record, const json_t *compare, FILE *file);

/* Text for SVG and HTML, at most so many bytes of it. */
void fl_report_escape(const char *text, size_t most, FILE *file);

#endif
