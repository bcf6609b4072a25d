/* realloc of a large extent that cannot grow where it is: its huge pages move, its edges are
 * copied, and when they do not move, it is as if they had. */
#include "unit/region_case.h"

#include <errno.h>
#include <string.h>

static struct fl_extent *guard;

/* A content that says where in the extent it lies. */
static void mark(struct fl_extent *e)
{
    for (size_t at = 0; at < e->len; at += KIB(4)) {
        memset(bytes(e) + at, (int)(1 + at / KIB(4) % 251), KIB(4));
    }
}

static bool is_marked(const struct fl_extent *e, size_t len)
{
    for (size_t at = 0; at < len; at += KIB(4)) {
        const unsigned char *p = bytes(e) + at;
        if (p[0] != 1 + at / KIB(4) % 251 || memcmp(p, p + 1, KIB(4) - 1) != 0) {
            return false;
        }
    }
    return true;
}

/* An extent of `len` bytes that begins `into` bytes behind a multiple of the huge page, in front of
 * a guard. */
static struct fl_extent *hemmed_in(const struct fl_region_config *c, size_t into, size_t len)
{
    region_begin(c);
    if (into != 0) {
        assert_non_null(take(into));
    }
    struct fl_extent *e = take(len);
    guard = take_guard(MIB(2));
    mark(e);
    assert_int_equal(e->base % MIB(2), into % MIB(2));
    fake_forget();
    return e;
}

/* It moves, and what is in it with it. */
static struct fl_extent *moved(struct fl_extent *e, size_t len)
{
    size_t old_len = e->len;
    struct fl_extent *to = fl_region_move(&region, e, len);

    fake.on_move = NULL;
    assert_non_null(to);
    assert_true(is_marked(to, old_len));
    return to;
}

static void all_of_it_is_given_back_in_the_end(struct fl_extent *e)
{
    fill(e, 1);
    assert_guarded();
    give(e);
    give(guard);
    (void)fl_region_purge(&region, 0);
    assert_settled();
    assert_int_equal(fl_region_free(&region).huge, 0);
    assert_int_equal(region.held.populated - region.held.in_use, fl_region_free(&region).bytes);
    assert_true(fl_region_free(&region).bytes < MIB(4)); /* edges beside what hemmed_in took */
}

TEST_FROM(NULL, huge_pages_move_and_edges_are_copied)
{
    static const size_t into[] = {0, KIB(4), MIB(1), MIB(2) - KIB(4)};
    static const size_t len[] = {MIB(8), MIB(11) - KIB(4), MIB(16) + KIB(36)};
    for (size_t i = 0; i < 12; i++) {
        struct fl_extent *e = hemmed_in(NULL, into[i / 3], len[i % 3]);
        struct fl_range inner = fl_range_inner(fl_extent_range(e), MIB(2));
        struct fl_extent *to = moved(e, 2 * len[i % 3]);
        assert_int_equal(to->len, 2 * len[i % 3]);
        assert_int_equal(to->base % MIB(2), into[i / 3]); /* so that huge pages fit */
        assert_int_equal(fake_bytes(FAKE_MOVE), inner.len);
        assert_int_equal(stats().move_bytes, inner.len);
        struct fl_extent *gone = fl_extent_free_at(&region.space, inner.base, 0);
        assert_true(gone != NULL && gone->content == FL_CONTENT_EMPTY);
        assert_int_equal(gone->len, inner.len);
        all_of_it_is_given_back_in_the_end(to);
    }
}

TEST_FROM(NULL, only_what_it_has_not_got_is_populated)
{
    (void)moved(hemmed_in(NULL, 0, MIB(16)), MIB(24));
    assert_int_equal(fake_bytes(FAKE_POPULATE), MIB(8));
    assert_int_equal(region.held.populated, MIB(26)); /* with the guard */
    assert_int_equal(stats().populated_peak_bytes, MIB(26));
}

