/* Tables of medians and ratios, on a terminal and in Markdown. */
#include "faultstat/show.h"
#include "faultstat/table.h"
#include "faultstat/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FL_INDENT = 10, FL_NAME_INDENT = 17 };

static bool is_shown(const struct fl_comparison *c, const struct fl_analysis *a,
                     enum fl_metric metric)
{
    char shown = fl_metric_info[metric].shown;
    return shown == 'b' || shown == (a->has_steps ? 's' : 'p') ||
           (shown == 'n' && c->plan.with_nodes) || (shown == 'm' && a->has_processes);
}

/* The time that matters gets its spread beside it; it is the first figure shown. */
static void fill_row(const struct fl_comparison *c, const struct fl_analysis *a, size_t peer,
                     struct fl_table *table, size_t row)
{
    size_t column = 1;
    fl_table_set(table, row, 0, "%s", c->peers.peer[peer].name);
    for (int m = 0; m < FL_METRIC_COUNT; m++) {
        const struct fl_metric_info *info = &fl_metric_info[m];
        const struct fl_figure *figure = &a->peer[peer].figure[m];
        if (!is_shown(c, a, (enum fl_metric)m)) {
            continue;
        }
        fl_table_set(table, 0, column, "%s", info->heading);
        if (figure->count == 0) {
            fl_table_set(table, row, column++, "-");
        } else {
            fl_table_set(table, row, column++, "%.*f", info->decimals, figure->median);
        }
        if (m == (int)a->metric) {
            fl_table_set(table, 0, column, "min..max");
            fl_table_set(table, row, column++, figure->count > 0 ? "%.*f..%.*f" : "-",
                         info->decimals, figure->least, info->decimals, figure->most);
        }
    }
}

/* In parentheses: the interval holds 1, or there is none. */
static void fill_ratio_row(const struct fl_comparison *c, const struct fl_analysis *a, size_t peer,
                           struct fl_table *table, size_t row)
{
    size_t column = 1;
    fl_table_set(table, row, 0, "%s", c->peers.peer[peer].name);
    for (int m = 0; m < FL_METRIC_COUNT; m++) {
        const struct fl_figure *figure = &a->peer[peer].figure[m];
        const struct fl_interval *i = &figure->interval;
        bool is_known = figure->has_interval && (i->high < 1 || i->low > 1);
        if (!is_shown(c, a, (enum fl_metric)m)) {
            continue;
        }
        fl_table_set(table, 0, column, "%s", fl_metric_info[m].heading);
        if (isnan(figure->ratio)) {
            fl_table_set(table, row, column++, "-");
        } else {
            fl_table_set(table, row, column++, is_known ? "%.3f" : "(%.3f)", figure->ratio);
        }
        if (m == (int)a->metric) {
            fl_table_set(table, 0, column, "interval");
            fl_table_set(table, row, column++, figure->has_interval ? "%.3f..%.3f" : "-", i->low,
                         i->high);
        }
    }
}

static void fill(const struct fl_comparison *c, const struct fl_analysis *a,
                 struct fl_table *medians, struct fl_table *ratios)
{
    size_t row = 1;
    memset(medians, 0, sizeof(*medians));
    memset(ratios, 0, sizeof(*ratios));
    fl_table_set(medians, 0, 0, "allocator");
    fl_table_set(ratios, 0, 0, "ratio to %s", c->peers.peer[a->reference].name);
    for (size_t i = 0; i < c->peers.count; i++) {
        if (c->peers.peer[i].is_present) {
            fill_row(c, a, i, medians, row);
            if (i != a->reference) {
                fill_ratio_row(c, a, i, ratios, ratios->rows);
            }
            row++;
        }
    }
}

/* What was run and where, as label and text. */
static void describe(const struct fl_comparison *c, char machine[400], char runs[200])
{
    const struct fl_machine *m = &c->machine;
    unsigned rounds = c->plan.rounds;
    snprintf(machine, 400,
             "Linux %s, %s, %d cores, %d node%s, %.1f GiB (%.1f available), THP %s, defrag %s",
             m->kernel, m->cpu, m->cores, m->nodes, m->nodes == 1 ? "" : "s",
             (double)m->memory / (1 << 30), (double)m->available / (1 << 30), m->thp,
             m->thp_defrag);
    int used =
        snprintf(runs, 200, "%u interleaved round%s, medians", rounds, rounds == 1 ? "" : "s");
    if (c->plan.warm_mib > 0) {
        used += snprintf(runs + used, 200 - (size_t)used, "; warmed by %u MiB before each run",
                         c->plan.warm_mib);
    }
    if (c->is_interrupted) {
        snprintf(runs + used, 200 - (size_t)used, "; INTERRUPTED after %u of %u runs", c->runs_done,
                 c->runs_planned);
    }
}

