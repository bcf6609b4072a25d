/* `faultstat merge`: the ranks of a job side by side, slowest first. It reads what `faultstat run
 * --json` wrote, a file a rank. */
#include "faultstat/faultstat.h"
#include "faultstat/json.h"
#include "faultstat/options.h"
#include "faultstat/sink.h"
#include "faultstat/table.h"
#include "faultstat/text.h"

#include <argp.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { FL_RANKS_SHOWN = FL_TABLE_ROWS - 1 };

struct rank {
    const char *path;
    json_t *root; /* owned */
    double time;  /* of a step, in ms, or of the run, in s */
};

struct options {
    char **file;
    size_t files;
    const char *json; /* NULL: none */
};

static const char doc[] =
    "Show the ranks of a parallel job side by side, slowest first.\vEach FILE is what 'faultstat "
    "run --json=FILE' wrote: 'mpirun -n 4 faultstat run --json=rank-%r.json -- CMD'.";

static const struct argp_option option[] = {
    {FL_OPTION_JSON},
    {0},
};

/* What a rank wrote: as a word of --json's it would be lost. */
static bool is_record(const char *path)
{
    json_t *root = strcmp(path, "-") != 0 ? json_load_file(path, 0, NULL) : NULL;
    const char *kind = json_string_value(json_object_get(root, "kind"));
    bool is_one = kind != NULL && strcmp(kind, "run") == 0;
    json_decref(root);
    return is_one;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *o = state->input;
    switch (key) {
    case 'j':
        o->json = fl_options_file(state, arg);
        if (is_record(arg)) {
            argp_error(state, "'%s' is a record of run's: it would be written over", arg);
        }
        return 0;
    case ARGP_KEY_ARG:
        o->file = &state->argv[state->next - 1];
        o->files = (size_t)(state->argc - state->next + 1);
        state->next = state->argc;
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "no file given");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* A figure by its key; NAN: it has none. */
static double number(const json_t *root, const char *key)
{
    const json_t *value = json_object_get(root, key);
    return json_is_number(value) ? json_number_value(value) : NAN;
}

static const char *host(const struct rank *r)
{
    const char *text = json_string_value(json_object_get(r->root, "host"));
    return text != NULL ? text : "unknown";
}

static int read_rank(struct rank *r)
{
    json_error_t error;
    r->root = json_load_file(r->path, 0, &error);
    const char *kind = json_string_value(json_object_get(r->root, "kind"));
    if (r->root == NULL) {
        fprintf(stderr, "faultstat: %s: %s\n", r->path, error.text);
        return -1;
    }
    if (kind == NULL || strcmp(kind, "run") != 0 ||
        json_integer_value(json_object_get(r->root, "schema")) != FL_JSON_SCHEMA) {
        fprintf(stderr, "faultstat: %s: no record of faultstat run, schema %d\n", r->path,
                FL_JSON_SCHEMA);
        return -1;
    }
    return 0;
}

static int slower_first(const void *a, const void *b)
{
    double x = ((const struct rank *)a)->time;
    double y = ((const struct rank *)b)->time;
    return (x < y) - (x > y);
}

/* Ranks are compared by their steps where all have some: else by the whole run. */
static bool take_times(struct rank *rank, size_t count)
{
    bool has_steps = true;
    for (size_t i = 0; i < count; i++) {
        has_steps &= !isnan(number(rank[i].root, "step_ms"));
    }
    for (size_t i = 0; i < count; i++) {
        double time = number(rank[i].root, has_steps ? "step_ms" : "wall_s");
        rank[i].time = isnan(time) ? 0 : time;
    }
    qsort(rank, count, sizeof(*rank), slower_first);
    return has_steps;
}

static double median_time(const struct rank *rank, size_t count)
{
    return (rank[(count - 1) / 2].time + rank[count / 2].time) / 2;
}

/* A rank's figures that a table of all has. */
static bool is_shown(int metric, bool has_steps)
{
    char shown = fl_metric_info[metric].shown;
    return shown == 'b' || shown == (has_steps ? 's' : 'p');
}

static void fill(const struct rank *rank, size_t count, bool has_steps, struct fl_table *table)
{
    fl_table_set(table, 0, 0, "rank");
    fl_table_set(table, 0, 1, "host");
    fl_table_set(table, 0, 2, "x median");
    double median = median_time(rank, count);
    for (size_t i = 0; i < count && i < FL_RANKS_SHOWN; i++) {
        const json_t *number_of = json_object_get(rank[i].root, "rank");
        size_t column = 3;
        if (number_of != NULL) {
            fl_table_set(table, i + 1, 0, "%lld", (long long)json_integer_value(number_of));
        } else {
            fl_table_set(table, i + 1, 0, "%s", rank[i].path);
        }
        fl_table_set(table, i + 1, 1, "%s", host(&rank[i]));
        fl_table_set(table, i + 1, 2, "%.2f", median > 0 ? rank[i].time / median : 1.0);
        for (int m = 0; m < FL_METRIC_COUNT; m++) {
            const struct fl_metric_info *info = &fl_metric_info[m];
            double value = number(rank[i].root, info->key);
            if (is_shown(m, has_steps)) {
                fl_table_set(table, 0, column, "%s", info->heading);
                fl_table_set(table, i + 1, column++, isnan(value) ? "-" : "%.*f", info->decimals,
                             value);
            }
        }
    }
}

static void show(const struct rank *rank, size_t count, bool has_steps, FILE *file)
{
    static struct fl_table table; /* static for its size */
    double median = median_time(rank, count);
    const json_t *slowest = json_object_get(rank[0].root, "rank");
    fill(rank, count, has_steps, &table);
    fl_table_print(&table, file, fl_text_columns(file));
    if (count > FL_RANKS_SHOWN) {
        fprintf(file, "and %zu faster ones\n", count - FL_RANKS_SHOWN);
    }
    bool shown[FL_METRIC_COUNT];
    for (int m = 0; m < FL_METRIC_COUNT; m++) {
        shown[m] = is_shown(m, has_steps);
    }
    fputc('\n', file);
    fl_metrics_print_legend(shown, file, fl_text_columns(file));
    fputc('\n', file);
    if (slowest != NULL) {
        fprintf(file, "slowest: rank %lld on %s, ", (long long)json_integer_value(slowest),
                host(&rank[0]));
    } else {
        fprintf(file, "slowest: %s on %s, ", rank[0].path, host(&rank[0]));
    }
    fprintf(file, "%.2f x the median %s of %zu ranks\n", median > 0 ? rank[0].time / median : 1.0,
            has_steps ? "step" : "run", count);
}

static json_t *merged_json(const struct rank *rank, size_t count, bool has_steps)
{
    json_t *array = json_array();
    double median = median_time(rank, count);
    for (size_t i = 0; i < count; i++) {
        json_t *one = json_object();
        const char *key;
        json_t *value;
        json_object_foreach(rank[i].root, key, value)
        {
            if (strcmp(key, "steps") != 0 && strcmp(key, "schema") != 0) {
                json_object_set(one, key, value);
            }
        }
        json_object_set_new(one, "file", fl_json_text(rank[i].path));
        json_object_set_new(one, "to_median", json_real(median > 0 ? rank[i].time / median : 1.0));
        json_array_append_new(array, one);
    }
    return json_pack("{s:i, s:s, s:s, s:o}", "schema", FL_JSON_SCHEMA, "kind", "merge", "metric",
                     has_steps ? "step_ms" : "wall_s", "ranks", array);
}

static int write_all(const struct options *o, struct fl_sink *sink, const struct rank *rank,
                     bool has_steps)
{
    bool is_stdout_taken = o->json != NULL && strcmp(o->json, "-") == 0;
    show(rank, o->files, has_steps, is_stdout_taken ? stderr : stdout);
    if (o->json == NULL) {
        return fflush(stdout) == 0 ? 0 : -1;
    }
    json_t *root = merged_json(rank, o->files, has_steps);
    fl_json_print(root, fl_sink_begin(sink));
    json_decref(root);
    return fl_sink_end(sink);
}

int fl_merge_main(int argc, char **argv)
{
    static const struct argp argp = {option, parse, "FILE...", doc, fl_command_help, NULL, NULL};
    struct options o = {0};
    struct fl_sink sink = {0};
    argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &o);
    if (o.json != NULL && fl_sink_open(&sink, o.json) != 0) {
        return FL_EXIT_OWN;
    }
    struct rank *rank = calloc(o.files, sizeof(*rank));
    int rc = rank != NULL ? 0 : -1;
    for (size_t i = 0; i < o.files && rc == 0; i++) {
        rank[i].path = o.file[i];
        rc = read_rank(&rank[i]);
    }
    if (rc == 0) {
        bool has_steps = take_times(rank, o.files);
        rc = write_all(&o, &sink, rank, has_steps);
    }
    for (size_t i = 0; i < o.files && rank != NULL; i++) {
        json_decref(rank[i].root);
    }
    free(rank);
    fl_sink_drop(&sink);
    return rc == 0 ? 0 : FL_EXIT_OWN;
}
