/* The memory that planned blocks lie in: taken, filled, divided, and given back when no block lies
 * in it. */
#include "region/state/lock.h"
#include "unit/plan_fixture.h"

#include "await.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

static struct fl_step_context owner;

static size_t bits(void)
{
    size_t n = 0;

    for (size_t i = 0; i < arena.claimed.granules; i++) {
        n += arena.claimed.word[i / 64] >> i % 64 & 1;
    }
    return n;
}

static bool can_move(void)
{
    return region.pages.move.method != FL_METHOD_NONE;
}

static struct fl_extent *page(size_t i)
{
    return block(i * 32, MIB(2), MIB(2));
}

/* Beyond what is expected to be in use at once, as long as there is anything idle. */
static void what_is_idle_moves_to_where_it_is_wanted(void **state)
{
    (void)state;
    open_at(MIB(16));
    fl_arena_expect(&arena, MIB(4));
    (void)fl_region_purge(&region, 0);
    size_t before = region.held.populated;
    struct fl_extent *a = page(0), *b = page(1), *c;
    fill(a, 1);
    fill(b, 2);
    give_block(b);
    c = page(5);
    assert_int_equal(region.held.populated, before + (can_move() ? MIB(4) : MIB(6)));
    assert_true(is_filled(c, can_move() ? 2 : 0));
    assert_true(is_filled(a, 1));
    assert_sound();
    b = page(1); /* nothing is idle: so much is needed */
    assert_int_equal(region.held.populated, before + MIB(6));
    fill(b, 3);
    give_block(a);
    give_block(c);
    assert_non_null(a = block(3 * 32 + 5, MIB(2), MIB(2))); /* in two, both of which were idle */
    assert_int_equal(region.held.populated, before + (can_move() ? MIB(6) : MIB(10)));
    assert_true(is_filled(b, 3));
    fill(a, 4);
    give_block(a);
    give_block(b);
    assert_int_equal(arena.missing, can_move() ? 5 : 3);
    assert_int_equal(fl_arena_give_up(&arena), can_move() ? MIB(6) : MIB(10));
    assert_int_equal(region.held.in_use, 0);
    assert_sound();
}

static void what_does_not_move_comes_from_the_kernel(void **state)
{
    (void)state;
    open_at(MIB(16));
    fl_arena_expect(&arena, MIB(2));
    (void)fl_region_purge(&region, 0);
    size_t before = region.held.populated;
    give_block(page(0));
    fake.rc[FAKE_MOVE] = fake.rc[FAKE_REMAP] = -EBUSY;
    struct fl_extent *a = page(3);
    fake.rc[FAKE_MOVE] = fake.rc[FAKE_REMAP] = 0;
    assert_int_equal(region.held.populated, before + MIB(4));
    fill(a, 1);
    fake.move_most = KIB(4) * 300; /* bytes at a time */
    struct fl_extent *b = page(4);
    fake.move_most = 0;
    fill(b, 2);
    assert_true(is_filled(a, 1));
    assert_sound();
    give_block(a);
    give_block(b);
    (void)fl_arena_give_up(&arena);
    assert_sound();
}

static void it_rises_without_a_move(void **state)
{
    (void)state;
    open_at(MIB(3));
    assert_int_equal(arena.limit, MIB(4));  /* whole huge pages */
    assert_int_equal(arena.height, MIB(6)); /* a quarter to grow, in whole ones too */
    (void)fl_region_purge(&region, 0);
    struct fl_extent *a = block(0, MIB(4), MIB(4)), *b;
    fill(a, 1);
    assert_int_equal(arena.missing, 0);
    assert_true(fl_arena_raise(&arena, MIB(3))); /* it is high enough */
    assert_int_equal(arena.limit, MIB(4));
    assert_true(fl_arena_raise(&arena, MIB(5)));
    assert_int_equal(arena.missing, 1);
    size_t before = region.held.populated;
    assert_non_null(b = block(64, MIB(1), MIB(1)));
    assert_int_equal(region.held.populated, before + MIB(2));
    assert_false(fl_arena_raise(&arena, MIB(9)));
    assert_true(is_filled(a, 1));
    give_block(b);
    assert_sound();
}

