/* Moving, stocking, clearing, forking and repairing, each call to the kernel refused in turn. None
 * of it may fail for that: what does not move is populated, what is not stocked is missing, what
 * children get they get whole. */
#include "region/state/lock.h"
#include "fault/sweep.h"

#include <errno.h>
#include <string.h>

static const struct fl_region_config plain = {.huge = true},
                                     by_remap = {.huge = true, .method = FL_METHOD_REMAP};

/* Two free extents of 6 MiB, full of 0xee, and no more may be held. */
static void two_free(void)
{
    struct fl_extent *a = take(MIB(6)), *b;

    held[6] = take(MIB(2));
    b = take(MIB(6));
    held[7] = take(MIB(2));
    fill(a, 0xee);
    fill(b, 0xee);
    give(a);
    give(b);
    region.held.in_use_peak = 0;
}

static bool take_moved(void)
{
    return hold_clean(0, MIB(11));
}

static bool grow_by_moves(void)
{
    fill(held[7], 0x33);
    bool done = fl_region_resize(&region, held[7], MIB(11));
    assert_int_equal(held[7]->len, done ? MIB(11) : MIB(2));
    assert_begins(held[7], MIB(2), 0x33);
    return done;
}

static void what_does_not_move_is_populated(void **state)
{
    const struct operation table[] = {
        {two_free, take_moved, 0, MAY_REFUSE, 5, plain},
        {two_free, take_moved, 0, MAY_REFUSE, 3, by_remap},
        {two_free, take_moved, GIVES_BACK, 0, 2, plain},
        {two_free, grow_by_moves, 0, MAY_REFUSE, 4, plain},
        {two_free, grow_by_moves, 0, MAY_REFUSE, 3, by_remap},
    };
    (void)state;
    SWEEP(table);
}

static void hold_large(void)
{
    two_free();
    held[0] = take(KIB(512));
    held[1] = take(MIB(15));
    held[2] = take(KIB(4));
    fill(held[1], 0x77);
}

static bool move_it(void)
{
    struct fl_extent *to = fl_region_move(&region, held[1], MIB(25));

    held[1] = to != NULL ? to : held[1];
    assert_int_equal(held[1]->len, to != NULL ? MIB(25) : MIB(15));
    assert_ptr_equal(fl_region_find(&region, held[1]->base), held[1]);
    assert_begins(held[1], MIB(15), 0x77);
    return to != NULL;
}

static void hold_lazy(void)
{
    held[1] = take(MIB(20));
    held[2] = take(KIB(4));
    bytes(held[1])[MIB(13)] = 0x77;
}

static bool move_lazy(void)
{
    struct fl_extent *to = fl_region_move(&region, held[1], MIB(30));

    held[1] = to != NULL ? to : held[1];
    assert_int_equal(held[1]->content, FL_CONTENT_LAZY);
    assert_int_equal(bytes(held[1])[MIB(13)], 0x77);
    return to != NULL;
}

static void realloc_moves_all_or_nothing(void **state)
{
    static const struct fl_region_config lazy = {.huge = true, .eager_max = MIB(16)};
    const struct operation table[] = {
        {hold_large, move_it, 0, MAY_REFUSE, 5, plain},
        {hold_large, move_it, GIVES_BACK, 0, 1, plain},
        {hold_large, move_it, 0, MAY_REFUSE | 1u << FAKE_REMAP, 3, by_remap},
        {hold_lazy, move_lazy, 0, MAY_REFUSE | 1u << FAKE_REMAP, 1, lazy},
    };
    (void)state;
    region_begin(NULL);
    sweep(table, is_reserved() ? 2 : 4); /* no map moves in a reserved window */
}

static bool refill(void)
{
    size_t others = region.held.populated - region.pages.reserve.held;

    region.refill.demand = MIB(8);
    while (fl_region_refill(&region) == 0) {
    }
    assert_int_equal(region.pages.reserve.held, region.pages.reserve.ready);
    assert_int_equal(region.held.populated, others + region.pages.reserve.held);
    return true;
}

static void want_some(void)
{
    held[0] = take(MIB(8));
}

static void fill_stock(void)
{
    want_some();
    refill();
}

static bool take_stocked(void)
{
    return hold_clean(1, MIB(7));
}

static bool purge_stock(void)
{
    size_t before = region.held.populated, given = fl_region_purge(&region, 0);

    assert_int_equal(before - given, region.held.populated);
    return true;
}

static bool take_and_refill(void)
{
    bool served = take_stocked();

    return refill() && served;
}

static void the_stock_is_there_or_not(void **state)
{
    static const struct fl_region_config with = {.huge = true, .stock = MIB(8)};
    static const struct fl_region_config remapped = {
        .huge = true, .stock = MIB(8), .method = FL_METHOD_REMAP};
    const struct operation table[] = {
        {want_some, refill, ~0u, 0, 1, with},
        {fill_stock, take_stocked, 0, MAY_REFUSE, 3, with},
        {fill_stock, take_stocked, 0, MAY_REFUSE, 2, remapped},
        {fill_stock, take_and_refill, 0, MAY_REFUSE, 5, with},
        {fill_stock, take_and_refill, 0, MAY_REFUSE, 5, remapped},
        {fill_stock, purge_stock, ~0u, 0, 0, with},
    };
    (void)state;
    region_begin(NULL);
    if (!is_reserved()) {
        SWEEP(table);
    }
}

static int child(void)
{
    fl_region_fork_child(&region, NULL);
    if (fl_region_check(&region) != NULL || !is_filled(held[6], 0x66)) {
        return 1;
    }
    for (int i = 0; i < 6; i++) { /* all that is free */
        struct fl_extent *e = take(MIB(3));
        if (e == NULL) {
            return 2;
        }
        fill(e, 1);
    }
    return fl_region_check(&region) != NULL ? 3 : 0;
}

static bool fork_off(void)
{
    fill(held[6], 0x66);
    fl_region_fork_lock(&region);
    unsigned slots = fake.fail_slots;
    fake.fail_slots = 0; /* the child's own calls are no matter of this sweep */
    int status = fake_child(child);
    fake.fail_slots = slots;
    fl_region_fork_parent(&region);
    assert_int_equal(status, 0);
    assert_true(is_filled(held[6], 0x66));
    return true;
}

static bool repair(void)
{
    fl_region_lock(&region);
    fl_repair_begin(&region);
    fl_region_unlock(&region);
    fake.npages = 0;
    for (unsigned k = 0; k < 4; k++) {
        fake.page[fake.npages++] =
            (struct fake_page){region.space.first + k * MIB(2), MIB(2), MIB(2), false, 0};
    }
    while (fl_region_repair(&region) == 0) {
    }
    return true;
}

static void the_worker_and_fork_go_on(void **state)
{
    const struct operation table[] = {
        {two_free, repair, ~0u, 0, 3, plain},
        {two_free, fork_off, 0, 0, 2, plain},
    };
    (void)state;
    region_begin(NULL);
    sweep(table, is_reserved() ? 1 : 2); /* there all is inherited */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_does_not_move_is_populated),
        cmocka_unit_test(realloc_moves_all_or_nothing),
        cmocka_unit_test(the_stock_is_there_or_not),
        cmocka_unit_test(the_worker_and_fork_go_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
