/* What a device has: prepared in the order that matters, then left alone by everything that takes,
 * moves, clears or copies. */
#include "region/back/purge.h"
#include "unit/region_case.h"

#include <errno.h>
#include <string.h>

static const struct fl_pin plainly = {.node = -1};

static struct fl_extent *pin_as(size_t len, const struct fl_pin *how)
{
    struct fl_extent *e = NULL;

    assert_int_equal(fl_region_take_pinned(&region, len, how, &e), 0);
    return e;
}

static struct fl_extent *pin(size_t len)
{
    return pin_as(len, &plainly);
}

static bool lies_in(const struct fake_call *c, struct fl_range range)
{
    return fl_range_common(c->range, range).len != 0;
}

/* Calls that take pages from the range, or put others there. */
static unsigned taken_from(struct fl_range range)
{
    unsigned n = 0;

    for (size_t k = 0; k < fl_min(fake.nlog, FAKE_LOG); k++) {
        const struct fake_call *c = &fake.log[k];
        bool takes = c->slot == FAKE_UNMAP || c->slot == FAKE_DECOMMIT ||
                     c->slot == FAKE_LAZY_FREE || c->slot == FAKE_MOVE || c->slot == FAKE_REMAP ||
                     (c->slot == FAKE_ADVISE && c->advice == FL_ADVICE_COLLAPSE);
        n += takes && lies_in(c, range);
    }
    return n;
}

TEST(it_is_whole_populated_and_no_block_of_mallocs)
{
    struct fl_extent *e = pin(MIB(3));
    assert_int_equal(e->len, MIB(4));
    assert_int_equal(e->base % MIB(2), 0);
    assert_null(fl_region_find(&region, e->base));
    assert_false(fl_extent_claim(e, 0)); /* a free of it by mistake is seen */
    assert_int_equal(region.held.populated, MIB(4));
    assert_int_equal(stats().in_use_bytes, MIB(4));
    assert_int_equal(fake_kept_from_child(fl_extent_range(e)), MIB(4));
    fill(e, 0x77);
    assert_settled();
    fl_region_give_pinned(&region, e);
    assert_int_equal(fl_region_free(&region).bytes, MIB(4));
    assert_int_equal(fake_kept_from_child(region.space.window.all), 0);
    assert_settled();
    assert_true(is_filled(take(MIB(4)), 0x77)); /* the region has kept its memory */
}

static size_t index_of(enum fake_slot slot, enum fl_sys_advice advice)
{
    for (size_t k = 0; k < fake.nlog; k++) {
        if (fake.log[k].slot == slot && (slot != FAKE_ADVISE || fake.log[k].advice == advice) &&
            lies_in(&fake.log[k], region.space.window.all)) {
            return k;
        }
    }
    fail_msg("no such call: %d, %d", (int)slot, (int)advice);
    return 0;
}

TEST(advice_comes_first_and_fork_last)
{
    give(take(KIB(4))); /* the window is begun */
    uintptr_t at = region.space.first + MIB(2);
    fake.page[fake.npages++] = (struct fake_page){at, MIB(2), MIB(2), false, 0};
    fake_forget();
    struct fl_extent *e = pin(MIB(4));
    assert_int_equal(e->base, at);
    size_t huge = index_of(FAKE_ADVISE, FL_ADVICE_HUGE), filled = index_of(FAKE_POPULATE, 0);
    size_t whole = index_of(FAKE_ADVISE, FL_ADVICE_COLLAPSE);
    size_t apart = index_of(FAKE_ADVISE, FL_ADVICE_NO_FORK);
    assert_true(huge < filled && filled < whole && whole < apart);
    assert_int_equal(fake.npages, 0);
}

TEST_FROM(NULL, nothing_is_taken_from_it)
{
    region_begin(&(struct fl_region_config){.huge = true, .stock = MIB(16)});
    struct fl_extent *before = take(MIB(6)), *e = pin(MIB(8)), *after = take(MIB(6));
    struct fl_range all = fl_extent_range(e);
    fill(e, 0x42);
    give(before);
    give(after);
    fake_forget();
    for (int i = 0; i < 8; i++) {
        (void)fl_region_tick(&region, 1);
    }
    (void)fl_region_refill(&region);
    fl_region_release(&region);
    (void)fl_region_purge(&region, 0);
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 4096 kB\n");
    region.pressure.since_look = region.pressure.look_after;
    give(take(MIB(1)));
    fl_region_soften(&region);
    assert_true(fake_purged() != 0);
    assert_int_equal(taken_from(all), 0);
    assert_true(is_filled(e, 0x42));
    assert_settled();
    fl_region_give_pinned(&region, e);
}

