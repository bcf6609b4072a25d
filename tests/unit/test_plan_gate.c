/* A plan that needs more memory than an allocator without one is dropped: what that would need, by hand and by another way to find it; and plans
 * that are above it, or only seem to be. */
#include "unit/plan_fixture.h"

#include <string.h>

enum { N = 40, G = FL_GRANULE, MOST = 64 };
static const uint64_t no_end = UINT64_MAX;

static struct fl_life life[MOST];
static _Alignas(64) char scratch[1 << 16];

static struct fl_shadow_peaks shadow(size_t n, uint64_t end)
{
    struct fl_lives step = {life, n, 0, end};
    struct fl_shadow_peaks peaks;

    assert_true(fl_shadow_scratch(n) <= sizeof scratch);
    assert_true(fl_shadow(&step, NULL, no_end, &peaks, scratch, fl_shadow_scratch(n)));
    return peaks;
}

static void add(size_t i, unsigned granules, uint64_t birth, uint64_t death, bool inside)
{
    life[i] = (struct fl_life){.size = (uint64_t)granules * G,
                               .birth = birth,
                               .death = death,
                               .index = (uint32_t)i,
                               .inside = inside};
}

static void each_goes_into_the_shortest_gap(void **state)
{
    (void)state;
    plan_begin(NULL);
    add(0, 4, 1, 20, false); /* 0..4 */
    add(1, 3, 2, 10, true);  /* 4..7: a gap from 10 on */
    add(2, 1, 3, 20, false); /* 7 */
    add(3, 2, 4, 11, false); /* 8..10: a shorter one */
    add(4, 1, 5, 20, true);  /* 10 */
    add(5, 2, 12, 20, true); /* 8..10 */
    add(6, 3, 13, 20, true); /* 4..7 */
    add(7, 2, 14, FL_LIFE_NEVER, false);
    struct fl_shadow_peaks peaks = shadow(8, 30);
    assert_int_equal(peaks.online, 11 * G);
    assert_int_equal(peaks.inside, 6 * G);
    assert_int_equal(peaks.outside, 7 * G);
    life[5].size = 3 * G; /* now the last one finds none that is long enough */
    assert_int_equal(shadow(8, 30).online, 14 * G);
}

/* What lives on is in the way of the same step when it comes again. */
static void what_lives_on_counts_in_the_next_step(void **state)
{
    (void)state;
    plan_begin(NULL);
    add(0, 5, 1, 3, false);
    add(1, 2, 4, 12, false); /* freed at 2 in the next step */
    assert_int_equal(shadow(2, 10).online, 7 * G);
    life[1].death = 10;
    assert_int_equal(shadow(2, 10).online, 5 * G);
}

/* Who has each granule, and the shortest run of free ones, found by looking at all of them. */
static uint64_t by_looking(size_t n, uint64_t end)
{
    static unsigned owner[4 * MOST * 8];
    static size_t at[2][MOST];
    size_t top = 0;

    memset(owner, 0, sizeof owner);
    for (uint64_t now = 0; now < 2 * end; now++) {
        for (unsigned k = 0; k < 2 * n; k++) {
            if (life[k % n].death + k / n * end == now) {
                for (size_t g = 0; g < life[k % n].size / G; g++) {
                    owner[at[k / n][k % n] + g] = 0;
                }
            }
        }
        for (unsigned k = 0; k < 2 * n; k++) {
            size_t need = life[k % n].size / G, least = SIZE_MAX, where = 0, used = 0;
            if (life[k % n].birth + k / n * end != now) {
                continue;
            }
            for (size_t g = 0; g < sizeof owner / sizeof owner[0]; g++) {
                used = owner[g] != 0 ? g + 1 : used;
            }
            for (size_t g = 0, run; g < used; g += run + 1) {
                for (run = 0; g + run < used && owner[g + run] == 0;) {
                    run++;
                }
                if (run >= need && run < least) {
                    least = run;
                    where = g;
                }
            }
            where = least == SIZE_MAX ? used : where;
            for (size_t g = 0; g < need; g++) {
                owner[where + g] = k + 1;
            }
            at[k / n][k % n] = where;
            top = fl_max(top, where + need);
        }
    }
    return top * G;
}

