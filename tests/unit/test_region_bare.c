/* Free memory that goes back with its addresses: nothing is mapped in holes between blocks until
 * they are taken again. */
#include "region/state/lock.h"
#include "region/state/counts.h"
#include "region/back/purge.h"
#include "cases.h"
#include "unit/pieces_fixture.h"

#include <errno.h>
#include <sys/mman.h>

/* Bytes of `r` that are readable and writable. */
static size_t usable_in(struct fl_range r)
{
    size_t sum = 0;

    for (size_t i = 0; i < fake.nmap; i++) {
        sum += fake.map[i].usable ? fl_range_common(fake.map[i].range, r).len : 0;
    }
    return sum;
}

static size_t usable_of_blocks(void)
{
    return usable_in((struct fl_range){region.space.first, MIB(8)});
}

CASE_AFTER(blocks_begin, holes_go_with_their_addresses)
{
    give_but(2);
    assert_int_equal(fl_region_clear_out(&region), 2 * MIB(4)); /* pages, then addresses */
    assert_int_equal(usable_of_blocks(), MIB(4));
    assert_int_equal(region.held.populated, MIB(4));
    assert_int_equal(region.pages.holes.bare, MIB(4));
    assert_int_equal(fl_region_clear_out(&region), 0);
    give_block(2);
    assert_int_equal(fl_region_clear_out(&region), MIB(1)); /* half of the MiB anew */
    assert_int_equal(usable_of_blocks(), MIB(3) + KIB(512));
    give_block(4);
    assert_int_equal(fl_region_purge(&region, 0), KIB(512));
    assert_int_equal(usable_of_blocks(), MIB(3) + KIB(512));
    assert_int_equal(fl_region_clear_out(&region), KIB(512)); /* what went before */
    assert_int_equal(usable_of_blocks(), MIB(3));
    assert_live_is_as_it_was();
}

/* Two huge pages each, and whole ones between. */
CASE_AFTER(blocks_begin, fringes_go_too)
{
    struct fl_extent *low = take(KIB(512)), *e = take(MIB(8)), *high = take(KIB(512));
    fill(low, 1);
    fill(high, 2);
    give(e);
    (void)fl_region_clear_out(&region);
    assert_int_equal(usable_in(region.space.window.all), MIB(9));
    assert_true(is_filled(low, 1) && is_filled(high, 2));
    assert_live_is_as_it_was();
}

CASE_AFTER(blocks_begin, they_are_mapped_again_when_they_are_taken)
{
    give_but(2);
    (void)fl_region_clear_out(&region);
    struct fl_extent *e = take(KIB(512)), *zeroed = take_zeroed(KIB(512)), *less = take(KIB(128));
    assert_int_equal(e->base, block[0]->base + KIB(512));
    assert_int_equal(zeroed->base, block[2]->base + KIB(512));
    assert_true(is_filled(zeroed, 0));
    fill(e, 0x11);
    fill(zeroed, 0x22);
    fill(less, 0x33);
    assert_int_equal(usable_of_blocks(), MIB(5) + KIB(128));
    assert_int_equal(region.pages.holes.bare, MIB(3) - KIB(128));
    assert_live_is_as_it_was();
    assert_true(fl_region_resize(&region, less, KIB(512))); /* over what is behind it */
    fill(less, 0x44);
    assert_int_equal(usable_of_blocks(), MIB(5) + KIB(512));
    give(e);
    give(zeroed);
    give(less);
    for (int i = 0; i < BLOCKS; i += 2) {
        give_block(i);
    }
    (void)fl_region_purge(&region, 0); /* as a whole, holes and all */
    assert_int_equal(region.pages.holes.bare, 0);
    assert_int_equal(region.held.populated, 0);
    assert_live_is_as_it_was();
}

/* Of what is free some is there, some is absent, and some has no address. */
CASE_AFTER(blocks_begin, a_request_over_all_kinds_of_holes)
{
    for (int i = 1; i < 3; i++) {
        give_block(i);
        (void)(i == 1 ? fl_region_clear_out(&region) : fl_region_purge(&region, 0));
    }
    give_block(3);
    assert_int_equal(region.pages.holes.bare, KIB(512));
    assert_int_equal(region.pages.holes.absent, MIB(1));
    fake_forget();
    struct fl_extent *e = take_zeroed(KIB(1536));
    assert_int_equal(e->base, block[0]->base + KIB(512));
    assert_true(is_filled(e, 0));
    fill(e, 5);
    assert_int_equal(region.pages.holes.absent, 0);
    assert_live_is_as_it_was();
}

