/* `faultstat report`: a recording as text, folded stacks, a flame graph, a page. */
#include "faultstat/faultstat.h"
#include "faultstat/json.h"
#include "faultstat/options.h"
#include "faultstat/report/report.h"
#include "faultstat/text.h"

#include "faultless/profile.h"

#include <argp.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct options {
    const char *input;
    const char *folded;
    const char *flame;
    const char *html;
    const char *compare;
    size_t top;
};

static const char doc[] = "Show what faultstat record wrote: the sites with most page faults, or "
                          "with an option below the "
                          "same for other programs and for the browser.\vFILE is faults.json "
                          "unless given; '-' stands for "
                          "standard output. The page holds all it needs and opens no connection.";

static const struct argp_option option[] = {
    {FL_OPTION_TOP},
    {FL_OPTION_FOLDED},
    {"flame", 'g', "OUT", 0, "Write a flame graph (SVG)", 0},
    {"html", 'H', "OUT", 0, "Write a page (HTML)", 0},
    {"compare", FL_KEY_COMPARE, "FILE", 0,
     "Put what faultstat compare --json wrote of the same command into the page", 0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case FL_KEY_TOP:
        o->top = (size_t)fl_options_number(state, arg, 0, INT32_MAX);
        return 0;
    case 'f':
        o->folded = arg;
        return 0;
    case 'g':
        o->flame = arg;
        return 0;
    case 'H':
        o->html = arg;
        return 0;
    case FL_KEY_COMPARE:
        o->compare = arg;
        return 0;
    case ARGP_KEY_ARG:
        if (state->arg_num > 0) {
            argp_error(state, "more than one file");
        }
        o->input = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* Is the file what the library writes for FAULTLESS_PROFILE? */
static bool is_profile(const char *path)
{
    char head[sizeof(FL_PROFILE_MAGIC)] = "";
    FILE *file = fopen(path, "re");
    bool is_read = file != NULL && fread(head, sizeof(head), 1, file) == 1;
    if (file != NULL) {
        fclose(file);
    }
    return is_read && memcmp(head, FL_PROFILE_MAGIC, sizeof(head)) == 0;
}

static json_t *load(const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (root == NULL && is_profile(path)) {
        fprintf(stderr, "faultstat: %s: a profile of large blocks, which faultstat heap shows\n",
                path);
    } else if (root == NULL) {
        bool is_read = access(path, R_OK) == 0;
        fprintf(stderr, "faultstat: %s: %s%s\n", path, is_read ? "no JSON of faultstat's: " : "",
                error.text);
    }
    return root;
}

/* Is it what faultstat's `command` wrote, and of a version that this program reads? */
static bool is_of(const json_t *root, const char *path, const char *command, const char *wanted,
                  int version)
{
    const char *kind = json_string_value(json_object_get(root, "kind"));
    json_int_t schema = json_integer_value(json_object_get(root, "schema"));
    if (root == NULL) { /* load has said why */
        return false;
    }
    if (kind == NULL || strcmp(kind, wanted) != 0) {
        fprintf(stderr, "faultstat: %s: not written by faultstat %s\n", path, command);
        return false;
    }
    if (schema != version) {
        fprintf(stderr, "faultstat: %s: schema %lld, this faultstat reads %d\n", path,
                (long long)schema, version);
        return false;
    }
    return true;
}

static void put_command(const json_t *root, FILE *file)
{
    const json_t *word;
    size_t i;
    json_array_foreach(json_object_get(root, "command"), i, word)
    {
        const char *value = json_string_value(word);
        char *text = value != NULL ? fl_text_line(value) : NULL;
        fprintf(file, "%s%s", i != 0 ? " " : "", text != NULL ? text : "?");
        free(text);
    }
}

/* Figures of two commands say nothing side by side. */
static bool is_same_command(const json_t *record, const json_t *compare, const char *path)
{
    if (json_equal(json_object_get(record, "command"), json_object_get(compare, "command"))) {
        return true;
    }
    fprintf(stderr, "faultstat: %s: a comparison of another command: ", path);
    put_command(compare, stderr);
    fputs("; recorded was: ", stderr);
    put_command(record, stderr);
    fputc('\n', stderr);
    return false;
}

/* The recording and what goes beside it on the page. */
struct source {
    const json_t *record;
    const json_t *compare;
};

static void write_folded(const struct source *source, FILE *file)
{
    fl_report_folded(source->record, file);
}

static void write_flame(const struct source *source, FILE *file)
{
    fl_report_flame(source->record, file);
}

static void write_page(const struct source *source, FILE *file)
{
    fl_report_page(source->record, source->compare, file);
}

/* Returns 0; -errno, which is said. NULL for a path: nothing to do. */
static int write_to(const char *path, const struct source *source,
                    void (*put)(const struct source *source, FILE *file))
{
    if (path == NULL) {
        return 0;
    }
    bool is_stdout = strcmp(path, "-") == 0;
    FILE *file = is_stdout ? stdout : fopen(path, "we");
    int rc = file != NULL ? 0 : -errno;
    if (rc == 0) {
        errno = 0;
        put(source, file);
        bool is_bad = ferror(file) != 0;
        is_bad = (is_stdout ? fflush(file) : fclose(file)) != 0 || is_bad;
        rc = is_bad ? (errno != 0 ? -errno : -EIO) : 0;
    }
    if (rc != 0) {
        fprintf(stderr, "faultstat: %s: %s\n", path, strerror(-rc));
    }
    return rc;
}

int fl_report_main(int argc, char **argv)
{
    static const struct argp argp = {option, parse, "[FILE]", doc, fl_command_help, NULL, NULL};
    struct options o = {.input = "faults.json", .top = 20};
    argp_parse(&argp, argc, argv, 0, NULL, &o);
    json_t *record = load(o.input);
    json_t *compare = o.compare != NULL ? load(o.compare) : NULL;
    struct source source = {record, compare};
    bool fits = is_of(record, o.input, "record", "faultstat record", 1) &&
                (o.compare == NULL ||
                 (is_of(compare, o.compare, "compare --json", "compare", FL_JSON_SCHEMA) &&
                  is_same_command(record, compare, o.compare)));
    int rc = fits ? 0 : -EINVAL;
    if (rc == 0 && o.folded == NULL && o.flame == NULL && o.html == NULL) {
        fl_report_top(record, o.top, stdout);
        rc = fflush(stdout) != 0 ? -errno : 0;
    }
    rc = rc != 0 ? rc : write_to(o.folded, &source, write_folded);
    rc = rc != 0 ? rc : write_to(o.flame, &source, write_flame);
    rc = rc != 0 ? rc : write_to(o.html, &source, write_page);
    json_decref(record);
    json_decref(compare);
    return rc == 0 ? 0 : FL_EXIT_OWN;
}
