/* A label and words behind it, wrapped at 80 columns: how the launcher shows what it found. Holds
 * no state but fl_size's texts. */
#ifndef FAULTLESS_LAUNCHER_LINES_H
#define FAULTLESS_LAUNCHER_LINES_H

#include <stdint.h>
#include <stdio.h>

#define FL_UNLIMITED UINT64_MAX /* bytes without a bound */

struct fl_line {
    FILE *out;
    size_t at; /* columns used */
};

void fl_line_begin(struct fl_line *l, FILE *out, const char *label);
void fl_line_word(struct fl_line *l, const char *text);  /* stays whole */
void fl_line_words(struct fl_line *l, const char *text); /* wrapped at spaces */
void fl_line_end(struct fl_line *l);

/* All of it at once. */
__attribute__((format(printf, 3, 4))) void fl_row(FILE *out, const char *label, const char *form,
                                                  ...);

/* 7.8G; "none" without a bound. In one of eight places, so that a row may have several. */
const char *fl_size(uint64_t bytes);

#endif
