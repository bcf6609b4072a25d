/* Huge pages of free extents go where they are wanted: which ones, how, and what is left when the
 * kernel does not let them go. */
#include "cases.h"
#include "unit/region_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static struct fl_extent *low, *high; /* guards: the free extents lie between them */

/* Two free extents of 8 MiB, the older one full of 0xa1, the other of 0xb2; more than that may not
 * be held: a request for more than either takes its pages from them. */
static void two_free(const struct fl_region_config *c)
{
    region_begin(c);
    struct fl_extent *a = take(MIB(8));
    low = take(MIB(2));
    struct fl_extent *b = take(MIB(8));
    high = take(MIB(2));
    fill(a, 0xa1);
    fill(b, 0xb2);
    fill(low, 1);
    fill(high, 2);
    give(a);
    give(b);
    fake_forget();
}

static void assert_guards(void)
{
    assert_true(is_filled(low, 1) && is_filled(high, 2));
    assert_settled();
}

/* After everything is given back nothing is held, or counted, any more. */
static void assert_nothing_lost(struct fl_extent *e)
{
    assert_guards();
    give(e);
    give(low);
    give(high);
    (void)fl_region_purge(&region, 0);
    assert_int_equal(region.held.populated, 0);
    assert_int_equal(fl_region_free(&region).bytes, 0);
    assert_int_equal(fl_region_free(&region).huge, 0);
    assert_settled();
}

static bool holds(const struct fl_extent *e, size_t from, size_t upto, unsigned char what)
{
    const unsigned char *p = bytes(e);

    return p[from] == what && memcmp(p + from, p + from + 1, upto - from - 1) == 0;
}

CASE(donors_are_the_oldest_and_give_their_high_ends)
{
    two_free(NULL);
    uintptr_t first = region.space.first;
    struct fl_extent *e = take(MIB(12));
    assert_true(e->base == high->base + MIB(2));
    assert_true(holds(e, 0, MIB(4), 0xb2));
    assert_true(holds(e, MIB(4), MIB(12), 0xa1)); /* all of the older one */
    assert_null(in_window(FAKE_POPULATE, 0));
    assert_int_equal(fake_nth(FAKE_MOVE, 0)->range.base, first + MIB(14)); /* its last 4 MiB */
    assert_int_equal(fake_nth(FAKE_MOVE, 0)->range.len, MIB(4));
    assert_int_equal(fake_nth(FAKE_MOVE, 1)->range.base, first);
    assert_int_equal(fake_nth(FAKE_MOVE_BEGIN, 0)->range.base, e->base);
    assert_int_equal(fake.count[FAKE_MOVE_BEGIN], 1); /* one batch */
    assert_int_equal(region.held.populated, MIB(20));
    assert_int_equal(stats().move_bytes, MIB(12));
    assert_int_equal(stats().populated_peak_bytes, MIB(20));
    assert_int_equal(fl_region_free(&region).huge, MIB(4));
    struct fl_extent *rest = take(MIB(4)); /* what b kept */
    assert_true(rest->base == first + MIB(10) && is_filled(rest, 0xb2));
    give(rest);
    assert_nothing_lost(e);
}

CASE(edges_of_donors_stay_free)
{
    region_begin(NULL);
    struct fl_extent *edge = take(KIB(512)), *a = take(MIB(9)), *tail = take(KIB(256));
    uintptr_t base = a->base;
    low = take(MIB(2));
    high = take(MIB(8));
    fill(low, 1);
    fill(high, 2);
    fill(a, 0xa1);
    give(a); /* from 512 KiB to 9.5 MiB: three whole huge pages and two edges of 1.5 MiB */
    size_t populated = region.held.populated, free_bytes = fl_region_free(&region).bytes;
    struct fl_extent *e = take(MIB(10));
    assert_int_equal(fake_bytes(FAKE_MOVE), MIB(6));
    assert_int_equal(region.held.populated, populated + MIB(4));
    assert_int_equal(fl_region_free(&region).bytes, free_bytes - MIB(6));
    struct fl_extent *front = take(MIB(3) / 2), *back = take(MIB(3) / 2);
    assert_true(front->base == base && is_filled(front, 0xa1));
    assert_true(back->base == base + MIB(15) / 2 && is_filled(back, 0xa1));
    give(front);
    give(back);
    give(edge);
    give(tail);
    assert_nothing_lost(e);
}

