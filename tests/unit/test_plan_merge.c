/* Recorded steps to slots: which request is which, how long it lives, and what is not planned. */
#include "plan/plan.h"
#include "unit/cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 256, K = 4096 };

struct step {
    struct fl_life life[MOST];
    size_t n;
    uint64_t begin, len;
};

static struct step step[FL_MERGE_STEPS + 1];
static struct fl_slot slot[MOST];
static uint64_t largest;

/* Steps of `len`, one after the other; step[0] is the newest. */
static void steps_of(uint64_t len)
{
    memset(step, 0, sizeof step);
    for (size_t j = 0; j <= FL_MERGE_STEPS; j++) {
        step[j].begin = (FL_MERGE_STEPS - j) * len;
        step[j].len = len;
    }
}

/* The next request; times from the step's begin. */
static void add(size_t j, uint64_t size, uint64_t birth, uint64_t death)
{
    struct step *s = &step[j];

    s->life[s->n++] = (struct fl_life){
        .size = size,
        .asked = size,
        .birth = s->begin + birth,
        .death = death == FL_LIFE_NEVER ? death : s->begin + death,
    };
}

static int merge(size_t nsteps)
{
    struct fl_lives lives[FL_MERGE_STEPS + 1];
    size_t len = fl_merge_scratch(step[0].n, nsteps);
    void *scratch = malloc(len);

    for (size_t j = 0; j < nsteps; j++) {
        lives[j] = (struct fl_lives){step[j].life, step[j].n, step[j].begin,
                                     step[j].begin + step[j].len, 0};
    }
    memset(slot, 0x5a, sizeof slot);
    int rc = fl_merge(lives, nsteps, slot, &largest, scratch, len);
    assert_int_equal(fl_merge(lives, nsteps, slot, &largest, scratch, len - 1), -ENOMEM);
    assert_int_equal(fl_merge(lives, nsteps, slot, &largest, scratch, len), rc);
    free(scratch);
    return rc;
}

static bool conflict(size_t a, size_t b)
{
    return slot[a].birth < slot[b].death && slot[b].birth < slot[a].death;
}

/* The most bytes that planned slots hold at once. */
static uint64_t bound(void)
{
    uint64_t most = 0;

    for (uint64_t t = 0; t < step[0].n; t++) {
        uint64_t live = 0;
        for (const struct fl_slot *s = slot; s < slot + step[0].n; s++) {
            bool is_live = s->kind <= FL_SLOT_DOUBLE_BUFFERED && s->birth <= t && t < s->death;
            live += is_live ? s->size << (s->kind == FL_SLOT_DOUBLE_BUFFERED) : 0;
        }
        most = live > most ? live : most;
    }
    return most;
}

static void one_step_is_its_own_order(void **state)
{
    (void)state;
    steps_of(100);
    add(0, 4 * K, 10, 30);
    add(0, 8 * K, 20, 60);
    add(0, 2 * K, 30, 70); /* born when the first one dies: no conflict */
    add(0, 0, 60, 60);
    assert_int_equal(merge(1), 0);
    assert_int_equal(step[0].n, 4);
    assert_int_equal(bound(), 12 * K);
    assert_int_equal(largest, 12 * K);
    assert_false(conflict(0, 2));
    assert_true(conflict(0, 1) && conflict(1, 2));
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(slot[i].kind, FL_SLOT_PLANNED);
        assert_true(slot[i].birth < slot[i].death && slot[i].death <= step[0].n);
        assert_true(slot[i].offset[0] == FL_PACK_NONE && slot[i].offset[1] == FL_PACK_NONE);
    }
    steps_of(100);
    assert_int_equal(merge(1), 0);
    assert_int_equal(step[0].n, 0);
}

