/* What is told of memory: which of it is live, free, stock and tables, and how much of each the
 * kernel has in memory. What is true is asked of the real kernel by mincore(2), page for page. */
#include "region/free/isolated.h"
#include "unit/region_case.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

static struct fl_residency_values look(void)
{
    struct fl_residency_values v = {.live_bytes = 0};

    assert_int_equal(fl_region_residency(&region, &v), 0);
    return v;
}

static size_t resident(struct fl_range r)
{
    size_t n = 0;

    assert_int_equal(fl_sys_linux.resident(r, &n), 0);
    return n;
}

static void touch(struct fl_extent *e, size_t from, size_t to)
{
    for (size_t at = from; at < to; at += KIB(4)) {
        bytes(e)[at] = 0xee;
    }
}

TEST_FROM(waiting_begin, what_a_thread_cache_holds_is_free)
{
    struct fl_cache *c = fl_cache_acquire(&region);
    struct fl_extent *e = take(MIB(4));
    fill(e, 1);
    (void)cache_put(c, e);
    struct fl_residency_values v = look();
    assert_int_equal(v.live_bytes, 0);
    assert_int_equal(v.free_bytes, MIB(4));
    assert_int_equal(v.free_resident_bytes, MIB(4));
    assert_int_equal(stats().cached_bytes, MIB(4));
    assert_int_equal(stats().in_use_bytes, MIB(4));
    assert_int_equal(stats().free_held_bytes, 0);
    assert_ptr_equal(fl_cache_take(&region, c, MIB(4)), e);
    assert_int_equal(stats().cached_bytes, 0);
    assert_int_equal(look().live_resident_bytes, MIB(4));
}

TEST_FROM(waiting_begin, the_stock_is_told_apart)
{
    if (!stock_filled(&(struct fl_region_config){.huge = true, .stock = MIB(64)})) {
        return;
    }
    struct fl_residency_values v = look();
    assert_int_equal(v.stock_bytes, MIB(64));
    assert_int_equal(v.stock_resident_bytes, 0); /* the fake only takes note */
    memset(stock_chunk(0) + MIB(2), 1, MIB(6));
    v = look();
    assert_int_equal(v.stock_resident_bytes, MIB(6));
    assert_int_equal(v.live_resident_bytes + v.free_resident_bytes, 0);
}

TEST_FROM(waiting_begin, tables_are_told)
{
    struct fl_range pagemap = {region.space.pagemap.all.base, 0}, descriptors = {0, 0};
    assert_non_null(take(MIB(768)));
    pagemap.len = region.space.pagemap.grown;
    descriptors = (struct fl_range){region.space.descriptors.span.all.base,
                                    region.space.descriptors.span.grown};
    struct fl_residency_values v = look();
    assert_int_equal(v.table_bytes, pagemap.len + descriptors.len);
    assert_int_equal(v.table_resident_bytes, resident(pagemap) + resident(descriptors));
    assert_true(v.table_resident_bytes != 0 && v.table_resident_bytes < v.table_bytes);
}

enum { BLOCKS = 1500 };
static struct fl_extent *block[BLOCKS];

/* More extents than are noted at a time, of every state. */
TEST_FROM(waiting_begin, each_extent_counts_once)
{
    size_t live = 0, all = 0, live_there = 0;
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = take(KIB(64) + i % 7 * KIB(4));
        touch(block[i], 0, i % 3 * KIB(16));
    }
    uintptr_t end = block[BLOCKS - 1]->base + block[BLOCKS - 1]->len;
    struct fl_range used = {region.space.first, fl_align_up(end, MIB(2)) - region.space.first};
    for (size_t i = 0; i < BLOCKS; i++) {
        if (i % 2 == 0 || (i > 600 && i < 700)) {
            live += block[i]->len;
            live_there += bytes_there(block[i]);
        } else {
            give(block[i]);
        }
    }
    struct fl_residency_values v = look();
    all = resident(used);
    assert_int_equal(v.live_bytes, live);
    assert_int_equal(v.live_resident_bytes, live_there);
    assert_int_equal(v.free_bytes, stats().free_held_bytes);
    assert_int_equal(v.free_resident_bytes, all - live_there);
    assert_int_equal(v.unknown_bytes, 0);
}