CASE(memory_that_may_be_held_is_not_moved)
{
    region_begin(NULL);
    struct fl_extent *a = take(MIB(4));
    assert_non_null(take(MIB(60)));
    give(a);
    fake_forget();
    assert_non_null(take(MIB(6))); /* in_use was never 66 before: new memory is due */
    assert_int_equal(fake.count[FAKE_MOVE], 0);
    assert_int_equal(in_window(FAKE_POPULATE, 0)->range.len, MIB(6));
    assert_settled();
}

/* What the kernel answers to a move, and how much of it moves before; it refuses longer ones, and
 * says -EAGAIN to all but each `patience`-th. */
static int answer;
static size_t progress, longest;
static unsigned asked, patience;

static int as_scripted(struct fl_range from, uintptr_t to, size_t *most)
{
    assert_int_equal((from.base - to) % MIB(2), 0); /* so that huge pages stay huge */
    asked++;
    if (from.len > longest) {
        return -EINVAL;
    }
    if (patience == 0 || asked % patience != 0) {
        return -EAGAIN;
    }
    if (progress != 0) {
        *most = fl_min(progress, from.len);
        progress = 0;
    }
    return answer;
}

static void script(int rc, size_t bytes_before, size_t longest_piece, unsigned tries)
{
    answer = rc;
    progress = bytes_before;
    longest = longest_piece;
    patience = tries;
    asked = 0;
    fake.on_move = as_scripted;
}

/* It is these pages, or this time, and not for good. */
CASE(pages_that_do_not_move_stay_free_memory)
{
    static const struct {
        enum fake_slot slot;
        int rc;
    } row[] = {{FAKE_MOVE, -EBUSY},        {FAKE_MOVE, -EEXIST},       {FAKE_MOVE, -ENOENT},
               {FAKE_MOVE, -ENOMEM},       {FAKE_MOVE_BEGIN, -EMFILE}, {FAKE_MOVE_BEGIN, -ENFILE},
               {FAKE_MOVE_BEGIN, -ENOMEM}, {FAKE_MOVE_BEGIN, -EBUSY}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        print_message("row %zu\n", i);
        two_free(NULL);
        fake.rc[row[i].slot] = row[i].rc;
        struct fl_extent *e = take_zeroed(MIB(12));
        fake.rc[row[i].slot] = 0;
        assert_true(is_filled(e, 0));
        assert_int_equal(region.held.populated, MIB(32));
        assert_int_equal(fl_region_free(&region).huge, MIB(16));
        assert_int_equal(in_window(FAKE_POPULATE, 0)->range.len, MIB(12));
        assert_int_equal(stats().move_bytes, 0);
        assert_int_equal(region.pages.move.method, FL_METHOD_MOVE);
        assert_int_equal(region.pages.move.refusal, 0);
        struct fl_extent *a = take(MIB(8)), *b = take(MIB(8));
        assert_true(is_filled(a, 0xa1) && is_filled(b, 0xb2));
        give(a);
        give(b);
        give(take(MIB(10)));
        assert_int_equal(stats().move_bytes, MIB(10));
        assert_nothing_lost(e);
    }
}

/* The kernel stops within a huge page that is mapped by base pages: what has come of it is not
 * lost, and not clean. */
CASE(a_move_that_ends_within_a_huge_page)
{
    static const size_t before[] = {KIB(4), KIB(256), MIB(2) - KIB(4), MIB(2) + KIB(512), MIB(3)};
    for (size_t i = 0; i < 2 * sizeof before / sizeof before[0]; i++) {
        two_free(NULL);
        script(-EBUSY, before[i / 2], SIZE_MAX, 1);
        struct fl_extent *e = i % 2 == 0 ? take_zeroed(MIB(12)) : take(MIB(12));
        assert_true(i % 2 == 0 ? is_filled(e, 0) : holds(e, 0, before[i / 2], 0xb2));
        assert_true(asked >= 2);
        assert_nothing_lost(e);
    }
}

