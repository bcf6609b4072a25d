/* Where the runtime starts the folder: nothing is called, opened or loaded here. */
#include "gpu/driver/driver.h"

struct fl_gpu_host fl_gpu_host;

void fl_gpu_start(struct fl_region *r, const struct fl_options *o)
{
    fl_gpu_host = (struct fl_gpu_host){r, o};
}