static void what_met_in_an_older_step_meets(void **state)
{
    (void)state;
    steps_of(100);
    for (size_t j = 0; j < 2; j++) {
        add(j, 100 * K, 10, j == 0 ? 40 : 55); /* freed later, by another thread, say */
        add(j, K, 50, 56);
        add(j, 100 * K, 60, 90);
        add(j, K, 65, 66);
    }
    assert_int_equal(merge(1), 0);
    assert_false(conflict(0, 1));
    assert_int_equal(merge(2), 0);
    assert_true(conflict(0, 1));
    /* and no others */
    assert_false(conflict(0, 2) || conflict(0, 3) || conflict(1, 2) || conflict(1, 3));
    assert_int_equal(bound(), 101 * K);
}

static void what_outlasts_the_step_has_one_place_or_two(void **state)
{
    (void)state;
    steps_of(100);
    for (size_t j = 0; j < 3; j++) {
        add(j, 2 * K, 20, 110); /* freed in the next step before it is asked for again */
        add(j, 3 * K, 40, 150); /* after */
        add(j, 5 * K, 50, FL_LIFE_NEVER);
        add(j, 7 * K, 60, 70);
    }
    step[2].life[0].birth += 5; /* which is known from the next step, where that was recorded */
    assert_int_equal(merge(3), 0);
    assert_int_equal(slot[0].kind, FL_SLOT_SPANS_STEPS);
    assert_int_equal(slot[1].kind, FL_SLOT_DOUBLE_BUFFERED);
    assert_int_equal(slot[2].kind, FL_SLOT_KEPT);
    assert_int_equal(slot[3].kind, FL_SLOT_PLANNED);
    assert_true(slot[0].birth == 0 && slot[0].death == step[0].n);
    assert_true(slot[1].birth == 0 && slot[1].death == step[0].n);
    assert_int_equal(bound(), (2 + 2 * 3 + 7) * K);
    assert_int_equal(largest, (2 + 3 + 7) * K);

    struct fl_pack_buffer b[8];
    uint32_t back[8];
    struct fl_merge_buffers to = {b, back, 0, 0};
    fl_merge_buffers(slot, step[0].n, (struct fl_merge_unit){K, UINT64_MAX, 2 * K}, &to);
    assert_true(to.n == 4 && to.free == 4);
    assert_true(back[0] == 0 && back[1] == 2 && back[2] == 6 && back[3] == 3);
    assert_true(b[3].size == 3 * K && b[3].birth == 0 && b[3].death == step[0].n);
}

/* In any of the steps: one place in even steps and one in odd ones, planned though its size
 * varies. */
static void what_is_marked_is_planned_twice(void **state)
{
    (void)state;
    steps_of(100);
    for (size_t j = 0; j < 4; j++) {
        add(j, 2 * K, 10, 20);
        add(j, (j == 0 ? 30 : 3) * K, 30, 60);
        add(j, (j == 1 ? 30 : 3) * K, 35, 60);
        add(j, 5 * K, 38, FL_LIFE_NEVER);
        add(j, (j == 2 ? 30 : 3) * K, 40, 60);
        add(j, (j == 3 ? 30 : 3) * K, 45, 60);
    }
    step[3].life[0].zone = 2;
    step[0].life[1].zone = 1;
    step[0].life[3].zone = 1;
    assert_int_equal(merge(4), 0);
    assert_true(slot[0].kind == FL_SLOT_DOUBLE_BUFFERED && slot[0].zone == 2);
    assert_true(slot[1].kind == FL_SLOT_DOUBLE_BUFFERED && slot[1].zone == 1 &&
                slot[1].size == 30 * K);
    assert_true(slot[2].kind == FL_SLOT_KEPT && slot[3].kind == FL_SLOT_KEPT);
    assert_true(slot[1].birth == 0 && slot[1].death == step[0].n);
    assert_int_equal(bound(), 2 * (2 + 30) * K);

    struct fl_pack_buffer b[8];
    uint32_t back[8];
    struct fl_merge_buffers to = {b, back, 0, 0};
    fl_merge_buffers(slot, step[0].n, (struct fl_merge_unit){K, UINT64_MAX, K}, &to);
    assert_true(to.n == 4 && to.free == 0); /* by zone, even steps first */
    assert_true(back[0] == 2 && back[1] == 3 && back[2] == 0 && back[3] == 1);
}

