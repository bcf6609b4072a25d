/* A comparison as a table and as JSON. */
#include "faultstat/compare.h"
#include "faultstat/table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct fl_spread fl_comparison_spread(const struct fl_comparison *c, size_t peer,
                                      enum fl_metric metric)
{
    double value[FL_ROUNDS_MAX];
    struct fl_spread spread = {0};
    for (unsigned round = 0; round < c->rounds; round++) {
        const struct fl_run *run = &c->run[peer * c->rounds + round];
        if (run->is_done && run->exit_status == 0 && !isnan(run->value[metric])) {
            value[spread.count++] = run->value[metric];
        }
    }
    if (spread.count > 0) {
        spread.median = fl_median(value, spread.count); /* and sorts */
        spread.least = value[0];
        spread.most = value[spread.count - 1];
    }
    return spread;
}

bool fl_comparison_has_steps(const struct fl_comparison *c)
{
    for (size_t i = 0; i < c->peers.count * c->rounds; i++) {
        if (c->run[i].steps > 0) {
            return true;
        }
    }
    return false;
}

size_t fl_comparison_failures(const struct fl_comparison *c, size_t peer, int *status)
{
    size_t failures = 0;
    *status = 0;
    for (unsigned round = 0; round < c->rounds; round++) {
        const struct fl_run *run = &c->run[peer * c->rounds + round];
        if (run->is_done && run->exit_status != 0) {
            *status = run->exit_status;
            failures++;
        }
    }
    return failures;
}

/* The allocator that ratios refer to: the first that is there. */
static size_t reference(const struct fl_comparison *c)
{
    size_t i = 0;
    while (i + 1 < c->peers.count && !c->peers.peer[i].is_present) {
        i++;
    }
    return i;
}

/* The median's ratio to the first allocator's; NAN when there is none. */
static double ratio_to_first(const struct fl_comparison *c, size_t peer, enum fl_metric metric)
{
    struct fl_spread own = fl_comparison_spread(c, peer, metric);
    struct fl_spread first = fl_comparison_spread(c, reference(c), metric);
    return own.count > 0 && first.count > 0 && first.median > 0 ? own.median / first.median : NAN;
}

static bool is_shown(const struct fl_comparison *c, enum fl_metric metric, bool has_steps)
{
    char shown = fl_metric_info[metric].shown;
    return shown == 'b' || shown == (has_steps ? 's' : 'p') || (shown == 'n' && c->with_nodes);
}

static void print_head(const struct fl_comparison *c, FILE *file)
{
    const struct fl_machine *m = &c->machine;
    fprintf(file, "command  ");
    for (char **arg = c->command; *arg != NULL; arg++) {
        fprintf(file, " %s", *arg);
    }
    fprintf(file,
            "\nmachine   Linux %s, %s, %d cores, %d node%s, %.1f GiB (%.1f available), THP %s, "
            "defrag %s\n",
            m->kernel, m->cpu, m->cores, m->nodes, m->nodes == 1 ? "" : "s",
            (double)m->memory / (1 << 30), (double)m->available / (1 << 30), m->thp, m->thp_defrag);
    fprintf(file, "runs      %u interleaved round%s, medians; warmed by %u MiB before each run\n\n",
            c->rounds, c->rounds == 1 ? "" : "s", c->warm_mib);
    for (size_t i = 0; i < c->peers.count; i++) {
        const struct fl_peer *peer = &c->peers.peer[i];
        fprintf(file, "%-16s %s%s%s%s\n", peer->name, peer->is_present ? peer->version : "absent",
                peer->library[0] != '\0' ? " (" : "", peer->library,
                peer->library[0] != '\0' ? ")" : "");
    }
    fputc('\n', file);
}

/* The time that matters gets its spread beside it; it is the first figure shown. */
static void fill_row(const struct fl_comparison *c, size_t peer, bool has_steps,
                     struct fl_table *table, size_t row)
{
    size_t column = 1;
    int status;
    fl_table_set(table, row, 0, "%s", c->peers.peer[peer].name);
    for (int m = 0; m < FL_METRIC_COUNT; m++) {
        const struct fl_metric_info *info = &fl_metric_info[m];
        if (!is_shown(c, (enum fl_metric)m, has_steps)) {
            continue;
        }
        bool is_time = column == 1;
        struct fl_spread s = fl_comparison_spread(c, peer, (enum fl_metric)m);
        fl_table_set(table, 0, column, "%s", info->heading);
        if (s.count == 0) {
            fl_table_set(table, row, column++, "-");
        } else {
            fl_table_set(table, row, column++, "%.*f", info->decimals, s.median);
        }
        if (is_time) {
            fl_table_set(table, 0, column, "min..max");
            fl_table_set(table, row, column, s.count > 0 ? "%.*f..%.*f" : "-", info->decimals,
                         s.least, info->decimals, s.most);
            column++;
        }
    }
    size_t failures = fl_comparison_failures(c, peer, &status);
    if (failures > 0) {
        fl_table_set(table, row, column, "FAILED %zu of %u, exit %d", failures, c->rounds, status);
    }
}

static void fill_ratio_row(const struct fl_comparison *c, size_t peer, bool has_steps,
                           struct fl_table *table, size_t row)
{
    size_t column = 1;
    fl_table_set(table, row, 0, "%s", c->peers.peer[peer].name);
    for (int m = 0; m < FL_METRIC_COUNT; m++) {
        if (!is_shown(c, (enum fl_metric)m, has_steps)) {
            continue;
        }
        double ratio = ratio_to_first(c, peer, (enum fl_metric)m);
        fl_table_set(table, 0, column, "%s", fl_metric_info[m].heading);
        if (isnan(ratio)) {
            fl_table_set(table, row, column++, "-");
        } else {
            fl_table_set(table, row, column++, "%.3f", ratio);
        }
    }
}

