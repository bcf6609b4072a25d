/* Shared by the files of uffd/ alone. Everything here is the thread's own. */
#ifndef FL_UFFD_INTERNAL_H
#define FL_UFFD_INTERNAL_H

#include "uffd/uffd.h"

/* Sleeps on `s` too, from now on; closed, with false, when there are too many. */
bool fl_source_add(struct fl_worker *w, struct fl_source s);
void fl_source_close(struct fl_worker *w, struct fl_source *s);

/* Begins and ends the watch for memory that is short. It costs some descriptors and, in the kernel,
 * a look at what was stalled at every tenth of its window: so it is kept only while something may
 * be given back. */
void fl_pressure_watch(struct fl_worker *w);
void fl_pressure_unwatch(struct fl_worker *w);

/* Serves first touches from now on, where the kernel lets it. */
void fl_touch_open(struct fl_worker *w);

#endif
