/* Two threads' caches, and requests for one length in a row. */
#ifndef FL_TESTS_UNIT_ROWS_FIXTURE_H
#define FL_TESTS_UNIT_ROWS_FIXTURE_H

#include "unit/region_fixture.h"

enum { ROWS_MOST = 1024 };

extern struct fl_cache *rows_own, *rows_theirs;
extern struct fl_extent *rows_block[ROWS_MOST];

/* Set-ups of tests: 64 MiB are free; the same divided among two shards. */
int rows_begin(void **state);
int rows_begin_sharded(void **state);
/* A test with each of them, in a table of cmocka's. */
#define ROWS_TWICE(test)                                                                           \
    cmocka_unit_test_setup(test, rows_begin),                                                      \
    {                                                                                              \
        .name = #test "_with_shards", .test_func = test, .setup_func = rows_begin_sharded          \
    }

/* As alloc/ asks, for a thread with that cache. */
struct fl_extent *rows_ask(struct fl_cache *own, size_t len);
/* Into rows_block, for rows_own. */
void rows_ask_for(size_t n, size_t len);
/* As alloc/ frees there; past the cache. */
void rows_free(size_t n);
void rows_give(size_t n);
/* How often a lock of the region was taken, by now. */
uint64_t rows_locks(void);
/* Both threads end, and nothing is left. */
void rows_settle(void);

#endif
