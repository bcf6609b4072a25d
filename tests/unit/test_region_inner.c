/* A live extent that is divided: its blocks are found by their addresses, and by those inside them,
 * and nothing else changes. */
#include "cases.h"
#include "unit/region_fixture.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

enum { SHIFT = 16 };
#define GRANULE ((size_t)1 << SHIFT)

static struct fl_inner inner;
static struct fl_extent *before, *outer, *after;

static void open_inner(struct fl_inner *in, size_t len)
{
    assert_int_equal(fl_inner_open(&region, in, len), 0);
    assert_true(fl_inner_fill(&region, in, fl_extent_range(in->outer)));
}

static int each(void **state)
{
    (void)plain_begin(state);
    memset(&inner, 0, sizeof inner);
    inner.shift = SHIFT;
    before = take(KIB(64));
    open_inner(&inner, MIB(4));
    outer = inner.outer;
    after = take(KIB(256));
    return 0;
}

/* Was it noted since the last look? */
static bool is_noted(struct fl_extent *e)
{
    return atomic_exchange(&e->user_remapped, false);
}

/* As a divider does it. */
static struct fl_extent *block(size_t granule, size_t len)
{
    struct fl_extent *e = &inner.block[granule];

    e->len = len;
    e->state = FL_EXTENT_LIVE;
    return e;
}

static void give_block(struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    e->state = FL_EXTENT_UNUSED;
}

static struct fl_extent *found(uintptr_t addr)
{
    return fl_region_find(&region, addr);
}

CASE_AFTER(each, a_block_is_found_by_its_address_while_it_is_live)
{
    assert_int_equal(inner.granules, MIB(4) / GRANULE);
    assert_null(found(outer->base));
    struct fl_extent *a = block(0, GRANULE), *b = block(1, MIB(1)), *c = block(17, KIB(4));
    assert_ptr_equal(found(outer->base), a);
    assert_ptr_equal(found(outer->base + GRANULE), b);
    assert_ptr_equal(found(outer->base + 17 * GRANULE), c);
    assert_null(found(outer->base + 2 * GRANULE));
    assert_null(found(outer->base + KIB(4)));
    assert_sound();
    give_block(b);
    assert_null(found(outer->base + GRANULE));
    assert_ptr_equal(found(before->base), before);
    assert_ptr_equal(found(after->base), after);
    assert_sound();
}

CASE_AFTER(each, closed_it_is_one_free_extent_again)
{
    struct fl_range was = fl_extent_range(outer);
    give_block(block(3, MIB(1)));
    fl_inner_close(&region, &inner);
    assert_settled();
    assert_int_equal(stats().in_use_bytes, KIB(320));
    for (size_t at = 0; at < was.len; at += KIB(4)) {
        assert_null(found(was.base + at));
    }
    struct fl_extent *e = take_aligned(MIB(4), MIB(2));
    assert_true(e->base == was.base);
    assert_ptr_equal(found(e->base), e);
    give(e);
    for (size_t at = 0; at < was.len; at += GRANULE) { /* what they are used for later is found */
        e = take_aligned(GRANULE, GRANULE);
        assert_ptr_equal(found(e->base), e);
    }
    assert_settled();
}

CASE_AFTER(each, it_can_be_opened_elsewhere_and_larger)
{
    struct fl_extent *old = inner.block;
    uintptr_t was = outer->base;
    fl_inner_close(&region, &inner);
    struct fl_extent *wall = take_aligned(MIB(4), MIB(2));
    open_inner(&inner, MIB(12));
    outer = inner.outer;
    assert_sound();
    assert_ptr_not_equal(inner.block, old);
    assert_ptr_equal(found(was), wall);
    struct fl_extent *e = block(191, GRANULE);
    assert_ptr_equal(found(outer->base + 191 * GRANULE), e);
    give_block(e);
    size_t used = region.space.descriptors.used;
    for (int i = 0; i < 60; i++) { /* the old descriptors are used again */
        assert_non_null(take(KIB(4)));
    }
    assert_int_equal(region.space.descriptors.used, used);
    assert_sound();
    fl_inner_close(&region, &inner);
    struct fl_extent *same = inner.block;
    open_inner(&inner, MIB(6));
    assert_ptr_equal(inner.block, same);
    assert_sound();
}

