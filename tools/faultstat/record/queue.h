/* Records of all rings in the order of their times. A ring is in order by itself; a mapping that
 * one CPU reports may be touched on another.
 * The records are copies: the rings need their room. */
#ifndef FAULTLESS_FAULTSTAT_RECORD_QUEUE_H
#define FAULTLESS_FAULTSTAT_RECORD_QUEUE_H

#include "faultstat/record/event.h"

struct fl_queued {
    uint64_t time_ns;
    size_t at; /* in `bytes` */
    size_t len;
};

struct fl_queue {
    unsigned char *bytes;
    size_t used;
    size_t room;
    struct fl_queued *item;
    size_t count;
    size_t capacity;
    uint64_t dropped; /* records for which there was no memory */
};

void fl_queue_add(struct fl_queue *queue, uint64_t time_ns, const void *record, size_t len);

/* Give `take` what is older than `before_ns`, oldest first, and forget it. */
void fl_queue_flush(struct fl_queue *queue, uint64_t before_ns,
                    void (*take)(void *arg, const void *record, size_t len), void *arg);

void fl_queue_clear(struct fl_queue *queue);

#endif