TEST_FROM(NULL, what_is_left_behind_is_free_memory)
{
    struct fl_extent *e = hemmed_in(NULL, 0, MIB(16));
    uintptr_t old = e->base;
    refuse_moves(MIB(5), -EBUSY);
    struct fl_extent *to = moved(e, MIB(20));
    struct fl_extent *gone = fl_extent_free_at(&region.space, old, 0);
    assert_int_equal(gone->content, FL_CONTENT_EMPTY);
    assert_int_equal(gone->len, MIB(4)); /* whole ones that moved */
    assert_int_equal(fl_extent_free_at(&region.space, old + MIB(4), 0)->content,
                     FL_CONTENT_POPULATED);
    struct fl_extent *z = take_zeroed(MIB(12));
    assert_true(z->base == old + MIB(4) && is_filled(z, 0));
    assert_true(is_marked(to, MIB(16)));
}

struct image {
    size_t populated, free_bytes, leaving, budget, in_use;
    uint64_t takes, gives;
};

static struct image now(void)
{
    return (struct image){region.held.populated, fl_region_free(&region).bytes,
                          region.held.moving,    region.budget.left,
                          region.held.in_use,    region.stats.takes,
                          region.stats.gives};
}

TEST_FROM(NULL, what_is_refused_changes_nothing)
{
    enum why { PLAIN, CHARGED, SHORT, DESCRIPTORS };
    static const struct {
        size_t len, to, limit;
        enum fl_move_method method;
        enum why why;
    } row[] = {
        {MIB(16), MIB(20), 0, FL_METHOD_NONE, PLAIN},
        {MIB(8) - KIB(4), MIB(20), 0, FL_METHOD_MOVE, PLAIN}, /* less than it is worth */
        {MIB(16), MIB(16), 0, FL_METHOD_MOVE, PLAIN},         /* not longer */
        {MIB(16), MIB(4), 0, FL_METHOD_MOVE, PLAIN},
        {MIB(16), SIZE_MAX - MIB(2) + 1, 0, FL_METHOD_MOVE, PLAIN},
        {MIB(16), 0, 0, FL_METHOD_MOVE, PLAIN}, /* the window's length */
        {MIB(16), MIB(24), MIB(20), FL_METHOD_MOVE, PLAIN},
        {MIB(16), MIB(32), 0, FL_METHOD_MOVE, CHARGED}, /* RLIMIT_DATA */
        {MIB(16), MIB(24), 0, FL_METHOD_MOVE, SHORT},
        {MIB(16), MIB(24), 0, FL_METHOD_MOVE, DESCRIPTORS},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        const struct fl_region_config c = {
            .huge = true, .limit = row[i].limit, .method = row[i].method};
        struct fl_extent *e = hemmed_in(&c, row[i].why == CHARGED ? KIB(64) : 0, row[i].len);
        size_t to = row[i].to != 0 ? row[i].to : region.space.window.all.len;
        struct image was = now(), is;
        if (row[i].why == CHARGED) {
            fake.charge_max = fake_usable() + MIB(10);
        } else if (row[i].why == SHORT) {
            region.budget.left = 0;
            fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 4096 kB\n");
        } else if (row[i].why == DESCRIPTORS) {
            withhold_descriptors(true);
        }
        assert_null(fl_region_move(&region, e, to));
        if (row[i].why == DESCRIPTORS) {
            withhold_descriptors(false);
        }
        assert_int_equal(e->state, FL_EXTENT_LIVE);
        assert_ptr_equal(fl_region_find(&region, e->base), e);
        assert_true(is_marked(e, row[i].len));
        is = now();
        if (row[i].why == PLAIN || row[i].why == CHARGED) { /* else there was a look */
            assert_memory_equal(&is, &was, sizeof is);
        }
        assert_guarded();
        if (row[i].why != PLAIN || row[i].limit != 0) { /* without what stood in the way it moves */
            fake.charge_max = SIZE_MAX;
            fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n");
            region.budget.left = MIB(64);
            region.config.limit = 0;
            (void)moved(e, to);
        }
    }
}

