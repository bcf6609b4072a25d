/* Threads of the library's own that the C library does not know. Included by sys.h. See guest.c. */
#ifndef FL_SYS_GUEST_H
#define FL_SYS_GUEST_H

#include "base/base.h"

#include <stdatomic.h>

/* Zero-initialised is none. */
struct fl_guest {
    _Atomic uint32_t tid; /* 0: none. The kernel clears it when the thread ends */
    _Atomic int last;     /* its number, or that of the one before; 0 when it is known to be gone */
    uintptr_t stack;      /* kept for the next start, as `tls` is */
    void *tls;
    void (*body)(void *arg);
    void *arg;
};

/* While the program changes what its threads are: none starts. They nest. Signals: safe. */
void fl_guests_bar(void);
void fl_guests_unbar(void);

/* All signals blocked on the calling thread, the C library's own too; what was blocked before.
 * Signals: safe. */
uint64_t fl_signals_block(void);
void fl_signals_restore(uint64_t blocked);

/* Runs `body` on a new thread: all signals blocked, scheduled as the process's first thread is, but
 * never SCHED_FIFO. -EBUSY: the last one has not ended; -EAGAIN: barred, or none is to be
 * had; -ENOSYS, -ENOMEM, -EPERM.
 * Threads: any, not in a borrowed process.  Signals: safe once fl_guest_is_ready. */
int fl_guest_start(struct fl_guest *g, void (*body)(void *), void *arg);
bool fl_guest_is_ready(const struct fl_guest *g);
/* Until the kernel has forgotten the thread, which was told to end. False: it lasts longer. */
bool fl_guest_await(struct fl_guest *g, uint64_t timeout_ns);
void fl_guest_fork_child(struct fl_guest *g);

#endif
