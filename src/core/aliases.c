/* Environment names of others for options of ours. Ours win.
 *
 * Source: DeepRec's documentation of its memory optimisation on CPUs. */
#include "core/core.h"

#include <errno.h>
#include <string.h>

static const struct {
    const char *name;
    enum fl_option_id id;
} counts[] = {
    {"START_STATISTIC_STEP=", FL_OPTION_plan_start},
    {"STABLE_STATISTIC_STEP=", FL_OPTION_plan_stable},
    {"MAX_STATISTIC_STEP=", FL_OPTION_plan_max},
};
static const char on_or_off[] = "ENABLE_MEMORY_OPTIMIZATION=";

static void complain(struct fl_options *o, const char *entry)
{
    char line[200];
    struct fl_text t = fl_text_on(line, sizeof line);

    o->nbad++;
    if (o->value[FL_OPTION_log] >= FL_LOG_WARN) {
        fl_text_str(&t, entry);
        fl_text_str(&t, " is not understood; ignored");
        fl_say(line);
    }
}

static void set(struct fl_options *o, enum fl_option_id id, uint64_t v)
{
    o->value[id] = v;
    o->origin[id] = FL_ORIGIN_ENVIRONMENT;
}

static void read_count(struct fl_options *o, const char *entry, const char *value,
                       enum fl_option_id id)
{
    uint64_t v;

    if (o->origin[id] != FL_ORIGIN_DEFAULT) {
        return;
    }
    if (fl_parse_u64(value, &v) != 0 || v > 1000000) {
        complain(o, entry);
        return;
    }
    set(o, id, id == FL_OPTION_plan_max && v < 2 ? 2 : v);
}

static void read_switch(struct fl_options *o, const char *entry, const char *value)
{
    int on = fl_parse_bool(value);

    if (on < 0) {
        complain(o, entry);
    } else if (on == 0 && o->origin[FL_OPTION_steps] == FL_ORIGIN_DEFAULT) {
        set(o, FL_OPTION_steps, FL_STEPS_OFF);
    }
}

void fl_options_aliases(struct fl_options *o, char *const env[])
{
    for (; env != NULL && *env != NULL; env++) {
        for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
            size_t len = strlen(counts[i].name);
            if (strncmp(*env, counts[i].name, len) == 0) {
                read_count(o, *env, *env + len, counts[i].id);
            }
        }
        if (strncmp(*env, on_or_off, sizeof on_or_off - 1) == 0) {
            read_switch(o, *env, *env + sizeof on_or_off - 1);
        }
    }
}