CASE_AFTER(each, without_descriptors_nothing_is_taken)
{
    struct fl_inner other = {.shift = 12};
    fake.charge_max = fake_usable();
    assert_int_equal(fl_inner_open(&region, &other, MIB(64)), -ENOMEM);
    fake.charge_max = SIZE_MAX;
    assert_null(other.outer);
    assert_settled();
    assert_int_equal(stats().in_use_bytes, MIB(4) + KIB(320));
    open_inner(&other, MIB(8));
    assert_sound();
}

/* Bytes of the tables in memory, as mincore has it. */
static size_t tables_there(void)
{
    struct fl_range table[] = {
        {region.space.descriptors.span.all.base, region.space.descriptors.span.grown},
        {region.space.pagemap.all.base, region.space.pagemap.grown}};
    size_t sum = 0, there = 0;

    for (int i = 0; i < 2; i++) {
        assert_int_equal(fl_sys.resident(table[i], &there), 0);
        sum += there;
    }
    return sum;
}

/* Of 512 MiB the descriptors are 1 MiB, and the pagemap is half of that. */
CASE_AFTER(each, to_open_a_long_one_brings_no_tables_into_memory)
{
    struct fl_inner part = {.shift = SHIFT};
    size_t had = tables_there();
    assert_int_equal(fl_inner_open(&region, &part, MIB(512)), 0);
    uintptr_t last = part.outer->base + MIB(510);
    assert_true(fl_inner_fill(&region, &part, (struct fl_range){last, MIB(2)}));
    struct fl_extent *e = &part.block[MIB(510) / GRANULE];
    e->len = GRANULE;
    e->state = FL_EXTENT_LIVE;
    assert_ptr_equal(found(last), e);
    assert_true(tables_there() <= had + KIB(256));
    assert_sound(); /* looks at each, which brings the page of zeros */
    e->state = FL_EXTENT_UNUSED;
    struct fl_range blocks = {(uintptr_t)part.block, part.granules * sizeof *part.block};
    fl_inner_warm(&region, blocks, fl_extent_range(part.outer));
    assert_true(tables_there() >= MIB(1) + KIB(512) - KIB(16));
    fl_inner_close(&region, &part);
    assert_settled();
}

CASE_AFTER(each, its_huge_pages_come_when_they_are_wanted)
{
    struct fl_inner part = {.shift = SHIFT};
    size_t in_use = stats().in_use_bytes, populated = region.held.populated;
    assert_int_equal(fl_inner_open(&region, &part, MIB(16)), 0);
    assert_sound();
    assert_int_equal(region.held.populated, populated);
    struct fl_range some = {part.outer->base + MIB(4), MIB(6)};
    assert_true(fl_inner_fill(&region, &part, some));
    assert_sound();
    assert_int_equal(region.held.populated, populated + MIB(6));
    assert_int_equal(stats().in_use_bytes, in_use + MIB(6));
    region.config.limit = region.held.populated; /* no more is to be had */
    assert_false(fl_inner_fill(&region, &part, (struct fl_range){part.outer->base, MIB(2)}));
    assert_sound();
    fl_inner_close(&region, &part);
    assert_settled();
    assert_int_equal(region.held.populated, populated);
    assert_int_equal(stats().in_use_bytes, in_use);
}

static bool can_move(void)
{
    return region.pages.move.method != FL_METHOD_NONE;
}

/* What is in memory there may still be read, but not by its block. */
CASE_AFTER(each, what_it_yields_is_taken_by_the_next_request)
{
    size_t in_use = stats().in_use_bytes, populated = region.held.populated;
    struct fl_range first = {outer->base, MIB(2)};
    memset(bytes(outer), 5, MIB(2));
    assert_int_equal(fl_inner_yield(&region, &inner, first), 0);
    assert_sound();
    assert_int_equal(stats().in_use_bytes, in_use - MIB(2));
    assert_int_equal(region.held.populated, populated - (can_move() ? 0 : MIB(2)));
    uint64_t moved = stats().populate_bytes;
    struct fl_extent *e = take_aligned(MIB(2), MIB(2));
    assert_true(e->base - outer->base >= MIB(4));
    assert_int_equal(stats().populate_bytes - moved, can_move() ? 0 : MIB(2));
    assert_true(is_filled(e, can_move() ? 5 : 0));
    assert_true(fl_inner_fill(&region, &inner, first));
    fill(block(0, MIB(2)), 7);
    fl_inner_close(&region, &inner);
    assert_true(is_filled(e, can_move() ? 5 : 0));
    give(e);
    assert_settled();
}