/* The median of what one node holds of the allocator's runs; a node that a run does not name holds nothing. */
static double median_on_node(const struct fl_comparison *c, size_t peer, unsigned id)
{
    double value[FL_ROUNDS_MAX];
    size_t count = 0;
    for (unsigned round = 0; round < c->rounds; round++) {
        const struct fl_run *run = &c->run[peer * c->rounds + round];
        if (!run->is_done || run->exit_status != 0 || run->nodes.count == 0) {
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

/* Anonymous memory by node, a row an allocator: the nodes of any run, as far as the table goes. */
static void print_nodes(const struct fl_comparison *c, FILE *file)
{
    static struct fl_table table; /* static for its size */
    unsigned id[FL_TABLE_COLUMNS - 1];
    size_t ids = 0;
    for (size_t r = 0; r < c->peers.count * c->rounds; r++) {
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
    if (ids == 0) {
        return;
    }
    size_t row = 1;
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
    fl_table_print(&table, file);
}

void fl_comparison_print(const struct fl_comparison *c, FILE *file)
{
    static struct fl_table medians; /* static for their size */
    static struct fl_table ratios;
    bool has_steps = fl_comparison_has_steps(c);
    size_t row = 1;
    memset(&medians, 0, sizeof(medians));
    memset(&ratios, 0, sizeof(ratios));
    fl_table_set(&medians, 0, 0, "allocator");
    fl_table_set(&ratios, 0, 0, "ratio to %s", c->peers.peer[reference(c)].name);
    for (size_t i = 0; i < c->peers.count; i++) {
        if (c->peers.peer[i].is_present) {
            fill_row(c, i, has_steps, &medians, row);
            fill_ratio_row(c, i, has_steps, &ratios, row);
            row++;
        }
    }
    print_head(c, file);
    fl_table_print(&medians, file);
    fputc('\n', file);
    fl_table_print(&ratios, file);
    print_nodes(c, file);
}

static json_t *runs_json(const struct fl_comparison *c, size_t peer)
{
    json_t *array = json_array();
    for (unsigned round = 0; round < c->rounds; round++) {
        const struct fl_run *run = &c->run[peer * c->rounds + round];
        if (!run->is_done) {
            continue;
        }
        json_t *object = fl_json_metrics(run->value);
        json_object_set_new(object, "order", json_integer(run->order));
        json_object_set_new(object, "exit", json_integer(run->exit_status));
        json_object_set_new(object, "steps", json_integer((json_int_t)run->steps));
        if (run->nodes.count > 0) {
            json_object_set_new(object, "nodes", fl_nodes_json(&run->nodes));
        }
        if (run->reported != NULL) {
            json_object_set(object, "reported", run->reported);
        }
        json_array_append_new(array, object);
    }
    return array;
}

static void set_statistics(const struct fl_comparison *c, size_t peer, json_t *object)
{
    double median[FL_METRIC_COUNT];
    double least[FL_METRIC_COUNT];
    double most[FL_METRIC_COUNT];
    double ratio[FL_METRIC_COUNT];
    for (int m = 0; m < FL_METRIC_COUNT; m++) {
        struct fl_spread s = fl_comparison_spread(c, peer, (enum fl_metric)m);
        median[m] = s.count > 0 ? s.median : NAN;
        least[m] = s.count > 0 ? s.least : NAN;
        most[m] = s.count > 0 ? s.most : NAN;
        ratio[m] = ratio_to_first(c, peer, (enum fl_metric)m);
    }
    json_object_set_new(object, "median", fl_json_metrics(median));
    json_object_set_new(object, "min", fl_json_metrics(least));
    json_object_set_new(object, "max", fl_json_metrics(most));
    json_object_set_new(object, "ratio", fl_json_metrics(ratio));
}

static json_t *peer_json(const struct fl_comparison *c, size_t i)
{
    const struct fl_peer *peer = &c->peers.peer[i];
    json_t *object = json_pack("{s:s, s:b}", "name", peer->name, "present", peer->is_present);
    if (!peer->is_present) {
        return object;
    }
    json_t *env = json_object();
    for (size_t e = 0; e < peer->env_count; e++) {
        if (peer->env[e].value != NULL) {
            json_object_set_new(env, peer->env[e].name, json_string(peer->env[e].value));
        }
    }
    json_object_set_new(object, "version", json_string(peer->version));
    json_object_set_new(object, "library", json_string(peer->library));
    json_object_set_new(object, "env", env);
    json_object_set_new(object, "runs", runs_json(c, i));
    set_statistics(c, i, object);
    return object;
}

json_t *fl_comparison_json(const struct fl_comparison *c)
{
    json_t *allocators = json_array();
    for (size_t i = 0; i < c->peers.count; i++) {
        json_array_append_new(allocators, peer_json(c, i));
    }
    return json_pack("{s:i, s:s, s:o, s:o, s:i, s:i, s:b, s:o}", "schema", FL_JSON_SCHEMA,
                     "faultstat", FL_VERSION, "machine", fl_machine_json(&c->machine), "command",
                     fl_json_command(c->command), "rounds", (int)c->rounds, "warm_mib",
                     (int)c->warm_mib, "has_steps", fl_comparison_has_steps(c), "allocators",
                     allocators);
}
