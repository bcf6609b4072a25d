#include "faultstat/record/predict.h"

#include <math.h>

static const double usual_dearer = 0.4; /* part of the cost: memory that is not in the caches */
static const double most_dearer = 3;    /* likewise: a host that has to find the memory first */
static const double wide = 0.3;         /* of the middle: an interval that is no figure any more */
static const double clear_error = 0.5;  /* part of its cost: some lies in the caches then */

const char *const fl_doubt_text[FL_DOUBT_COUNT] = {
    [FL_DOUBT_NONE] = "",
    [FL_DOUBT_SYSTEM] = "there is more system time than the faults took in the calibration: they "
                        "are dearer here, or other system calls took it",
    [FL_DOUBT_SHORT] = "the steps were too short or too few to know their user time",
    [FL_DOUBT_COSTS] = "too much hangs on what a fault costs in user time",
};

/* The system time that faultless leaves, at least and at most. */
struct rest {
    double low;
    double high;
};

static double limit(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static struct rest rest_of(const struct fl_prediction_input *in, double sys_ms)
{
    double other = limit(in->kept_ms + (in->knows_calls ? in->call_ms : in->io_ms), 0, sys_ms);
    double beyond = sys_ms - other - in->kernel_ms;
    if (beyond <= in->kernel_ms * usual_dearer) {
        return (struct rest){other, other};
    }
    double least = other + limit(beyond - in->kernel_ms * most_dearer, 0, beyond);
    return (struct rest){least, in->knows_calls ? least : other + beyond};
}

static enum fl_doubt doubt_of(const struct fl_prediction *p, double sampled, double costs)
{
    double reach = p->high_ms - p->low_ms;
    if (reach <= p->cpu_ms * wide) {
        return FL_DOUBT_NONE;
    }
    double both = 2 * sqrt(sampled * sampled + costs * costs);
    return reach > 2 * both ? FL_DOUBT_SYSTEM : sampled > costs ? FL_DOUBT_SHORT : FL_DOUBT_COSTS;
}

static double square(double x)
{
    return x * x;
}

/* Where the calibration leaves less than the floor, it says nothing of this program's user time:
 * that lies between the floor and what was measured. */
static void raise_to_floor(struct fl_prediction *p, double floor, double measured)
{
    if (floor > (p->low_ms + p->high_ms) / 2 && measured > p->high_ms) {
        p->high_ms = measured < p->bare_cpu_ms ? measured : p->bare_cpu_ms;
    }
    p->low_ms = floor > p->low_ms ? floor : p->low_ms;
    p->high_ms = p->high_ms > p->low_ms ? p->high_ms : p->low_ms;
}

struct fl_prediction fl_predict(const struct fl_prediction_input *in)
{
    double again = 1;
    if (!in->has_steps && in->pages > 0) {
        again = in->pages > in->peak_pages ? (in->pages - in->peak_pages) / in->pages : 0;
    }
    double bare = in->cpu_ms > in->recording_ms ? in->cpu_ms - in->recording_ms : in->cpu_ms;
    double user = limit(in->user_ms, 0, bare);
    struct rest rest = rest_of(in, bare - user);
    double left = limit(user - in->trail_ms - in->walk_ms / 2 + in->clear_ms, 0, bare);
    double sampled = again * 2 * in->user_error_ms;
    double costs = again * sqrt(square(in->reach_ms) + square(in->walk_ms / 2) +
                                square(clear_error * in->clear_ms));
    double error = sqrt(square(sampled) + square(costs));
    struct fl_prediction p = {
        .bare_cpu_ms = bare,
        .bare_wall_ms = in->cpu_ms > 0 ? in->wall_ms * bare / in->cpu_ms : in->wall_ms,
        .low_ms = limit(bare - again * (bare - left - rest.low) - error, 0, bare),
        .high_ms = limit(bare - again * (bare - left - rest.high) + error, 0, bare),
        .faults = in->avoidable * again,
        .dearer = in->kernel_ms > 0 ? (bare - user - rest.high) / in->kernel_ms : 1,
    };
    if (in->has_steps) {
        raise_to_floor(&p, in->floor_ms < user ? in->floor_ms : user, user + rest.low);
    }
    p.cpu_ms = (p.low_ms + p.high_ms) / 2;
    p.doubt = doubt_of(&p, sampled, costs);
    return p;
}
