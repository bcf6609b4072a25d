/* See ghost.h. */
#include "region/ghost.h"

#include <string.h>

/* As fl_cache_put: an empty slot, else the oldest. */
void fl_ghost_put(struct fl_ghost *s, size_t len)
{
    unsigned i = 0;

    while (i < FL_CACHE_SLOTS && s->slot[i] != 0) {
        i++;
    }
    i = i < FL_CACHE_SLOTS ? i : s->oldest++ % FL_CACHE_SLOTS;
    s->slot[i] = len == s->got ? s->asked : len;
}

/* As fl_cache_take; a request that the slots do not serve empties them. */
void fl_ghost_ask(struct fl_ghost *s, size_t len)
{
    for (unsigned i = 0; i < FL_CACHE_SLOTS; i++) {
        if (s->slot[i] == len) {
            s->slot[i] = 0;
            s->served++;
            return;
        }
    }
    memset(s->slot, 0, sizeof s->slot);
}
