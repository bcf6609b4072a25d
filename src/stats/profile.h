/* Who holds it: samples of live large blocks, each with the stack of its request. Included by
 * stats.h.
 *
 * A block of at least `every` bytes is always sampled, and stands for itself. Of shorter ones each
 * thread samples what lies at points of its requests' bytes, on average `every` apart, and such a
 * block stands for `every` bytes a point: so what a place in the program is said to hold is right
 * on average, whatever the sizes. As the table fills, `every` grows. A sample outlives its block as
 * long as it is a part of the peak.
 *
 * Left to others: to call here (alloc/), to make names of stacks (the reader: profile.h of
 * include/). State: the table, in memory of its own. No lock: a slot changes hands by one bit.
 * Threads: any.  Signals: safe. */
#ifndef FL_STATS_PROFILE_H
#define FL_STATS_PROFILE_H

#include "faultless/profile.h"
#include "sys/sys.h"

/* NULL: there is no profile. Constant after boot. */
extern FL_HIDDEN struct fl_profile_head *fl_profile;

/* Maps the table. 0; -ENOMEM.  Context: boot. */
int fl_profile_begin(uint64_t every);

/* A request was served with a block of `len` bytes. Returns the sample's number in the table, for
 * fl_profile_freed; 0: it is not sampled. errno is lost. */
uint32_t fl_profile_saw(size_t len);
/* The block of that sample is free. */
void fl_profile_freed(uint32_t number);

/* Writes the file. `now`: what the head says of this moment. 0, or -errno. One thread. */
int fl_profile_write(const char *path, const struct fl_profile_head *now);

#endif
