/* The allocators of replacements.def. Threads: any; all is constant. */
#ifndef FAULTLESS_FAULTSTAT_REPLACEMENTS_H
#define FAULTLESS_FAULTSTAT_REPLACEMENTS_H

#include <stdbool.h>
#include <stddef.h>

enum { FL_REPLACEMENT_LIBRARIES = 4 };

struct fl_replacement {
    const char *name;
    const char *file;                              /* how the name of its library's file begins */
    const char *library[FL_REPLACEMENT_LIBRARIES]; /* NULL behind the last one */
    const char *variable, *value;                  /* of NAME-tuned; "": there is none */
};

/* NAME, or NAME-tuned and then `*is_tuned`. NULL: it is none of them. */
const struct fl_replacement *fl_replacement_find(const char *name, bool *is_tuned);

/* Does a file of this name, without a folder, replace malloc? The C library does not. */
bool fl_replacement_is(const char *file);

#endif
