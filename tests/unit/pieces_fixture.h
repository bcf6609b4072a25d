/* Blocks of 512 KiB side by side in four huge pages, for tests of what goes back between them. */
#ifndef FL_TESTS_UNIT_PIECES_FIXTURE_H
#define FL_TESTS_UNIT_PIECES_FIXTURE_H

#include "unit/region_fixture.h"

enum { BLOCKS = 16 };
extern struct fl_extent *block[BLOCKS]; /* filled with their number and 1; NULL: given back */

/* The set-up of each test; assert_guarded is assert_live_is_as_it_was then. */
int blocks_begin(void **state);
/* All but each `kept`-th one go back. */
void give_but(int kept);
/* One block. */
void give_block(int i);
/* What is in blocks is there, every invariant holds, and no call is under way. */
#define assert_live_is_as_it_was() assert_live_is_as_it_was_at(__FILE__, __LINE__)
void assert_live_is_as_it_was_at(const char *file, int line);

/* Of the worker, after which what was freed before the last four goes back. */
void tick_times(int n);
/* Bytes of the blocks' huge pages that are in memory, by the kernel's word. */
size_t resident(void);
/* Calls of that kind which the kernel has not refused. */
unsigned advised(enum fl_sys_advice advice);

#endif