static void realloc_stays_within_what_the_plan_has(void **state)
{
    (void)state;
    open_at(MIB(4));
    struct fl_extent *a = block(0, KIB(64), KIB(192)), *b;
    struct fl_extent *last = block(31, KIB(64), KIB(128)); /* of the first huge page */
    assert_true(fl_plan_resize(a, KIB(100)));
    assert_false(fl_plan_resize(last, KIB(128)));
    assert_int_equal(bits(), 3);
    assert_int_equal(fl_usable_ours(bytes(a)), KIB(100));
    assert_false(fl_plan_resize(a, KIB(196)));
    assert_int_equal(a->len, KIB(100));
    assert_non_null(b = block(2, KIB(64), KIB(64)));
    assert_false(fl_plan_resize(a, KIB(192))); /* b is there */
    assert_int_equal(bits(), 4);
    give_block(b);
    fl_plan_mine = &owner; /* only the arena's own thread brings memory there */
    owner.serve.arena = &arena;
    assert_true(fl_plan_resize(last, KIB(128)));
    assert_int_equal(arena.missing, 0);
    give_block(last);
    assert_true(fl_plan_resize(a, KIB(192)));
    assert_null(block(2, KIB(64), KIB(64)));
    assert_true(fl_plan_resize(a, KIB(4)));
    assert_int_equal(bits(), 1);
    give_block(a);
    assert_int_equal(bits(), 0);
    fl_plan_mine = NULL;
}

static void a_handled_block_gives_nothing_of_it_to_others_as_it_is(void **state)
{
    (void)state;
    open_at(MIB(2));
    struct fl_extent *a = block(0, KIB(256), KIB(320));
    fill(a, 1);
    fl_region_note_remapped(&region, (struct fl_range){a->base + KIB(128), KIB(64)});
    assert_int_equal(mprotect(bytes(a) + KIB(128), KIB(64), PROT_NONE), 0);
    assert_false(fl_plan_resize(a, KIB(64)));
    assert_false(fl_plan_resize(a, KIB(320)));
    assert_true(fl_plan_resize(a, KIB(252)));             /* the granules stay the same */
    unsigned char *p = fl_realloc_any(bytes(a), KIB(64)); /* so it moves */
    assert_ptr_not_equal(p, arena.base);
    assert_int_equal(p[KIB(64) - 1], 1);
    struct fl_extent *b = block(2, KIB(64), KIB(64));
    assert_true(is_filled(b, 0));
    fill(b, 3);
    assert_sound();
}

static void what_cannot_be_renewed_is_in_no_block(void **state)
{
    (void)state;
    open_at(MIB(2));
    struct fl_extent *a = block(1, KIB(64), KIB(64));
    fl_region_note_remapped(&region, (struct fl_range){a->base, 1});
    fake.rc[is_reserved() ? FAKE_DECOMMIT : FAKE_UNMAP] = -1;
    give_block(a);
    fake.rc[is_reserved() ? FAKE_DECOMMIT : FAKE_UNMAP] = 0;
    assert_null(block(1, KIB(64), KIB(64)));
    assert_non_null(block(2, KIB(64), KIB(64)));
    fl_arena_drop_if_empty(&arena);
    assert_true(arena.height != 0);
    assert_sound();
}

static void draining_its_last_free_gives_it_back(void **state)
{
    (void)state;
    open_at(MIB(8));
    struct fl_extent *a = block(0, MIB(1), MIB(1)), *b = block(70, MIB(2), MIB(2));
    fl_arena_drop_if_empty(&arena);
    assert_true(arena.height != 0);
    arena.draining = true;
    give_block(b);
    assert_true(arena.height != 0);
    fl_region_lock(&region); /* a handler's free leaves it to others */
    assert_true(fl_extent_claim(a, region.epoch));
    fl_plan_give(a);
    fl_region_unlock(&region);
    assert_true(arena.height != 0);
    a = block(0, MIB(1), MIB(1));
    give_block(a);
    assert_int_equal(arena.height, 0);
    assert_null(block(0, KIB(64), KIB(64)));
    fl_arena_drop_if_empty(&arena); /* there is nothing any more */
    assert_settled();
}