/* Little by little, page by page, or after many tries; but it is not tried for ever. */
CASE(it_moves_as_the_kernel_lets_it)
{
    static const struct {
        size_t most, longest; /* of one call */
        unsigned patience;
        size_t moved;           /* MiB */
        unsigned least, utmost; /* calls */
    } row[] = {{KIB(4) * 17, SIZE_MAX, 1, 12, 12, 1000},
               {KIB(4) * 37, SIZE_MAX, 1, 12, 12, 1000},
               {MIB(1) + KIB(4), SIZE_MAX, 1, 12, 12, 1000},
               {MIB(2), SIZE_MAX, 1, 12, 6, 6},
               {MIB(3), SIZE_MAX, 1, 12, 5, 6},
               {0, MIB(2), 1, 12, 2 + 6, 2 + 6}, /* several maps: each first as a whole */
               {0, MIB(1), 1, 0, 1, 1000},
               {0, SIZE_MAX, 40, 12, 80, 80},
               {0, SIZE_MAX, 0, 0, 64, 1000}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        print_message("row %zu\n", i);
        two_free(NULL);
        script(0, 0, row[i].longest, row[i].patience);
        fake.move_most = row[i].most;
        struct fl_extent *e = take_zeroed(MIB(12));
        assert_true(is_filled(e, 0));
        assert_int_equal(stats().move_bytes, MIB(row[i].moved));
        assert_true((in_window(FAKE_POPULATE, 0) == NULL) == (row[i].moved != 0));
        assert_int_equal(region.held.populated, MIB(32) - MIB(row[i].moved));
        assert_in_range(asked, row[i].least, row[i].utmost);
        assert_int_equal(region.pages.move.method, FL_METHOD_MOVE);
        assert_nothing_lost(e);
    }
}

static struct fl_extent *other; /* what another thread gets while ours fills */

static void *take_and_write(void *arg)
{
    other = take(KIB(512));
    fill(other, 0x77);
    return arg;
}

static int another_takes_the_rest(struct fl_range from, uintptr_t to, size_t *most)
{
    pthread_t t;

    (void)from;
    (void)to;
    (void)most;
    if (other == NULL) {
        assert_int_equal(pthread_create(&t, NULL, take_and_write, NULL), 0);
        pthread_join(t, NULL);
    }
    return 0;
}

CASE(what_others_write_beside_it_meanwhile_stays)
{
    struct fl_region_config c = {.huge = true};
    for (int rung = FL_METHOD_MOVE; rung <= FL_METHOD_REMAP; rung++) {
        c.method = (enum fl_move_method)rung;
        two_free(&c);
        other = NULL;
        fake.on_move = another_takes_the_rest;
        struct fl_extent *e =
            take_zeroed(MIB(15)); /* the rest of its last huge page is free to all */
        fake.on_move = NULL;
        if (is_reserved() && rung == FL_METHOD_REMAP) {
            assert_null(other); /* nothing moves there */
            continue;
        }
        assert_non_null(other);
        assert_true(other->base == e->base + MIB(15));
        assert_true(is_filled(other, 0x77));
        assert_true(is_filled(e, 0));
        give(other);
        assert_nothing_lost(e);
    }
}

CASE(a_refusal_for_good_is_remembered)
{
    static const int refusals[] = {-ENOSYS, -EPERM, -EACCES, -EINVAL};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        two_free(NULL);
        fake.rc[FAKE_MOVE_BEGIN] = refusals[i];
        struct fl_extent *e = take_zeroed(MIB(12));
        assert_true(is_filled(e, 0));
        assert_int_equal(region.pages.move.method,
                         is_reserved() ? FL_METHOD_NONE : FL_METHOD_REMAP);
        assert_int_equal(region.pages.move.refusal, refusals[i]);
        assert_int_equal(stats().move_bytes, is_reserved() ? 0 : MIB(12));
        assert_int_equal(stats().rung, is_reserved() ? 2 : 1);
        assert_int_equal(fake.count[FAKE_MOVE_BEGIN], 1);
        fake.rc[FAKE_MOVE_BEGIN] = 0;
        give(e);
        e = take_zeroed(MIB(13));
        assert_int_equal(fake.count[FAKE_MOVE_BEGIN], 1); /* never climbed again */
        assert_true(is_filled(e, 0));
        assert_nothing_lost(e);
    }
}

