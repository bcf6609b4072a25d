/* A ghost of a thread's four slots, while its blocks wait on shelves: a thread whose slots would
 * serve it wants no shelf. Included by cache.h. */
#ifndef FL_REGION_GHOST_H
#define FL_REGION_GHOST_H

#include "space/space.h"

enum { FL_CACHE_SLOTS = 4 };

/* Of one thread, which alone reads and writes it. A handler of its may interrupt that: then some
 * are counted wrongly. Lengths are those of shelves, in bytes; 0: none. Blocks that are too long
 * for a shelf wait in the thread's real slots, and have no part in it. */
struct fl_ghost {
    uint32_t slot[FL_CACHE_SLOTS]; /* that would wait there */
    struct {
        uint32_t asked, got;
    } longer[FL_CACHE_SLOTS]; /* of the last requests that got a longer block, until its free */
    uint32_t oldest, next;    /* of a full `slot`, and of `longer`: what gives way */
    uint32_t served;          /* requests since the last look that slots would have served */
};

/* A block of `len` bytes was freed, and waits on a shelf. */
void fl_ghost_put(struct fl_ghost *s, size_t len);
/* A request of `len` bytes that the thread's own slots did not serve; SIZE_MAX: of a kind that they
 * never do. */
void fl_ghost_ask(struct fl_ghost *s, size_t len);
/* It got a block of `got` bytes, where slots would keep one of its own length. */
void fl_ghost_note_longer(struct fl_ghost *s, size_t len, size_t got);
/* Would slots have served each of the last `n` requests? The next look begins anew. */
static inline bool fl_ghost_look(struct fl_ghost *s, uint32_t n)
{
    bool all = s->served >= n;

    s->served = 0;
    return all;
}

#endif
