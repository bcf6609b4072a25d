/* The program's threads, where they run, and its children. */
#include "prop/ops_kinds.h"
#include "prop/two_nodes.h"
#include "prop/world.h"
#include "region/serve/shard.h"
#include "region/state/lock.h"
#include "unit/fake_sys.h"

#include <unistd.h>

enum { CPUS = 6, PATIENCE_S = 60 };

const char *op_cache(const struct op *op)
{
    struct thread *t = world_thread(op->a);

    fl_cache_release(&region, t->cache);
    t->cache = fl_cache_acquire(&region);
    return t->cache == NULL ? "no cache" : NULL;
}

const char *op_cpu(const struct op *op)
{
    world_thread(op->a)->cpu = op->b % CPUS;
    if (op->b / CPUS % 4 == 0) {
        two_nodes_turn();
    }
    return NULL;
}

const char *op_shard(const struct op *op)
{
    if (world.config->nodes || world.config->shards == 0 || !region.zones.seeded) {
        return NULL;
    }
    fl_region_lock(&region);
    if (atomic_load(&region.shards.cursor) != 0) {
        fl_shards_share_out(&region);
    } else if (op->a % 4 == 0) {
        fl_shards_open_one(&region);
    }
    fl_region_unlock(&region);
    return NULL;
}

/* What a child finds wrong is its exit status. */
enum { SOUND, UNSOUND, CHANGED, REFUSED, BECAME_UNSOUND, STATES };
static const char *const wrong_in_child[STATES] = {
    NULL, "a child's region is unsound", "a child's bytes changed", "a child's requests went wrong",
    "a child's region became unsound"};

static struct thread *forker;

static bool are_blocks_whole(void)
{
    for (const struct block *b = world.block; b < world.block + WORLD_BLOCKS; b++) {
        if (b->e != NULL && !world_has_stamp(b, b->len)) {
            return false;
        }
    }
    return true;
}

/* A few requests and frees by each thread. */
static bool is_served(void)
{
    for (uint16_t i = 0; i < 6; i++) {
        uint16_t v = (uint16_t)(world.stamps * 7919 + i * 4099u);
        if (op_take(&(struct op){i % 2 == 0 ? OP_TAKE : OP_CALLOC, v, v}) != NULL ||
            op_let_go(&(struct op){OP_FREE, v, 0}) != NULL) {
            return false;
        }
    }
    return true;
}

/* What is live is there, what is free can be used. A lock that no thread will ever release ends it
 * by the alarm. */
static int child(void)
{
    (void)alarm(PATIENCE_S);
    if (!fl_region_fork_child(&region, forker->cache) || world_check_settled() != NULL ||
        world_check() != NULL || world_survive(forker) != NULL) {
        return UNSOUND;
    }
    if (!are_blocks_whole()) {
        return CHANGED;
    }
    if (!is_served()) {
        return REFUSED;
    }
    (void)fl_region_purge(&region, 0);
    return world_check() != NULL || world_check_aged(0) != NULL ? BECAME_UNSOUND : SOUND;
}

const char *op_fork_off(const struct op *op)
{
    forker = world_thread(op->b);
    fl_region_fork_lock(&region);
    int status = op->a % 4 == 0 ? fake_child(child) : SOUND;
    fl_region_fork_parent(&region);
    return status >= 0 && status < STATES ? wrong_in_child[status] : "a child died";
}
