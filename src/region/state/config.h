/* What a region is told at its start. Included by region.h. */
#ifndef FL_REGION_CONFIG_H
#define FL_REGION_CONFIG_H

#include "pages/pages.h"

/* Of what may be taken unasked, the part that one request may have populated. */
enum { FL_EAGER_SHARE = 8 };

/* Memory that children of fork(2) cannot share. */
enum fl_pin_fork {
    FL_PIN_APART,  /* children do not have it: a touch ends them */
    FL_PIN_WIPED,  /* children read zeros; where the kernel cannot, as ISOLATED */
    FL_PIN_COPIED, /* children get a copy, made by fork(2) */
};

struct fl_region_config {
    size_t stock; /* bytes of the reserve at most; 0: a sixty-fourth of the peak */
    bool no_stock;
    uint64_t tick_ns;           /* of requests and frees where no worker ticks; 0: nothing ages */
    enum fl_move_method method; /* the best one that may be tried */
    size_t eager_max;  /* bytes; larger requests are lazy. 0: an eighth of what is available */
    size_t shard_from; /* bytes in use for each shard; 0: 16 MiB */
    unsigned shards;   /* from the first request on, with one node; 0: as threads need them */
    size_t limit;      /* bytes held populated at most; 0: what fl_memory_look says is left */
    bool huge;         /* memory may be in huge pages: it is advised */
    bool collapse;     /* with huge: none come by page fault, the worker makes them; see repair.c */
    bool first_touch;  /* large requests get their pages where they are touched, by the worker */
    size_t hugetlb_from;           /* bytes of the shortest block on hugetlb pages; 0: none is */
    unsigned hugetlb;              /* bits of enum fl_hugetlb_kind */
    enum fl_pin_fork hugetlb_fork; /* what children get of such blocks */
    bool quiet;                    /* say nothing but what ends the process */
    bool verbose;                  /* say what happens rarely and should be known */
    bool populate_by_touch;        /* without MADV_POPULATE_WRITE */
    /* What a request needs from the kernel comes when it is touched, but for what is known to be:
     * see left.c. False: before it is handed out. */
    bool wait_for_touch;
    _Atomic bool crowd_goes; /* what many threads freed goes back once it rests: see rest.c */
};

/* Plugged in by runtime/; NULL: nothing to call. No lock held. */
struct fl_region_hooks {
    /* Has others give back what they hold of ours and do not use. Returns bytes. */
    size_t (*release_more)(void);
    /* Memory of that zone that is idle in divided extents becomes free memory, whole huge pages,
     * `bytes` of it if there is as much. Returns bytes. */
    size_t (*lend)(unsigned zone, size_t bytes);
    /* At each tick without a worker: others age what they hold. One thread at a time. */
    uint64_t (*age_more)(struct fl_region *r);
    /* A look has found a limit that counts maps, or a map was refused. Lock: region. */
    void (*maps_are_counted)(void);
};

/* What the lock's holder settles, where there is something: see settle.c. Set at the start. */
struct fl_settle {
    void (*begin)(struct fl_region *r); /* the lock has just been taken */
    void (*end)(struct fl_region *r);   /* it is about to be released */
    bool due;                           /* the accounts want `end`. Lock: region */
};

#endif
