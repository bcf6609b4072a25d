/* A region of which so much is in use that blocks may wait on shelves. */
#ifndef FL_TESTS_UNIT_SHELF_FIXTURE_H
#define FL_TESTS_UNIT_SHELF_FIXTURE_H

#include "unit/region_fixture.h"

extern struct fl_cache *shelf_cache; /* of the thread */

/* What may wait, by what is in use now. */
void shelf_resize(void);
/* The set-up of tests. 192 MiB are in use. */
int shelf_begin(void **state);

#endif
