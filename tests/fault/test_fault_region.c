/* Taking, resizing and giving, each call to the kernel refused in turn.
 *
 * Benign are refusals of advice, names, population, files and residency: a fallback takes them. So
 * is that of an address to claim (another is tried) and of a chunk of metadata (the exact size is
 * tried). */
#include "fault/sweep.h"

#include <errno.h>
#include <string.h>

static struct fl_cache *held_cache;

static bool take_small(void)
{
    return hold_clean(0, KIB(64));
}

static bool take_large(void)
{
    return hold_clean(0, MIB(37));
}

static bool take_plainly(void)
{
    held[0] = take(MIB(37));
    return held[0] != NULL;
}

static bool take_far(void)
{
    held[0] = take_aligned(MIB(3), MIB(16));
    return held[0] != NULL;
}

static bool take_lazily(void)
{
    held[0] = take(MIB(24));
    return held[0] != NULL;
}

/* Half of the machine is in use: only what is touched may be taken. */
static void use_half(void)
{
    fake_file("/proc/meminfo", "MemTotal: 2097152 kB\nMemAvailable: 1048576 kB\n");
}

static bool take_clean(void)
{
    return hold_clean(0, MIB(5));
}

/* Populated and dirty, EMPTY, populated and dirty: a request over all of it is carved from
 * three. */
static void make_run_of_three(void)
{
    struct fl_extent *x = take(MIB(2)), *y = take(MIB(2)), *z = take(MIB(2));

    held[7] = take(MIB(2));
    fill(x, 1);
    fill(z, 1);
    give(y);
    assert_int_equal(fl_region_purge(&region, 0), MIB(2));
    give(x);
    give(z);
}

/* EMPTY, populated, EMPTY: two parts to commit, so that the second's refusal takes the first
 * back. */
static void make_two_holes(void)
{
    struct fl_extent *x = take(MIB(2)), *y = take(MIB(2)), *z = take(MIB(2));

    held[7] = take(MIB(2));
    give(x);
    give(z);
    assert_int_equal(fl_region_purge(&region, 0), MIB(4));
    fill(y, 1);
    give(y);
}

/* Where it is unknown what was touched, all of it is cleared. */
static void make_hollow(void)
{
    struct fl_extent *e = take(MIB(5));

    bytes(e)[MIB(3)] = 1;
    give(e);
}

static void take_is_served_or_refused(void **state)
{
    static const struct operation table[] = {
        {NULL, take_small, 0, MAY_REFUSE, 5, {.huge = true}},
        {NULL, take_large, 0, MAY_REFUSE, 5, {.huge = true}},
        {NULL, take_plainly, 0, MAY_REFUSE, 5, {.huge = true}},
        {NULL, take_far, 0, MAY_REFUSE, 5, {.huge = true}},
        {NULL, take_lazily, 0, MAY_REFUSE, 5, {.huge = true, .eager_max = MIB(16)}},
        {NULL, take_clean, 0, MAY_REFUSE, 5, {.huge = true}},
        {use_half, take_clean, 0, MAY_REFUSE, 5, {.huge = true}},
        {NULL, take_clean, 0, MAY_REFUSE, 5, {.huge = false, .populate_by_touch = true}},
        {make_run_of_three, take_clean, 0, MAY_REFUSE, 3, {.huge = true}},
        {make_two_holes, take_clean, 0, MAY_REFUSE, 5, {.huge = true}},
        {NULL, take_clean, 0, MAY_REFUSE, 4, {.huge = true, .wait_for_touch = true}},
        {make_hollow, take_clean, 0, MAY_REFUSE, 1, {.huge = true, .wait_for_touch = true}},
    };
    (void)state;
    SWEEP(table);
}

static void hold_one(void)
{
    held[0] = take(MIB(1));
    fill(held[0], 0x33);
}

static bool grow_it(void)
{
    size_t old = held[0]->len;
    bool done = fl_region_resize(&region, held[0], MIB(9));

    assert_int_equal(held[0]->len, done ? MIB(9) : old);
    assert_begins(held[0], old, 0x33);
    return done;
}

