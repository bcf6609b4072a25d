/* Whether the calling thread is amid the library's own work. See busy.h. */
#include "core/core.h"

_Thread_local int fl_busy_depth;
static _Thread_local int unsettled;

void fl_unsettled_begin(void)
{
    unsettled++;
}

void fl_unsettled_end(void)
{
    unsettled--;
}

bool fl_unsettled(void)
{
    return unsettled != 0;
}

void fl_unsettled_none(void)
{
    unsettled = 0;
}
