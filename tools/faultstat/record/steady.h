/* What the prediction goes by: the recording's sums over the steady steps, or the whole run. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_STEADY_H
#define FAULTLESS_FAULTSTAT_RECORD_STEADY_H

#include "faultstat/record/predict.h"
#include "faultstat/record/recorder.h"

/* Means over the typical steps: those after the warm-up whose time is at most a quarter above the
 * median. What disturbs a step (a host that takes memory back, other programs) makes it longer,
 * and is no part of a steady one.
 *   warmup   as in fl_steps_summarise. */
void fl_steady_get(const struct fl_recorder *recorder, const struct fl_watch *watch, int warmup,
                   struct fl_prediction_input *in);

#endif
