/* What of a table lives when. */
#ifndef FAULTLESS_FAULTPLAN_LIVE_H
#define FAULTLESS_FAULTPLAN_LIVE_H

#include "faultplan/table.h"

struct fl_change {
    uint64_t time;
    uint64_t size;
    bool is_birth;
};

/* Does it ever, and hold a byte? */
bool fl_live_is(const struct fl_pack_buffer *b);
/* Births and deaths in order of time, deaths first; the caller frees them. NULL: no memory. */
struct fl_change *fl_live_changes(const struct fl_table *t, size_t *n);
/* The most bytes that live at once: no layout is lower. */
uint64_t fl_live_most(const struct fl_change *c, size_t n);
/* The same of a table; false: no memory. */
bool fl_live_bound(const struct fl_table *t, uint64_t *out);

#endif
