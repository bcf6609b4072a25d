/* A region of which 192 MiB are in use, and the depot of this thread. */
#ifndef FL_TESTS_UNIT_DEPOTS_FIXTURE_H
#define FL_TESTS_UNIT_DEPOTS_FIXTURE_H

#include "unit/region_fixture.h"

enum { DEPOTS_SHARE = 20 };           /* of what is in use may wait */
extern struct fl_cache *depots_cache; /* of this thread */
extern struct fl_depot *depots_own;   /* its depot, once something was put there */

/* What may wait, by what is in use now. */
void depots_resize(void);
/* The set-up of tests. */
int depots_begin(void **state);
/* Frees it there; false: to the region. */
bool depots_put(struct fl_extent *e);
/* Blocks in all depots. */
size_t depots_waiting(void);

#endif
