/* A region on the fake kernel, and the handful of verbs that its tests are written in. */
#ifndef FL_TESTS_UNIT_REGION_FIXTURE_H
#define FL_TESTS_UNIT_REGION_FIXTURE_H

#include "region/state/counts.h"
#include "region/state/lock.h"
#include "region/back/pressure.h"
#include "region/region.h"
#include "unit/fake_sys.h"

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

extern struct fl_region region;

/* fake_install, then a region with huge pages and no limits but those in `config` (NULL: none). */
void region_begin(const struct fl_region_config *config);
/* The first half without the second: for tests that script the kernel in between. */
void region_clear(void);

/* The set-up of tests in which new memory waits for its first touch. */
int waiting_begin(void **state);
/* free(3) of a block that was handed out so. */
void free_looked_at(struct fl_extent *e);
/* Writes a byte. */
void touch_at(struct fl_extent *e, size_t at);
/* Bytes of it in memory, by the real kernel's word. */
size_t bytes_there(const struct fl_extent *e);

/* fl_region_take without a cache at the base page. NULL is an answer. */
struct fl_extent *take(size_t len);
struct fl_extent *take_aligned(size_t len, size_t align);
struct fl_extent *take_zeroed(size_t len);
/* Claims and gives. */
void give(struct fl_extent *e);

unsigned char *bytes(const struct fl_extent *e);
bool is_filled(const struct fl_extent *e, unsigned char with);
void fill(struct fl_extent *e, unsigned char with);

/* Every invariant holds; the name of the broken one is in the failure. */
#define assert_sound() assert_sound_at(__FILE__, __LINE__)
void assert_sound_at(const char *file, int line);

/* The same, and no call is under way: nothing is apart, leaving, open or locked. */
#define assert_settled() assert_settled_at(__FILE__, __LINE__)
void assert_settled_at(const char *file, int line);

/* Is the window reserved? Then there is no stock, nothing is kept from children, and nothing moves
 * by mremap. */
bool is_reserved(void);

struct fl_stats_values stats(void);

/* For tests of the stock: pages come when they are touched, so hundreds of MiB cost nothing. False
 * where there is none: in a reserved window. */
bool stock_begin(const struct fl_region_config *c);
/* The same, with as much in it as c->stock says; as much is live. */
bool stock_filled(const struct fl_region_config *c);
/* So much is ready, and nothing else is held for it. */
#define assert_stock(bytes) assert_stock_at(bytes, __FILE__, __LINE__)
void assert_stock_at(size_t ready, const char *file, int line);
unsigned char *stock_chunk(unsigned i);
/* A stock of 64 MiB, and set-ups of tests that have none of it yet, or all. */
extern const struct fl_region_config stock_wanted;
int stock_none(void **state);
int stock_ready(void **state);
/* One call of the worker's, when so much was wanted. */
void stock_refill(size_t demand);
bool has_stock(void); /* here */

/* By another thread, whose end is waited for. */
void run_beside(void *(*f)(void *), void *arg);
/* fork(2) with its handlers: what `child` returns, as fake_child. beside: another thread forks. */
int fork_with(int (*child)(void));
int fork_beside(int (*child)(void));

/* The i-th logged call of that slot whose range lies in the window; NULL when there is none. */
const struct fake_call *in_window(enum fake_slot slot, size_t i);

/* The set-up of tests that need nothing but region_begin(NULL). */
int plain_begin(void **state);
/* As alloc/ frees in a thread with that cache, a slot of which is empty. */
struct fl_extent *cache_put(struct fl_cache *c, struct fl_extent *e);
/* As alloc/ frees in a thread with that cache: what its slots displace waits in a depot. */
void free_to(struct fl_cache *c, struct fl_extent *e);
/* Threads' caches and depots give all that they hold to the region. */
void drain_caches(void);
/* How much may wait in depots is by what is in use now. */
void resize_depots(void);
/* The handlers of a fork(2) that makes no child. */
void fork_in_vain(void);
/* As mprotect(2) and such tell of what a program does to its blocks' pages. */
void note_remapped(uintptr_t base, size_t len);
/* The same as take, with a live huge page behind it, lest it merges. */
struct fl_extent *take_walled(size_t len);
/* Takes what nothing may write to; assert_guarded: nothing has, and all is settled. */
struct fl_extent *take_guard(size_t len);
#define assert_guarded() assert_guarded_at(__FILE__, __LINE__)
void assert_guarded_at(const char *file, int line);
/* What assert_guarded asserts in place of assert_settled, until another region begins. */
extern void (*guards_also)(const char *file, int line);
/* The kernel refuses each move with `with`, the first one after so many bytes. */
void refuse_moves(size_t after, int with);
/* No descriptors are to be had, or they are again. */
void withhold_descriptors(bool withheld);

#endif
