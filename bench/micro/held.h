/* How long the library's locks were held, as libheld.so has it. */
#ifndef FAULTLESS_BENCH_HELD_H
#define FAULTLESS_BENCH_HELD_H

#include <stdint.h>

struct fl_held {
    uint64_t holds; /* in which the thread kept its processor: the rest is of these */
    uint64_t lost;  /* in which it did not */
    double mean_ns, p999_ns, worst_ns;
    double shard_ns;     /* together, those of one shard's lock alone; */
    double one_ns;       /* of locks of which there is one, and of all shards' at once */
    unsigned worst_rank; /* of the lock that was held so long: enum fl_rank */
};

/* Counts begin anew. Any thread; what others hold meanwhile may count in either. */
void fl_held_begin(void);
void fl_held_read(struct fl_held *out);

#endif