TEST(repair_steps_over_it)
{
    struct fl_extent *before = take(MIB(2)), *e = pin(MIB(12));
    assert_non_null(take(MIB(2)));
    struct fl_range all = fl_extent_range(e);
    for (size_t at = 0; at < MIB(16); at += MIB(2)) {
        fake.page[fake.npages++] = (struct fake_page){before->base + at, MIB(2), MIB(2), false, 0};
    }
    fl_region_lock(&region);
    fl_repair_begin(&region);
    fl_region_unlock(&region);
    fake_forget();
    for (int i = 0; i < 10 && fl_region_repair(&region) == 0; i++) {
    }
    assert_int_equal(taken_from(all), 0);
    assert_int_equal(fake.npages, 6); /* the two around it are whole again */
}

static struct fl_extent *device;

static int child_without(void)
{
    size_t populated = region.held.populated;

    fl_region_fork_child(&region, NULL);
    if (fl_region_check(&region) != NULL || region.held.populated != populated - MIB(4)) {
        return 1;
    }
    for (int i = 0; i < 8; i++) { /* its addresses are not handed out */
        struct fl_extent *e = take(MIB(3));
        if (e == NULL || fl_range_common(fl_extent_range(e), fl_extent_range(device)).len != 0) {
            return 2;
        }
        fill(e, 1);
    }
    (void)fl_region_purge(&region, 0);
    return fl_region_check(&region) != NULL ? 3 : 0;
}

static int child_with(void)
{
    fl_region_fork_child(&region, NULL);
    return is_filled(device, 0x21) && fl_region_check(&region) == NULL ? 0 : 1;
}

static int child_wiped(void)
{
    fl_region_fork_child(&region, NULL);
    return is_filled(device, 0) && fl_region_check(&region) == NULL ? 0 : 1;
}

TEST_FROM(NULL, children_have_it_as_was_asked)
{
    static const struct {
        struct fl_pin how;
        int (*child)(void);
    } row[] = {
        {{.node = -1}, child_without},
        {{.node = -1, .fork = FL_PIN_WIPED}, child_wiped},
        {{.node = -1, .fork = FL_PIN_COPIED}, child_with},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        region_begin(NULL);
        device = pin_as(MIB(4), &row[i].how);
        fill(device, 0x21);
        assert_int_equal(fork_with(row[i].child), 0);
        assert_true(is_filled(device, 0x21));
        assert_settled();
        fl_region_give_pinned(&region, device);
        assert_settled();
    }
}

TEST_FROM(NULL, only_want_of_memory_refuses)
{
    struct fl_extent *e = NULL;
    region_begin(&(struct fl_region_config){.huge = true, .eager_max = MIB(2)});
    e = pin(MIB(32)); /* more than is had unasked */
    assert_int_equal(region.held.populated, MIB(32));
    fl_region_give_pinned(&region, e);
    region_begin(&(struct fl_region_config){.huge = true, .limit = MIB(8)});
    assert_int_equal(fl_region_take_pinned(&region, MIB(10), &plainly, &e), -ENOMEM);
    assert_int_equal(region.held.populated, 0);
    assert_int_equal(fl_region_take_pinned(&region, SIZE_MAX, &plainly, &e), -ENOMEM);
    assert_int_equal(fl_region_take_pinned(&region, 0, &plainly, &e), -ENOMEM);
    assert_settled();
    region_begin(NULL);
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 32768 kB\n");
    assert_int_equal(fl_region_take_pinned(&region, MIB(20), &plainly, &e), -ENOMEM);
    assert_int_equal(fl_region_take_pinned(&region, MIB(10), &plainly, &e), 0);
    fl_region_give_pinned(&region, e);
}

