/* The malloc-shaped functions: which allocator serves, what errno says, what a wrong free gets. The
 * next allocator is a counting one on top of libc's. */
#include "region/state/lock.h"
#include "region/state/counts.h"
#include "cases.h"
#include "unit/route_fixture.h"
#include "unit/zones_fixture.h"

#include <pthread.h>

static struct {
    int malloc, calloc; /* calls */
} next;
static bool next_is_out;

static void *next_malloc(size_t n)
{
    next.malloc++;
    return next_is_out ? NULL : malloc(n);
}

static void *next_calloc(size_t count, size_t size)
{
    next.calloc++;
    return next_is_out ? NULL : calloc(count, size);
}

static void each(void)
{
    memset(&next, 0, sizeof next);
    next_is_out = false;
    route_begin();
    fl_route.caches = true;
    fl_route.next.malloc = next_malloc;
    fl_route.next.calloc = next_calloc;
}

CASE(large_requests_are_ours_and_small_ones_are_not)
{
    void *a = fl_malloc_large(KIB(64)), *b = fl_malloc_large(KIB(64) - 1);
    assert_true(fl_is_ours(a));
    assert_false(fl_is_ours(b));
    assert_int_equal(next.malloc, 1);
    assert_int_equal(fl_usable_ours(a), KIB(64));
    fl_free_ours(a);
    free(b);
    assert_sound();
}

CASE(a_repeated_size_is_served_by_the_cache_and_calloc_clears_it)
{
    free(fl_malloc_large(1)); /* the first large request makes the cache */
    unsigned char *a = fl_malloc_large(KIB(200) + 1);
    memset(a, 0xab, KIB(200) + 1);
    fl_free_ours(a);
    unsigned char *b = fl_malloc_large(KIB(200) + 5);
    assert_ptr_equal(b, a);
    assert_int_equal(b[0], 0xab);
    assert_int_equal(stats().cache_hits, 1);
    fl_free_ours(b);
    b = fl_calloc_large(KIB(200) + 9);
    assert_ptr_equal(b, a);
    for (size_t i = 0; i < KIB(200) + 9; i++) {
        assert_int_equal(b[i], 0);
    }
    fl_free_ours(b);
    assert_sound();
}

CASE(what_is_longer_than_caches_may_hold_goes_straight_back)
{
    fl_free_ours(fl_malloc_large(KIB(64))); /* the first large request makes the cache */
    void *a = fl_malloc_large(MIB(1)), *b = fl_malloc_large(MIB(2));
    size_t idle = fl_region_free(&region).bytes;
    region.cache_max = MIB(1);
    fl_free_ours(b);
    assert_true(fl_region_free(&region).bytes >= idle + MIB(2));
    idle = fl_region_free(&region).bytes;
    fl_free_ours(a);
    assert_int_equal(fl_region_free(&region).bytes, idle); /* in the cache: as long as may be */
    region.cache_max = 0;
    a = fl_malloc_large(MIB(1));
    assert_int_equal(stats().cache_hits, 1);
    fl_free_ours(a);
    assert_true(fl_region_free(&region).bytes > idle);
    assert_sound();
}

CASE(too_much_is_refused_with_enomem)
{
    void *volatile nothing = NULL;
    next_is_out = true;
    errno = 0;
    nothing = fl_malloc_large((size_t)PTRDIFF_MAX + 1);
    assert_null(nothing);
    assert_int_equal(next.malloc, 1); /* libc's own refusal, which sets errno */
    fl_route.next.memalign = NULL;
    errno = 0;
    assert_null(fl_memalign_large((size_t)1 << 62, KIB(64)));
    assert_int_equal(errno, ENOMEM);
    void *p = fl_malloc_large(KIB(64));
    errno = 0;
    assert_null(fl_realloc_any(p, (size_t)PTRDIFF_MAX + 1));
    assert_int_equal(errno, ENOMEM);
    assert_int_equal(fl_usable_ours(p), KIB(64)); /* the old block is untouched */
    fl_free_ours(p);
}

CASE(what_the_window_refuses_goes_to_the_next_and_keeps_errno)
{
    fake.charge_max = 0;
    errno = 77;
    void *p = fl_malloc_large(MIB(1));
    assert_non_null(p);
    assert_false(fl_is_ours(p));
    assert_int_equal(errno, 77);
    assert_int_equal(next.malloc, 1);
    free(p);
    p = fl_calloc_large(MIB(1));
    assert_false(fl_is_ours(p));
    assert_int_equal(next.calloc, 1);
    free(p);
}

CASE(free_keeps_errno)
{
    void *p[8];
    for (size_t i = 0; i < 8; i++) {
        p[i] = fl_malloc_large(MIB(1) + i * KIB(64));
    }
    errno = 42;
    for (size_t i = 0; i < 8; i++) { /* into the cache, and past it */
        fl_free_ours(p[i]);
        assert_int_equal(errno, 42);
    }
    errno = 42;
    p[0] = fl_malloc_large(MIB(64));
    assert_int_equal(errno, 42);
    fl_free_ours(p[0]);
}

