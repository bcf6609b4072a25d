/* Where figures are written. Opened before anything runs, so that what cannot be written is known
 * then; a file keeps its old contents until the figures are there. A signal that ends faultstat
 * before that (SIGINT, SIGQUIT, SIGTERM, SIGHUP) has a line on standard error that names the file,
 * and a file that was not there before goes. */
#ifndef FAULTLESS_FAULTSTAT_SINK_H
#define FAULTLESS_FAULTSTAT_SINK_H

#include <stdbool.h>
#include <stdio.h>

struct fl_sink {
    FILE *file;       /* NULL: there is none; owned */
    const char *path; /* as the user named it */
    bool is_named;    /* a file that was opened by its name: cut to what is written */
    bool is_new;      /* it was not there before */
};

/* Open `path`; "-" is standard output. /dev/stderr, /dev/stdout and /dev/fd/N are descriptors that
 * are open already: they are used as they are, not opened anew, so a log behind them is not cut off
 * and a socket will do.
 *   path   kept; must outlive the sink.
 *   sink   must stay where it is until fl_sink_end or fl_sink_drop. At most four at once.
 * Returns 0; -errno after a line on standard error that names the file. */
int fl_sink_open(struct fl_sink *sink, const char *path);

/* Cut a named file off, for what is written next. Returns the stream. */
FILE *fl_sink_begin(struct fl_sink *sink);

/* The same for a file that grows line by line: from now on a signal leaves what is in it. */
FILE *fl_sink_begin_lines(struct fl_sink *sink);

/* Flush and close. Returns 0; -errno, after a line on standard error, when not all was written. */
int fl_sink_end(struct fl_sink *sink);

/* Close without writing; a file that was not there before goes. Nothing after fl_sink_end. */
void fl_sink_drop(struct fl_sink *sink);

#endif
