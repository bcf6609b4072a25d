/* What a detector keeps of one thread's stream. Shared by detect.c and stream.c.
 *
 * ring   the last events: two tokens each, and the live bytes before the event.
 * block  of each DETECT_BLOCK events of the ring the least and the most that was live before one.
 * table  where grams ended last, for each kind of token. A gram is the last DETECT_GRAM tokens;
 *        one in four is kept, chosen by its hash. An entry is the low halves of the hash
 *        and of the event number. The table grows with the stream: few events touch few pages.
 * Event numbers are counts that wrap; the difference of two that are in the ring is right. */
#ifndef FL_PLAN_LEARN_STREAM_H
#define FL_PLAN_LEARN_STREAM_H

#include "plan/learn/detect.h"

enum {
    DETECT_RING = 1 << 16,
    DETECT_OLDEST = DETECT_RING - 1024, /* events that may be looked back */
    DETECT_BLOCK = 64,
    DETECT_GRAM = 24,
    DETECT_TABLE_FIRST = 1 << 8, /* entries */
    DETECT_TABLE = 1 << 13,
    DETECT_DOUBTS = 4,
    /* Shapes: of a free whose block is foreign, and of requests. Below: the distance of a free. */
    DETECT_FOREIGN = 0xfe00,
    DETECT_ALLOC = 0xff00,
};

/* What is compared. SIZES: kind and size, and of a free about the distance, so that a few foreign
 * requests in between do no harm. SHAPE: kind, and of a free the distance, whatever the sizes. */
enum detect_kind { DETECT_SIZES, DETECT_SHAPE, DETECT_KINDS };

struct detect_event {
    uint16_t size;  /* hash of size, and of what kind of event it is */
    uint16_t shape; /* of a free the distance, below DETECT_FOREIGN */
    uint32_t live;  /* before the event, in units of 4 KiB */
};

/* What is taken for steps. One ends when `source` comes to `target`. */
struct detect_track {
    uint32_t period; /* events of the last step; 0: nothing is taken for steps */
    enum detect_kind kind;
    uint32_t source; /* the event that the next one is compared with, a step ago */
    uint32_t target; /* where the step that goes on began */
    uint32_t astray; /* events since the first that was different; 0: in step */
    uint32_t steps;  /* reported */
};

/* A period that was taken for a step and was none. */
struct detect_doubt {
    uint32_t period; /* 0: none */
    uint32_t need;   /* repetitions before it is believed once more */
};

/* Something long that came again. */
struct detect_far {
    uint32_t at, back; /* event `at` repeats what was `back` before it; back 0: nothing has */
    enum detect_kind kind;
};

struct fl_detect {
    uint64_t events;
    uint32_t start; /* nothing before it is looked at */
    uint32_t since; /* where the last phase of the program ended */
    struct detect_track track;
    struct detect_far far;
    struct detect_doubt doubt[DETECT_DOUBTS];
    uint32_t next_doubt;
    uint32_t next_look[DETECT_KINDS]; /* no look at whether something is a step before this event */
    uint32_t hash[DETECT_KINDS];      /* of the gram */
    struct {
        uint32_t low, high;
    } block[DETECT_RING / DETECT_BLOCK];
    struct detect_event ring[DETECT_RING] __attribute__((aligned(4096)));
    uint32_t table[DETECT_TABLE][DETECT_KINDS] __attribute__((aligned(4096)));
};

_Static_assert(sizeof(struct fl_detect) <= FL_MIB, "a detector is at most 1 MiB");
_Static_assert(DETECT_RING == 1 << 16, "the low half of an event number is its place in the ring");

/* Of some events the least and the most that was live before one. */
struct detect_span {
    uint32_t low, high;
    uint32_t lowest; /* the first event before which `low` is live */
};

static inline struct detect_event *detect_at(struct fl_detect *d, uint32_t event)
{
    return &d->ring[event % DETECT_RING];
}

/* Puts event `n`, the last one, into the ring. */
void fl_detect_record(struct fl_detect *d, uint32_t n, struct detect_event e);
/* Over the events from `first` up to `end`. Cost: a load a block. */
struct detect_span fl_detect_span(struct fl_detect *d, uint32_t first, uint32_t end);
/* Of each kind how many events before `n`, the last one, the same gram ended last; 0: it is new, or
 * not kept. It may be another one of the same hash. To be called for each event. */
void fl_detect_seen(struct fl_detect *d, uint32_t n, uint32_t back[static DETECT_KINDS]);
/* Are the grams that end with `a` and `b` the same? */
bool fl_detect_agree(struct fl_detect *d, enum detect_kind kind, uint32_t a, uint32_t b);
/* Do the `len` events up to `n` repeat what was `back` events before them, but for a few? */
bool fl_detect_repeats(struct fl_detect *d, enum detect_kind kind, uint32_t n, uint32_t back,
                       uint32_t len);
/* Compares `n`, the last event, with the track's source. False: the steps do not go on. */
bool fl_detect_follow(struct fl_detect *d, uint32_t n);

#endif