CASE_AFTER(each, what_does_not_move_goes_to_the_kernel)
{
    size_t in_use = stats().in_use_bytes, populated = region.held.populated;
    fake.rc[FAKE_MOVE] = fake.rc[FAKE_REMAP] = -EBUSY;
    assert_int_equal(fl_inner_yield(&region, &inner, fl_extent_range(outer)), 0);
    fake.rc[FAKE_MOVE] = fake.rc[FAKE_REMAP] = 0;
    assert_int_equal(stats().in_use_bytes, in_use - MIB(4));
    assert_int_equal(region.held.populated, populated - MIB(4));
    assert_true(fl_inner_fill(&region, &inner, fl_extent_range(outer)));
    assert_true(is_filled(block(0, MIB(4)), 0));
    fl_inner_close(&region, &inner);
    assert_settled();
}

/* Where nothing moves, memory that is free must not be held beside what is filled. */
CASE_AFTER(each, what_is_free_makes_way)
{
    struct fl_inner part = {.shift = SHIFT};
    give(take(MIB(32)));
    size_t peak = stats().populated_peak_bytes;
    assert_int_equal(fl_inner_open(&region, &part, MIB(32)), 0);
    for (size_t at = 0; at < MIB(32); at += MIB(4)) {
        assert_true(
            fl_inner_fill(&region, &part, (struct fl_range){part.outer->base + at, MIB(4)}));
        assert_sound();
    }
    assert_true(stats().populated_peak_bytes <= peak + MIB(4));
    fl_inner_close(&region, &part);
    assert_settled();
}

CASE_AFTER(each, hands_are_noted_in_the_block_and_nowhere_else)
{
    struct fl_extent *a = block(1, 15 * GRANULE), *b = block(16, MIB(1) + GRANULE),
                     *c = block(33, KIB(4)), *last = block(62, 2 * GRANULE);
    const size_t at[] = {0, KIB(4), GRANULE, GRANULE + KIB(4), MIB(1) - 1};
    for (size_t i = 0; i < sizeof at / sizeof at[0]; i++) {
        note_remapped(b->base + at[i], 1);
        assert_true(is_noted(b) && !is_noted(a));
    }
    for (size_t to = KIB(4); to <= 2 * GRANULE; to += KIB(4)) { /* to the end of the outer one */
        note_remapped(last->base + to - KIB(4), KIB(4));
        assert_true(is_noted(last));
    }
    note_remapped(c->base + KIB(4), GRANULE); /* in no block */
    assert_false(is_noted(a) || is_noted(c) || is_noted(last));
    note_remapped(outer->base, 30 * GRANULE); /* from a gap on */
    assert_true(is_noted(a) && is_noted(b) && !is_noted(c) && !is_noted(last));
    note_remapped(0, SIZE_MAX);
    assert_true(is_noted(before) && is_noted(a) && is_noted(c) && is_noted(after));
    assert_false(is_noted(outer));
}

/* A look inside a long block must not make those forgotten that may begin there later. */
CASE_AFTER(each, blocks_that_begin_inside_an_earlier_one_are_found)
{
    struct fl_extent *a = block(8, MIB(2));
    for (size_t at = 0; at < MIB(2); at += KIB(4)) {
        note_remapped(a->base + at, 1);
    }
    give_block(a);
    for (size_t i = 0; i < inner.granules; i++) {
        struct fl_extent *e = block(i, GRANULE);
        assert_ptr_equal(found(outer->base + i * GRANULE), e);
        assert_ptr_equal(fl_extent_around(&region.space, e->base + GRANULE - 1), e);
    }
    assert_sound();
}