static void hold_hollow(void)
{
    held[0] = take(MIB(24));
    bytes(held[0])[MIB(24) - 1] = 0x33;
}

static bool grow_lazily(void)
{
    bool done = fl_region_resize(&region, held[0], MIB(30));

    assert_int_equal(held[0]->len, done ? MIB(30) : MIB(24));
    assert_int_equal(bytes(held[0])[MIB(24) - 1], 0x33);
    assert_int_equal(held[0]->content, FL_CONTENT_LAZY);
    return done;
}

static bool shrink_it(void)
{
    return fl_region_resize(&region, held[0], KIB(64)) && held[0]->len == KIB(64);
}

static void resize_changes_all_or_nothing(void **state)
{
    static const struct operation table[] = {
        {hold_one, grow_it, 0, MAY_REFUSE, 1, {.huge = true}},
        {hold_hollow, grow_lazily, 0, MAY_REFUSE, 1, {.huge = true, .eager_max = MIB(16)}},
    };
    (void)state;
    SWEEP(table);
    region_begin(NULL);
    hold_one();
    fake_fail_at(1, ~0u);
    assert_true(shrink_it()); /* asks the kernel for nothing */
    assert_false(fake_fired());
}

static void hold_garbage(void)
{
    for (size_t i = 0; i < 6; i++) {
        held[i] = take(MIB(3));
        fill(held[i], (unsigned char)i);
    }
    for (size_t i = 0; i < 6; i += 2) {
        give(held[i]);
        held[i] = NULL;
    }
}

static bool purge_it(void)
{
    size_t before = region.held.populated, given = fl_region_purge(&region, 0);

    assert_int_equal(before - given, region.held.populated);
    for (size_t i = 1; i < 6; i += 2) {
        assert_true(is_filled(held[i], (unsigned char)i));
    }
    return given != 0;
}

static bool tick_it(void)
{
    for (int i = 0; i < 6; i++) {
        (void)fl_region_tick(&region, 4);
    }
    return true;
}

static void purge_gives_what_it_can(void **state)
{
    static const struct operation table[] = {
        {hold_garbage, purge_it, GIVES_BACK, GIVES_BACK, 1, {.huge = true}},
        {hold_garbage, tick_it, ~0u, 0, 5, {.huge = true}},
    };
    (void)state;
    SWEEP(table);
}

static void hold_lazy(void)
{
    held[0] = take(MIB(20));
    fill(held[0], 0x44);
}

static void hold_sparse(void)
{
    held[0] = take(MIB(20));
    bytes(held[0])[5] = 1;
}

static bool give_it(void)
{
    give(held[0]); /* never fails */
    held[0] = NULL;
    (void)hold_clean(1, MIB(2));
    return true;
}

static void hold_all_in_a_tight_machine(void)
{
    hold_garbage();
    held[0] = take(MIB(5));
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 4096 kB\n");
    region.pressure.since_look = region.pressure.look_after;
}

static bool give_three(void)
{
    for (size_t i = 0; i < 6; i += i == 0 ? 1 : 2) {
        give(held[i]);
        held[i] = NULL;
        region.pressure.since_look = region.pressure.look_after;
    }
    return true;
}

static void give_never_fails(void **state)
{
    static const struct operation table[] = {
        {hold_one, give_it, ~0u, 0, 0, {.huge = true}},
        {hold_all_in_a_tight_machine, give_three, ~0u, 0, 8, {.huge = true}},
        {hold_lazy, give_it, ~0u, 0, 1, {.huge = true, .eager_max = MIB(16)}},
        {hold_sparse, give_it, ~0u, 0, 1, {.huge = true, .eager_max = MIB(16)}},
    };
    (void)state;
    SWEEP(table);
}

static bool acquire_cache(void)
{
    held_cache = fl_cache_acquire(&region);
    return held_cache != NULL;
}

static void a_cache_is_had_or_not(void **state)
{
    static const struct operation op = {NULL, acquire_cache, 0, MAY_REFUSE, 2, {.huge = true}};
    (void)state;
    sweep(&op, 1);
}