static int present_unlocked(struct fl_range r, size_t *out_bytes)
{
    assert_int_equal(region.shards.of[0].lock.word, 0);
    assert_int_equal(fl_lock_acquire_unless_forking(&region.pages.move.lock),
                     1); /* and it is free */
    fl_lock_release(&region.pages.move.lock);
    assert_true(r.len <= MIB(256)); /* a wait for a look is short */
    return fl_sys_linux.present(r, out_bytes);
}

TEST_FROM(waiting_begin, no_call_waits_for_the_kernel)
{
    region_begin(&(struct fl_region_config){.huge = true, .eager_max = MIB(16)});
    fl_sys.present = present_unlocked;
    struct fl_extent *e = take(MIB(1000));
    assert_int_equal(e->content, FL_CONTENT_LAZY);
    touch(e, MIB(999), MIB(1000));
    struct fl_residency_values v = look();
    assert_int_equal(v.live_bytes, MIB(1000));
    assert_int_equal(v.live_resident_bytes, bytes_there(e));
    assert_int_equal(region.pages.asking.word, 0);
}

static void (*meanwhile)(void);

static int resident_meanwhile(struct fl_range r, size_t *out_bytes)
{
    void (*change)(void) = meanwhile;

    meanwhile = NULL;
    if (change != NULL) {
        change();
    }
    return fl_sys_linux.resident(r, out_bytes);
}

enum { PAIRS = 100, KEPT = 10 };

static void free_the_rest(void)
{
    for (size_t i = KEPT; i < PAIRS; i += 2) {
        give(block[i]);
    }
}

static void use_the_rest(void)
{
    free_the_rest();
    block[KEPT] = take(MIB(150));
}

static void claim_the_rest(void)
{
    free_the_rest();
    fl_region_lock(&region);
    assert_int_equal(fl_extent_reserve(&region.space, 2), 0);
    struct fl_range part = {region.space.first + MIB(32), MIB(160)};
    block[KEPT] = fl_extent_around(&region.space, part.base);
    block[KEPT] = fl_isolated_claim_part(&region, block[KEPT], part);
    fl_region_unlock(&region);
}

/* Where the walk goes on another extent lies by then, which begins below. */
static void changed_meanwhile(void (*change)(void), size_t live)
{
    (void)waiting_begin(NULL);
    for (size_t i = 0; i < PAIRS; i++) {
        block[i] = take(MIB(2));
    }
    for (size_t i = 1; i < PAIRS; i += 2) {
        give(block[i]);
    }
    fake.rc[FAKE_PRESENT] = -EPERM; /* so that it is asked without any lock */
    fl_sys.resident = resident_meanwhile;
    meanwhile = change;
    struct fl_residency_values v = look();
    assert_null(meanwhile);
    assert_int_equal(v.live_bytes + v.free_bytes, PAIRS * MIB(2));
    assert_int_equal(v.live_bytes, live);
    assert_int_equal(v.unknown_bytes, 0);
}

TEST_FROM(waiting_begin, the_walk_goes_on_in_what_is_there_by_then)
{
    changed_meanwhile(free_the_rest, MIB(32)); /* of 32 ranges that were noted at first */
    assert_settled();
    changed_meanwhile(use_the_rest, MIB(32) + MIB(104));
    assert_settled();
    changed_meanwhile(claim_the_rest, MIB(32));
    fl_region_lock(&region);
    fl_isolated_return(&region, block[KEPT], false);
    fl_region_unlock(&region);
}

TEST_FROM(waiting_begin, mincore_tells_the_same)
{
    struct fl_extent *e = take(MIB(64)), *f = take(MIB(64));
    touch(e, MIB(3), MIB(30));
    touch(f, MIB(1), MIB(6));
    give(f);
    struct fl_residency_values v = look();
    fake.rc[FAKE_PRESENT] = -EPERM;
    fake_forget();
    struct fl_residency_values by_mincore = look();
    assert_memory_equal(&v, &by_mincore, sizeof v);
    assert_int_not_equal(fake.count[FAKE_RESIDENT], 0);
}

