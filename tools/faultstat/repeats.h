/* Looks for a line that a program prints at each step. Pure. */
#ifndef FAULTLESS_FAULTSTAT_REPEATS_H
#define FAULTLESS_FAULTSTAT_REPEATS_H

#include <stddef.h>

enum { FL_PATTERN_LEN = 80, FL_REPEATS_LEAST = 5 };

/* Find the kind of line that `text` holds most often, where lines that differ in their numbers only
 * are of one kind. `pattern` receives an extended regular expression that matches its beginning.
 * Returns how many there are; 0: no kind of line with a number comes FL_REPEATS_LEAST times. */
size_t fl_repeats_find(const char *text, char pattern[FL_PATTERN_LEN]);

#endif
