/* Where the runtime starts and stops the folder: nothing is called, opened or loaded here. */
#include "gpu/driver/driver.h"
#include "gpu/trace/trace.h"

struct fl_gpu_host fl_gpu_host;

void fl_gpu_start(struct fl_region *r, const struct fl_options *o)
{
    fl_gpu_host = (struct fl_gpu_host){r, o};
    fl_gpu_trace_start(o == NULL ? NULL : o->text[FL_OPTION_gpu_trace]);
}

void fl_gpu_stop(void)
{
    if (fl_gpu_is_traced()) {
        (void)fl_gpu_trace_end();
    }
}
