/* Thin blocks: long new blocks of which little is touched, seen while they are in use, get base
 * pages. Included by region.h. */
#ifndef FL_REGION_THIN_H
#define FL_REGION_THIN_H

#include "region/supply/left.h"
#include "space/space.h"

struct fl_region;
enum { FL_THIN_SLOTS = 256, FL_THIN_SAMPLES = 4 };

enum fl_thin_state {
    FL_THIN_WATCHED, /* nothing is known yet */
    FL_THIN_GIVING,  /* it is thin: what came in huge pages goes back */
    FL_THIN_KNOWN,   /* that is done; does it fill nevertheless? */
};

/* What the worker has seen of a block. The worker's alone. */
struct fl_thin_seen {
    uint32_t turn;      /* the watch that this is about */
    uint8_t state;      /* enum fl_thin_state */
    uint8_t skip, rest; /* looks to leave out; and after the next one that teaches nothing new */
    /* Looks that found a huge page with next to nothing in it; with much. The last few count. */
    uint8_t thin, full;
    struct fl_filled
        sample[FL_THIN_SAMPLES]; /* of huge pages that held next to nothing; n 0: none */
    uintptr_t cursor;            /* where the next look begins */
    struct fl_range given;       /* GIVING: of what it gives */
};

/* A block that is watched. */
struct fl_thin_slot {
    /* Lock: region. */
    struct fl_extent *e; /* NULL: none */
    struct fl_range
        range;     /* its whole huge pages; once it is thin, also those it shares with such */
    size_t len;    /* bytes of the block, when it was handed out */
    uint32_t turn; /* of fl_thin.turn: which watch it is */
    struct fl_thin_seen seen;
};

struct fl_thin {
    struct fl_thin_slot slot[FL_THIN_SLOTS];
    _Atomic uint32_t turn; /* watches ever begun. Lock: region, to write */
    /* Lock: region. */
    unsigned used; /* slots that ever were */
    unsigned next; /* where a free one is looked for */
    size_t came;   /* bytes that were not watched when the worker looked last */
    bool missed;   /* a block had to leave its slot to another one */
    /* The worker's alone. */
    uint32_t known;      /* the turn at the last look */
    uint64_t resident;   /* bytes of the process in memory, when they had changed last */
    uint64_t changed_ns; /* monotonic: when that was */
    uint64_t due_ns;     /* of the next look */
    unsigned at, todo;   /* the next slot of a look; how many more it has */
    uintptr_t walk;      /* where the walk over all blocks has come to; 0: there is none */
    bool walk_gives;     /* it is the second one, which gives back what the first one made thin */
    bool changed;        /* memory has, since the look before this one */
    unsigned picks;      /* samples that this look may still have */
    bool soon;           /* a slot wants the next look soon */
    bool never_back;     /* the kernel splits huge pages, and gives nothing back */
    size_t watched;      /* bytes, of the slots of this look */
    /* By log2 of a block's bytes: blocks with a huge page that held next to nothing; half as many
     * with each huge page that held much. */
    uint8_t evidence[FL_LEFT_KINDS];
    uint64_t thin_kinds; /* bit i: those of 2^i bytes and more */
};

/* Bytes of the shortest block that is watched. */
#define FL_THIN_FROM ((size_t)2 << 20)
/* A shorter one has too few huge pages to show by itself that it is thin: its kind does. */
#define FL_THIN_OWN_FROM ((size_t)4 << 20)
/* Bytes of all that is watched, or of a kind, below which it is not worth the looks. */
#define FL_THIN_LEAST ((size_t)64 << 20)

void fl_thin_fork_child(struct fl_region *r);

#endif
