/* The n-th call to the kernel refused, n = 1, 2, ..., while an operation runs, until the fault does
 * not fire. Whatever was refused, the operation gives its documented answer, the invariants hold,
 * and what is mapped is what is held. */
#ifndef FL_TESTS_FAULT_SWEEP_H
#define FL_TESTS_FAULT_SWEEP_H

#include "unit/cmocka_all.h"
#include "unit/region_fixture.h"

enum {
    GIVES_BACK = 1u << FAKE_UNMAP | 1u << FAKE_DECOMMIT,
    MAY_REFUSE = 1u << FAKE_RESERVE | 1u << FAKE_MAP_AT | 1u << FAKE_COMMIT,
    HELD = 8
};

/* What the operation, or its preparation, has taken: written to and given back after each run. */
extern struct fl_extent *held[HELD];
extern size_t boot_bytes; /* of the window, before the first request */

struct operation {
    void (*prepare)(void);
    bool (*run)(void); /* true: served */
    unsigned slots;    /* that the sweep refuses; 0: all but those that give back */
    unsigned may_refuse;
    unsigned absorbs; /* refusals that a fallback takes, at least */
    struct fl_region_config config;
};

/* Each of the table, twice: addresses that are refused are taken, or there is no memory for
 * them. */
#define SWEEP(table) sweep(table, sizeof(table) / sizeof((table)[0]))
void sweep(const struct operation *op, size_t n);

/* held[i] is zeroed memory; false: it was refused. */
bool hold_clean(size_t i, size_t len);
/* All of a block's first bytes are so; looked at each KiB. */
void assert_begins(const struct fl_extent *e, size_t len, unsigned char with);

/* For what is played by hand: forgets `held`, and notes how much of the window is usable. */
void sweep_begin(void);
size_t usable_in_window(void);
/* The invariants hold, what is mapped is what is held, and no call is under way. */
void assert_tight(void);

#endif
