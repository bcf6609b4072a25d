/* A ghost of a thread's four slots, while its blocks wait on shelves: a thread whose slots would
 * serve it wants no shelf. Included by cache.h. */
#ifndef FL_REGION_GHOST_H
#define FL_REGION_GHOST_H

#include "space/space.h"

enum { FL_CACHE_SLOTS = 4 };

/* Of one thread, which alone reads and writes it. A handler of its may interrupt that: then some
 * are counted wrongly. */
struct fl_ghost {
    size_t slot[FL_CACHE_SLOTS]; /* lengths that would wait there; 0: none */
    size_t asked, got;           /* of the request that last got a longer block */
    uint32_t oldest;             /* slot that gives way next, of a full set */
    uint32_t served;             /* requests since the last look that slots would have served */
};

/* A block of `len` bytes was freed, and waits on a shelf. */
void fl_ghost_put(struct fl_ghost *s, size_t len);
/* A request of `len` bytes that the thread's own slots did not serve. */
void fl_ghost_ask(struct fl_ghost *s, size_t len);
/* It got a block of `got` bytes, where slots would keep one of its own length. */
static inline void fl_ghost_note_longer(struct fl_ghost *s, size_t len, size_t got)
{
    s->asked = len;
    s->got = got;
}
/* Would slots have served each of the last `n` requests? The next look begins anew. */
static inline bool fl_ghost_look(struct fl_ghost *s, uint32_t n)
{
    bool all = s->served >= n;

    s->served = 0;
    return all;
}

#endif
