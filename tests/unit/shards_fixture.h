/* A region whose free memory is divided, and blocks in it. */
#ifndef FL_TESTS_UNIT_SHARDS_FIXTURE_H
#define FL_TESTS_UNIT_SHARDS_FIXTURE_H

#include "unit/region_fixture.h"

enum { BLOCKS = 512, BUSY = 64 };
extern struct fl_extent *shards_block[BLOCKS]; /* of 256 KiB */

/* So many from the beginning; 0: one, and one more for each 32 MiB in use. */
void shards_begin_with(unsigned shards);
/* The set-up of tests. All blocks are taken, and there is one shard. */
int shards_begin_one(void **state);
/* The same; then another shard is opened among them. */
int shards_begin(void **state);
void shards_take(void);
void shards_give(void);
void shards_open_one(void);
unsigned shards_opened(void);
/* Another thread has the shard's lock for a while from here on. */
void shards_hold(unsigned shard);
void shards_held(void); /* it has it no more */

/* Requests come from the CPU `shards_cpu` until a region begins. */
extern unsigned shards_cpu;
void shards_be_somewhere(void);

#endif
