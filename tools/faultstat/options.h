/* Values of options that several subcommands take. Each ends the program with argp's message when
 * the text will not do. */
#ifndef FAULTLESS_FAULTSTAT_OPTIONS_H
#define FAULTLESS_FAULTSTAT_OPTIONS_H

#include <argp.h>
#include <regex.h>

/* A whole number between `least` and `most`. */
long fl_options_number(struct argp_state *state, const char *text, long least, long most);

/* A time in seconds, above 0. */
double fl_options_seconds(struct argp_state *state, const char *text);

/* A POSIX extended regular expression; the caller frees it. */
void fl_options_regex(struct argp_state *state, const char *text, regex_t *out);

#endif
