/* Statistics that add up, frees from signal handlers, and fork. */
#include "unit/region_case.h"

#include <signal.h>

/* What is live, and what is free, test_prop_region adds up after each operation. */
TEST(figures_tell_peaks_hits_and_what_the_kernel_gave)
{
    struct fl_cache *c = fl_cache_acquire(&region);
    struct fl_extent *a = take(MIB(1)), *b = take(MIB(2)), *d = take(KIB(64));
    struct fl_stats_values v = stats();
    assert_int_equal(v.populate_bytes, MIB(4));
    assert_int_equal(v.stalls, 2);
    assert_int_equal(v.window_bytes, region.space.window.all.len);
    give(a);
    (void)cache_put(c, b);
    v = stats();
    assert_int_equal(v.live_extents, 1); /* what is cached is not live, and in use */
    assert_int_equal(v.in_use_bytes, MIB(2) + KIB(64));
    assert_int_equal(v.in_use_peak_bytes, MIB(3) + KIB(64));
    assert_ptr_equal(fl_cache_take(&region, c, MIB(2)), b);
    fl_stats_bump(&c->stats.cache_hits);
    v = stats();
    assert_int_equal(v.requests, 4);
    assert_int_equal(v.cache_hits, 1);
    give(b);
    give(d);
    assert_int_equal(fl_region_purge(&region, 0), MIB(4));
    v = stats();
    assert_int_equal(v.populated_peak_bytes, MIB(4));
    assert_int_equal(v.purge_bytes, MIB(4));
}

static struct fl_extent *to_free[3];
static bool was_busy;

static void free_in_handler(int sig)
{
    was_busy = fl_region_busy();
    for (int i = 0; i < 3; i++) {
        if (to_free[i] != NULL && fl_extent_claim(to_free[i], region.epoch)) {
            fl_region_defer(&region, to_free[i]);
        }
    }
}

TEST(frees_of_a_signal_handler_wait_for_the_unlock)
{
    for (int i = 0; i < 3; i++) {
        to_free[i] = take(KIB(64));
    }
    assert_true(signal(SIGUSR1, free_in_handler) != SIG_ERR);
    fl_region_lock(&region);
    raise(SIGUSR1); /* amid our critical section */
    assert_int_equal(region.stats.gives, 0);
    fl_region_unlock(&region);
    (void)signal(SIGUSR1, SIG_DFL);
    assert_true(was_busy);
    assert_false(fl_region_busy());
    assert_int_equal(stats().live_extents, 0);
    assert_int_equal(fl_region_free(&region).bytes, MIB(2));
}

/* A handler's free amid our work. */
static void defer(struct fl_extent *e)
{
    fl_region_lock(&region);
    assert_true(fl_extent_claim(e, region.epoch));
    fl_region_defer(&region, e);
    fl_region_unlock(&region);
}

TEST(a_lazy_block_freed_by_a_handler_loses_its_pages)
{
    region_begin(&(struct fl_region_config){.huge = true, .eager_max = MIB(8)});
    struct fl_extent *e = take(MIB(16));
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    uintptr_t base = e->base;
    fill(e, 0xcc);
    defer(e);
    assert_int_equal(region.held.populated, 0); /* not looked at: all went */
    struct fl_extent *z = take_zeroed(MIB(1));
    assert_true(z->base == base && is_filled(z, 0));
}

/* The handler cannot have it disarmed, for the worker may want the lock. */
TEST(an_armed_block_freed_by_a_handler_loses_its_map)
{
    region_begin(&(struct fl_region_config){.huge = true, .eager_max = MIB(8)});
    struct fl_extent *e = take(MIB(16));
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    e->armed = true;
    fake_forget();
    defer(e);
    assert_int_equal(fake_purged(), MIB(16));
    assert_int_equal(region.held.populated, 0);
    assert_int_equal(fl_region_free(&region).bytes, 0);
}

static int in_child(void)
{
    fl_region_fork_child(&region, NULL);
    if (fl_region_check(&region) != NULL) {
        return 1;
    }
    struct fl_extent *e = take_zeroed(MIB(3));
    if (e == NULL || !is_filled(e, 0) || e->base != region.space.first) {
        return 2; /* the thread that was purging is not here, its extent is to be had */
    }
    fill(e, 3);
    give(e);
    (void)fl_region_purge(&region, 0);
    return fl_region_check(&region) != NULL ? 3 : 0;
}

