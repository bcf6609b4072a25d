#include "faultstat/record/steady.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

static const double typical = 1.25; /* of the median */
static const double call_ns = 500;  /* of a read or write, beside its bytes: small files, pipes */
static const double tick_ms = 10;   /* of the kernel's clock, at worst */

static double ms(struct timeval t)
{
    return (double)t.tv_sec * 1e3 + (double)t.tv_usec / 1e3;
}

/* System time of reads and writes between two marks. A byte is read and written once. */
static double io_ms(const struct fl_costs *costs, const struct fl_io *from, const struct fl_io *to)
{
    double calls = to->calls > from->calls ? (double)(to->calls - from->calls) : 0;
    double bytes = to->bytes > from->bytes ? (double)(to->bytes - from->bytes) : 0;
    double pages = bytes / (double)sysconf(_SC_PAGESIZE);
    return (calls * call_ns + pages * 2 * costs->clear_ns) / 1e6;
}

/* Sums of part `i`; all 0 where nothing was noted. */
static struct fl_step_sum part_of(const struct fl_recorder *recorder, size_t i)
{
    return i < recorder->steps.count ? recorder->steps.part[i] : (struct fl_step_sum){0};
}

static void add_part(struct fl_prediction_input *in, const struct fl_step_sum *part)
{
    in->user_ms += part->ticks.user * FL_CLOCK_NS / 1e6;
    in->call_ms += part->ticks.other * FL_CLOCK_NS / 1e6;
    in->avoidable += part->avoidable;
    in->kernel_ms += part->kernel_ns / 1e6;
    in->trail_ms += part->trail_ns / 1e6;
    in->reach_ms += part->reach_ns / 1e6;
    in->clear_ms += part->clear_ns / 1e6;
    in->kept_ms += part->kept_ns / 1e6;
    in->pages += part->pages;
    in->base_pages += part->base_pages;
}

/* Step `i` is part i + 1; its processor time and its input and output lie between two marks. */
static void add_step(const struct fl_recorder *recorder, const struct fl_steps *steps, size_t i,
                     struct fl_prediction_input *in)
{
    struct fl_step step = fl_steps_get(steps, i);
    struct fl_step_sum part = part_of(recorder, i + 1);
    struct fl_step_sum next = part_of(recorder, i + 2);
    bool is_known = part.cpu_ns != 0 && next.cpu_ns > part.cpu_ns;
    add_part(in, &part);
    in->wall_ms += step.wall_ms;
    in->cpu_ms += is_known ? (double)(next.cpu_ns - part.cpu_ns) / 1e6 : step.user_ms + step.sys_ms;
    in->user_ms += recorder->rings.has_clock ? 0 : step.user_ms;
    in->recording_ms += (double)step.minor * recorder->costs.recording_ns / 1e6;
    in->io_ms += io_ms(&recorder->costs, &part.io, &next.io);
}

/* From sums to means, and how far sampling may have erred: the ticks that met user mode are counted
 * events, so their standard error is the root of their number.
 * fl_costs.walk holds for memory that lies in base pages. */
static void divide(struct fl_prediction_input *in, double count, double tick,
                   const struct fl_costs *costs)
{
    double *mean[] = {&in->wall_ms,   &in->cpu_ms,    &in->user_ms,  &in->recording_ms,
                      &in->avoidable, &in->kernel_ms, &in->trail_ms, &in->reach_ms,
                      &in->clear_ms,  &in->kept_ms,   &in->call_ms,  &in->io_ms,
                      &in->pages,     &in->base_pages};
    for (size_t i = 0; i < sizeof(mean) / sizeof(mean[0]); i++) {
        *mean[i] /= count;
    }
    in->walk_ms = in->pages > 0 ? in->user_ms * costs->walk * in->base_pages / in->pages : 0;
    in->floor_ms = in->pages * costs->pass_ns / 1e6;
    in->user_error_ms = sqrt(in->user_ms * tick / count);
}

static void get_run(const struct fl_recorder *recorder, const struct fl_watch *watch,
                    struct fl_prediction_input *in)
{
    for (size_t i = 0; i < recorder->steps.count; i++) {
        add_part(in, &recorder->steps.part[i]);
    }
    in->wall_ms = watch->wall_s * 1e3;
    in->cpu_ms = ms(watch->usage.ru_utime) + ms(watch->usage.ru_stime);
    in->recording_ms = (double)watch->usage.ru_minflt * recorder->costs.recording_ns / 1e6;
    in->peak_pages = (double)watch->usage.ru_maxrss * 1024 / (double)sysconf(_SC_PAGESIZE);
    in->user_ms = recorder->rings.has_clock ? in->user_ms : ms(watch->usage.ru_utime);
}

void fl_steady_get(const struct fl_recorder *recorder, const struct fl_watch *watch, int warmup,
                   struct fl_prediction_input *in)
{
    struct fl_steps_summary s;
    double count = 0;
    memset(in, 0, sizeof(*in));
    in->knows_calls = recorder->rings.has_clock && recorder->rings.layout.clock_has_ip &&
                      !recorder->rings.user_only;
    in->has_steps = fl_steps_summarise(&watch->steps, warmup, &s) == 0;
    if (in->has_steps) {
        for (size_t i = s.steps - s.steady; i < s.steps; i++) {
            if (fl_steps_get(&watch->steps, i).wall_ms <= s.wall_ms_median * typical) {
                add_step(recorder, &watch->steps, i, in);
                count++;
            }
        }
    } else {
        get_run(recorder, watch, in);
        count = 1;
    }
    divide(in, count, recorder->rings.has_clock ? FL_CLOCK_NS / 1e6 : tick_ms, &recorder->costs);
}