/* The probe is made by what first wants to know. */
CASE(it_is_proven_when_pages_are_about_to_move)
{
    two_free(NULL);
    fl_region_prove_later(&region);
    struct fl_extent *e = take(MIB(2));
    assert_int_equal(fake.count[FAKE_MOVE_BEGIN], 0);
    assert_true(region.pages.move.unproven);
    give(e);
    e = take_zeroed(MIB(12));
    assert_false(region.pages.move.unproven);
    assert_int_equal(fake.count[FAKE_MOVE_BEGIN], 2);
    assert_int_equal(stats().move_bytes, MIB(12)); /* the probe's page is not counted */
    assert_true(is_filled(e, 0));
    assert_nothing_lost(e);
}

CASE(it_is_proven_by_the_free_of_what_was_left_to_the_touch)
{
    two_free(NULL);
    fl_region_prove_later(&region);
    fake.rc[FAKE_MOVE] = -EIO; /* a kernel that has the call, and does not move */
    fl_region_note_touched(&region, low);
    fake.rc[FAKE_MOVE] = 0;
    assert_false(region.pages.move.unproven);
    assert_int_equal(region.pages.move.method, is_reserved() ? FL_METHOD_NONE : FL_METHOD_REMAP);
    assert_int_equal(region.pages.move.refusal, -EIO);
    fl_region_prove(&region);
    assert_int_equal(fake.count[FAKE_MOVE_BEGIN], 1);
    assert_guards();
}

CASE(on_the_plain_rung_nothing_moves)
{
    static const struct fl_region_config plain = {.huge = true, .method = FL_METHOD_NONE};
    two_free(&plain);
    struct fl_extent *e = take(MIB(12));
    assert_int_equal(fake.count[FAKE_MOVE_BEGIN] + fake.count[FAKE_REMAP], 0);
    assert_int_equal(in_window(FAKE_POPULATE, 0)->range.len, MIB(12));
    assert_int_equal(region.held.populated, MIB(32));
    assert_nothing_lost(e);
}

static const struct fl_region_config by_remap = {.huge = true, .method = FL_METHOD_REMAP};

CASE(remap_moves_pages_with_their_maps)
{
    two_free(&by_remap);
    struct fl_extent *e = take(MIB(12));
    assert_int_equal(fake.count[FAKE_MOVE_BEGIN], 0);
    if (is_reserved()) { /* a hole in the reserved span would be free for any mapping */
        assert_int_equal(fake.count[FAKE_REMAP], 0);
        assert_int_equal(region.pages.move.method, FL_METHOD_NONE);
    } else {
        assert_true(holds(e, 0, MIB(4), 0xb2) && holds(e, MIB(4), MIB(12), 0xa1));
        assert_int_equal(region.held.populated, MIB(20));
        assert_int_equal(region.pages.move.remaps, 2);
    }
    assert_nothing_lost(e);
}

CASE(remap_is_not_used_for_ever)
{
    two_free(&by_remap);
    if (is_reserved()) {
        return;
    }
    region.pages.move.remaps = 4095;
    struct fl_extent *e = take_zeroed(MIB(12));
    assert_int_equal(stats().move_bytes, MIB(4));
    assert_int_equal(fake.count[FAKE_REMAP], 1);
    assert_true(is_filled(e, 0));
    give(e);
    fake_forget();
    e = take_zeroed(MIB(15));
    assert_int_equal(fake.count[FAKE_REMAP], 0);
    assert_true(is_filled(e, 0));
    assert_nothing_lost(e);
}

CASE(a_refused_remap_leaves_memory_where_it_was_to_go)
{
    static const int refusals[] = {-EFAULT, -ENOMEM, -EINVAL};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        two_free(&by_remap);
        if (is_reserved()) {
            return;
        }
        fake.rc[FAKE_REMAP] = refusals[i];
        struct fl_extent *e = take_zeroed(MIB(12));
        assert_true(is_filled(e, 0));
        for (size_t k = 0; k < 2; k++) { /* mapped anew or not, it is to be huge pages */
            const struct fake_call *c = fake_nth(FAKE_ADVISE, k * (refusals[i] == -EFAULT));
            assert_int_equal(c->advice, FL_ADVICE_HUGE);
        }
        fill(e, 3);
        assert_nothing_lost(e);
    }
}

CASES_MAIN()
