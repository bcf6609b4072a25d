/* Options that several subcommands take: one name and one letter for one thing, everywhere. A value
 * that will not do ends the program with argp's message. */
#ifndef FAULTLESS_FAULTSTAT_OPTIONS_H
#define FAULTLESS_FAULTSTAT_OPTIONS_H

#include <argp.h>
#include <regex.h>

/* Rows of a subcommand's options: {FL_OPTION_JSON}. */
#define FL_OPTION_JSON "json", 'j', "FILE", 0, "Write JSON to FILE; '-': to standard output", 0
#define FL_OPTION_STEP_REGEX                                                                       \
    "step-regex", 'r', "RE", 0, "Each line of CMD's output that matches ends a step", 0
#define FL_OPTION_TOP "top", FL_KEY_TOP, "N", 0, "Print N sites (default 20)", 0
#define FL_OPTION_FOLDED                                                                           \
    "folded", 'f', "OUT", 0, "Write folded stacks to OUT; '-': to standard output", 0

/* Keys of options without a letter. */
enum { FL_KEY_TOP = 512, FL_KEY_COMPARE, FL_KEY_PEAK, FL_KEY_ALL, FL_KEY_SORT };

/* A whole number between `least` and `most`. */
long fl_options_number(struct argp_state *state, const char *text, long least, long most);

/* A time in seconds, above 0. */
double fl_options_seconds(struct argp_state *state, const char *text);

/* As fl_is_output has it. */
const char *fl_options_file(struct argp_state *state, const char *text);

/* A POSIX extended regular expression; the caller frees it. */
void fl_options_regex(struct argp_state *state, const char *text, regex_t *out);

#endif
