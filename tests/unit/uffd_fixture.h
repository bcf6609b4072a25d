/* A worker on the fake kernel, the fake descriptors and the fake clock. The linker wraps
 * fl_region_tick and fl_guest_start (CMakeLists.txt): tests see each tick, each thread's begin and
 * end, and can refuse the thread. */
#ifndef FL_TESTS_UNIT_UFFD_FIXTURE_H
#define FL_TESTS_UNIT_UFFD_FIXTURE_H

#include "uffd/uffd.h"
#include "unit/fake_events.h"
#include "unit/guest_fixture.h"
#include "unit/region_fixture.h"

enum { DECAY_MS = 1000 };
#define TICK_NS (DECAY_MS * UINT64_C(1000000) / 4)

extern struct fl_worker worker;
extern _Atomic int ticks;
extern _Atomic bool more; /* a tick says that something is left to age, whatever there is */
extern _Atomic bool
    call_at_end_of_tick;             /* as a free on another thread, just after the tick looked */
extern _Atomic bool signals_blocked; /* on the thread, at the last tick */

/* A new region, worker and script. No thread yet. `decay_ms` 0: no job. */
void worker_begin(uint64_t decay_ms);
/* Its first call, and waits until it sleeps. */
void worker_start(void);
/* Retires it, if it was ever started, and waits for its end. */
void worker_end(void);

void await(_Atomic int *count, int at_least);
void await_state(enum fl_worker_state s);
/* Until it sleeps, and has seen what the clock says now, or is gone. With this clock it stays
 * asleep. */
void await_sleep(void);
void pass_ns(uint64_t ns);
/* One tick's time passes: there is one tick, and it sleeps again. */
void let_it_tick(void);

#endif
