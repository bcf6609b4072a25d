#include "faultstat/record/predict.h"

static const double most_saved = 0.98; /* part of the processor time: calibration is no proof */

static const double usual_dearer = 1.4; /* memory that is not in the caches */
static const double most_dearer = 4;

/* How much dearer faults are here than they were in the calibration. */
static double dearer(const struct fl_prediction_input *in)
{
    double times = in->cost_ms > 0 ? (in->sys_ms - in->recording_ms) / in->cost_ms : 1;
    double most = in->spread < usual_dearer  ? usual_dearer
                  : in->spread > most_dearer ? most_dearer
                                             : in->spread;
    return times < 1 ? 1 : times > most ? most : times;
}

struct fl_prediction fl_predict(const struct fl_prediction_input *in)
{
    double again = 1;
    if (!in->has_steps && in->pages > 0) {
        again = in->pages > in->peak_pages ? (in->pages - in->peak_pages) / in->pages : 0;
    }
    double bare = in->cpu_ms > in->recording_ms ? in->cpu_ms - in->recording_ms : in->cpu_ms;
    double bare_wall = in->cpu_ms > 0 ? in->wall_ms * bare / in->cpu_ms : in->wall_ms;
    double saved = in->avoidable_ms * again * dearer(in);
    if (saved > bare * most_saved) {
        saved = bare * most_saved;
    }
    double left = bare > 0 ? 1 - saved / bare : 1;
    return (struct fl_prediction){.bare_wall_ms = bare_wall,
                                  .bare_cpu_ms = bare,
                                  .wall_ms = bare_wall * left,
                                  .cpu_ms = bare * left,
                                  .saved_ms = saved,
                                  .faults = in->avoidable * again,
                                  .dearer = dearer(in)};
}
