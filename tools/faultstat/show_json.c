/* A comparison as JSON and as CSV. */
#include "faultstat/show.h"
#include "faultstat/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *served_word(const struct fl_served *served)
{
    static const char *const word[] = {"unknown", "ok", "not loaded", "shadowed"};
    return word[served->state];
}

static json_t *run_json(const struct fl_run *run)
{
    json_t *object = fl_json_metrics(run->value);
    json_object_set_new(object, "order", json_integer(run->order));
    json_object_set_new(object, "exit", json_integer(run->exit_status));
    json_object_set_new(object, "timed_out", json_boolean(run->is_timed_out));
    json_object_set_new(object, "steps", json_integer((json_int_t)run->steps));
    json_object_set_new(object, "served_by", json_string(served_word(&run->served)));
    if (run->library.is_known) {
        json_object_set_new(object, "library_requests",
                            json_integer((json_int_t)run->library.requests));
        json_object_set_new(object, "library_plan_steps",
                            json_integer((json_int_t)run->library.plan_steps));
    }
    if (run->nodes.count > 0) {
        json_object_set_new(object, "nodes", fl_nodes_json(&run->nodes));
    }
    if (run->reported != NULL) {
        json_object_set(object, "reported", run->reported);
    }
    return object;
}

static void set_runs(const struct fl_comparison *c, size_t peer, json_t *object)
{
    json_t *array = json_array();
    const struct fl_served *served = NULL;
    for (unsigned round = 0; round < c->plan.rounds; round++) {
        const struct fl_run *run = &c->run[peer * c->plan.rounds + round];
        if (run->is_done) {
            json_array_append_new(array, run_json(run));
            served = served == NULL || run->served.state > served->state ? &run->served : served;
        }
    }
    json_object_set_new(object, "runs", array);
    if (served != NULL) {
        json_object_set_new(object, "served_by", json_string(served_word(served)));
        json_object_set_new(object, "served_reason", fl_json_text(served->reason));
    }
}

static void set_statistics(const struct fl_judgement *j, json_t *object)
{
    double median[FL_METRIC_COUNT];
    double least[FL_METRIC_COUNT];
    double most[FL_METRIC_COUNT];
    double ratio[FL_METRIC_COUNT];
    json_t *intervals = json_object();
    for (int m = 0; m < FL_METRIC_COUNT; m++) {
        const struct fl_figure *figure = &j->figure[m];
        median[m] = figure->count > 0 ? figure->median : NAN;
        least[m] = figure->count > 0 ? figure->least : NAN;
        most[m] = figure->count > 0 ? figure->most : NAN;
        ratio[m] = figure->ratio;
        if (figure->has_interval) {
            json_object_set_new(intervals, fl_metric_info[m].key,
                                json_pack("[f, f]", figure->interval.low, figure->interval.high));
        }
    }
    json_object_set_new(object, "median", fl_json_metrics(median));
    json_object_set_new(object, "min", fl_json_metrics(least));
    json_object_set_new(object, "max", fl_json_metrics(most));
    json_object_set_new(object, "ratio", fl_json_metrics(ratio));
    json_object_set_new(object, "ratio_interval", intervals);
    json_object_set_new(object, "outliers", json_integer((json_int_t)j->noise.outliers));
    json_object_set_new(object, "failures", json_integer((json_int_t)j->failures));
}

static json_t *peer_json(const struct fl_comparison *c, const struct fl_analysis *a, size_t i)
{
    const struct fl_peer *peer = &c->peers.peer[i];
    json_t *object = json_object();
    json_object_set_new(object, "name", fl_json_text(peer->name));
    json_object_set_new(object, "present", json_boolean(peer->is_present));
    json_object_set_new(object, "verdict", json_string(fl_verdict_word[a->peer[i].verdict]));
    if (!peer->is_present) {
        json_object_set_new(object, "absent_because", fl_json_text(peer->absent_because));
        return object;
    }
    json_t *env = json_object();
    for (size_t e = 0; e < peer->env_count; e++) {
        char *name = fl_text_utf8(peer->env[e].name);
        if (peer->env[e].value != NULL && name != NULL) {
            json_object_set_new(env, name, fl_json_text(peer->env[e].value));
        }
        free(name);
    }
    json_object_set_new(object, "version", fl_json_text(peer->version));
    json_object_set_new(object, "library", fl_json_text(peer->library));
    json_object_set_new(object, "env", env);
    set_runs(c, i, object);
    set_statistics(&a->peer[i], object);
    return object;
}

json_t *fl_show_json(const struct fl_comparison *c, const struct fl_analysis *a)
{
    char text[400];
    json_t *allocators = json_array();
    json_t *warnings = json_array();
    json_t *root = json_object();
    for (size_t i = 0; i < c->peers.count; i++) {
        json_array_append_new(allocators, peer_json(c, a, i));
    }
    for (size_t i = 0; i < a->warnings; i++) {
        json_array_append_new(warnings, fl_json_text(a->warning[i]));
    }
    fl_analysis_conclude(a, c, text, sizeof(text));
    json_object_set_new(root, "schema", json_integer(FL_JSON_SCHEMA));
    json_object_set_new(root, "kind", json_string("compare"));
    json_object_set_new(root, "faultstat", json_string(FL_VERSION));
    json_object_set_new(root, "complete", json_boolean(c->runs_done == c->runs_planned));
    json_object_set_new(root, "runs_done", json_integer(c->runs_done));
    json_object_set_new(root, "runs_planned", json_integer(c->runs_planned));
    json_object_set_new(root, "machine", fl_machine_json(&c->machine));
    json_object_set_new(root, "command", fl_json_command(c->plan.command));
    json_object_set_new(root, "rounds", json_integer(c->plan.rounds));
    json_object_set_new(root, "warm_mib", json_integer(c->plan.warm_mib));
    json_object_set_new(root, "has_steps", json_boolean(a->has_steps));
    json_object_set_new(root, "level", json_real(a->level));
    json_object_set_new(root, "metric", json_string(fl_metric_info[a->metric].key));
    json_object_set_new(root, "verdict", fl_json_text(text));
    json_object_set_new(root, "warnings", warnings);
    json_object_set_new(root, "allocators", allocators);
    return root;
}

static void print_field(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text != '\0'; text++) {
        fprintf(file, *text == '"' ? "\"%c" : "%c", *text);
    }
    fputc('"', file);
}

void fl_show_csv(const struct fl_comparison *c, FILE *file)
{
    fputs("allocator,round,order,exit,served_by", file);
    for (int m = 0; m < FL_METRIC_COUNT; m++) {
        fprintf(file, ",%s", fl_metric_info[m].key);
    }
    fputs("\r\n", file);
    for (size_t i = 0; i < c->peers.count * c->plan.rounds; i++) {
        const struct fl_run *run = &c->run[i];
        if (!run->is_done) {
            continue;
        }
        char *name = fl_text_utf8(c->peers.peer[i / c->plan.rounds].name);
        print_field(file, name != NULL ? name : "");
        free(name);
        fprintf(file, ",%zu,%u,%d,%s", i % c->plan.rounds, run->order, run->exit_status,
                served_word(&run->served));
        for (int m = 0; m < FL_METRIC_COUNT; m++) {
            fprintf(file, isnan(run->value[m]) ? "," : ",%.10g", run->value[m]);
        }
        fputs("\r\n", file);
    }
}