static void the_next_step_says_when_it_is_asked_again(void **state)
{
    (void)state;
    steps_of(100);
    add(0, K, 40, 80);
    add(1, K, 20, 130); /* asked for again at 140: one place is enough */
    assert_int_equal(merge(2), 0);
    assert_int_equal(slot[0].kind, FL_SLOT_SPANS_STEPS);
    step[0].life[0].birth -= 20; /* at 120 */
    assert_int_equal(merge(2), 0);
    assert_int_equal(slot[0].kind, FL_SLOT_DOUBLE_BUFFERED);
    for (size_t i = 0; i < 2; i++) { /* long after: the next step is not the newest */
        step[i].begin += i == 0 ? 1000 : 0;
    }
    step[0].life[0].birth += 1000;
    step[0].life[0].death += 1000;
    assert_int_equal(merge(2), 0);
    assert_int_equal(slot[0].kind, FL_SLOT_DOUBLE_BUFFERED);
}

static void kept_is_what_most_steps_keep(void **state)
{
    static const struct {
        uint64_t death[4]; /* newest first; 0: no such step */
        enum fl_slot_kind kind;
    } row[] = {
        {{FL_LIFE_NEVER}, FL_SLOT_KEPT},
        {{FL_LIFE_NEVER, FL_LIFE_NEVER}, FL_SLOT_KEPT},
        {{FL_LIFE_NEVER, 50}, FL_SLOT_SPANS_STEPS}, /* the newest step's may not be over */
        {{50, FL_LIFE_NEVER}, FL_SLOT_SPANS_STEPS},
        {{50, FL_LIFE_NEVER, FL_LIFE_NEVER}, FL_SLOT_KEPT},
        {{FL_LIFE_NEVER, 50, FL_LIFE_NEVER, 50}, FL_SLOT_KEPT},
        {{50, 50, FL_LIFE_NEVER, FL_LIFE_NEVER}, FL_SLOT_SPANS_STEPS},
        {{50, 50, 50, 50}, FL_SLOT_PLANNED},
    };
    (void)state;
    for (size_t r = 0; r < sizeof row / sizeof row[0]; r++) {
        size_t n = 0;
        steps_of(100);
        for (; n < 4 && row[r].death[n] != 0; n++) {
            add(n, K, 10, row[r].death[n]);
        }
        assert_int_equal(merge(n), 0);
        if (slot[0].kind != row[r].kind) {
            fail_msg("row %zu: kind %d", r, slot[0].kind);
        }
    }
}

static void sizes_that_move_together_are_planned_at_their_largest(void **state)
{
    static const uint64_t length[6] = {3, 7, 10, 5, 9, 4};
    (void)state;
    steps_of(1000);
    for (size_t j = 0; j < 6; j++) {
        add(j, 64 * K, 1, 900);
        for (size_t i = 0; i < 20; i++) {
            add(j, length[j] * (i + 1) * K, 10 + 20 * i, 25 + 20 * i + (i % 3) * 30);
        }
    }
    step[2].life[8].asked = 9 * 8 * K; /* realloc made one longer */
    assert_int_equal(merge(6), 0);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(slot[1 + i].kind, FL_SLOT_PLANNED);
        assert_int_equal(slot[1 + i].size, 10 * (i + 1) * K);
        assert_int_equal(slot[1 + i].least, 3 * (i + 1) * K);
        assert_int_equal(slot[1 + i].most, (i == 7 ? 9 : 10) * (i + 1) * K);
    }
    assert_int_equal(bound(), largest);
}

