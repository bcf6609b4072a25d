/* A memory cgroup of a test's own, v1's or v2's, whichever there is. */
#ifndef FAULTLESS_TESTS_PRELOAD_CGROUP_H
#define FAULTLESS_TESTS_PRELOAD_CGROUP_H

#include <stdbool.h>

/* Makes it, with that limit and without swap. False: that is not possible here. */
bool fl_cgroup_make(int limit_mib);
/* In a child: joins it. For struct fl_how. */
void fl_cgroup_join(void *arg);
/* A cmocka teardown. */
int fl_cgroup_remove(void **state);

#endif