static void print_head(const struct fl_comparison *c, FILE *file, size_t columns)
{
    char machine[400];
    char runs[200];
    char *command = fl_text_command(c->plan.command);
    describe(c, machine, runs);
    fl_text_wrap(file, "command", command != NULL ? command : "", FL_INDENT, columns);
    free(command);
    fl_text_wrap(file, "machine", machine, FL_INDENT, columns);
    fl_text_wrap(file, "runs", runs, FL_INDENT, columns);
    fputc('\n', file);
    for (size_t i = 0; i < c->peers.count; i++) {
        const struct fl_peer *peer = &c->peers.peer[i];
        char text[PATH_MAX + 120];
        if (!peer->is_present) {
            snprintf(text, sizeof(text), "absent: %s", peer->absent_because);
        } else if (peer->is_any) {
            snprintf(text, sizeof(text), "the program's own allocator, whichever it is");
        } else {
            snprintf(text, sizeof(text), "%s%s%s%s", peer->version,
                     peer->library[0] != '\0' ? " (" : "", peer->library,
                     peer->library[0] != '\0' ? ")" : "");
        }
        char *line = fl_text_line(text);
        fl_text_wrap(file, peer->name, line != NULL ? line : "", FL_NAME_INDENT, columns);
        free(line);
    }
    fputc('\n', file);
}

/* The median of what one node holds of the allocator's runs; a node that a run does not name holds
 * nothing. */
static double median_on_node(const struct fl_comparison *c, size_t peer, unsigned id)
{
    double value[FL_ROUNDS_MAX];
    size_t count = 0;
    for (unsigned round = 0; round < c->plan.rounds; round++) {
        const struct fl_run *run = &c->run[peer * c->plan.rounds + round];
        if (!fl_run_is_good(run) || run->nodes.count == 0) {
            continue;
        }
        value[count] = 0;
        for (size_t i = 0; i < run->nodes.count; i++) {
            if (run->nodes.node[i].id == id) {
                value[count] = (double)run->nodes.node[i].anonymous / (1 << 20);
            }
        }
        count++;
    }
    return count > 0 ? fl_median(value, count) : NAN;
}

/* The nodes of any run, as far as a table goes. Returns how many. */
static size_t find_nodes(const struct fl_comparison *c, unsigned id[FL_TABLE_COLUMNS])
{
    size_t ids = 0;
    for (size_t r = 0; r < c->peers.count * c->plan.rounds; r++) {
        const struct fl_nodes *nodes = &c->run[r].nodes;
        for (size_t i = 0; i < nodes->count && ids < FL_TABLE_COLUMNS - 1; i++) {
            size_t k = 0;
            while (k < ids && id[k] != nodes->node[i].id) {
                k++;
            }
            id[k] = nodes->node[i].id;
            ids += k == ids;
        }
    }
    return ids;
}

/* Anonymous memory by node, a row an allocator. */
static void print_nodes(const struct fl_comparison *c, FILE *file, size_t columns)
{
    static struct fl_table table; /* static for its size */
    unsigned id[FL_TABLE_COLUMNS];
    size_t ids = find_nodes(c, id);
    size_t row = 1;
    if (ids == 0) {
        return;
    }
    memset(&table, 0, sizeof(table));
    fl_table_set(&table, 0, 0, "MiB by node");
    for (size_t i = 0; i < c->peers.count; i++) {
        if (!c->peers.peer[i].is_present) {
            continue;
        }
        fl_table_set(&table, row, 0, "%s", c->peers.peer[i].name);
        for (size_t k = 0; k < ids; k++) {
            double median = median_on_node(c, i, id[k]);
            fl_table_set(&table, 0, k + 1, "node %u", id[k]);
            fl_table_set(&table, row, k + 1, isnan(median) ? "-" : "%.0f", median);
        }
        row++;
    }
    fputc('\n', file);
    fl_table_print(&table, file, columns);
}

static unsigned runs_of(const struct fl_comparison *c, size_t peer)
{
    unsigned done = 0;
    for (unsigned round = 0; round < c->plan.rounds; round++) {
        done += c->run[peer * c->plan.rounds + round].is_done;
    }
    return done;
}

