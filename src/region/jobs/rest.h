/* Memory that rests: no request comes. Included by region.h. */
#ifndef FL_REGION_REST_H
#define FL_REGION_REST_H

#include "core/core.h"

/* Threads that make a crowd, at least: see rest.c. */
enum { FL_CROWD = 32 };

/* Lock: region. */
struct fl_resting {
    uint64_t seen;       /* requests at the last look */
    uint64_t changed_ns; /* monotonic; the last look that found new ones */
    uint64_t undone_ns;  /* the last one before which something that had rested was used */
    unsigned doubled;    /* times: the rest that memory must have had */
    unsigned busy;       /* looks in a row that found new requests */
    bool undone;         /* something that had rested was used since the last look */
    bool gave;           /* at the last rest, more went back than was in use */
};

#endif
