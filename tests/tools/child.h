/* Runs a program to its end and keeps what it printed. The tests' parent is never preloaded. */
#ifndef FAULTLESS_TESTS_TOOLS_CHILD_H
#define FAULTLESS_TESTS_TOOLS_CHILD_H

#include <jansson.h>
#include <stddef.h>

enum { FL_OUTPUT_LEN = 131072 };

struct fl_output {
    int status; /* exit status, or 128 + signal */
    char out[FL_OUTPUT_LEN];
    char err[FL_OUTPUT_LEN];
};

/* Run argv[0]; any failure to do so ends the test.
 *   argv   ends with NULL.
 *   env    NAME=VALUE to set, NAME to remove; ends with NULL; may be NULL. */
void fl_child_run(struct fl_output *output, const char *const argv[], const char *const env[]);

/* Ends the test unless `wanted` stands in `text`. */
void assert_says(const char *text, const char *wanted);

/* Parse text as JSON; failing that ends the test. The caller owns the result. */
json_t *fl_child_json(const char *text);

/* The number at `key` of an object; its absence ends the test. */
double fl_child_number(const json_t *object, const char *key);

/* A folder of the test's own, "" until it is made; setup and teardown of a group. */
extern char fl_child_folder[32];
int fl_child_make_folder(void **state);
int fl_child_remove_folder(void **state);

#endif
