/* Hardened blocks: where they lie, what the kernel is asked, what stays out of use, for how long.
 * What ends a program is tests/preload/test_preload_hardening.c's. */
#include "cases.h"
#include "unit/route_fixture.h"

static struct fl_options options;

static void start(void)
{
    route_begin();
    fl_harden_start(&region, &options);
}

static void each(void)
{
    memset(&options, 0, sizeof options);
}

static struct fl_extent *extent_of(const void *p)
{
    struct fl_extent *e = fl_harden_find(p);

    assert_non_null(e);
    return e;
}

static unsigned char *get(size_t n)
{
    unsigned char *p = fl_malloc_large(n);

    assert_non_null(p);
    assert_true(fl_is_ours(p));
    return p;
}

/* The quarantine outlives a test's region: pushes all of it out. */
static void empty(void)
{
    if (fl_harden.quarantine != 0) {
        fl_harden.quarantine = 1;
        fl_free_ours(get(KIB(64)));
        assert_sound();
    }
}

CASE(off_is_the_default)
{
    start();
    assert_false(fl_harden.on);
    unsigned char *p = get(KIB(65) + 1);
    assert_int_equal(fl_usable_ours(p), KIB(68));
    fl_free_ours(p);
}

CASE(a_block_ends_at_its_guard)
{
    static const size_t size[] = {KIB(64), KIB(70) - 16, KIB(256) - KIB(4), MIB(3) + 48};

    options.value[FL_OPTION_guard] = 1;
    start();
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
        unsigned char *p = get(size[i]);
        assert_int_equal(((uintptr_t)p + size[i]) % KIB(4), 0);
        assert_int_equal(extent_of(p)->len, fl_align_up(size[i], KIB(4)) + KIB(4));
        assert_int_equal(fl_usable_ours(p), size[i]);
        assert_sound();
        fl_free_ours(p);
        assert_sound();
    }
    assert_int_equal(stats().live_extents, 0);
}

CASE(as_near_as_alignment_allows)
{
    options.value[FL_OPTION_guard] = 1;
    start();
    for (size_t align = 1; align <= MIB(4); align *= 2) {
        for (size_t n = KIB(64); n < KIB(64) + 40; n += 13) {
            unsigned char *p = fl_memalign_large(align, n);
            size_t slack = fl_align_up((uintptr_t)p + n, KIB(4)) - ((uintptr_t)p + n);
            assert_int_equal((uintptr_t)p % fl_max(align, 16), 0);
            assert_true(slack < fl_max(fl_min(align, KIB(4)), 16));
            memset(p, 1, n);
            fl_free_ours(p);
        }
    }
    assert_sound();
    assert_int_equal(stats().live_extents, 0);
}

CASE(realloc_moves_and_keeps_what_there_is)
{
    options.value[FL_OPTION_guard] = 1;
    start();
    unsigned char *p = get(KIB(100) + 3);
    memset(p, 7, KIB(100) + 3);
    static const size_t size[] = {KIB(200) + 1, KIB(64), KIB(64), MIB(9), KIB(80)};
    for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
        unsigned char *q = fl_realloc_any(p, size[i]);
        assert_non_null(q);
        assert_ptr_not_equal(q, p);
        assert_null(fl_harden_find(p));
        assert_int_equal(fl_usable_ours(q), size[i]);
        for (size_t at = 0; at < KIB(64); at++) {
            assert_int_equal(q[at], 7);
        }
        p = q;
    }
    assert_null(fl_realloc_any(p, 0));
    assert_int_equal(stats().live_extents, 0);
}

/* The kernel has neither advice for guards nor, the second time, anything else. */
CASE(refusals_leave_a_block_that_works)
{
    options.value[FL_OPTION_guard] = 1;
    for (int i = 0; i < 2; i++) {
        start();
        fl_free_ours(get(KIB(200)));
        fake.rc[FAKE_ADVISE] = -EINVAL;
        unsigned char *p = get(KIB(100));
        fake.rc[FAKE_COMMIT] = i == 0 ? 0 : -ENOMEM; /* then it is mapped anew */
        memset(p, 1, KIB(100));
        fl_free_ours(p);
        fake.rc[FAKE_ADVISE] = fake.rc[FAKE_COMMIT] = 0;
        assert_sound();
        p = get(MIB(1));
        memset(p, 1, MIB(1));
        fl_free_ours(p);
        assert_int_equal(stats().live_extents, 0);
    }
}

