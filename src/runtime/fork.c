/* fork(2): the locks across it, and what parent and child do then.
 *
 * prepare takes the locks so that the child's tables are whole, but in a state in which a thread
 * that waits too long takes them over (sys/lock.c): glibc's fork wants the lock of its streams
 * next, and a thread that holds a stream may want ours. Meanwhile requests of other threads go to
 * the next allocator, and their frees are left for later. The child judges: where another thread
 * had taken a lock over, and where a signal handler forked amid our own work, it gives up: its
 * requests go to the next allocator, and its frees return pages to the kernel. */
#include "runtime/runtime.h"

#include <pthread.h>
#include <stdint.h>

/* The forks that this thread is in, the innermost in the lowest bit: does it hold the locks for it?
 * A handler that interrupts a fork, and other handlers of fork's, may fork too. */
static _Thread_local uint32_t prepared;

static void prepare(void)
{
    uint32_t holds = !fl_region_busy();

    prepared = prepared << 1 | holds;
    if (holds != 0) {
        fl_hugetlb_fork_prepare(&fl_runtime.region); /* first: it may take long */
        fl_busy_begin(); /* a handler finds no lock that this thread has */
        fl_heap_fork_lock();
        fl_plan_fork_prepare();
        fl_region_fork_lock(&fl_runtime.region);
        fl_plan_fork_hold();
    }
}

/* The innermost is over. True: the locks were held for it. */
static bool end_innermost(void)
{
    bool held = (prepared & 1) != 0;

    prepared >>= 1;
    return held;
}

static void in_parent(void)
{
    if (end_innermost()) {
        fl_region_fork_parent(&fl_runtime.region);
        fl_plan_fork_parent();
        fl_heap_fork_parent();
        fl_busy_end();
        fl_hugetlb_fork_parent(&fl_runtime.region);
        if (fl_route.worker != NULL && atomic_load(&fl_runtime.region.wants_worker)) {
            fl_worker_call(fl_route.worker, false); /* to repair what the child's life splits */
        }
    }
}

static void give_up(void)
{
    fl_home_leave();
    fl_route.threshold = SIZE_MAX;
    fl_route.worker = NULL;
}

static void in_child(void)
{
    bool held = end_innermost();

    fl_home_settle_in_child();
    fl_gpu_fork_child();
    fl_crew_fork_child();
    fl_timeline_fork_child();
    fl_worker_fork_child(&fl_runtime.worker);
    bool whole = held && fl_region_fork_child(&fl_runtime.region, fl_thread_cache());
    fl_heap_fork_child(held);
    if (held) {
        fl_busy_end();
        /* Its lock is released in any case: a call may go on here. */
        whole = fl_plan_fork_child(whole) && whole;
        fl_hugetlb_fork_child(&fl_runtime.region, whole);
    }
    if (!whole) {
        give_up();
    }
}

int fl_fork_watch(void)
{
    return pthread_atfork(prepare, in_parent, in_child);
}
