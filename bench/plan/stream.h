/* A program's large requests, recorded (record.c, pack_stream.py) or made up, and how a detector
 * does on them. */
#ifndef FL_BENCH_PLAN_STREAM_H
#define FL_BENCH_PLAN_STREAM_H

#include "plan/plan.h"

enum stream_kind { STREAM_REQUEST = 0, STREAM_FREE = 4, STREAM_FOREIGN = 5, STREAM_MARK = 6 };

struct stream_event {
    uint8_t kind; /* 0 to 3: a request by malloc, calloc, aligned, realloc; or STREAM_* */
    uint8_t thread;
    uint8_t owner;  /* of the block */
    uint32_t block; /* the requests are numbered as they come */
    uint64_t size;  /* of the block */
};

struct stream {
    struct stream_event *event;
    size_t n, room;
    uint32_t blocks;
};

/* False: not there, or not such a file. */
bool stream_read(struct stream *s, const char *path);
/* Requests and frees of any blocks, sizes and lifetimes without order. */
void stream_random(struct stream *s, size_t n, uint64_t seed);
/* Puts requests and frees that are no part of the program in between: so many to 1000 events. */
void stream_disturb(struct stream *s, unsigned thousandths, uint64_t seed);
void stream_add(struct stream *s, struct stream_event e);
uint64_t stream_next(uint64_t *seed); /* the generator: splitmix64 */
void stream_end(struct stream *s);

struct judged {
    unsigned events; /* of the thread */
    unsigned steps;  /* that the program marked */
    unsigned said;   /* that the detector reported */
    unsigned phases; /* runs of steps of one kind, of five or more */
    unsigned right;  /* of these, those that were followed: a step reported for each marked one */
    unsigned wrong;  /* times that something was taken for steps that is not */
    unsigned lost;   /* reports of FL_DETECT_LOST */
    double first;    /* marked steps of the first phase before it was confirmed */
    double worst;    /* the same of the slowest phase */
    /* The most events between a reported step and the nearest place of the fewest live bytes. */
    unsigned astray;
    uint32_t period; /* the last */
};

/* Shows the events of one thread to `d`, which is new. */
struct judged stream_judge(const struct stream *s, struct fl_detect *d, unsigned thread);

#endif
