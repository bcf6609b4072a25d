/* fl_option_set: options that change while the process runs. Here are those for which it is told to
 * whom; the others are read once, at boot. */
#include "runtime/runtime.h"

#include "faultless/faultless.h"

#include <errno.h>

static bool is_set(enum fl_option_id id)
{
    return fl_runtime.options.origin[id] != FL_ORIGIN_DEFAULT;
}

static uint64_t value_of(enum fl_option_id id)
{
    return fl_runtime.options.value[id];
}

static void call_worker(void)
{
    if (fl_route.worker != NULL) {
        fl_worker_call(fl_route.worker, true);
    }
}

static void change_decay(void)
{
    uint64_t tick_ns = fl_tick_ns(), delay_ns = tick_ns != 0 ? tick_ns : FL_JOB_IDLE;

    fl_region_set_decay(&fl_runtime.region, tick_ns, !is_set(FL_OPTION_decay_ms));
    fl_plan_set_tick(tick_ns);
    fl_worker_set_delay(&fl_runtime.worker, fl_worker_decay, delay_ns);
    fl_worker_set_delay(&fl_runtime.worker, fl_plan_age, delay_ns);
    call_worker();
}

static void change_limit(void)
{
    if (is_set(FL_OPTION_limit)) {
        atomic_store(&fl_route.spread, 0); /* as at boot: blocks of a round length are no longer */
    }
    fl_region_set_limit(&fl_runtime.region, value_of(FL_OPTION_limit));
}

static void change_eager(void)
{
    fl_region_set_eager(&fl_runtime.region, fl_spread(value_of(FL_OPTION_eager_max)),
                        !is_set(FL_OPTION_eager_max));
}

static void change_steps(void)
{
    fl_plan_set_on(fl_steps_are_on());
}

static void change_trim(void)
{
    fl_trim_choose((enum fl_trim)value_of(FL_OPTION_trim));
}

static void change_stats(void)
{
    fl_report_changed();
    call_worker(); /* the file for Prometheus is its */
}

static const struct {
    enum fl_option_id id;
    void (*apply)(void);
} changes[] = {
    {FL_OPTION_decay_ms, change_decay},  {FL_OPTION_limit, change_limit},
    {FL_OPTION_eager_max, change_eager}, {FL_OPTION_trim, change_trim},
    {FL_OPTION_stats, change_stats},     {FL_OPTION_steps, change_steps},
};

/* Index in that table; -ENOENT or -EPERM. */
static int find_change(const char *name)
{
    int id = fl_option_find(name);

    for (int i = 0; id >= 0 && i < (int)(sizeof changes / sizeof changes[0]); i++) {
        if ((int)changes[i].id == id) {
            return i;
        }
    }
    return id < 0 ? id : -EPERM;
}

/* No lock: a handler may come amid it, and a child of fork has it from another process. */
static _Atomic int changing; /* pid */

static bool begin_change(void)
{
    int none = atomic_load(&changing), self = fl_call_pid();

    return none != self && atomic_compare_exchange_strong(&changing, &none, self);
}

int fl_option_set(const char *name, const char *value)
{
    int i = name != NULL ? find_change(name) : -EINVAL;

    if (i < 0) {
        return i;
    }
    (void)fl_boot_for_call();
    if (!fl_is_started() || !fl_runtime.active) {
        return -ENOSYS;
    }
    if (fl_region_busy() || !begin_change()) {
        return -EBUSY;
    }
    int rc = fl_option_set_in(&fl_runtime.options, changes[i].id, value);
    if (rc == 0) {
        changes[i].apply();
    }
    atomic_store(&changing, 0);
    return rc;
}

int64_t fl_release(size_t keep)
{
    return fl_trim_to(keep);
}
