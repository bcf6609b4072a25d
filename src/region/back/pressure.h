/* Looks at the memory as blocks come and go. Lock: region, but where it says otherwise. */
#ifndef FL_REGION_PRESSURE_H
#define FL_REGION_PRESSURE_H

#include "region/region.h"

/* Before `len` free bytes are handed out again: while memory is tight the kernel may have taken
 * them, and will have to give them anew. True: it is time to look at the memory, afterwards. */
bool fl_region_note_reuse(struct fl_region *r, size_t len);
/* Before `len` bytes are handed out unpopulated, to be filled on touch: as at a growth the memory
 * is to be looked at, and the next allocator asked for what it holds when that leaves too little.
 * True: it is time to, afterwards. */
bool fl_region_note_touch(struct fl_region *r, size_t len);
/* After `len` bytes came back: looks at the memory if it is time to, and purges what is too
 * much. No lock held. */
void fl_region_look_after(struct fl_region *r, size_t len);
/* The same with the lock held, which is released. */
void fl_region_unlock_and_look(struct fl_region *r, size_t len);

#endif
