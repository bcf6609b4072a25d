/* See ghost.h. */
#include "region/ghost.h"

#include <string.h>

void fl_ghost_note_longer(struct fl_ghost *s, size_t len, size_t got)
{
    unsigned i = s->next++ % FL_CACHE_SLOTS;

    s->longer[i].asked = (uint32_t)len;
    s->longer[i].got = (uint32_t)got;
}

/* What the request for a block of `len` bytes wanted. */
static uint32_t asked_for(struct fl_ghost *s, uint32_t len)
{
    for (unsigned i = 0; i < FL_CACHE_SLOTS; i++) {
        if (s->longer[i].got == len) {
            s->longer[i].got = 0;
            return s->longer[i].asked;
        }
    }
    return len;
}

/* As fl_cache_put: an empty slot, else the oldest. */
void fl_ghost_put(struct fl_ghost *s, size_t len)
{
    unsigned i = 0;

    while (i < FL_CACHE_SLOTS && s->slot[i] != 0) {
        i++;
    }
    i = i < FL_CACHE_SLOTS ? i : s->oldest++ % FL_CACHE_SLOTS;
    s->slot[i] = asked_for(s, (uint32_t)len);
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