static void the_same_as_by_looking_at_each_granule(void **state)
{
    uint64_t random = 1;

    (void)state;
    plan_begin(NULL);
    for (unsigned round = 0; round < 200; round++) {
        size_t n = 1 + round % MOST;
        uint64_t end = 3 * n;
        for (size_t i = 0; i < n; i++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            unsigned r = (unsigned)(random >> 33);
            add(i, 1 + r % 8, 3 * i, 3 * i + 1 + r / 8 % (round % 2 == 0 ? 20 : 2 * n), false);
        }
        assert_int_equal(shadow(n, end).online, by_looking(n, end));
    }
}

static void too_much_work_is_not_done(void **state)
{
    struct fl_lives step = {life, 30, 0, 90};
    struct fl_shadow_peaks peaks;

    (void)state;
    plan_begin(NULL);
    for (unsigned i = 0; i < 30; i++) {
        add(i, 1, i, 80, false);
    }
    assert_false(fl_shadow(&step, NULL, 100, &peaks, scratch, sizeof scratch));
    assert_false(fl_shadow(&step, NULL, no_end, &peaks, scratch, 256));
    assert_true(fl_shadow(&step, NULL, 2000, &peaks, scratch, sizeof scratch));
}

/* ---- plans ---- */

static struct loop l;
static struct ask asks[N];

static void begin(const struct ask *ask, unsigned n)
{
    plan_begin(NULL);
    l = (struct loop){.ask = ask, .n = n};
}

/* Two blocks at a time, of 2 MiB each. */
static const struct ask *pairs(void)
{
    for (unsigned i = 0; i < N; i++) {
        asks[i] = (struct ask){MIB(2), i + 2 <= N ? 2 : 1};
    }
    return asks;
}

static size_t aligned_len;

/* Beside the planned ones, and not planned: it is aligned to more than a granule. When the first request comes nothing else is live. */
static void aligned(unsigned i)
{
    if (i == 0) {
        void *p = fl_memalign_large(MIB(2), aligned_len);
        assert_non_null(p);
        fl_free_ours(p);
    }
}

static void what_needs_more_than_without_a_plan_is_dropped(void **state)
{
    (void)state;
    begin(pairs(), N);
    l.also = aligned;
    aligned_len = MIB(4); /* would lie where the pairs do */
    loop_declared(&l, NULL, 3);
    assert_int_equal(plan_stats().layouts, 1);
    loop_declared(&l, NULL, 2);
    assert_int_equal(plan_stats().drops, 0); /* two steps of eight are none */
    assert_int_equal(loop_planned(&l), N);
    loop_declared(&l, NULL, 1);
    assert_int_equal(plan_stats().drops, 1);
    loop_declared(&l, NULL, 10); /* and the context rests */
    assert_int_equal(loop_planned(&l), 0);
    assert_int_equal(plan_stats().missed_bytes, 0); /* it was not for those */
    loop_over(&l);
}

static void what_needs_no_more_stays(void **state)
{
    (void)state;
    begin(pairs(), N);
    l.also = aligned;
    aligned_len = KIB(100);
    loop_declared(&l, NULL, 40);
    assert_int_equal(loop_planned(&l), N);
    assert_int_equal(plan_stats().drops, 0);
    loop_over(&l);
}

static void what_is_packed_well_stays(void **state)
{
    (void)state;
    begin(loop_usual(30), 30);
    loop_declared(&l, NULL, 40);
    assert_int_equal(plan_stats().drops, 0);
    loop_over(&l);
}

/* Recorded beside being served, since some requests differ. What they need is what the arena does not use. */
static void what_differs_is_held_against_its_shadow(void **state)
{
    (void)state;
    begin(pairs(), N);
    loop_declared(&l, NULL, 5);
    for (unsigned i = 0; i < 20; i++) {
        l.extra = 1 + i % N;
        loop_declared(&l, NULL, 1);
    }
    assert_int_equal(plan_stats().drops, 0);
    /* As if without a plan hardly anything were needed. */
    fl_plan.context[0]->layout->shadow = FL_GRANULE;
    fl_gate_judge(fl_plan.context[0]->layout);
    loop_declared(&l, NULL, 3);
    assert_int_equal(plan_stats().drops, 1);
    loop_over(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_goes_into_the_shortest_gap),
        cmocka_unit_test(what_lives_on_counts_in_the_next_step),
        cmocka_unit_test(the_same_as_by_looking_at_each_granule),
        cmocka_unit_test(too_much_work_is_not_done),
        cmocka_unit_test(what_needs_more_than_without_a_plan_is_dropped),
        cmocka_unit_test(what_needs_no_more_stays),
        cmocka_unit_test(what_is_packed_well_stays),
        cmocka_unit_test(what_differs_is_held_against_its_shadow),
    };

    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
