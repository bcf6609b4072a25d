/* Fill plans lent to a thread and to a handler that interrupts it after each instruction: the
 * processor's trap flag calls it. */
#include "cases.h"

#include "region/supply/fill_plan.h"

#include <signal.h>

static const struct fl_fill_plan *volatile lent;
static volatile unsigned instructions, shared;

/* Past the red zone of the function it stands in. */
#define TRAP(change)                                                                               \
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\tpushfq\n\t" change                                 \
                     ", (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp" ::                              \
                         : "memory", "cc")

/* A request of the handler's own, each other one in a child that it forked. */
static void interrupt(int number)
{
    (void)number;
    if (instructions++ % 2 == 1) {
        fl_fill_fork_child();
    }
    const struct fl_fill_plan *its = fl_fill_borrow();
    shared += its == lent || its == NULL;
    fl_fill_return(its);
}

CASE(a_handler_after_each_instruction_has_another)
{
    struct sigaction act = {.sa_handler = interrupt}, old;
    const struct fl_fill_plan *all[64];

    assert_int_equal(sigaction(SIGTRAP, &act, &old), 0);
    for (unsigned i = 0; i < 4; i++) {
        instructions = i;
        TRAP("orq $0x100");
        const struct fl_fill_plan *own = lent = fl_fill_borrow();
        lent = NULL; /* from its return on it may be the handler's */
        fl_fill_return(own);
        TRAP("andq $~0x100");
        assert_true(instructions > 30);
        assert_int_equal(shared, 0);
    }
    assert_int_equal(sigaction(SIGTRAP, &old, NULL), 0);
    for (unsigned i = 0; i < 64; i++) { /* none is lost */
        all[i] = fl_fill_borrow();
        assert_non_null(all[i]);
    }
    assert_null(fl_fill_borrow());
    for (unsigned i = 0; i < 64; i++) {
        fl_fill_return(all[i]);
    }
}

CASES_MAIN()