CASE(alignment_is_met_at_any_size)
{
    for (size_t align = 16; align <= MIB(8); align *= 2) {
        void *p = fl_memalign_large(align, KIB(100)), *small = fl_memalign_large(align, 100);
        assert_true(fl_is_ours(p));
        assert_int_equal((uintptr_t)p % align, 0);
        assert_false(fl_is_ours(small));
        assert_int_equal((uintptr_t)small % align, 0);
        fl_free_ours(p);
        free(small);
    }
    assert_sound();
}

CASE(realloc_keeps_the_bytes_across_all_borders)
{
    static const size_t sizes[] = {100,     KIB(63), KIB(64), KIB(300), MIB(5), MIB(2),
                                   KIB(64), 10,      MIB(3),  KIB(65),  MIB(9)};
    unsigned char *p = NULL;
    size_t old = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        p = fl_realloc_any(p, sizes[i]);
        assert_non_null(p);
        assert_int_equal(fl_is_ours(p), sizes[i] >= KIB(64));
        for (size_t k = 0; k < fl_min(old, sizes[i]); k += 37) {
            assert_int_equal(p[k], (unsigned char)(k * 7));
        }
        for (size_t k = 0; k < sizes[i]; k++) {
            p[k] = (unsigned char)(k * 7);
        }
        old = sizes[i];
        assert_sound();
    }
    assert_null(fl_realloc_any(p, 0));
    assert_int_equal(stats().live_extents, 0);
}

CASE(realloc_grows_in_place_where_it_can)
{
    void *p = fl_malloc_large(KIB(64));
    assert_ptr_equal(fl_realloc_any(p, MIB(1)), p);
    assert_ptr_equal(fl_realloc_any(p, KIB(64)), p);
    void *wall = fl_malloc_large(KIB(64));
    void *q = fl_realloc_any(p, MIB(1));
    assert_ptr_not_equal(q, p);
    fl_free_ours(wall);
    fl_free_ours(q);
    assert_sound();
}

CASE(refused_realloc_leaves_the_block)
{
    unsigned char *p = fl_malloc_large(MIB(2));
    p[5] = 5;
    fake.charge_max = fake_usable();
    next_is_out = true;
    assert_null(fl_realloc_any(p, MIB(100)));
    assert_int_equal(p[5], 5);
    assert_int_equal(fl_usable_ours(p), MIB(2));
    fl_free_ours(p);
    assert_sound();
}

CASE(blocks_of_a_round_length_lie_at_no_round_distance)
{
    for (size_t spread = 0; spread <= KIB(64); spread += KIB(64)) {
        fl_route.spread = spread;
        char *a = fl_malloc_large(MIB(32)), *b = fl_malloc_large(MIB(32) + KIB(60));
        size_t far = (size_t)(a < b ? b - a : a - b) % MIB(32);
        assert_true(spread == 0 || (far >= KIB(32) && far <= MIB(32) - KIB(32)));
        assert_int_equal(fl_usable_ours(a), MIB(32) + spread);
        assert_int_equal(fl_usable_ours(b), MIB(32) + (spread != 0 ? spread : KIB(60)));
        fl_free_ours(a);
        fl_free_ours(b);
        fl_free_ours(fl_malloc_large(MIB(16)));
        uint64_t hits = stats().cache_hits;
        fl_free_ours(fl_malloc_large(MIB(16))); /* the longest that a cache holds */
        assert_int_equal(stats().cache_hits, hits + 1);
        fl_free_ours(fl_malloc_large(MIB(17)));
        fl_free_ours(fl_malloc_large(MIB(17)));
        assert_int_equal(stats().cache_hits, hits + 1);
        assert_sound();
    }
}

CASE(requests_amid_boot_go_to_the_next_allocator)
{
    fl_route.booted = FL_BOOT_STARTING;
    unsigned char *a = fl_malloc_large(100), *b = fl_calloc_large(KIB(200));
    void *c = fl_memalign_large(KIB(4), KIB(100));
    assert_false(fl_is_ours(a) || fl_is_ours(b) || fl_is_ours(c));
    assert_true(a != NULL && c != NULL);
    assert_int_equal(b[0] | b[KIB(200) - 1], 0);
    a[99] = 9;
    a = fl_realloc_any(a, KIB(100));
    assert_false(fl_is_ours(a));
    assert_int_equal(a[99], 9);
    fl_route.booted = FL_BOOT_DONE;
    a = fl_realloc_any(a, KIB(200));
    assert_true(fl_is_ours(a));
    assert_int_equal(a[99], 9);
    fl_free_ours(a);
    fl_route.next.free(b);
    fl_route.next.free(c);
}

