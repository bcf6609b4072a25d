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

/* Of the program that ran last. */
extern struct fl_output output;

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Run argv[0]; any failure to do so ends the test.
 *   argv   ends with NULL.
 *   env    NAME=VALUE to set, NAME to remove; ends with NULL; may be NULL. */
void fl_child_run(const char *const argv[], const char *const env[]);
/* As fl_child_run; the child calls `change` before its exec of a file that it may then have no
 * right to look up. */
void fl_child_run_changed(const char *const argv[], void (*change)(void));
/* As fl_child_run; another exit status than this one ends the test. */
void fl_child_ends(int status, const char *const argv[], const char *const env[]);

/* JSON of a text, and of a file; it lives as long as the program. What is none ends the test. */
const json_t *fl_child_json(const char *text);
const json_t *fl_child_json_file(const char *path);

/* What an object has at `key`: a number, a text, an element of an array. Its absence ends the
 * test. */
double fl_child_number(const json_t *object, const char *key);
const char *fl_child_text(const json_t *object, const char *key);
const json_t *fl_child_item(const json_t *object, const char *key, size_t i);

/* A folder of the test's own, "" until it is made; setup and teardown of a group. */
extern char fl_child_folder[32];
void fl_child_make_folder(void);
void fl_child_remove_folder(void);
#define IN_FOLDER .group_setup = fl_child_make_folder, .group_teardown = fl_child_remove_folder

#endif
