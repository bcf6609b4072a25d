/* The calls of places.c, made by number. */
#ifndef FL_PRELOAD_PLACES_H
#define FL_PRELOAD_PLACES_H

#include <stdbool.h>

/* After the call of syscall(2) with that number, which returned `rc`: it was refused a place for a
 * process, and is to be made again. Threads: any.  Signals: safe. */
bool fl_places_after(long nr, long rc);

#endif
