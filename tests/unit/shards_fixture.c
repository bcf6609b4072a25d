#include "unit/shards_fixture.h"

#include "await.h"
#include "unit/cmocka_all.h"

#include "region/serve/shard.h"

#include <pthread.h>

struct fl_extent *shards_block[BLOCKS];

void shards_take(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        shards_block[i] = take(KIB(256));
        assert_non_null(shards_block[i]);
    }
}

void shards_give(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        give(shards_block[i]);
    }
}

void shards_open_one(void)
{
    fl_region_lock(&region);
    fl_shards_open_one(&region);
    fl_region_unlock(&region);
}

void shards_begin_with(unsigned shards)
{
    struct fl_region_config config = {.huge = true, .shard_from = MIB(32), .shards = shards};
    region_begin(&config);
    fake.pretend_populate = true;
    fl_cpu_offset = 0;
}

int shards_begin_one(void **state)
{
    shards_begin_with(0);
    shards_take();
    return 0;
}

int shards_begin(void **state)
{
    (void)shards_begin_one(state);
    shards_open_one();
    return 0;
}

unsigned shards_opened(void)
{
    return fl_shards_open(&region.shards);
}

static pthread_t holder;
static pthread_barrier_t has_it;
static _Atomic bool is_over, was_waited_for;

static void *hold(void *arg)
{
    struct fl_lock *lock = arg;

    fl_lock_acquire(lock);
    pthread_barrier_wait(&has_it);
    FL_AWAIT(fake.waited_for == &lock->word || is_over);
    was_waited_for = fake.waited_for == &lock->word;
    fl_lock_release(lock);
    return NULL;
}

void shards_hold(unsigned shard)
{
    is_over = false;
    fake.waited_for = NULL;
    pthread_barrier_init(&has_it, NULL, 2);
    assert_int_equal(pthread_create(&holder, NULL, hold, &region.shards.of[shard].lock), 0);
    pthread_barrier_wait(&has_it);
}

void shards_held(void)
{
    is_over = true;
    assert_int_equal(pthread_join(holder, NULL), 0);
    pthread_barrier_destroy(&has_it);
    assert_true(was_waited_for);
}

unsigned shards_cpu;
void shards_be_somewhere(void)
{
    fl_cpu_offset = (const char *)&shards_cpu - (const char *)__builtin_thread_pointer();
}
