/* The option table, for those of this folder that read it and print it. One folder's inner
 * header. */
#ifndef FL_CORE_OPTIONS_H
#define FL_CORE_OPTIONS_H

#include "core/core.h"

#define FL_OPTION_PREFIX "FAULTLESS_"

/* From WORDS to the end: the words of fl_option_lists[kind - FL_KIND_WORDS]. */
enum fl_option_kind {
    FL_KIND_SIZE,
    FL_KIND_TIME,
    FL_KIND_COUNT,
    FL_KIND_BOOL,
    FL_KIND_REAL,
    FL_KIND_GIBS,
    FL_KIND_EVERY,
    FL_KIND_SIGNAL,
    FL_KIND_TEXT,
    FL_KIND_WORDS, /* any of them; the others are one */
    FL_KIND_LEVEL,
    FL_KIND_POLICY,
    FL_KIND_STEPS,
    FL_KIND_STRATEGY,
    FL_KIND_FORK,
    FL_KIND_THP,
    FL_KIND_PAGES,
    FL_KIND_FILL,
    FL_KIND_TRIM,
};

struct fl_option_row {
    enum fl_option_kind kind;
    const char *name; /* lower case */
    uint64_t preset, min, max;
    const char *unit; /* or, of lists, what may be said */
};
extern const struct fl_option_row fl_option_table[FL_OPTION_COUNT];

struct fl_option_list {
    const char *const *word;
    size_t n;
};
extern const struct fl_option_list fl_option_lists[];

/* A word that is neither, by a '/', '.' or '%', the name of a file, nor what the option takes
 * besides: taken for a name, a file of that name would lie in whatever folder the process is in. */
bool fl_option_is_stray_word(enum fl_option_id i, const char *s);

/* Of an option whose origin is ALIAS: the variable's name. */
const char *fl_option_alias(const struct fl_options *o, enum fl_option_id id);

/* One line on standard error. rc: as fl_option_parse. */
void fl_option_complain_value(const struct fl_option_row *r, const char *value, int rc);
/* The same, of an entry of the environment behind its prefix that is no option. */
void fl_option_complain_name(const char *entry);

#endif