static void print_notes(const struct fl_comparison *c, const struct fl_analysis *a, FILE *file,
                        size_t columns)
{
    char text[200];
    for (size_t i = 0; i < c->peers.count; i++) {
        const struct fl_judgement *j = &a->peer[i];
        if (j->failures > 0) {
            snprintf(text, sizeof(text), "FAILED %zu of %u, exit %d", j->failures, runs_of(c, i),
                     j->failure);
            fl_text_wrap(file, c->peers.peer[i].name, text, FL_NAME_INDENT, columns);
        }
    }
    fputc('\n', file);
    for (size_t i = 0; i < a->warnings; i++) {
        fl_text_wrap(file, "warning:", a->warning[i], FL_INDENT, columns);
    }
    fputs(a->warnings > 0 ? "\n" : "", file);
}

static void print_verdicts(const struct fl_comparison *c, const struct fl_analysis *a, FILE *file,
                           size_t columns)
{
    char text[400];
    for (size_t i = 0; i < c->peers.count; i++) {
        if (c->peers.peer[i].is_present &&
            (i != a->reference || a->peer[i].verdict == FL_VERDICT_NOT_COMPARED)) {
            fl_analysis_sentence(a, c, i, text, sizeof(text));
            fl_text_wrap(file, c->peers.peer[i].name, text, FL_NAME_INDENT, columns);
        }
    }
    fl_analysis_conclude(a, c, text, sizeof(text));
    if (c->is_interrupted) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, " (interrupted: %u of %u runs)", c->runs_done,
                 c->runs_planned);
    }
    fl_text_wrap(file, "verdict", text, FL_NAME_INDENT, columns);
}

static bool has_cell_with(const struct fl_table *table, const char *text)
{
    bool found = false;
    for (size_t row = 1; row < table->rows; row++) {
        for (size_t column = 1; column < table->columns; column++) {
            found |= strstr(table->cell[row][column], text) != NULL;
        }
    }
    return found;
}

/* What marks in the table of ratios mean, of those that stand there. */
static void print_marks(const struct fl_table *ratios, FILE *file, size_t columns)
{
    if (has_cell_with(ratios, "(")) {
        fl_text_wrap(file, "( )", "no difference could be shown", 4, columns);
    }
    if (has_cell_with(ratios, "..")) {
        fl_text_wrap(file, "a..b",
                     "least and most of the runs; beside a ratio, its 95 % interval, for all rows "
                     "together",
                     5, columns);
    }
}

static void print_legend(const struct fl_comparison *c, const struct fl_analysis *a, FILE *file,
                         size_t columns)
{
    bool shown[FL_METRIC_COUNT];
    for (int m = 0; m < FL_METRIC_COUNT; m++) {
        shown[m] = is_shown(c, a, (enum fl_metric)m);
    }
    fputc('\n', file);
    fl_metrics_print_legend(shown, file, columns);
}

void fl_show_table(const struct fl_comparison *c, const struct fl_analysis *a, FILE *file)
{
    static struct fl_table medians; /* static for their size */
    static struct fl_table ratios;
    size_t columns = fl_text_columns(file);
    fill(c, a, &medians, &ratios);
    print_head(c, file, columns);
    fl_table_print(&medians, file, columns);
    if (ratios.rows > 1) {
        fputc('\n', file);
        fl_table_print(&ratios, file, columns);
        print_marks(&ratios, file, columns);
    }
    print_legend(c, a, file, columns);
    print_nodes(c, file, columns);
    print_notes(c, a, file, columns);
    print_verdicts(c, a, file, columns);
}

void fl_show_markdown(const struct fl_comparison *c, const struct fl_analysis *a, FILE *file)
{
    static struct fl_table medians; /* static for their size */
    static struct fl_table ratios;
    char machine[400];
    char runs[200];
    char text[400];
    char *command = fl_text_command(c->plan.command);
    fill(c, a, &medians, &ratios);
    describe(c, machine, runs);
    fprintf(file, "`%s`\n\n%s; %s.\n\n", command != NULL ? command : "", machine, runs);
    free(command);
    fl_table_markdown(&medians, file);
    if (ratios.rows > 1) {
        fputc('\n', file);
        fl_table_markdown(&ratios, file);
        fputs("\nIn parentheses: no difference could be shown.\n", file);
    }
    for (size_t i = 0; i < a->warnings; i++) {
        fprintf(file, "\n- warning: %s", a->warning[i]);
    }
    fl_analysis_conclude(a, c, text, sizeof(text));
    fprintf(file, "%s\n**Verdict**: %s\n", a->warnings > 0 ? "\n" : "", text);
}
