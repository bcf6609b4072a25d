/* Free memory is cleared ahead of calloc. Included by region.h. Lock: region,
 * unless it says otherwise. */
#ifndef FL_REGION_REZERO_H
#define FL_REGION_REZERO_H

#include "core/core.h"

struct fl_region;

/* Lock: region. */
struct fl_rezero {
    uint64_t seen; /* requests at the last look */
    size_t credit; /* bytes that may be cleared */
    uint64_t rest_ns;
};

/* A request for `len` zeroed bytes was served. */
static inline void fl_rezero_earn(struct fl_rezero *z, size_t len)
{
    enum { EACH = 8 }; /* bytes for each that was asked for as zero */
    const size_t most = (size_t)64 << 30;

    z->credit = fl_min(z->credit + fl_min(len, most) * EACH, most);
}

#endif
