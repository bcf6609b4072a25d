/* Futex lock with ranks. The slow path sleeps in the kernel after a short spin: critical sections are tree
 * operations of a microsecond or less, so on several CPUs the holder is usually gone before a sleep would pay.
 *
 * Source: futex(2); the three states are the textbook mutex of "Futexes Are Tricky" (Drepper, 2011). */
#include "sys/sys.h"

enum { SPINS = 100 };

static void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#if FL_CHECK_LEVEL >= 2
static _Thread_local unsigned held_ranks; /* bit r: this thread holds a lock of rank r */

static void check_order(const struct fl_lock *l)
{
    if ((held_ranks >> l->rank) != 0) {
        fl_fatal("lock rank inversion");
    }
    held_ranks |= 1u << l->rank;
}

static void check_release(const struct fl_lock *l)
{
    held_ranks &= ~(1u << l->rank);
}
#else
static void check_order(const struct fl_lock *l)
{
    (void)l;
}

static void check_release(const struct fl_lock *l)
{
    (void)l;
}
#endif

void fl_lock_init(struct fl_lock *l, enum fl_rank rank)
{
    atomic_store_explicit(&l->word, 0, memory_order_relaxed);
    l->rank = rank;
}

static bool try_acquire(struct fl_lock *l, uint32_t as)
{
    uint32_t free_word = 0;

    /* acquire: pairs with the exchange in fl_lock_release */
    return atomic_compare_exchange_strong_explicit(&l->word, &free_word, as, memory_order_acquire,
                                                   memory_order_relaxed);
}

void fl_lock_acquire(struct fl_lock *l)
{
    check_order(l);
    for (int i = 0; i < SPINS; i++) {
        if (try_acquire(l, 1)) {
            return;
        }
        cpu_relax();
    }
    while (atomic_exchange_explicit(&l->word, 2, memory_order_acquire) != 0) {
        (void)fl_sys.wait(&l->word, 2, 0);
    }
}

void fl_lock_release(struct fl_lock *l)
{
    check_release(l);
    if (atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2) {
        (void)fl_sys.wake(&l->word, 1);
    }
}
