/* A memory control group of a test's own, v1's or v2's, whichever there is. */
#ifndef FAULTLESS_TESTS_PRELOAD_CGROUP_H
#define FAULTLESS_TESTS_PRELOAD_CGROUP_H

#include <stdbool.h>

/* Makes it, with that limit and without swap. The topmost group that allows it is its parent: where
 * the memory controller is off there it is switched on, where processes forbid that they are moved
 * aside, and where no hierarchy is mounted one is, for this process and its children alone. All of
 * it is undone by fl_cgroup_remove.
 * False: that is not possible here, and fl_cgroup_missing says why. */
bool fl_cgroup_make(int limit_mib);
/* What a skip says of it: "needs a memory control group, got ...". */
const char *fl_cgroup_missing(void);
/* Its limit from now on. */
bool fl_cgroup_limit(int limit_mib);
bool fl_cgroup_limit_kib(long limit_kib);
/* In a child: joins it. For struct fl_how. */
void fl_cgroup_join(void *arg);
/* Its limit's file, where one that is below what is in use is refused (v1); "" where processes
 * would be killed for it. */
const char *fl_cgroup_limit_that_refuses(void);
/* The file that says how many bytes it has in use, page cache included. */
const char *fl_cgroup_usage_file(void);
/* How many processes the kernel has killed in it because of the limit; -1: it does not say. */
long long fl_cgroup_kills(void);
void fl_cgroup_remove(void);

#endif