static void sizes_that_vary_on_their_own_are_not_planned(void **state)
{
    (void)state;
    for (size_t nsteps = 3; nsteps <= 5; nsteps++) {
        steps_of(1000);
        for (size_t j = 0; j < nsteps; j++) {
            add(j, 64 * K, 1, 900);
            for (size_t i = 0; i < 8; i++) { /* one in turn is large */
                add(j, (10 + 3 * i) * K * (i % nsteps == j ? 8 : 1), 10 + i, 500 + i);
            }
            add(j, 32 * K, 600, 700);
        }
        assert_int_equal(merge(nsteps), 0);
        assert_int_equal(slot[0].kind, FL_SLOT_PLANNED);
        assert_int_equal(slot[9].kind, FL_SLOT_PLANNED);
        for (size_t i = 1; i <= 8; i++) {
            /* three steps do not tell yet */
            assert_int_equal(slot[i].kind, nsteps < 4 ? FL_SLOT_PLANNED : FL_SLOT_KEPT);
        }
        if (nsteps >= 4) {
            assert_int_equal(bound(), 96 * K);
        }
    }
}

/* Sizes as of a network: layers of six requests, no two neighbours alike. */
static uint64_t layer_size(size_t i)
{
    static const uint64_t size[6] = {64, 256, 16, 1024, 64, 96};

    return size[i % 6] * K * (1 + i / 60);
}

static void a_step_of_another_kind_is_left_out(void **state)
{
    (void)state;
    steps_of(1000);
    for (size_t j = 0; j < 3; j++) {
        for (size_t i = 0; i < 60; i++) {
            add(j, j == 1 ? (UINT64_C(1) << (12 + (i * 7) % 20)) : layer_size(i), 2 * i, 2 * i + 3);
        }
    }
    for (size_t i = 0; i < 60; i += 2) {
        step[1].life[i].size = UINT64_C(1) << 46;
    }
    assert_int_equal(merge(3), 0);
    for (size_t i = 0; i < 60; i++) {
        assert_int_equal(slot[i].size, layer_size(i));
    }
    assert_int_equal(merge(2), -EAGAIN);
    step[1].n = 0; /* a step with nothing in it, and one that is much longer */
    assert_int_equal(merge(2), -EAGAIN);
    for (size_t i = 0; i < 100; i++) {
        add(1, layer_size(i), 2 * i, 2 * i + 3);
    }
    assert_int_equal(merge(2), -EAGAIN);
}

static void buffers_are_rounded_to_their_unit(void **state)
{
    struct fl_pack_buffer b[4];
    uint32_t back[4];
    struct fl_slot s[3] = {
        {.size = 100 * K, .align = K, .birth = 1, .death = 2, .offset = {0, FL_PACK_NONE}},
        {.size = 32 * FL_MIB - K, .align = 4 * FL_MIB, .birth = 0, .death = 5},
        {.size = 32 * FL_MIB + K, .birth = 0, .death = 5},
    };
    (void)state;
    struct fl_merge_buffers to = {b, back, 0, 0};
    fl_merge_buffers(s, 3, (struct fl_merge_unit){64 * FL_KIB, 32 * FL_MIB, 2 * FL_MIB}, &to);
    assert_int_equal(to.n, 3);
    assert_true(b[0].size == 448 * FL_KIB && b[0].align == 64 * FL_KIB && b[0].offset == 0);
    assert_true(b[1].size == 32 * FL_MIB && b[1].align == 4 * FL_MIB);
    assert_true(b[2].size == 34 * FL_MIB && b[2].align == 2 * FL_MIB && to.free == 3);
    assert_true(b[0].birth == 1 && b[0].death == 2 && back[2] == 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_step_is_its_own_order),
        cmocka_unit_test(what_met_in_an_older_step_meets),
        cmocka_unit_test(what_outlasts_the_step_has_one_place_or_two),
        cmocka_unit_test(what_is_marked_is_planned_twice),
        cmocka_unit_test(the_next_step_says_when_it_is_asked_again),
        cmocka_unit_test(kept_is_what_most_steps_keep),
        cmocka_unit_test(sizes_that_move_together_are_planned_at_their_largest),
        cmocka_unit_test(sizes_that_vary_on_their_own_are_not_planned),
        cmocka_unit_test(a_step_of_another_kind_is_left_out),
        cmocka_unit_test(buffers_are_rounded_to_their_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
