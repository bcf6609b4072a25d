#include "prop/world.h"

#include "prop/two_nodes.h"
#include "unit/fake_sys.h"

#include <string.h>
#include <sys/mman.h>

struct fl_region region;
struct world world;

static unsigned here; /* the CPU of the thread that calls */

/* The kernel takes at once what it may. */
static void take_away(struct fl_range r)
{
    (void)madvise((void *)r.base, r.len, MADV_DONTNEED);
}

static void begin_kernel(const struct ops_config *c)
{
    fake_install();
    fake.no_quiet_addresses |= c->reserved;
    fake.on_lazy_free = take_away;
    fake.grants_no_huge = true;
    fake.holes = c->method == FL_METHOD_REMAP; /* where a map is refused after it */
    fake.pretend_populate = true;              /* what is never touched costs nothing */
    fl_cpu_offset = (const char *)&here - (const char *)__builtin_thread_pointer();
    two_nodes_begin();
}

const char *world_begin(const struct ops_config *c)
{
    struct fl_region_config config = {.eager_max = c->eager_max,
                                      .limit = c->limit,
                                      .stock = c->stock,
                                      .method = (enum fl_move_method)c->method,
                                      .huge = !c->base_pages,
                                      .tick_ns = c->alone ? OPS_TICK_NS : 0,
                                      .shards = c->shards,
                                      .populate_by_touch = c->by_touch,
                                      .wait_for_touch = c->wait_for_touch};

    begin_kernel(c);
    memset(&region, 0, sizeof region);
    world = (struct world){.config = c};
    MUST(fl_region_start(&region, &config) == 0, "the region did not start");
    if (c->nodes) {
        fl_region_divide(&region, &two_nodes);
        two_nodes_watch(region.space.window.all);
    }
    if (!c->alone) {
        fl_region_set_worker(&region, true);
    }
    for (unsigned i = 0; i < WORLD_THREADS; i++) {
        world.thread[i] = (struct thread){fl_cache_acquire(&region), i};
        MUST(world.thread[i].cache != NULL, "a thread has no cache");
    }
    return NULL;
}

struct thread *world_thread(unsigned which)
{
    struct thread *t = &world.thread[which % WORLD_THREADS];

    here = t->cpu;
    two_nodes_here = two_nodes_of(t->cpu);
    return t;
}

const char *world_survive(const struct thread *survivor)
{
    for (struct thread *t = world.thread; t < world.thread + WORLD_THREADS; t++) {
        if (t != survivor) {
            t->cache = fl_cache_acquire(&region);
            MUST(t->cache != NULL && t->cache != survivor->cache, "a new thread has no cache");
        }
    }
    return NULL;
}

struct block *world_block(uint16_t which)
{
    for (unsigned i = 0; i < WORLD_BLOCKS; i++) {
        struct block *b = &world.block[(which + i) % WORLD_BLOCKS];
        if (b->e != NULL) {
            return b;
        }
    }
    return NULL;
}

struct block *world_spare(void)
{
    for (unsigned i = 0; i < WORLD_BLOCKS; i++) {
        if (world.block[i].e == NULL) {
            return &world.block[i];
        }
    }
    return NULL;
}

bool world_overlaps(const struct block *b)
{
    for (const struct block *o = world.block; o < world.block + WORLD_BLOCKS; o++) {
        if (o != b && o->e != NULL && o->base < b->base + b->len && b->base < o->base + o->len) {
            return true;
        }
    }
    return false;
}

enum { PAGE = 4096 };

static uint64_t *word(uintptr_t addr)
{
    return (uint64_t *)addr;
}

static bool is_stamped(const struct block *b, size_t at)
{
    return !b->lazy || b->stamp % 2 != 0 || (at >> 21) % 8 != 0;
}

void world_stamp(struct block *b, size_t from)
{
    for (size_t at = from & ~(size_t)(PAGE - 1); at < b->len; at += PAGE) {
        if (is_stamped(b, at)) {
            *word(b->base + at) = b->stamp ^ at;
            *word(b->base + at + PAGE - sizeof(uint64_t)) = b->stamp + at;
        }
    }
}

bool world_has_stamp(const struct block *b, size_t len)
{
    for (size_t at = 0; at < len; at += PAGE) {
        if (is_stamped(b, at) && (*word(b->base + at) != (b->stamp ^ at) ||
                                  *word(b->base + at + PAGE - sizeof(uint64_t)) != b->stamp + at)) {
            return false;
        }
    }
    return true;
}
