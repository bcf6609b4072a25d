/* FAULTLESS_CONFIRM: what is in force. Automatic values are the region's and the memory's to
 * say. */
#include "runtime/runtime.h"

/* What 0 comes to, for those that have a number now. */
static void note_automatic(struct fl_options *o)
{
    struct fl_memory m;

    fl_runtime.region.look.worker_scratch.ranks = o->ranks;
    fl_memory_look(&m, &fl_runtime.region.look.worker_scratch);
    o->automatic[FL_OPTION_host_share] = o->ranks;
    if (m.most != UINT64_MAX) {
        o->automatic[FL_OPTION_limit] = fl_align_down(m.most / 2 / o->ranks, fl_page.base);
    }
    if (m.eager != UINT64_MAX && o->origin[FL_OPTION_eager_max] != FL_ORIGIN_DEFAULT) {
        o->automatic[FL_OPTION_eager_max] = fl_align_down(m.eager / FL_EAGER_SHARE, fl_page.base);
    }
}

void fl_confirm(void)
{
    note_automatic(&fl_runtime.options);
    fl_options_confirm(&fl_runtime.options);
}
