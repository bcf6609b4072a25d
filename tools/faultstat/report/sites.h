/* Faults by site: the innermost function outside the C library and the allocator; where nothing has
 * a name, the file or the thread. */
#ifndef FAULTLESS_FAULTSTAT_REPORT_SITES_H
#define FAULTLESS_FAULTSTAT_REPORT_SITES_H

#include <jansson.h>
#include <stddef.h>

enum { FL_SITE_KINDS = 16, FL_SITE_SPANS = 16 };

struct fl_site {
    int frame; /* number in "frames"; -1: there is no stack */
    double faults;
    double cost_ms;
    double kind[FL_SITE_KINDS]; /* faults, by number in "kinds" */
    double span[FL_SITE_SPANS]; /* by number in "spans" */
    const json_t *stack;        /* the one with most faults */
    double stack_faults;
};

struct fl_sites {
    struct fl_site *site; /* most faults first */
    size_t count;
    double faults; /* all */
    double named;  /* those of a site */
    double cost_ms;
};

/* Returns 0; -ENOMEM. */
int fl_sites_get(const json_t *record, struct fl_sites *sites);

/* "name (file.c:12)", or the file's name in the place of a line. Returns `text`. */
const char *fl_sites_name(const json_t *record, int frame, char *text, size_t len);

/* The functions that called it, in the stack with most faults: "a < b < c", those with names alone.
 * Returns `text`. */
const char *fl_sites_callers(const json_t *record, const struct fl_site *site, char *text,
                             size_t len);

/* Faults of that kind, over all sites. */
double fl_sites_of_kind(const struct fl_sites *sites, size_t kind);

void fl_sites_clear(struct fl_sites *sites);

#endif
