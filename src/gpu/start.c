/* Where the runtime starts and stops the folder: nothing is called, opened or loaded here. */
#include "gpu/driver.h"

struct fl_gpu_host fl_gpu_host;

void fl_gpu_start(struct fl_region *r, const struct fl_options *o)
{
    fl_gpu_host = (struct fl_gpu_host){r, o};
}

void fl_gpu_stop(void)
{
    /* What is written at exit. */
}
