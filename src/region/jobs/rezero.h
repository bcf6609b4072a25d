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
void fl_rezero_earn(struct fl_region *r, size_t len);

#endif
