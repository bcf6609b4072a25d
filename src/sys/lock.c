/* Futex lock with ranks. The slow path sleeps in the kernel after a short spin: critical sections
 * are tree operations of a microsecond or less, so on several CPUs the holder is usually gone
 * before a sleep would pay.
 *
 * fork(2) holds the lock in a state of its own. glibc's fork takes the lock of its list of streams
 * after our handler ran; a thread may hold a stream and want this lock. So a waiter is patient for
 * a while and then takes the lock over: the forker changes nothing under it, and its child sees
 * that it was not held by the forker at that moment.
 *
 * Source: futex(2); the states free, held and contended are the textbook mutex of "Futexes Are
 * Tricky" (Drepper, 2011). */
#include "sys/sys.h"

#include <errno.h>
#include <limits.h>

enum { SPINS = 100 };
enum { FREE, HELD, CONTENDED, FORKING };

static const uint64_t patience_ns = 100000000;

/* Bit r: this thread holds a lock of rank r. A handler may come between the word and the bit. */
static _Thread_local uint64_t held_ranks;
_Static_assert(FL_RANK_LEAF < 64, "a bit for each rank");

static bool is_own(const struct fl_lock *l)
{
    return (held_ranks >> l->rank & 1) != 0;
}

static void note_acquired(const struct fl_lock *l)
{
    fl_assert(!is_own(l));
    held_ranks |= (uint64_t)1 << l->rank;
}

static void note_release(const struct fl_lock *l)
{
    held_ranks &= ~((uint64_t)1 << l->rank);
    atomic_signal_fence(memory_order_seq_cst);
}

bool fl_lock_is_held(enum fl_rank first, unsigned n)
{
    return (held_ranks >> first & (((uint64_t)1 << n) - 1)) != 0;
}

#if FL_CHECK_LEVEL >= 2
static void check_order(const struct fl_lock *l)
{
    if ((held_ranks >> l->rank) != 0) {
        fl_fatal("lock rank inversion");
    }
}

void fl_lock_must_be_free(enum fl_rank rank)
{
    if ((held_ranks >> rank) != 0) {
        fl_fatal("a lock is held across a look at the memory");
    }
}

static _Thread_local unsigned permits;

void fl_lock_permit_calls(bool yes)
{
    permits += yes ? 1 : -1u;
    fl_assert((int)permits >= 0);
}

void fl_lock_check_call(const char *slot)
{
    bool may = permits != 0 && fl_thread == FL_THREAD_PROGRAM;

    if ((held_ranks >> FL_RANK_REGION & (((uint64_t)1 << FL_SHARDS) - 1)) != 0 && !may) {
        fl_say(slot);
        fl_fatal("a system call under the region's lock");
    }
}
#else
void fl_lock_permit_calls(bool yes)
{
    (void)yes;
}

void fl_lock_check_call(const char *slot)
{
    (void)slot;
}

void fl_lock_must_be_free(enum fl_rank rank)
{
    (void)rank;
}

static void check_order(const struct fl_lock *l)
{
    (void)l;
}
#endif

void fl_lock_init(struct fl_lock *l, enum fl_rank rank)
{
    atomic_store_explicit(&l->word, 0, memory_order_relaxed);
    l->rank = rank;
}

static bool change(struct fl_lock *l, uint32_t from, uint32_t to)
{
    /* acquire: pairs with the exchange in fl_lock_release */
    return atomic_compare_exchange_strong_explicit(&l->word, &from, to, memory_order_acquire,
                                                   memory_order_relaxed);
}

/* How long a thread waits for one fork. */
struct waiting {
    uint64_t until_ns; /* monotonic; 0: no fork has been seen */
};

/* True: the lock is the caller's, taken over from a fork that lasts. Signals do not prolong it. */
static bool outwait_fork(struct fl_lock *l, struct waiting *w)
{
    if (fl_thread != FL_THREAD_PROGRAM) { /* no forker waits for it */
        (void)fl_sys.wait(&l->word, FORKING, 0);
        return false;
    }
    uint64_t now = fl_sys.now_ns();
    w->until_ns = w->until_ns == 0 ? now + patience_ns : w->until_ns;
    bool over =
        now >= w->until_ns || fl_sys.wait(&l->word, FORKING, w->until_ns - now) == -ETIMEDOUT;
    return over && change(l, FORKING, CONTENDED);
}

/* `word` was read from the lock. Returns at once where it is FREE, or not what it was. */
static void sleep_while_held(struct fl_lock *l, uint32_t word, uint64_t timeout_ns)
{
    if (word == HELD && change(l, HELD, CONTENDED)) {
        word = CONTENDED;
    }
    if (word == CONTENDED || word == FORKING) {
        (void)fl_sys.wait(&l->word, word, timeout_ns);
    }
}