TEST(free_memory_comes_first)
{
    struct fl_extent *x = take(MIB(8)), *wall = take(MIB(2));
    give(x);
    fake_forget();
    struct fl_extent *e = pin(MIB(8));
    assert_int_equal(region.held.populated, MIB(10));
    assert_int_equal(stats().move_bytes, MIB(8));
    give(wall);
    fl_region_give_pinned(&region, e);
}

TEST(so_many_hands_fill_it)
{
    static const struct fl_pin three = {.node = -1, .threads = 3};
    fake.pretend_populate = true;
    struct fl_extent *e = pin_as(MIB(256), &three);
    assert_int_equal(fake.helpers, 2);
    fl_region_give_pinned(&region, e);
    (void)pin(MIB(512));
    assert_int_equal(fake.helpers, FL_HELPERS_ALL);
}

static bool is_pinned_at(uintptr_t base, size_t len)
{
    return fl_region_is_pinned(&region, (struct fl_range){base, len});
}

TEST(any_byte_of_it_is_known)
{
    struct fl_extent *before = take(KIB(64)), *e = NULL;
    assert_false(is_pinned_at(before->base, MIB(64)));
    e = pin(MIB(4));
    struct fl_extent *after = take_aligned(MIB(2), MIB(2));
    assert_true(is_pinned_at(e->base, 1));
    assert_true(is_pinned_at(e->base + e->len - 1, 1));
    assert_true(is_pinned_at(e->base + MIB(1) + 5, KIB(8)));
    assert_true(is_pinned_at(before->base, e->base + 1 - before->base));
    assert_true(is_pinned_at(0, SIZE_MAX));
    assert_false(is_pinned_at(before->base, before->len));
    assert_false(is_pinned_at(after->base, after->len));
    assert_false(is_pinned_at(region.space.first - KIB(4), KIB(4)));
    assert_false(is_pinned_at(e->base, 0));
    fl_region_give_pinned(&region, e);
    assert_false(is_pinned_at(0, SIZE_MAX));
}

TEST(what_was_done_to_its_maps_is_undone)
{
    struct fl_extent *e = pin(MIB(4));
    struct fl_range all = fl_extent_range(e);
    fl_region_note_remapped(&region, (struct fl_range){all.base + MIB(1), KIB(4)});
    fake_forget();
    fl_region_give_pinned(&region, e);
    assert_int_equal(fake_purged(), all.len);
    assert_int_equal(region.held.populated, 0);
}

TEST(a_divided_one_keeps_its_memory)
{
    static struct fl_inner in = {.shift = 16};
    assert_int_equal(fl_inner_open(&region, &in, MIB(8)), 0);
    struct fl_range all = fl_extent_range(in.outer), low = {all.base, MIB(4)};
    assert_true(fl_inner_fill(&region, &in, low));
    assert_int_equal(fl_inner_pin(&region, &in, low, &plainly), 0);
    assert_int_equal(fl_inner_pin(&region, &in, low, &plainly), -EBUSY);
    assert_int_equal(fake_kept_from_child(all), MIB(4));
    memset((void *)low.base, 0x19, low.len);
    struct fl_range page = {low.base + MIB(2), MIB(2)};
    fake_forget();
    assert_int_equal(fl_inner_empty(&region, &in, page), -EBUSY);
    assert_int_equal(fl_inner_yield(&region, &in, page), -EBUSY);
    assert_int_equal(fl_inner_shift(&region, &in, page, low.base + MIB(4)), 0);
    struct fl_extent *block = &in.block[3];
    block->len = KIB(64);
    block->state = FL_EXTENT_LIVE;
    assert_ptr_equal(fl_region_find(&region, block->base), block);
    fl_region_note_remapped(&region, fl_extent_range(block));
    assert_true(fl_extent_is_user_remapped(block));
    assert_true(fl_extent_claim(block, 0));
    assert_false(fl_inner_renew(&region, block));
    block->state = FL_EXTENT_UNUSED;
    assert_true(is_pinned_at(block->base, 1));
    assert_int_equal(taken_from(all), 0);
    assert_int_equal(*(unsigned char *)(page.base + 77), 0x19);
    fl_inner_unpin(&region, &in, low);
    assert_int_equal(fake_kept_from_child(all), 0);
    assert_int_equal(fl_inner_empty(&region, &in, page), 0);
    fl_inner_close(&region, &in);
}
