/* Shared by the files of uffd/ alone. All but fl_jobs_later is the thread's own. */
#ifndef FL_UFFD_INTERNAL_H
#define FL_UFFD_INTERNAL_H

#include "uffd/uffd.h"

/* None is due; each is after its delay; and each once that is due: returns when the next one is. */
void fl_jobs_forget(struct fl_worker *w);
void fl_jobs_call(struct fl_worker *w);
uint64_t fl_jobs_run(struct fl_worker *w);
/* `in` ns after `now`, or FL_JOB_IDLE. */
uint64_t fl_jobs_later(uint64_t now, uint64_t in);

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
