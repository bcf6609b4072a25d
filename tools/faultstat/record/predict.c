#include "faultstat/record/predict.h"

static const double most_saved = 0.98; /* part of the processor time: calibration is no proof */

struct fl_prediction fl_predict(const struct fl_prediction_input *in)
{
    double again = 1;
    if (!in->has_steps && in->pages > 0) {
        again = in->pages > in->peak_pages ? (in->pages - in->peak_pages) / in->pages : 0;
    }
    double saved = in->avoidable_ms * again;
    if (saved > in->cpu_ms * most_saved) {
        saved = in->cpu_ms * most_saved;
    }
    double left = in->cpu_ms > 0 ? 1 - saved / in->cpu_ms : 1;
    return (struct fl_prediction){.wall_ms = in->wall_ms * left,
                                  .cpu_ms = in->cpu_ms * left,
                                  .saved_ms = saved,
                                  .faults = in->avoidable * again};
}