CASE(the_last_bytes_stay_out_of_use)
{
    unsigned char *p[4];

    options.value[FL_OPTION_quarantine] = MIB(3);
    start();
    for (size_t i = 0; i < 4; i++) {
        p[i] = get(MIB(1));
        memset(p[i], 1, MIB(1));
    }
    for (size_t i = 0; i < 4; i++) {
        fl_free_ours(p[i]);
        assert_sound();
    }
    /* the first has been pushed out: its addresses are there again */
    unsigned char *q = get(MIB(1));
    assert_ptr_equal(q, p[0]);
    unsigned char *other = get(MIB(1));
    for (size_t i = 0; i < 4; i++) {
        assert_ptr_not_equal(other, p[i]);
    }
    fl_free_ours(other); /* pushes the second out */
    other = get(MIB(1));
    assert_ptr_equal(other, p[1]);
    assert_sound();
}

CASE(what_is_longer_than_the_quarantine_does_not_stay)
{
    options.value[FL_OPTION_quarantine] = MIB(3);
    start();
    unsigned char *small = get(MIB(1)), *p = get(MIB(4));
    fl_free_ours(small);
    fl_free_ours(p);
    assert_sound();
    assert_int_equal(stats().live_extents, 0);
    assert_ptr_equal(get(MIB(1)), small);
}

CASE(more_blocks_than_the_quarantine_has_room_for_push_out_the_first)
{
    enum { BLOCKS = 4096 };
    static unsigned char *p[BLOCKS + 2];

    options.value[FL_OPTION_quarantine] = MIB(4096);
    start();
    for (size_t i = 0; i < BLOCKS + 2; i++) {
        p[i] = get(KIB(64));
    }
    for (size_t i = 0; i < BLOCKS + 2; i++) {
        fl_free_ours(p[i]);
    }
    assert_int_equal(stats().live_extents, BLOCKS);
    assert_ptr_equal(get(KIB(64)), p[0]);
    assert_ptr_equal(get(KIB(64)), p[1]);
    assert_sound();
}

CASE(what_cannot_be_unmapped_is_not_kept)
{
    options.value[FL_OPTION_quarantine] = MIB(64);
    options.value[FL_OPTION_fill] = FL_FILLER_ZERO;
    start();
    unsigned char *p = get(MIB(1));
    memset(p, 1, MIB(1));
    fake.rc[FAKE_DECOMMIT] = -ENOMEM;
    fl_free_ours(p);
    fake.rc[FAKE_DECOMMIT] = 0;
    assert_int_equal(stats().live_extents, 0);
    assert_ptr_equal(get(MIB(1)), p);
    for (size_t i = 0; i < MIB(1); i++) {
        assert_int_equal(p[i], 0);
    }
}

CASE(what_was_never_touched_is_not_wiped)
{
    size_t there = 0;
    options.value[FL_OPTION_fill] = FL_FILLER_ZERO;
    start();
    region.config.wait_for_touch = true;
    unsigned char *p = get(MIB(64));
    p[MIB(33)] = 1;
    fl_free_ours(p);
    assert_int_equal(fl_sys_linux.resident((struct fl_range){(uintptr_t)p, MIB(64)}, &there), 0);
    assert_true(there <= MIB(2));
    assert_int_equal(p[MIB(33)], 0);
    assert_sound();
}

/* A handler's free amid the region's own work: the next unlock gives it back. */
CASE(a_free_amid_our_own_work_is_put_off)
{
    options.value[FL_OPTION_guard] = 1;
    options.value[FL_OPTION_fill] = FL_FILLER_JUNK;
    options.value[FL_OPTION_quarantine] = MIB(64);
    start();
    unsigned char *p = get(KIB(100)), *other = get(KIB(100));
    fl_region_enter();
    fl_free_ours(p);
    fl_region_leave();
    fl_free_ours(other);
    assert_sound();
    p = get(KIB(300));
    memset(p, 1, KIB(300));
    fl_free_ours(p);
    assert_sound();
}

CASE(errno_is_kept)
{
    options.value[FL_OPTION_guard] = 1;
    start();
    fl_free_ours(get(KIB(64)));
    errno = 1234;
    fake.rc[FAKE_ADVISE] = -EINVAL;
    unsigned char *p = get(KIB(100) + 1);
    assert_int_equal(errno, 1234);
    fl_free_ours(p);
    fake.rc[FAKE_ADVISE] = 0;
    assert_int_equal(errno, 1234);
}

CASES_MAIN(.setup = each, .teardown = empty)
