/* Who uses shelves: a thread that misses its cache often, and would not be served by it. */
#include "unit/cmocka_all.h"
#include "unit/region_fixture.h"

static struct fl_cache *cache;

/* So much in use that blocks may wait. */
static int begin(void **state)
{
    (void)state;
    region_begin(NULL);
    fake.pretend_populate = true;
    assert_non_null(take(MIB(192)));
    cache = fl_cache_acquire(&region);
    assert_non_null(cache);
    fl_region_lock(&region);
    fl_shelf_resize(&region);
    fl_region_unlock(&region);
    return 0;
}

static void miss(uint64_t ns)
{
    fake.now_ns += ns;
    (void)fl_shelf_is_of_use(cache);
}

/* As malloc does: from the shelf, else from the region. */
static struct fl_extent *ask(size_t len)
{
    miss(3000);
    struct fl_extent *e = fl_shelf_take(&region, cache, len);
    return e != NULL ? e : take(len);
}

static void put(struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    assert_true(fl_shelf_put(&region, cache, e));
}

static void who_misses_often_uses_them(void **state)
{
    (void)state;
    for (int i = 0; i < 2 * FL_SHELF_MISSES; i++) {
        miss(3000);
    }
    assert_true(cache->uses_shelves);
    for (int i = 0; i < FL_SHELF_MISSES; i++) {
        miss(5000);
    }
    assert_false(cache->uses_shelves);
}

/* `n` blocks of as many lengths, or of one, are taken and then freed, again and again. Does the
 * thread use shelves after that? */
static bool used_by(size_t n, bool alike)
{
    struct fl_extent *e[8];

    for (size_t i = 0; i < 4 * FL_SHELF_MISSES / n; i++) {
        for (size_t k = 0; k < n; k++) {
            e[k] = ask(KIB(64) * (alike ? 1 : k + 1));
        }
        for (size_t k = 0; k < n; k++) {
            put(e[k]);
        }
    }
    return cache->uses_shelves;
}

static void who_asks_for_what_it_just_freed_does_not(void **state)
{
    (void)state;
    assert_false(used_by(1, true));
    assert_false(used_by(2, false));
    assert_false(used_by(4, false));
    assert_false(used_by(4, true));
}

static void who_frees_more_than_a_cache_holds_does(void **state)
{
    (void)state;
    assert_true(used_by(8, true));
    assert_true(used_by(8, false));
}

static void a_request_that_the_slots_do_not_serve_would_empty_them(void **state)
{
    (void)state;
    struct fl_extent *a = take(KIB(64)), *b = take(KIB(128));
    for (int i = 0; i < 4 * FL_SHELF_MISSES; i++) {
        put(a);
        put(b);
        (void)fl_shelf_take(&region, cache, KIB(512)); /* of which there is none */
        a = ask(KIB(64));
        b = ask(KIB(128));
    }
    assert_true(cache->uses_shelves);
}

#define T(f) cmocka_unit_test_setup(f, begin)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(who_misses_often_uses_them),
        T(who_asks_for_what_it_just_freed_does_not),
        T(who_frees_more_than_a_cache_holds_does),
        T(a_request_that_the_slots_do_not_serve_would_empty_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
