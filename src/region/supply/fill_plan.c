/* Where fill plans lie: a program's thread may have a stack of a few KiB, a coroutine's, and a plan
 * would take most of it.
 *
 * State: `used`, a bit for each that is lent. Threads: any; no lock. Signals: safe; a handler that
 * interrupts a request gets another one. Invariant: `mine` has the bits of all that the calling
 * thread has, so that in a child of fork, where those of other threads come back, what an
 * interrupted request goes on with stays lent; and of the one that it is about to take or has just
 * returned, which a handler therefore leaves alone, so that each bit is one request's. */
#include "region/supply/fill_plan.h"

enum { SHARED = 64 };

static struct fl_fill_plan plans[SHARED]; /* memory is taken by those that were ever lent */
static _Atomic uint64_t used;
static _Thread_local uint64_t mine;

struct fl_fill_plan *fl_fill_borrow(void)
{
    uint64_t seen = atomic_load_explicit(&used, memory_order_relaxed);

    while ((seen | mine) != UINT64_MAX) {
        uint64_t not_here = seen | mine, bit = ~not_here & (not_here + 1);
        fl_assert((mine & bit) == 0);
        mine |= bit; /* first: a handler may fork in between */
        atomic_signal_fence(memory_order_seq_cst);
        if (atomic_compare_exchange_weak_explicit(&used, &seen, seen | bit, memory_order_acquire,
                                                  memory_order_relaxed)) {
            return &plans[__builtin_ctzll(bit)];
        }
        mine &= ~bit;
    }
    return NULL;
}

void fl_fill_return(const struct fl_fill_plan *g)
{
    if (g < plans || g >= plans + SHARED) {
        return;
    }
    uint64_t bit = (uint64_t)1 << (g - plans);
    fl_assert((mine & bit) != 0);
    atomic_fetch_and_explicit(&used, ~bit, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
    mine &= ~bit;
}

void fl_fill_fork_child(void)
{
    atomic_fetch_and_explicit(&used, mine, memory_order_relaxed);
}
