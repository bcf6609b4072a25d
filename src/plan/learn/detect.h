/* Shared by detect.c, detect_follow.c and watch.c: what a detector keeps of one thread's stream.
 *
 * ring      the last events: two tokens each and the live bytes before the event.
 * low, high of each BLOCK events of the ring, the least and the most that was live before one.
 * table     for each kind of token, where the last CONTEXT tokens were last seen before. Three tables of growing size: what
 *           was put into a small one while there were few events is found there until it is older than the ring. Pages that
 *           nothing is put into are never touched.
 * Event numbers are counts that wrap; the differences of two that are in the ring are right. */
#ifndef FL_PLAN_DETECT_H
#define FL_PLAN_DETECT_H

#include "plan/plan.h"

enum {
    DETECT_RING = 1 << 16,
    DETECT_BLOCK = 64,
    DETECT_CONTEXT = 24,
    DETECT_KINDS = 2,
    DETECT_PHASES = 4,
    DETECT_CREDIT = 400,  /* the most: events that agree, for what is different later */
    DETECT_FAR = 12,      /* requests, from which on a distance is compared by and large */
    DETECT_ROUNDING = 15, /* units of 4 KiB: less than any large request */
    DETECT_LONGEST = DETECT_RING / 2 - 1024,
    /* entries of the tables, and the number of events from which the next one is used */
    DETECT_TABLE_0 = 1 << 9,
    DETECT_TABLE_1 = 1 << 12,
    DETECT_TABLE_2 = 1 << 15,
};

/* What is compared. SIZES: kind and size, and of a free about the distance, so that a few foreign requests in between do no
 * harm. SHAPE: kind, and of a free the distance, whatever the sizes. */
enum detect_kind { DETECT_SIZES, DETECT_SHAPE };

struct detect_event {
    uint16_t size;  /* hash of size, and of what kind of event it is */
    uint16_t shape; /* of a free the distance, below DETECT_FOREIGN */
    uint32_t live;  /* before the event, in units of 4 KiB */
};

enum { DETECT_FOREIGN = 0xfe00, DETECT_ALLOC = 0xff00 };

/* Compares the stream with itself some way back. */
struct detect_follow {
    uint32_t hash; /* of the last CONTEXT tokens */
    bool following;
    uint32_t source; /* the event that the next one is compared with */
    /* The run: its first event, and the source of that. Further back they differ, or nobody has looked yet. */
    uint32_t from, from_source;
    bool from_ends;
    uint32_t astray; /* events since the first that was different; 0: in step */
    uint32_t
        gone; /* the event at which the source was lost; 0: not, or it is not looked for any more */
    uint32_t found; /* the event at which it was found */
    int32_t credit, from_credit;
    /* What those events of the run that repeat nothing have left live, in units of 4 KiB; the same at `weighed`, the last event
     * at which `balance` was known: what a period leaves live without them. */
    int32_t skipped, skipped_then, balance;
    uint32_t weighed; /* 0: not yet */
    uint32_t fresh;   /* events whose context was not seen since the source's */
    /* The nearest place where the last context was seen is so far back, and so many events have been the same since. */
    uint32_t near, near_run;
};

/* A period that was followed for long, and may come back. */
struct detect_phase {
    uint32_t period; /* 0: none */
    uint32_t bound, end;
    uint32_t need; /* events that must agree before it is taken up again */
    enum detect_kind kind;
};

struct detect_doubt {
    uint32_t period;
    uint32_t need; /* repetitions before it is believed once more */
};

struct fl_detect {
    uint64_t events;
    uint32_t period; /* 0: not locked */
    uint32_t peak;   /* the most that was ever live */
    /* While locked. A step ends when the source gets to `target`, and then the next one is compared with the last, which began
     * at `bound`; with the old period before `target`, where none has been seen whole since a phase came back. */
    enum detect_kind kind;
    uint32_t target, bound;
    unsigned old;   /* steps until that has been */
    uint32_t steps; /* reported since the lock */
    bool silent; /* the target has moved to where it would come too soon: once it is not reported */
    uint32_t began; /* the first event that repeats */
    uint32_t check; /* no look at whether something is a step before this event */
    uint32_t start; /* nothing before it is looked for */
    uint32_t since; /* where the last phase of the program ended */
    uint32_t need;  /* of the phase that was taken up again */
    struct detect_follow follow[DETECT_KINDS];
    struct detect_phase phase[DETECT_PHASES];
    struct detect_doubt doubt[DETECT_PHASES];
    uint32_t next_phase, next_doubt;
    /* Where the period of the last doubt was lost, and that period: when it goes on at once there was nothing to doubt. */
    uint32_t lost, doubted;

    struct {
        uint32_t low, high;
    } block[DETECT_RING / DETECT_BLOCK];
    uint32_t table_0[DETECT_KINDS][DETECT_TABLE_0] __attribute__((aligned(4096)));
    struct detect_event ring[DETECT_RING] __attribute__((aligned(4096)));
    uint32_t table_1[DETECT_KINDS][DETECT_TABLE_1] __attribute__((aligned(4096)));
    uint32_t table_2[DETECT_KINDS][DETECT_TABLE_2] __attribute__((aligned(4096)));
};

_Static_assert(sizeof(struct fl_detect) <= FL_MIB, "a detector is at most 1 MiB");

static inline struct detect_event *detect_at(struct fl_detect *d, uint32_t event)
{
    return &d->ring[event % DETECT_RING];
}

/* Is what lies `a` the same as what lies at `b`? */
static inline bool detect_same(struct fl_detect *d, enum detect_kind kind, uint32_t a, uint32_t b)
{
    struct detect_event x = *detect_at(d, a), y = *detect_at(d, b);

    if (FL_LIKELY(x.shape == y.shape)) {
        return kind == DETECT_SHAPE || x.size == y.size;
    }
    if ((kind == DETECT_SIZES ? x.size != y.size : y.shape < DETECT_FAR) ||
        x.shape >= DETECT_FOREIGN || y.shape >= DETECT_FOREIGN) {
        return false;
    }
    int apart = x.shape > y.shape ? x.shape - y.shape : y.shape - x.shape;
    return apart <= 2 + y.shape / 8;
}

/* Compares event `n`, the last one, with the source, and looks where its context was seen before. */
void fl_detect_follow(struct fl_detect *d, uint32_t n);
/* Looks whether what repeats goes further back, by a few events. */
void fl_detect_look_back(struct fl_detect *d, enum detect_kind kind, uint32_t n);

/* Under foreign requests what was seen two or three turns ago may be found before the last turn is. Goes on from there when
 * the last turn is at a half or a third of `period`. */
bool fl_detect_divide(struct fl_detect *d, enum detect_kind kind, uint32_t n, uint32_t period);

/* Of fl_detect_size what the first events need; has it had none yet, or more? */
size_t fl_detect_first(void);
enum { FL_DETECT_PARTS = 2, FL_DETECT_AHEAD = 512 }; /* events: a base page of the ring */
/* What the events will use that follow the FL_DETECT_AHEAD after the first `events`. Len 0: nothing. Looks at no field. */
void fl_detect_ahead(const struct fl_detect *d, uint32_t events,
                     struct fl_range out[static FL_DETECT_PARTS]);
uint32_t fl_detect_events(const struct fl_detect *d);
bool fl_detect_is_new(const struct fl_detect *d);
bool fl_detect_is_beyond_first(const struct fl_detect *d);
/* Has it been following something for long, that may turn out to be a step? */
bool fl_detect_follows(const struct fl_detect *d);

#endif