CASE_AFTER(each, after_it_is_closed_what_was_inside_does_not_mislead)
{
    struct fl_extent *a = block(8, MIB(2));
    note_remapped(a->base + MIB(1), KIB(4));
    give_block(a);
    fl_inner_close(&region, &inner);
    struct fl_extent *e = take_aligned(MIB(4), MIB(2));
    for (size_t at = 0; at < MIB(4); at += KIB(4)) {
        assert_ptr_equal(fl_extent_around(&region.space, e->base + at), e);
        note_remapped(e->base + at, 1);
        assert_true(is_noted(e));
    }
    assert_sound();
}

CASE_AFTER(each, a_handled_block_is_new_memory_again)
{
    struct fl_extent *a = block(1, GRANULE), *b = block(2, GRANULE + KIB(4)),
                     *c = block(4, GRANULE);
    fill(a, 1);
    fill(b, 2);
    fill(c, 3);
    note_remapped(b->base, b->len);
    assert_int_equal(mprotect(bytes(b), b->len, PROT_NONE), 0);
    assert_true(fl_extent_claim(b, region.epoch));
    assert_true(fl_inner_renew(&region, b));
    assert_false(fl_extent_is_user_remapped(b));
    b->state = FL_EXTENT_UNUSED;
    b = block(2, 2 * GRANULE); /* all of its last granule */
    assert_true(is_filled(b, 0));
    fill(b, 4);
    assert_true(is_filled(a, 1));
    assert_true(is_filled(c, 3));
    assert_sound();
}

CASE_AFTER(each, what_the_kernel_does_not_renew_is_said)
{
    static const enum fake_slot slot[] = {FAKE_UNMAP, FAKE_DECOMMIT, FAKE_MAP_AT, FAKE_COMMIT};
    for (size_t i = 0; i < 4; i++) {
        struct fl_extent *e = block(i * 2, GRANULE);
        note_remapped(e->base, 1);
        assert_true(fl_extent_claim(e, region.epoch));
        fake.rc[slot[i]] = -ENOMEM;
        assert_true(fl_inner_renew(&region, e) == (is_reserved() != (i % 2 != 0)));
        fake.rc[slot[i]] = 0;
        assert_sound();
    }
}

static unsigned looked_at(struct fl_range part)
{
    unsigned n = 0;

    for (size_t i = 0; i < fake.count[FAKE_FIND_SPLIT]; i++) {
        struct fl_range r = fake_nth(FAKE_FIND_SPLIT, i)->range;
        n += r.base <= part.base && fl_range_end(part) <= fl_range_end(r);
    }
    return n;
}

/* One longer than what is looked at in one go, with a block where that ends. */
CASE_AFTER(each, repair_looks_at_all_of_it_and_beyond)
{
    fake.pretend_populate = true;
    struct fl_inner large = {.shift = SHIFT};
    open_inner(&large, MIB(200));
    const struct fl_extent *e = large.outer, *beyond = take_aligned(MIB(32), MIB(2));
    large.block[1].len = MIB(150);
    large.block[1].state = FL_EXTENT_LIVE;
    fork_in_vain();
    fake_forget();
    for (int i = 0; i < 50 && fl_region_repair(&region) == 0; i++) {
    }
    for (size_t at = 0; at < MIB(200); at += MIB(2)) {
        assert_true(looked_at((struct fl_range){e->base + at, MIB(2)}) != 0);
    }
    assert_true(looked_at(fl_extent_range(beyond)) != 0);
    assert_sound();
}

static int in_child(void)
{
    fl_region_fork_child(&region, NULL);
    struct fl_extent *e = &inner.block[5], *b = block(20, MIB(1));
    if (found(e->base) != e || found(b->base) != b || !is_filled(e, 9)) {
        return 1;
    }
    fill(b, 1);
    give_block(b);
    give_block(e);
    fl_inner_close(&region, &inner);
    fill(take_aligned(MIB(4), MIB(2)), 3);
    return fl_region_check(&region) == NULL ? 0 : 2;
}

CASE_AFTER(each, a_child_has_it_too)
{
    struct fl_extent *e = block(5, MIB(1));
    fill(e, 9);
    assert_int_equal(fork_with(in_child), 0);
    assert_true(is_filled(e, 9));
    assert_sound();
}

CASES_MAIN()
