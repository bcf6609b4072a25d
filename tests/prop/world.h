/* What the operations of ops.h share: a region, the program's threads, its live blocks. Threads are
 * played by one: each has a cache and stands on a CPU of its own. */
#ifndef FL_TESTS_PROP_WORLD_H
#define FL_TESTS_PROP_WORLD_H

#include "prop/must.h"
#include "prop/ops.h"
#include "region/region.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

enum { WORLD_THREADS = 3, WORLD_BLOCKS = 48 };

struct thread {
    struct fl_cache *cache;
    unsigned cpu;
};

struct block {
    struct fl_extent *e; /* NULL: none lives here */
    uintptr_t base;      /* as handed out: e must still say so */
    size_t len;
    uint64_t stamp;
    bool lazy;
};

extern struct fl_region region;
extern struct world {
    const struct ops_config *config;
    struct thread thread[WORLD_THREADS];
    struct block block[WORLD_BLOCKS];
    uint64_t stamps; /* ever given */
    uint64_t dice;   /* of the kernel's answers */
} world;

/* A new region, and a kernel that refuses nothing. NULL, or what went wrong. */
const char *world_begin(const struct ops_config *c);

/* The thread of that number, modulo WORLD_THREADS; from here on it is the one that calls. */
struct thread *world_thread(unsigned which);
/* After a fork no thread lives but that one. NULL, or what went wrong. */
const char *world_survive(const struct thread *survivor);

/* A live block, the first one from number `which` on; NULL: none lives. */
struct block *world_block(uint16_t which);
/* Where none lives; NULL: all do. */
struct block *world_spare(void);
bool world_overlaps(const struct block *b);

/* Stamps the block from `from` on, at both ends of each page. Of a lazy one every eighth huge page
 * may be left out, so that some stay sparse. */
void world_stamp(struct block *b, size_t from);
/* Does the block have its stamp in the first `len` bytes? */
bool world_has_stamp(const struct block *b, size_t len);

/* Invariants, and what the model says of the region's figures. NULL, or what is wrong. */
const char *world_check(void);
/* No lock is held, and nothing is under way. */
const char *world_check_settled(void);
/* Nothing that waits in caches and depots, or is free in whole huge pages, was freed `age` ticks
 * ago. */
const char *world_check_aged(uint32_t age);
/* No memory is held, but where others have mapped something: then pieces beside it may be. */
const char *world_check_empty(void);

#endif
