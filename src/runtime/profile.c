/* FAULTLESS_PROFILE: who holds it. stats/profile.c has the samples. */
#include "runtime/runtime.h"

#include <errno.h>

void fl_report_begin_profile(void)
{
    const char *name = fl_runtime.options.text[FL_OPTION_profile];

    if (name == NULL || fl_parse_bool(name) == 0) {
        return;
    }
    if (fl_profile_begin(fl_runtime.options.value[FL_OPTION_profile_every]) != 0) {
        fl_say("no memory for FAULTLESS_PROFILE");
        return;
    }
    fl_plan_always = FL_PLAN_SAMPLE;
}

/* What the file's head says beside the samples. */
static struct fl_profile_head figures_of_now(void)
{
    struct fl_stats_values v;
    char memory[64];
    uint64_t pages = 0;

    fl_read_stats(&v);
    if (fl_sys.read_file("/proc/self/statm", memory, sizeof memory) == 0) {
        (void)fl_parse_after(memory, " ", &pages);
    }
    size_t inside = fl_min(v.cached_bytes + v.plan_free_bytes, v.in_use_bytes);
    return (struct fl_profile_head){.live_bytes = v.in_use_bytes - inside,
                                    .kept_bytes = inside + v.free_held_bytes + v.stock_bytes,
                                    .held_bytes = v.populated_bytes,
                                    .resident_bytes = pages * fl_page.base};
}

/* No process has one that asked for nothing: helpers would write over what counts. */
void fl_report_profile(void)
{
    static char path[FL_OPTION_TEXTS]; /* the stack may be small */
    const char *name = fl_runtime.options.text[FL_OPTION_profile];
    int rc = -ENAMETOOLONG;

    if (fl_profile == NULL || fl_profile->samples == 0 || fl_parse_bool(name) > 0) {
        return;
    }
    struct fl_profile_head now = figures_of_now();
    if (fl_names_expand(&fl_runtime.options.names, name, fl_call_pid(), path, sizeof path)) {
        rc = fl_profile_write(path, &now);
    }
    if (rc != 0) {
        fl_report_unwritten("FAULTLESS_PROFILE=", name, rc);
    }
}