static unsigned char *victim;

static void free_twice(void)
{
    fl_free_ours(victim);
    fl_free_ours(victim);
}

static void free_inside(void)
{
    fl_free_ours(victim + KIB(4));
}

static void free_odd(void)
{
    fl_free_ours(victim + 1);
}

static void realloc_freed(void)
{
    fl_free_ours(victim);
    (void)fl_realloc_any(victim, KIB(100));
}

static void measure_freed(void)
{
    fl_free_ours(victim);
    (void)fl_usable_ours(victim);
}

CASE(a_wrong_free_gets_one_line_and_abort)
{
    static const struct {
        void (*crime)(void);
        const char *call;
        size_t offset;
    } table[] = {{free_twice, "free", 0},
                 {free_inside, "free", KIB(4)},
                 {free_odd, "free", 1},
                 {realloc_freed, "realloc", 0},
                 {measure_freed, "malloc_usable_size", 0}};
    victim = fl_malloc_large(KIB(64));
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        char said[512], want[512];
        struct fl_text t = fl_text_on(want, sizeof want);
        fl_text_str(&t, "faultless: ");
        fl_text_str(&t, table[i].call);
        fl_text_str(&t,
                    " of a pointer that is not a live block (freed twice, or never allocated): ");
        fl_text_hex(&t, (uintptr_t)victim + table[i].offset);
        fl_text_str(&t, "\n");
        assert_true(fake_dies(table[i].crime, said, sizeof said));
        assert_string_equal(said, want);
    }
}

CASE(a_handler_amid_our_work_uses_the_next_allocator)
{
    void *p = fl_malloc_large(KIB(64)), *q = fl_malloc_large(KIB(64));
    fl_thread_end(fl_thread_cache()); /* no cache from here on */
    fl_region_lock(&region);
    void *r = fl_malloc_large(KIB(64));
    assert_false(fl_is_ours(r));
    fl_free_ours(p); /* left for the unlock */
    assert_int_equal(fl_trim(0), 0);
    fl_region_unlock(&region);
    assert_int_equal(stats().live_extents, 1);
    free(r);
    fl_free_ours(q);
    assert_sound();
}

CASE(without_caches_each_free_reaches_the_region)
{
    fl_route.caches = false;
    void *p = fl_malloc_large(MIB(2));
    fl_free_ours(p);
    assert_int_equal(fl_region_free(&region).bytes, MIB(2));
    assert_null(fl_thread_cache());
    assert_ptr_equal(fl_malloc_large(MIB(2)), p);
}

/* Each test in a thread of its own: a thread's cache belongs to the region that it first met. */
static void *run(void *test)
{
    (*(void (**)(void **))test)(NULL);
    return NULL;
}

/* Each CPU is of that node. */
static void move_to(unsigned node)
{
    for (unsigned cpu = 0; cpu < FL_CPU_IDS; cpu++) {
        atomic_store(&fl_site[cpu], FL_SITE_FIRST + node);
    }
    ask_on(node);
}

/* Blocks of 32 lengths in place of any other, all of them of that zone. */
static void replace(void **block, size_t n, unsigned zone)
{
    static uint32_t dice = 1;

    for (unsigned i = 0; i < 4000; i++) {
        dice = dice * 1664525u + 1013904223u;
        void **at = &block[(dice >> 8) % n];
        fl_free_ours(*at);
        *at = fl_malloc_large(KIB(64) + (dice >> 16) % 32 * KIB(4));
        const struct fl_extent *e = fl_extent_at(&region.space, (uintptr_t)*at);
        assert_non_null(e);
        assert_int_equal(e->zone, zone);
    }
}

CASE(on_several_nodes_blocks_wait_for_their_zone)
{
    enum { N = 200 };
    void *block[N];
    divide();
    fake.pretend_populate = true;
    move_to(0);
    for (int i = 0; i < N; i++) {
        block[i] = fl_malloc_large(KIB(64));
    }
    replace(block, N, 0);
    assert_true(stats().cache_hits > 4000 / 4);
    move_to(1);
    replace(block, N, 1);
    for (int i = 0; i < N; i++) {
        fl_free_ours(block[i]);
    }
    assert_sound();
}

static void in_a_thread(void **state)
{
    pthread_t t;
    void (*test)(void **);

    memcpy(&test, state, sizeof test);
    assert_int_equal(pthread_create(&t, NULL, run, &test), 0);
    pthread_join(t, NULL);
}

int main(void)
{
    for (size_t i = 0; i < fl_cases.n; i++) {
        fl_cases.test[i].initial_state = (void *)fl_cases.test[i].test_func;
        fl_cases.test[i].test_func = in_a_thread;
    }
    return RUN_CASES(.setup = each);
}