/* The program has unmapped a part, of which mincore says nothing else. */
TEST_FROM(waiting_begin, a_hole_in_a_block_is_not_in_memory)
{
    struct fl_extent *e = take(MIB(8));
    fill(e, 1);
    struct fl_range hole = {e->base + MIB(3), KIB(12)};
    assert_int_equal(munmap((void *)hole.base, hole.len), 0);
    for (int i = 0; i < 2; i++) {
        struct fl_residency_values v = look();
        assert_int_equal(v.live_resident_bytes, MIB(8) - KIB(12));
        assert_int_equal(v.unknown_bytes, 0);
        fake.rc[FAKE_PRESENT] = -EACCES;
    }
}

/* The kernel refuses; a confined process does not ask. */
TEST_FROM(waiting_begin, what_is_unknown_is_not_guessed)
{
    for (int confined = 0; confined < 2; confined++) {
        (void)waiting_begin(NULL);
        fill(take(MIB(64)), 1);
        give(take(MIB(2)));
        fake.rc[FAKE_PRESENT] = fake.rc[FAKE_RESIDENT] = confined ? 0 : -EPERM;
        fake_forget();
        fl_sys_confine(confined);
        struct fl_residency_values v = look();
        fl_sys_confine(false);
        assert_int_equal(fake.count[FAKE_PRESENT] + fake.count[FAKE_RESIDENT] == 0, confined);
        assert_int_equal(v.live_bytes, MIB(64));
        assert_int_equal(v.free_bytes, MIB(2));
        assert_int_equal(v.live_resident_bytes + v.free_resident_bytes + v.table_resident_bytes, 0);
        assert_int_equal(v.unknown_bytes, v.live_bytes + v.free_bytes + v.table_bytes);
    }
}

/* The kernel's page of zeros is not counted as memory. */
TEST_FROM(waiting_begin, what_was_only_read_is_not_in_memory)
{
    region_begin(&(struct fl_region_config){.wait_for_touch = true});
    struct fl_extent *e = take(MIB(8));
    assert_true(is_filled(e, 0));
    assert_int_equal(bytes_there(e), MIB(8)); /* as mincore has it */
    assert_int_equal(look().live_resident_bytes, 0);
}

enum { SHIFT = 16 };
#define GRANULE ((size_t)1 << SHIFT)

/* Of a divided extent blocks are live, and the rest that is held is free. */
TEST_FROM(waiting_begin, what_is_divided_is_told_by_its_blocks)
{
    static struct fl_inner in = {.shift = SHIFT};
    assert_int_equal(fl_inner_open(&region, &in, MIB(128)), 0);
    struct fl_range all = fl_extent_range(in.outer), half = {all.base, MIB(64)};
    assert_int_equal(look().live_bytes + look().free_bytes, 0);
    assert_true(fl_inner_fill(&region, &in, half));
    struct fl_residency_values v = look();
    assert_int_equal(v.live_bytes, 0);
    assert_int_equal(v.free_bytes, MIB(64));
    assert_int_equal(v.free_resident_bytes, resident(all));
    for (size_t i = 0; i < MIB(64) / GRANULE; i += 4) {
        in.block[i].len = 2 * GRANULE - KIB(4);
        in.block[i].state = FL_EXTENT_LIVE;
    }
    v = look();
    assert_int_equal(v.live_bytes, MIB(32));
    assert_int_equal(v.live_resident_bytes, MIB(32));
    assert_int_equal(v.free_bytes, MIB(32));
    assert_int_equal(v.free_resident_bytes, MIB(32));
    for (size_t i = 0; i < MIB(64) / GRANULE; i += 4) {
        in.block[i].state = FL_EXTENT_UNUSED;
    }
    fl_inner_close(&region, &in);
}

TEST_FROM(waiting_begin, a_handler_amid_the_regions_work_gets_no_answer)
{
    struct fl_residency_values v = {.live_bytes = 42};
    fl_region_enter();
    assert_int_equal(fl_region_residency(&region, &v), -EBUSY);
    fl_region_leave();
    assert_int_equal(v.live_bytes, 42);
}

TEST_FROM(waiting_begin, before_the_first_request_there_is_nothing)
{
    struct fl_residency_values v = look();
    assert_int_equal(v.live_bytes + v.free_bytes + v.stock_bytes + v.unknown_bytes, 0);
    assert_int_equal(v.table_bytes, 0);
}
