/* The worker may be held up, or ended, in any system call that it makes: so it makes none with the
 * region's lock held, and no other lock over one. */
#include "unit/region_case.h"

#include <errno.h>

static int rc;

/* `body` as a thread of that kind does it. */
static void run_as(enum fl_thread kind, void *(*body)(void *))
{
    run_beside(body, &kind);
}

static unsigned calls(void)
{
    unsigned n = 0;

    for (int i = 0; i < FAKE_SLOTS; i++) {
        n += fake.count[i];
    }
    return n;
}

static size_t wanted; /* descriptors */

static void *reserve(void *kind)
{
    fl_thread = *(enum fl_thread *)kind;
    fl_region_lock(&region);
    rc = fl_extent_reserve(&region.space, wanted);
    fl_region_unlock(&region);
    return NULL;
}

TEST(it_makes_no_descriptors)
{
    assert_non_null(take(MIB(2)));
    fake_forget();
    wanted = 600;
    run_as(FL_THREAD_APART, reserve);
    assert_int_equal(rc, 0);
    wanted = 8192;
    run_as(FL_THREAD_GUEST, reserve);
    assert_int_equal(rc, -ENOMEM);
    assert_int_equal(calls(), 0);
    run_as(FL_THREAD_PROGRAM, reserve);
    assert_int_equal(rc, 0);
    assert_int_not_equal(calls(), 0);
}

static void *lock_and_unlock(void *kind)
{
    fl_thread = *(enum fl_thread *)kind;
    fl_region_lock(&region);
    fl_region_unlock(&region);
    return NULL;
}

TEST(lazy_blocks_that_were_deferred_wait_for_others)
{
    region.config.eager_max = MIB(1);
    struct fl_extent *lazy = take(MIB(32)), *plain = take(KIB(512));
    assert_int_equal(lazy->content, FL_CONTENT_LAZY);
    assert_int_equal(plain->content, FL_CONTENT_POPULATED);
    assert_true(fl_extent_claim(lazy, region.epoch));
    assert_true(fl_extent_claim(plain, region.epoch));
    fl_region_defer(&region, lazy);
    fl_region_defer(&region, plain);
    fake_forget();
    run_as(FL_THREAD_APART, lock_and_unlock);
    assert_int_equal(calls(), 0);
    assert_ptr_equal(atomic_load(&region.caches.deferred), lazy);
    assert_null(lazy->next);
    run_as(FL_THREAD_PROGRAM, lock_and_unlock);
    assert_null(atomic_load(&region.caches.deferred));
}

static void *look(void *kind)
{
    fl_thread = *(enum fl_thread *)kind;
    fl_region_lock(&region);
    rc = fl_look_unlocking(&region) ? 0 : -EBUSY;
    fl_region_unlock(&region);
    return NULL;
}

TEST(it_waits_for_no_look_of_others)
{
    fl_lock_acquire(&region.pages.asking);
    run_as(FL_THREAD_APART, look);
    assert_int_equal(rc, 0);
    run_as(FL_THREAD_GUEST, look);
    assert_int_equal(rc, 0);
    fl_lock_release(&region.pages.asking);
}
