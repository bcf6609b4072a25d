/* The calling thread is amid the library's own work: what a signal handler that interrupts it has
 * to know. Included by core.h.
 *
 * busy       depth of critical sections: inside one a handler must not ask for what is locked.
 * unsettled  things that the thread has out of the tables and will put back. No lock is held for
 *            them, so a handler may fork meanwhile: the child leaves the tables as they are, since
 *            the interrupted call goes on there too.
 * State: the thread's own. Signals: safe. */
#ifndef FL_CORE_BUSY_H
#define FL_CORE_BUSY_H

#include "sys/sys.h"

#include <stdatomic.h>

extern FL_HIDDEN _Thread_local int fl_busy_depth;

/* Begin and end of a critical section; they nest. */
static inline void fl_busy_begin(void)
{
    fl_busy_depth++;
    atomic_signal_fence(memory_order_seq_cst); /* a handler from here on sees it */
}

static inline void fl_busy_end(void)
{
    fl_assert(fl_busy_depth > 0);
    atomic_signal_fence(memory_order_seq_cst);
    fl_busy_depth--;
}

/* True inside a critical section of this thread's; and in a child of fork that has the tables of
 * threads which are not in it (fl_home_is_here). */
static inline bool fl_is_busy(void)
{
    return fl_busy_depth != 0 || !fl_home_is_here();
}

/* The thread takes something out of the tables; it has put that back. They nest. */
void fl_unsettled_begin(void);
void fl_unsettled_end(void);
/* Is something out? In a child: nothing is any more. */
bool fl_unsettled(void);
void fl_unsettled_none(void);

#endif
