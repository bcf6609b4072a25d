/* One round of `faultstat top` as JSON. */
#include "faultstat/json.h"
#include "faultstat/top/show.h"

#include <math.h>

static const struct {
    enum fl_live_figure figure;
    const char *key;
} figures[] = {
    {FL_LIVE_LIVE_BYTES, "live_bytes"},
    {FL_LIVE_RESERVE_BYTES, "reserve_bytes"},
    {FL_LIVE_HELD_BYTES, "populated_bytes"},
    {FL_LIVE_STOCK_BYTES, "stock_bytes"},
    {FL_LIVE_REQUESTS, "requests"},
    {FL_LIVE_CACHE_HITS, "cache_hits"},
    {FL_LIVE_STALLS, "stalls"},
    {FL_LIVE_LAZY, "lazy"},
    {FL_LIVE_REFUSED, "refused"},
    {FL_LIVE_SERVED_BYTES, "served_bytes"},
    {FL_LIVE_POPULATE_BYTES, "populate_bytes"},
    {FL_LIVE_PURGE_BYTES, "purge_bytes"},
    {FL_LIVE_MOVE_BYTES, "move_bytes"},
    {FL_LIVE_PLAN_HITS, "plan_hits"},
    {FL_LIVE_PLAN_MISSES, "plan_misses"},
    {FL_LIVE_PLAN_STEPS, "plan_steps"},
    {FL_LIVE_PLAN_LAYOUTS, "plan_layouts"},
    {FL_LIVE_PLAN_DROPS, "plan_drops"},
};

static void set(json_t *object, const char *key, double value)
{
    if (!isnan(value)) {
        json_object_set_new(object, key, json_real(nearbyint(value * 1e2) / 1e2));
    }
}

static void set_bytes(json_t *object, const char *key, uint64_t value)
{
    json_object_set_new(object, key, json_integer((json_int_t)value));
}

static json_t *contexts_json(const struct fl_top_process *p)
{
    static const char *const state[FL_LIVE_STATES] = {"learn", "pack", "serve", "rest"};
    json_t *object = json_object();
    for (int i = 0; i < FL_LIVE_STATES; i++) {
        enum fl_live_figure figure = (enum fl_live_figure)(FL_LIVE_STATE + i);
        if (p->live.known[figure]) {
            set_bytes(object, state[i], (uint64_t)fl_top_figure(p, figure));
        }
    }
    return object;
}

static json_t *process_json(const struct fl_top_process *p)
{
    json_t *object = json_pack("{s:i, s:I, s:o, s:s, s:s, s:o, s:o}", "pid", (int)p->pid, "uid",
                               (json_int_t)p->uid, "name", fl_json_text(p->name), "method",
                               fl_top_method(p), "plan", fl_top_plan(p), "contexts",
                               contexts_json(p), "library", fl_json_text(p->live.library));
    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        if (p->live.known[figures[i].figure]) {
            set_bytes(object, figures[i].key, (uint64_t)fl_top_figure(p, figures[i].figure));
        }
    }
    set_bytes(object, "resident_bytes", p->rss);
    set_bytes(object, "faults", p->usage.minor);
    set(object, "faults_per_s", p->faults_s);
    set(object, "requests_per_s", p->requests_s);
    set(object, "hit_pct", fl_top_hit_pct(p));
    if (p->rollup.anonymous != 0) {
        set_bytes(object, "anonymous_bytes", p->rollup.anonymous);
        set_bytes(object, "anon_huge_bytes", p->rollup.huge);
        set(object, "huge_pct", fl_top_huge_pct(p));
    }
    set(object, "remote_pct", p->remote_pct);
    if (p->error != 0) {
        char reason[FL_TOP_REASON];
        fl_top_reason(p, reason);
        json_object_set_new(object, "error", fl_json_text(reason));
    }
    return object;
}

json_t *fl_top_json(const struct fl_top *top, long round)
{
    json_t *array = json_array();
    for (size_t i = 0; i < top->count; i++) {
        json_array_append_new(array, process_json(&top->process[i]));
    }
    return json_pack("{s:i, s:s, s:I, s:o}", "schema", FL_JSON_SCHEMA, "kind", "top", "round",
                     (json_int_t)round, "processes", array);
}
