/* fork(2): the locks across it, and what parent and child do then.
 *
 * prepare takes the locks so that the child's tables are whole, but in a state in which a thread
 * that waits too long takes them over (sys/lock.c): glibc's fork wants the lock of its streams
 * next, and a thread that holds a stream may want ours. Meanwhile requests of other threads go to
 * the next allocator, and their frees are left for later. The child judges: where another thread
 * had taken a lock over, and where a signal handler forked amid our own work, it gives up: its
 * requests go to the next allocator, and its frees return pages to the kernel. In the latter case
 * the interrupted call goes on there too: so prepare waits until no other thread is amid a change,
 * as far as what the thread holds allows. */
#include "runtime/runtime.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

/* What a thread holds for one fork: bit i is lock i alone, all_whole is everything. */
enum { REGION = 3, LOCKS = 4 + FL_SHARDS, NESTED = 12 };
static const uint64_t all_whole = (uint64_t)1 << LOCKS;
/* There is nothing yet, and none of it comes about until the fork is over. */
static const uint64_t not_started = (uint64_t)1 << (LOCKS + 1);

static _Atomic unsigned before_start; /* forks of that kind that are under way */

bool fl_fork_is_near(void)
{
    return atomic_load(&before_start) != 0;
}

/* False: all is there. Where a thread is amid the start the fork waits for it, but not for ever:
 * that thread may want what this one holds. */
static bool bar_start(void)
{
    uint64_t until_ns = fl_lock_amid_until();
    bool here = false;

    atomic_fetch_add(&before_start, 1);
    while (fl_is_starting(&here) && !here && fl_sys.now_ns() < until_ns) {
        (void)fl_call(SYS_sched_yield);
    }
    if (fl_is_started()) {
        atomic_fetch_sub(&before_start, 1);
        return false;
    }
    return true;
}

/* The forks that this thread is in, the innermost last: a handler that interrupts a fork, and other
 * handlers of fork's, may fork too. */
static _Thread_local struct {
    uint64_t held[NESTED];
    volatile unsigned n; /* a handler that comes between leaves it as it was */
} forks;

/* By rank. */
static struct fl_lock *lock_number(unsigned i)
{
    struct fl_pages *p = &fl_runtime.region.pages;
    struct fl_lock *const lock[REGION] = {fl_heap_fork_word(), fl_plan_fork_word(), &p->asking};

    fl_assert(i < LOCKS);
    return i < REGION      ? lock[i]
           : i < LOCKS - 1 ? &fl_runtime.region.shards.of[i - REGION].lock
                           : &p->move.lock;
}

/* The thread is amid the library's own work, and goes on with it in the child: no other thread may
 * have a lock there, or be amid a change. */
static uint64_t hold_amid(void)
{
    uint64_t held = 0, until_ns = fl_lock_amid_until();

    for (unsigned i = 0; i < LOCKS; i++) {
        if (fl_lock_acquire_amid(lock_number(i), until_ns)) {
            fl_lock_hold_for_fork(lock_number(i));
            held |= (uint64_t)1 << i;
        }
    }
    return held;
}

static void prepare(void)
{
    bool barred = !fl_is_started() && bar_start(), amid = !barred && fl_region_busy();
    uint64_t held = barred ? not_started : all_whole;

    if (amid) {
        held = fl_home_is_here() ? hold_amid() : 0;
    }
    forks.n++; /* first: handlers write behind it */
    atomic_signal_fence(memory_order_seq_cst);
    forks.held[(forks.n - 1) % NESTED] = held;
    if (held == all_whole) {
        fl_hugetlb_fork_prepare(&fl_runtime.region); /* first: it may take long */
        fl_busy_begin(); /* a handler finds no lock that this thread has */
        fl_heap_fork_lock();
        fl_lock_acquire(fl_plan_fork_word());
        fl_region_fork_lock(&fl_runtime.region);
        fl_lock_hold_for_fork(fl_plan_fork_word());
    }
}

/* The innermost is over. What was held for it. */
static uint64_t end_innermost(void)
{
    uint64_t held = forks.held[(forks.n - 1) % NESTED];

    fl_assert(forks.n != 0);
    forks.n--;
    return held;
}

static void let_go_amid(uint64_t held)
{
    for (unsigned i = 0; i < LOCKS; i++) {
        if ((held >> i & 1) != 0) {
            fl_lock_release_in_parent(lock_number(i));
        }
    }
}

static void let_go_amid_in_child(uint64_t held)
{
    for (unsigned i = 0; i < LOCKS; i++) {
        if ((held >> i & 1) != 0) {
            (void)fl_lock_release_in_child(lock_number(i));
        } else {
            fl_lock_free_in_child(lock_number(i));
        }
    }
}

static void in_parent(void)
{
    uint64_t held = end_innermost();

    if (held == not_started) {
        atomic_fetch_sub(&before_start, 1);
        return;
    }
    let_go_amid(held);
    if (held == all_whole) {
        fl_region_fork_parent(&fl_runtime.region);
        fl_lock_release_in_parent(fl_plan_fork_word());
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

/* A thread that was amid the start is not here, unless it is this one, which goes on with it. */
static void in_child_before_start(void)
{
    bool here;

    atomic_store(&before_start, 0);
    if (fl_is_starting(&here) && !here) {
        fl_route.threshold = SIZE_MAX;
    }
}

static void in_child(void)
{
    uint64_t locks = end_innermost();
    bool held = locks == all_whole;

    fl_home_settle_in_child();
    if (locks == not_started) {
        in_child_before_start();
        return;
    }
    fl_gpu_fork_child();
    fl_crew_fork_child();
    fl_timeline_fork_child();
    fl_worker_fork_child(&fl_runtime.worker);
    fl_again_fork_child();
    bool whole = held && fl_region_fork_child(&fl_runtime.region, fl_thread_cache());
    fl_heap_fork_child(held);
    if (held) {
        /* In any case: a call may go on here. */
        whole = fl_lock_release_in_child(fl_plan_fork_word()) && whole;
        fl_busy_end();
        fl_plan_fork_child(whole);
        fl_hugetlb_fork_child(&fl_runtime.region, whole);
    } else {
        let_go_amid_in_child(locks);
    }
    if (!whole) {
        give_up();
    }
}

int fl_fork_watch(void)
{
    return pthread_atfork(prepare, in_parent, in_child);
}
