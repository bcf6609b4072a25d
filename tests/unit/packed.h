/* Is a layout right? By a look at each pair. */
#ifndef FL_TESTS_UNIT_PACKED_H
#define FL_TESTS_UNIT_PACKED_H

#include "pack/pack.h"

static inline bool packed_lives(const struct fl_pack_buffer *b)
{
    return b->size != 0 && b->birth < b->death;
}

static inline bool packed_share_bytes(const struct fl_pack_buffer *a,
                                      const struct fl_pack_buffer *b)
{
    return packed_lives(a) && packed_lives(b) && a->birth < b->death && b->birth < a->death &&
           a->offset < b->offset + b->size && b->offset < a->offset + a->size;
}

/* Do no two that live at once share bytes, is each aligned, and nothing above `height`? */
static inline bool packed_well(const struct fl_pack_buffer *b, size_t n, uint64_t height)
{
    bool well = true;

    for (size_t i = 0; i < n; i++) {
        well = well && (b[i].align == 0 || b[i].offset % b[i].align == 0);
        well = well &&
               (!packed_lives(&b[i]) || (b[i].size <= height && b[i].offset <= height - b[i].size));
        for (size_t k = 0; k < i; k++) {
            well = well && !packed_share_bytes(&b[i], &b[k]);
        }
    }
    return well;
}

#endif
