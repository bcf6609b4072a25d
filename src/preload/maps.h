/* The calls of maps.c, made by number. */
#ifndef FL_PRELOAD_MAPS_H
#define FL_PRELOAD_MAPS_H

/* Before the call of syscall(2) with that number and these arguments: notes what it does to the
 * program's blocks. 1: it is to be made; 0: it is done, and returns 0; -1: it is refused, with
 * errno. Threads: any.  Signals: safe. */
int fl_maps_before(long nr, const long a[static 6]);

/* After it has returned `rc`. */
void fl_maps_after(long nr, const long a[static 6], long rc);

#endif
