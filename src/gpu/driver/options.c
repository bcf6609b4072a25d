/* The defaults of pools: what the environment says in place of what faultless/gpu.h says. */
#include "gpu/driver/driver.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(FL_GPU_AUTO == 0 && FL_GPU_NAIVE == 1 && FL_GPU_ROUND == 2 && FL_GPU_UNPOOLED == 3 &&
                   FL_GPU_NAIVE_BEST_FIT == 4 && FL_GPU_AUTO_GROWTH == 5,
               "strategies are in the order of their words in core/options_parse.c");
_Static_assert(FL_GPU_FORK_NONE == 0 && FL_GPU_FORK_WIPE == 1 && FL_GPU_FORK_COPY == 2,
               "so are these");

enum { PINNED_CHUNKS = 256 }; /* PaddlePaddle: a chunk is such a part of what may be pinned */

uint64_t fl_gpu_option(enum fl_option_id id)
{
    return fl_gpu_host.options == NULL ? fl_option_preset(id) : fl_gpu_host.options->value[id];
}

static double real(enum fl_option_id id)
{
    uint64_t v = fl_gpu_option(id);

    return v == FL_OPTION_OFF ? -1.0 : (double)v / 1e6;
}

static unsigned ranks(void)
{
    return fl_gpu_host.options == NULL || fl_gpu_host.options->ranks == 0
               ? 1
               : fl_gpu_host.options->ranks;
}

/* Entries up to the first that is none: the driver stops there, too. */
static unsigned count_entries(const char *s)
{
    unsigned n = 0;

    while (*s != '\0' && *s != ',' && *s != '-') {
        n++;
        s += strcspn(s, ",");
        s += *s == ',';
    }
    return n;
}

static unsigned visible_devices(void)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    int n = 0;

    if (list != NULL) {
        return count_entries(list);
    }
    if (fl_cuda_open() != 0 || fl_cuda.cuDeviceGetCount(&n) != FL_CUDA_SUCCESS || n < 0) {
        return 0;
    }
    return (unsigned)n;
}

/* How many processes divide one device among them: FAULTLESS_GPU_SHARE, else the ranks on this host
 * by the devices that this process sees, rounded up: CUDA_VISIBLE_DEVICES' entries, else what the
 * driver counts. At least 1. May open the driver when there are several ranks. */
static unsigned sharers(void)
{
    unsigned all = ranks(), devices;

    if (fl_gpu_option(FL_OPTION_gpu_share) != 0) {
        return (unsigned)fl_gpu_option(FL_OPTION_gpu_share);
    }
    devices = all > 1 ? visible_devices() : 0;
    return devices == 0 ? 1 : (all + devices - 1) / devices;
}

/* Of one device; PaddlePaddle's users say it of a process. */
size_t fl_gpu_option_device_limit(void)
{
    size_t limit = fl_gpu_option(FL_OPTION_gpu_limit);
    bool of_process = fl_gpu_host.options != NULL &&
                      fl_gpu_host.options->origin[FL_OPTION_gpu_limit] == FL_ORIGIN_ALIAS;

    return limit == 0 || of_process ? limit : fl_max(limit / sharers(), 1);
}

static void pinned_defaults(struct fl_gpu_pool_options *o)
{
    o->strategy = (enum fl_gpu_strategy)fl_gpu_option(FL_OPTION_gpu_pinned_strategy);
    o->fraction = real(FL_OPTION_gpu_pinned_fraction);
    o->limit = (size_t)((double)fl_sys.memory_total(NULL) * o->fraction) / ranks();
    o->initial = o->limit / PINNED_CHUNKS;
    o->regrow = o->initial;
}

static void device_defaults(struct fl_gpu_pool_options *o)
{
    o->strategy = (enum fl_gpu_strategy)fl_gpu_option(FL_OPTION_gpu_strategy);
    o->fraction = real(FL_OPTION_gpu_fraction);
    o->initial = fl_gpu_option(FL_OPTION_gpu_initial);
    o->regrow = fl_gpu_option(FL_OPTION_gpu_regrow);
    o->limit = fl_gpu_option_device_limit();
}

void fl_gpu_pool_defaults(struct fl_gpu_pool_options *o, enum fl_gpu_target target)
{
    if (o == NULL) {
        return;
    }
    *o = (struct fl_gpu_pool_options){
        .size = sizeof *o,
        .target = target,
        .page = fl_gpu_option(FL_OPTION_gpu_page),
        .large_round = fl_gpu_option(FL_OPTION_gpu_large_round),
        .linear_cutoff = (unsigned)fl_gpu_option(FL_OPTION_gpu_cutoff),
        .reserve_percent = (unsigned)fl_gpu_option(FL_OPTION_gpu_reserve),
        .chunk = fl_gpu_option(FL_OPTION_gpu_chunk),
        .gc_gb = real(FL_OPTION_gpu_gc_gb),
        .gc_fraction = real(FL_OPTION_gpu_gc_fraction),
        .gc_fast = fl_gpu_option(FL_OPTION_gpu_fast_gc) != 0,
        .numa_node = -1,
    };
    if (target == FL_GPU_PINNED) {
        pinned_defaults(o);
    } else {
        device_defaults(o);
    }
}
