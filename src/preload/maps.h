/* The calls of maps.c, made by number. */
#ifndef FL_PRELOAD_MAPS_H
#define FL_PRELOAD_MAPS_H

#include <stdbool.h>

/* syscall(2) with that number: where it changes how memory is mapped it is made as libc's function
 * of that name, and `*rc` is what that returns. False: it is still to be made. Threads: any.
 * Signals: safe. */
bool fl_maps_by_number(long nr, const long a[static 6], long *rc);

#endif