static void start_finds_a_window_or_leaves_nothing(void **state)
{
    unsigned served = 0;
    (void)state;
    for (unsigned n = 1;; n++) {
        region_clear();
        fake_fail_at(n, 0);
        int rc = fl_region_start(&region, &(struct fl_region_config){.huge = true});
        bool fired = fake_fired();
        fake_fail_at(0, 1);
        assert_true(rc == 0 || (rc == -ENOMEM && fake_mapped() == 0));
        if (rc == 0) {
            sweep_begin();
            assert_true(take_small());
            assert_tight();
        }
        if (!fired) {
            assert_int_equal(rc, 0);
            break;
        }
        served += rc == 0;
    }
    assert_true(served >= 3); /* a place refused: another is tried */
}

/* RLIMIT_DATA or overcommit_memory=2 at every height: what fits is served, what does not is
 * refused. */
static void a_limit_at_any_height_refuses_and_keeps_order(void **state)
{
    (void)state;
    for (size_t room = 0; room <= MIB(24); room += KIB(516)) {
        region_begin(NULL);
        sweep_begin();
        fake.charge_max = fake_usable() + room;
        for (size_t i = 0; i < 8; i++) {
            held[i] = take(KIB(200) << i % 6);
            assert_tight();
            assert_true(fake_usable() <= fake.charge_max);
        }
        for (size_t i = 0; i < 8; i++) {
            if (held[i] != NULL) {
                bool grown = fl_region_resize(&region, held[i], held[i]->len * 2);
                assert_true(grown || held[i]->len == KIB(200) << i % 6);
                fill(held[i], 1);
                assert_tight();
            }
        }
        for (size_t i = 0; i < 8; i++) {
            if (held[i] != NULL) {
                give(held[i]);
                held[i] = NULL;
                assert_tight();
            }
        }
        (void)fl_region_purge(&region, 0);
        assert_int_equal(region.held.populated, 0);
    }
}

static void without_files_advice_names_and_population_all_works(void **state)
{
    (void)state;
    region_clear();
    fake.rc[FAKE_READ_FILE] = -ENOENT; /* no procfs mounted */
    fake.rc[FAKE_ADVISE] = fake.rc[FAKE_POPULATE] = -EINVAL;
    fake.rc[FAKE_NAME] = -EINVAL;
    fake.rc[FAKE_RESIDENT] = -ENOSYS;
    assert_int_equal(fl_region_start(&region, &(struct fl_region_config){.huge = true}), 0);
    sweep_begin();
    assert_true(take_clean());
    assert_true(fl_region_resize(&region, held[0], MIB(12)));
    fill(held[0], 1);
    give(held[0]);
    held[0] = NULL;
    assert_int_equal(fl_region_purge(&region, 0), MIB(12));
    assert_tight();
}

/* Refused, nothing of it stays; and what advice alone could not do is no reason to refuse. */
static bool take_pinned(void)
{
    static const struct fl_pin plainly = {.node = -1};
    struct fl_extent *e = NULL;

    if (fl_region_take_pinned(&region, MIB(6), &plainly, &e) != 0) {
        return false;
    }
    fill(e, 0x12);
    fl_region_give_pinned(&region, e);
    return true;
}

static void a_device_gets_memory_or_none(void **state)
{
    static const unsigned may = MAY_REFUSE | 1u << FAKE_ADVISE | 1u << FAKE_POPULATE;
    static const struct operation table[] = {
        {NULL, take_pinned, 0, may, 5, {.huge = true}},
        {hold_garbage, take_pinned, 0, may, 3, {.huge = true}},
        {NULL, take_pinned, GIVES_BACK, 0, 0, {.huge = true}},
    };
    (void)state;
    SWEEP(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_finds_a_window_or_leaves_nothing),
        cmocka_unit_test(take_is_served_or_refused),
        cmocka_unit_test(resize_changes_all_or_nothing),
        cmocka_unit_test(purge_gives_what_it_can),
        cmocka_unit_test(give_never_fails),
        cmocka_unit_test(a_cache_is_had_or_not),
        cmocka_unit_test(a_device_gets_memory_or_none),
        cmocka_unit_test(a_limit_at_any_height_refuses_and_keeps_order),
        cmocka_unit_test(without_files_advice_names_and_population_all_works),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