CASE_AFTER(blocks_begin, no_map_is_made_in_vain)
{
    give_but(2);
    (void)fl_region_clear_out(&region);
    size_t before = usable_in(region.space.window.all);
    fake.commit_max = KIB(256);
    assert_null(take(KIB(512))); /* nor are others to be had */
    fake.commit_max = SIZE_MAX;
    assert_int_equal(usable_in(region.space.window.all), before);
    assert_int_equal(region.pages.holes.bare, MIB(4));
    assert_int_equal(take(KIB(512))->base, block[0]->base + KIB(512));
    assert_live_is_as_it_was();
}

CASE_AFTER(blocks_begin, others_maps_in_holes_are_left_alone)
{
    if (is_reserved()) {
        return;
    }
    give_but(2);
    (void)fl_region_clear_out(&region);
    uintptr_t at = block[0]->base + KIB(768);
    char *theirs = mmap((void *)at, KIB(64), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    assert_int_equal((uintptr_t)theirs, at);
    theirs[0] = 7;
    struct fl_extent *e = take(KIB(512));
    assert_non_null(e);
    assert_true(e->base + e->len <= at || e->base >= at + KIB(64));
    fill(e, 1);
    assert_int_equal(theirs[0], 7);
    assert_sound();
    assert_int_equal(munmap(theirs, KIB(64)), 0);
}

/* As a whole, but for others' maps in it; and where the kernel stops amid it. */
CASE_AFTER(blocks_begin, what_is_bare_in_part_goes_as_a_whole)
{
    give_but(2);
    (void)fl_region_clear_out(&region);
    for (int i = 0; i < 8; i += 2) {
        give_block(i);
    }
    fake_fail_at(3, 1u << FAKE_UNMAP | 1u << FAKE_DECOMMIT);
    (void)fl_region_purge(&region, 0);
    fake_fail_at(0, 0);
    assert_int_equal(region.held.populated, MIB(3));
    assert_int_equal(usable_of_blocks(), MIB(3));
    assert_live_is_as_it_was();
    assert_int_equal(fl_region_purge(&region, 0), MIB(1));
    assert_int_equal(usable_of_blocks(), MIB(2));
    assert_int_equal(region.pages.holes.bare, MIB(2));
    assert_live_is_as_it_was();
}

static int child_of_bare(void)
{
    if (!fl_region_fork_child(&region, NULL) || fl_region_check(&region) != NULL) {
        return 1;
    }
    for (int i = 0; i < 8; i++) {
        struct fl_extent *e = take_zeroed(KIB(512));
        if (e == NULL || !is_filled(e, 0)) {
            return 2;
        }
        fill(e, 1);
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (block[i] != NULL && !is_filled(block[i], (unsigned char)(i + 1))) {
            return 3;
        }
    }
    return fl_region_check(&region) == NULL ? 0 : 4;
}

CASE_AFTER(blocks_begin, children_know_where_nothing_is)
{
    give_but(2);
    (void)fl_region_clear_out(&region);
    assert_int_equal(fork_with(child_of_bare), 0);
    assert_live_is_as_it_was();
}

static int child_status;

static void fork_amid_unmapping(void)
{
    fake.on_purge = NULL;
    child_status = fork_beside(child_of_bare);
}

static void fork_amid_mapping(struct fl_range r)
{
    (void)r;
    fake.on_map = NULL;
    child_status = fork_beside(child_of_bare);
}

/* The thread that is at it is not in the child. */
CASE_AFTER(blocks_begin, children_find_what_is_neither)
{
    give_but(2);
    fake.holes = true; /* the child unmaps what may be mapped */
    fake.on_purge = fork_amid_unmapping;
    (void)fl_region_clear_out(&region);
    assert_int_equal(child_status, 0);
    child_status = -1;
    fake.on_map = fork_amid_mapping;
    struct fl_extent *e = take(KIB(512));
    assert_int_equal(child_status, 0);
    fill(e, 1);
    assert_live_is_as_it_was();
}

/* Each is a map, of which the kernel allows so many: the more there are, the longer is the next. */
CASE_AFTER(blocks_begin, short_holes_stay_where_there_are_many)
{
    give_but(2);
    region.pages.holes.bare = (size_t)4096 * MIB(1);
    fl_region_lock(&region);
    assert_true(fl_holes_is_too_short(&region.pages.holes, KIB(512)));
    assert_false(fl_holes_is_too_short(&region.pages.holes, MIB(1)));
    assert_int_equal(fl_pieces_give_fringes_unlocking(&region, true), 0);
    fl_region_unlock(&region);
    region.pages.holes.bare = 0;
    assert_int_equal(usable_of_blocks(), MIB(8));
    assert_live_is_as_it_was();
}

CASES_MAIN()
