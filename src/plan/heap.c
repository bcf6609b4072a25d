/* What a planned step still faults for: its small blocks. They are the next allocator's, and glibc's heap reaches further up now and then, into pages that
 * nobody has touched, below a program break that lies up to 132 KiB (M_TOP_PAD) further. Where a step of a plan ends and the break has moved
 * the worker brings these pages into memory, so that no step does. A few dozen pages, once for each move; where there is no such
 * heap, or no worker, nothing. */
#include "plan/internal.h"

#include <unistd.h>

static const size_t ahead = (size_t)256 << 10;

static struct {
    uintptr_t from;         /* where the break was at boot: what lies above it is a heap */
    _Atomic uintptr_t seen; /* the break at the end of the last planned step */
    uintptr_t filled;       /* up to which pages are in memory. The worker */
} heap;

/* No system call: the C library knows it. */
static uintptr_t program_break(void)
{
    return (uintptr_t)sbrk(0);
}

void fl_heap_start(void)
{
    heap.from = program_break();
}

void fl_heap_look(void)
{
    uintptr_t now = program_break();

    if (now != atomic_load_explicit(&heap.seen, memory_order_relaxed) &&
        fl_plan.config.background) {
        atomic_store_explicit(&heap.seen, now, memory_order_relaxed);
        fl_plan_call_worker();
    }
}

void fl_heap_work(void)
{
    uintptr_t end = atomic_load_explicit(&heap.seen, memory_order_relaxed);
    uintptr_t first = fl_max(fl_align_up(heap.from, fl_page.base), end - ahead);

    if (end == heap.filled || end != program_break()) { /* not yet, or to be looked at again */
        return;
    }
    if (heap.filled < end) {
        first = fl_max(first, heap.filled);
    }
    heap.filled = end;
    if (first < end) { /* a mere saving: it may fail */
        (void)fl_sys.populate((struct fl_range){first, fl_align_up(end, fl_page.base) - first});
    }
}