static void what_is_refused_is_asked_for_again_without_room_to_grow(void **state)
{
    (void)state;
    unsigned n = 1, refused = 0;
    open_at(MIB(4));
    for (bool more = true; more; n++) {
        fl_arena_drop_if_empty(&arena);
        assert_int_equal(arena.height, 0);
        fake_fail_at(n, 1u << FAKE_MAP_AT | 1u << FAKE_COMMIT);
        fake.fail_enomem = true;
        bool opened = fl_arena_open(&arena, MIB(20) * n);
        more = fake_fired();
        fake_fail_at(0, 0);
        refused += !opened;
        assert_true((arena.height != 0) == opened);
        assert_settled();
        assert_true(opened || fl_arena_open(&arena, MIB(20) * n));
        give_block(block(0, MIB(1), MIB(1)));
        assert_settled();
    }
    assert_int_equal(refused, 0); /* as many addresses as it is high are tried after more */
}

static struct fl_extent *edge;
static unsigned refused, stretched;

static void stretch(struct fl_range r)
{
    (void)r;
    if (fl_plan_resize(edge, KIB(128))) {
        stretched++;
    } else {
        refused++;
    }
}

/* What is half brought is not there yet for a handler, whatever it has interrupted. */
static void nothing_grows_into_what_is_on_its_way(void **state)
{
    (void)state;
    open_at(MIB(4));
    fl_plan_mine = &owner;
    owner.serve.arena = &arena;
    edge = block(31, KIB(64), KIB(128));
    (void)fl_region_purge(&region, 0);
    owner.inside = true; /* as fl_plan_take has it */
    fake.on_populate = stretch;
    struct fl_extent *a = block(40, KIB(64), KIB(64));
    fake.on_populate = NULL;
    owner.inside = false;
    assert_true(refused != 0 && stretched == 0);
    assert_true(fl_plan_resize(edge, KIB(128)));
    give_block(edge);
    give_block(a);
    fl_plan_mine = NULL;
    assert_sound();
}

static _Atomic bool rose;

static void *raise_it(void *arg)
{
    (void)arg;
    assert_true(fl_arena_raise(&arena, MIB(6)));
    rose = true;
    return NULL;
}

/* Its owner counts what is missing, and another takes out what is idle: not both at once. */
static void it_does_not_rise_while_it_is_trimmed(void **state)
{
    pthread_t t;
    (void)state;
    open_at(MIB(4));
    give_block(block(0, MIB(2), MIB(2)));
    fl_plan_lock(); /* as fl_arena_trim has it */
    assert_int_equal(pthread_create(&t, NULL, raise_it, NULL), 0);
    FL_AWAIT(fake.waited_for == &fl_plan.lock.word || rose);
    assert_false(rose);
    assert_int_equal(arena.limit, MIB(4));
    fl_plan_unlock();
    pthread_join(t, NULL);
    assert_true(rose);
    assert_int_equal(arena.missing, 2);
    assert_sound();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_idle_moves_to_where_it_is_wanted),
        cmocka_unit_test(what_does_not_move_comes_from_the_kernel),
        cmocka_unit_test(it_rises_without_a_move),
        cmocka_unit_test(realloc_stays_within_what_the_plan_has),
        cmocka_unit_test(a_handled_block_gives_nothing_of_it_to_others_as_it_is),
        cmocka_unit_test(what_cannot_be_renewed_is_in_no_block),
        cmocka_unit_test(draining_its_last_free_gives_it_back),
        cmocka_unit_test(what_is_refused_is_asked_for_again_without_room_to_grow),
        cmocka_unit_test(nothing_grows_into_what_is_on_its_way),
        cmocka_unit_test(it_does_not_rise_while_it_is_trimmed),
    };
    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