static int child_status;

static void fork_now(void)
{
    fake.on_purge = NULL;
    child_status = fork_beside(in_child);
}

TEST(a_child_forked_amid_a_purge_works)
{
    struct fl_extent *e = take_walled(MIB(4));
    fill(e, 0xdd);
    give(e);
    child_status = -1;
    fake.on_purge = fork_now;
    assert_int_equal(fl_region_purge(&region, 0), MIB(4));
    assert_int_equal(child_status, 0);
}

static struct fl_cache *mine, *theirs;
static struct fl_extent *freed_by_them;

static void *get_a_cache(void *arg)
{
    theirs = fl_cache_acquire(&region);
    freed_by_them = take(MIB(4));
    assert_true(fl_extent_claim(freed_by_them, region.epoch));
    return arg; /* the cache stays owned: as a thread that runs on in the parent */
}

static int orphans_in_child(void)
{
    fl_region_fork_child(&region, mine);
    struct fl_extent *e = fl_cache_take(&region, mine, KIB(128));
    if (e == NULL) {
        return 1; /* the forking thread's own cache is as it was */
    }
    size_t populated = region.held.populated;
    e = fl_region_take(&region, mine, MIB(3), fl_page.base, false);
    if (e == NULL || region.held.populated != populated) {
        return 2; /* the other thread's cached 4 MiB were to be had */
    }
    struct fl_cache *another = fl_cache_acquire(&region);
    if (another == NULL || another == mine || region.caches.all->next->next != NULL) {
        return 3; /* its cache was to be had too, instead of a third */
    }
    return fl_region_check(&region) != NULL ? 4 : 0;
}

TEST(caches_of_threads_that_fork_left_behind_are_taken_over)
{
    mine = fl_cache_acquire(&region);
    struct fl_extent *e = take(KIB(128));
    run_beside(get_a_cache, NULL);
    assert_true(fl_extent_claim(e, region.epoch));
    fl_region_fork_lock(&region);
    /* Needs no lock, and so may come after the caches were emptied. */
    assert_null(fl_cache_put(&region, mine, e));
    assert_null(fl_cache_put(&region, theirs, freed_by_them));
    child_status = fake_child(orphans_in_child);
    fl_region_fork_parent(&region);
    assert_int_equal(child_status, 0);
    assert_false(region.fork.orphans);
}

TEST(during_a_fork_the_region_is_closed)
{
    fl_region_fork_lock(&region);
    assert_true(fl_region_busy()); /* a handler that forks amid our own work sees the same */
    fl_region_leave();
    assert_true(fl_region_is_closed(&region)); /* as other threads see it */
    fl_region_enter();
    fl_region_fork_parent(&region);
    assert_false(fl_region_busy());
    assert_false(fl_region_is_closed(&region));
}

static int child_is_refused(void)
{
    return fl_region_fork_child(&region, NULL) ? 1 : 0;
}

/* Amid a request of several steps it waits for a while, and takes the lock over. A free does not
 * wait. */
static void *free_one(void *block)
{
    give(block);
    fl_region_lock(&region);
    fl_region_unlock(&region);
    return NULL;
}

TEST(a_lock_that_was_taken_over_leaves_the_child_without_a_region)
{
    struct fl_extent *e = take(MIB(4));
    fl_sys.wait = fl_sys_linux.wait;
    fl_region_fork_lock(&region);
    run_beside(free_one, e);
    assert_int_equal(fake_child(child_is_refused), 0);
    fl_region_fork_parent(&region);
}

static int check_worker_in_child(void)
{
    fl_region_fork_child(&region, NULL);
    return region.clock.has_worker || !region.wants_worker;
}

TEST(a_child_wants_a_worker_of_its_own)
{
    assert_non_null(take(MIB(32)));
    fl_region_set_worker(&region, true);
    assert_int_equal(fork_with(check_worker_in_child), 0);
    assert_true(region.clock.has_worker);
}
