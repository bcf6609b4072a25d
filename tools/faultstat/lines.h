/* Cuts a stream of bytes into lines. */
#ifndef FAULTLESS_FAULTSTAT_LINES_H
#define FAULTLESS_FAULTSTAT_LINES_H

#include <stddef.h>

enum { FL_LINE_LEN = 4096 }; /* of a longer line the beginning counts */

struct fl_lines {
    char text[FL_LINE_LEN];
    size_t len; /* of the line that is not over yet */
};

/* Take `len` bytes and call `take` with each line that ends in them, without its end: a newline or
 * a carriage return, as progress bars write. Empty lines do not count; a NUL byte is '?'. */
void fl_lines_feed(struct fl_lines *lines, const char *text, size_t len,
                   void (*take)(void *arg, const char *line), void *arg);

#endif
