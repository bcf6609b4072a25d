/* Text that came from outside, made fit for a terminal and for JSON. */
#ifndef FAULTLESS_FAULTSTAT_TEXT_H
#define FAULTLESS_FAULTSTAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { FL_COLUMNS = 80 }; /* where there is no terminal */

/* A copy that is UTF-8: each byte that belongs to no character becomes U+FFFD. NULL: no memory. The
 * caller frees it. */
char *fl_text_utf8(const char *text);

/* A copy for one line of a terminal: UTF-8, control characters as '?'. As above. */
char *fl_text_line(const char *text);

/* A command as one such line, its arguments apart by a space. As above. */
char *fl_text_command(char *const argv[]);

/* Characters of UTF-8 text. */
size_t fl_text_width(const char *text);

/* Print `label`, padded to `indent` columns, and `text`, broken at spaces so that no line is wider
 * than `columns`; further lines are indented. A word that is wider stands alone. */
void fl_text_wrap(FILE *file, const char *label, const char *text, size_t indent, size_t columns);

/* Columns of the terminal behind `file`; FL_COLUMNS when there is none or it does not say. */
size_t fl_text_columns(FILE *file);

/* May a line on `file` be rewritten in place? A terminal that is not dumb, and no NO_COLOR. */
bool fl_text_can_rewrite(FILE *file);

#endif