/* False: a fork holds the lock, and the caller does not wait for it. */
static bool acquire_slowly(struct fl_lock *l, bool waits_for_fork)
{
    struct waiting w = {0};

    for (;;) {
        uint32_t word = atomic_load_explicit(&l->word, memory_order_relaxed);
        if (word == FORKING) {
            if (!waits_for_fork || outwait_fork(l, &w)) {
                return waits_for_fork;
            }
            continue;
        }
        w.until_ns = 0;
        if (word == FREE && change(l, FREE, CONTENDED)) {
            return true;
        }
        sleep_while_held(l, word, 0);
    }
}

static bool spin(struct fl_lock *l)
{
    for (int i = 0; i < SPINS; i++) {
        /* A look first: an exchange takes the line from who holds the lock. */
        if (atomic_load_explicit(&l->word, memory_order_relaxed) == FREE && change(l, FREE, HELD)) {
            return true;
        }
        fl_cpu_relax();
    }
    return false;
}

bool fl_lock_acquire_soon(struct fl_lock *l)
{
    check_order(l);
    bool acquired = spin(l);
    if (acquired) {
        note_acquired(l);
    }
    return acquired;
}

static bool acquire(struct fl_lock *l, bool waits_for_fork)
{
    check_order(l);
    bool acquired = spin(l) || acquire_slowly(l, waits_for_fork);
    if (acquired) {
        note_acquired(l);
    }
    return acquired;
}

void fl_lock_acquire(struct fl_lock *l)
{
    (void)acquire(l, true);
}

bool fl_lock_acquire_unless_forking(struct fl_lock *l)
{
    return acquire(l, false);
}

void fl_lock_acquire_behind(struct fl_lock *l)
{
    check_order(l);
    bool acquired = spin(l);
    while (!acquired) {
        uint32_t word = atomic_load_explicit(&l->word, memory_order_relaxed);
        if (word == FREE || word == FORKING) {
            acquired = change(l, word, CONTENDED);
        } else {
            sleep_while_held(l, word, 0);
        }
    }
    note_acquired(l);
}

uint64_t fl_lock_amid_until(void)
{
    return fl_sys.now_ns() + patience_ns;
}

bool fl_lock_acquire_amid(struct fl_lock *l, uint64_t until_ns)
{
    bool may = !is_own(l), acquired = false;
    uint64_t now = may ? fl_sys.now_ns() : 0;

    while (may && !(acquired = change(l, FREE, CONTENDED)) && now < until_ns) {
        sleep_while_held(l, atomic_load_explicit(&l->word, memory_order_relaxed), until_ns - now);
        now = fl_sys.now_ns();
    }
    if (acquired) {
        note_acquired(l);
    } else if (may) { /* a release may have woken this thread, and no other */
        (void)fl_sys.wake(&l->word, 1);
    }
    return acquired;
}

void fl_lock_release(struct fl_lock *l)
{
    /* Else a handler has forked amid what it guards, and this is the child. */
    fl_assert((fl_lock_is_busy(l) && is_own(l)) || !fl_home_is_here());
    note_release(l);
    if (atomic_exchange_explicit(&l->word, FREE, memory_order_release) == CONTENDED) {
        (void)fl_sys.wake(&l->word, 1);
    }
}

void fl_lock_hold_for_fork(struct fl_lock *l)
{
    fl_assert(is_own(l) && fl_lock_is_busy(l));
    /* acq_rel: what takes the lock over sees what was written under it */
    (void)atomic_exchange_explicit(&l->word, FORKING, memory_order_acq_rel);
    /* All that wait for CONTENDED to end: from now on with a limit, or not at all. Though the word
     * was HELD there may be some: of two that wait a release wakes one, and the lock may be had
     * before that one comes to it. */
    (void)fl_sys.wake(&l->word, INT_MAX);
}

void fl_lock_release_in_parent(struct fl_lock *l)
{
    uint32_t forking = FORKING;

    if (!is_own(l)) { /* a shard's, opened by who took the others over meanwhile */
        return;
    }
    note_release(l);
    if (atomic_compare_exchange_strong_explicit(&l->word, &forking, FREE, memory_order_release,
                                                memory_order_relaxed)) {
        (void)fl_sys.wake(&l->word, INT_MAX);
    }
}

/* There is no other thread: a lock that was taken over is free, too. */
bool fl_lock_release_in_child(struct fl_lock *l)
{
    note_release(l);
    return atomic_exchange_explicit(&l->word, FREE, memory_order_release) == FORKING;
}

/* FORKING: the fork that holds it goes on in the child, and judges by that. */
void fl_lock_free_in_child(struct fl_lock *l)
{
    bool keeps = is_own(l) && atomic_load_explicit(&l->word, memory_order_relaxed) == FORKING;

    if (!keeps) {
        atomic_store_explicit(&l->word, FREE, memory_order_relaxed);
    }
}
