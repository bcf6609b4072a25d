/* Boot's second step: once in a process, with the first large request of any thread, in any
 * context. Until then requests of all sizes go to the next allocator, which boot.c has found, and a
 * process that makes no large one has nothing of what start.c puts together.
 *
 * Meanwhile requests of handlers that come between, and of this thread by way of others' functions,
 * go to the next allocator, and what the start allocates itself is served. Large ones of other
 * threads wait for it, but not for long, since it may want what such a thread holds: hundreds of
 * them would be the next allocator's, whose heaps keep what is freed. Public calls and dlopen wait
 * for longer, see fl_boot_for_call. It does not begin in a child of vfork(2), which has the
 * parent's memory, nor while another thread forks, nor where a filter has come that kills, nor
 * where all is the next allocator's. */
#include "runtime/runtime.h"

#include <errno.h>
#include <limits.h>

/* A call waits so long for another thread's start, which may want a lock that the caller has. Most
 * take a millisecond; of an emulated processor that others use, too, some took over 100. And so
 * long for another thread's fork, whose handlers want what they want. */
static const uint64_t start_patience_ns = 2000000000, fork_patience_ns = 100000000;
static const uint64_t request_patience_ns = 50000000;
static _Atomic bool is_waited_for;     /* by a request */
static _Atomic bool was_waited_enough; /* a request did so in vain */

bool fl_is_started(void)
{
    return atomic_load_explicit(&fl_route.booted, memory_order_acquire) == FL_BOOT_DONE;
}

static _Thread_local bool starting;

bool fl_is_starting(bool *out_here)
{
    *out_here = starting;
    return atomic_load(&fl_route.booted) == FL_BOOT_STARTING;
}

/* This thread is not amid it any more. */
static void leave_start(enum fl_boot_state now)
{
    atomic_store(&fl_route.booted, now);
    starting = false;
    if (atomic_load(&is_waited_for)) {
        (void)fl_sys.wake(&fl_route.booted, INT_MAX);
    }
}

void fl_boot(void)
{
    uint32_t loaded = FL_BOOT_LOADED;

    fl_load();
    if (atomic_load(&fl_route.booted) != loaded || fl_route.threshold == SIZE_MAX ||
        (!fl_sys_is_confined() && fl_home_is_borrowed())) {
        return;
    }
    starting = true; /* before the word says so: a handler must not wait for its own thread */
    if (!atomic_compare_exchange_strong(&fl_route.booted, &loaded, FL_BOOT_STARTING)) {
        starting = false;
        return;
    }
    if (fl_fork_is_near()) { /* after the word is taken: either sees the other */
        leave_start(FL_BOOT_LOADED);
        return;
    }
    int saved = errno;
    fl_start_once();
    leave_start(FL_BOOT_DONE);
    errno = saved;
}

/* Will another thread start, or let this one start, soon? */
static bool is_worth_a_wait(void)
{
    return !fl_is_started() && !starting && atomic_load(&fl_route.booted) >= FL_BOOT_LOADED &&
           !fl_sys_is_confined() && fl_route.threshold != SIZE_MAX && !fl_home_is_borrowed();
}

bool fl_boot_for_call(void)
{
    fl_boot();
    if (FL_LIKELY(!is_worth_a_wait())) {
        return true;
    }
    uint64_t began_ns = fl_sys.now_ns(), patience_ns = fork_patience_ns;
    bool waits = true;
    while (waits && fl_sys.now_ns() - began_ns < patience_ns) {
        bool starts = atomic_load(&fl_route.booted) == FL_BOOT_STARTING;
        patience_ns = starts ? start_patience_ns : fork_patience_ns;
        (void)fl_call(SYS_sched_yield);
        fl_boot();
        waits = is_worth_a_wait();
    }
    return !waits;
}

/* Another thread's start. In vain once: who is here may hold what that thread waits for. */
static void wait_for_start(void)
{
    atomic_store(&is_waited_for, true);
    int rc = fl_sys.wait(&fl_route.booted, FL_BOOT_STARTING, request_patience_ns);
    if (rc != 0 && atomic_load(&fl_route.booted) == FL_BOOT_STARTING) {
        atomic_store(&was_waited_enough, true);
    }
}

void fl_boot_for_request(void)
{
    fl_load();
    if (fl_sys_is_confined()) {
        return;
    }
    fl_boot();
    if (atomic_load(&fl_route.booted) == FL_BOOT_STARTING && !atomic_load(&was_waited_enough) &&
        is_worth_a_wait()) {
        wait_for_start();
    }
}
