/* What a planned step still faults for: its small blocks. They are the next allocator's, and
 * glibc's heap reaches further up now and then, into untouched pages, below a program
 * break that lies up to 132 KiB (M_TOP_PAD) further. After a planned step the worker brings the
 * last pages below the break into memory, if that has moved; it comes in the step after. Once for
 * each move, a few dozen pages. Not covered: what a larger M_TOP_PAD leaves deeper, heaps of other
 * threads (glibc maps those), other allocators' pages. */
#include "plan/context.h"

static const size_t ahead = (size_t)256 << 10;

static struct {
    /* The break when steps were first looked for: what lies above it is a heap; 0: no looks. Lock:
     * plan */
    uintptr_t from;
    _Atomic uintptr_t seen;   /* by the last look that called the worker */
    _Atomic uintptr_t filled; /* the break up to which pages are in memory. Written by the worker */
} heap;

void fl_heap_start(void)
{
    if (heap.from == 0 && fl_plan.config.background) {
        heap.from = fl_sys.program_break();
    }
}

void fl_heap_look(void)
{
    uintptr_t now = heap.from != 0 ? fl_sys.program_break() : 0;

    if (now != 0 && now != atomic_load_explicit(&heap.filled, memory_order_relaxed)) {
        atomic_store_explicit(&heap.seen, now, memory_order_relaxed);
        fl_plan_call_worker();
    }
}

void fl_heap_work(void)
{
    uintptr_t end = atomic_load_explicit(&heap.seen, memory_order_relaxed),
              filled = atomic_load_explicit(&heap.filled, memory_order_relaxed);

    if (end == filled || end != fl_sys.program_break()) { /* or there will be another look */
        return;
    }
    uintptr_t first = fl_align_down(end > ahead ? end - ahead : 0, fl_page.base);
    first = fl_max(first, fl_align_up(heap.from, fl_page.base));
    if (filled < end) {
        first = fl_max(first, fl_align_up(filled, fl_page.base));
    }
    atomic_store_explicit(&heap.filled, end, memory_order_relaxed);
    end = fl_align_up(end, fl_page.base);
    if (first < end) { /* a mere saving: it may fail */
        (void)fl_sys.populate((struct fl_range){first, end - first});
    }
}
