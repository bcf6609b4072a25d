#include "faultstat/record/predict.h"

static const double most_saved = 0.98; /* part of the processor time: calibration is no proof */

struct fl_prediction fl_predict(const struct fl_prediction_input *in)
{
    double again = 1;
    if (!in->has_steps && in->pages > 0) {
        again = in->pages > in->peak_pages ? (in->pages - in->peak_pages) / in->pages : 0;
    }
    double bare = in->cpu_ms > in->recording_ms ? in->cpu_ms - in->recording_ms : in->cpu_ms;
    double bare_wall = in->cpu_ms > 0 ? in->wall_ms * bare / in->cpu_ms : in->wall_ms;
    double saved = in->avoidable_ms * again;
    if (saved > bare * most_saved) {
        saved = bare * most_saved;
    }
    double left = bare > 0 ? 1 - saved / bare : 1;
    return (struct fl_prediction){.bare_wall_ms = bare_wall,
                                  .bare_cpu_ms = bare,
                                  .wall_ms = bare_wall * left,
                                  .cpu_ms = bare * left,
                                  .saved_ms = saved,
                                  .faults = in->avoidable * again};
}