TEST_FROM(NULL, at_the_limit_free_extents_give_the_rest)
{
    static const struct fl_region_config limited = {.huge = true, .limit = MIB(34)};
    region_begin(&limited);
    struct fl_extent *a = take_walled(MIB(6)), *d = take(MIB(6)), *e = take(MIB(16));
    (void)take_guard(MIB(4));
    fill(a, 0xa1);
    fill(d, 0xd1);
    mark(e);
    give(a);
    give(d);
    fake_forget();
    (void)moved(e, MIB(27));
    assert_int_equal(region.held.populated, MIB(34));
    assert_int_equal(stats().populated_peak_bytes, MIB(34));
    assert_int_equal(fake_bytes(FAKE_POPULATE), 0);
}

static const struct fl_region_config by_remap = {.huge = true, .method = FL_METHOD_REMAP};

TEST_FROM(NULL, maps_move_too)
{
    for (int i = 0; i < 3; i++) {
        struct fl_extent *e = hemmed_in(&by_remap, KIB(512), MIB(16));
        if (is_reserved()) {
            assert_null(fl_region_move(&region, e, MIB(20)));
            return;
        }
        fake.rc[FAKE_REMAP] = i == 0 ? 0 : i == 1 ? -EFAULT : -ENOMEM;
        struct fl_extent *to = moved(e, MIB(21));
        assert_int_equal(stats().move_bytes, i == 0 ? MIB(14) : 0);
        all_of_it_is_given_back_in_the_end(to);
    }
}

static struct fl_extent *lazy(void)
{
    static const struct fl_region_config c = {.huge = true, .eager_max = MIB(8)};

    region_begin(&c);
    struct fl_extent *e = take(MIB(16));
    guard = take_guard(MIB(2));
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    for (size_t at = 0; at < MIB(16); at += MIB(3)) {
        bytes(e)[at] = 0x77;
    }
    fake_forget();
    return e;
}

TEST_FROM(NULL, lazy_memory_moves_as_one_map)
{
    struct fl_extent *e = lazy();
    uintptr_t old = e->base;
    struct fl_extent *to = fl_region_move(&region, e, MIB(31));
    if (is_reserved()) {
        assert_null(to);
        assert_guarded();
        return;
    }
    assert_int_equal(to->len, MIB(32));
    assert_int_equal(to->content, FL_CONTENT_LAZY);
    for (size_t at = 0; at < MIB(16); at += MIB(3)) {
        assert_int_equal(bytes(to)[at], 0x77);
    }
    assert_int_equal(bytes(to)[MIB(16)], 0);
    bytes(to)[MIB(32) - 1] = 1;
    assert_int_equal(fl_extent_free_at(&region.space, old, 0)->content, FL_CONTENT_EMPTY);
    assert_int_equal(stats().in_use_bytes, MIB(34));
    assert_int_equal(stats().live_extents, 2);
    assert_int_equal(region.held.populated, MIB(2));
}

/* What is short is copied: glibc need not have mapped it. */
TEST_FROM(NULL, a_confined_process_moves_by_maps_alone_what_libc_would)
{
    struct fl_extent *small = hemmed_in(NULL, 0, MIB(16));
    fl_sys_confine(true);
    assert_null(fl_region_move(&region, small, MIB(24)));
    fl_sys_confine(false);
    assert_int_equal(fake_bytes(FAKE_REMAP) + fake_bytes(FAKE_MOVE), 0);

    struct fl_extent *e = hemmed_in(NULL, KIB(12), MIB(64));
    fl_sys_confine(true);
    struct fl_extent *to = fl_region_move(&region, e, MIB(80));
    fl_sys_confine(false);
    assert_true((to == NULL) == is_reserved());
    e = to != NULL ? to : e;
    assert_true(is_marked(e, MIB(64)));
    assert_int_equal(fake_bytes(FAKE_REMAP), is_reserved() ? 0 : MIB(62));
    assert_int_equal(fake_bytes(FAKE_MOVE), 0);
    assert_guarded();
    give(e);
    give(guard);
}
