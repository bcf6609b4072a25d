/* What is taken for a step, and where it ends: programs made up for one trait each. */
#include "unit/cmocka_all.h"
#include "plan/plan.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCKS = 256, TURNS = 64, KIB64 = 65536 };

/* A program, a turn of whose loop is told to a detector request by request. */
static struct {
    struct fl_detect *d;
    uint64_t live, seed;
    uint32_t requests;
    struct {
        size_t size;
        uint32_t index;
        uint64_t live; /* before it */
    } block[BLOCKS];
    unsigned foreign; /* of 1000 events */
    size_t scale;
    bool between; /* a foreign request is being made */
    unsigned steps, losses;
    uint64_t live_at_step;
} prog;

static uint64_t next(void)
{
    prog.seed = prog.seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return prog.seed >> 33;
}

static int begin(void **state)
{
    struct fl_detect *d = prog.d;

    (void)state;
    if (d != NULL) {
        (void)munmap(d, fl_detect_size());
    }
    memset(&prog, 0, sizeof prog);
    prog.scale = 1;
    prog.seed = 1;
    prog.d =
        mmap(NULL, fl_detect_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return prog.d == MAP_FAILED;
}

static void heard(enum fl_detect_says says, uint64_t live)
{
    prog.losses += says == FL_DETECT_LOST;
    if (says == FL_DETECT_STEP) {
        prog.steps++;
        prog.live_at_step = live;
    }
}

static void drop(unsigned i);
static void ask(unsigned i, size_t size);

static void disturb(void)
{
    if (!prog.between && next() % 1000 < prog.foreign) {
        unsigned i = BLOCKS - 1 - (unsigned)(next() % 8);
        prog.between = true;
        if (prog.block[i].size != 0) {
            drop(i);
        } else {
            ask(i, KIB64 + next() % 100000);
        }
        prog.between = false;
    }
}

static void ask(unsigned i, size_t size)
{
    disturb();
    assert_int_equal(prog.block[i].size, 0);
    size *= prog.between ? 1 : prog.scale;
    heard(fl_detect_alloc(prog.d, size, 0, prog.live), prog.live);
    prog.block[i].size = size;
    prog.block[i].index = prog.requests++;
    prog.live += size;
}

static void drop(unsigned i)
{
    disturb();
    size_t size = prog.block[i].size;
    assert_int_not_equal(size, 0);
    heard(fl_detect_free(prog.d, size, prog.requests - 1 - prog.block[i].index, prog.live),
          prog.live);
    prog.block[i].size = 0;
    prog.live -= size;
}

/* `n` requests of different sizes, each held until some later ones have been made. */
static void loop(unsigned n, unsigned unit)
{
    for (unsigned i = 0; i < n; i++) {
        ask(i, (size_t)(KIB64 + unit * ((i * i * 37 + i * 11) % 97 + 1)));
        if (i >= 5) {
            drop(i - 5);
        }
    }
    for (unsigned i = n - 5; i < n; i++) {
        drop(i);
    }
}

/* A network: layers that leave something behind, their way back, and an optimizer's small loop. */
static void layers(unsigned n, bool optimize)
{
    for (unsigned i = 0; i < n; i++) {
        ask(3 * i, 10 * KIB64);
        ask(3 * i + 1, 12 * KIB64);
        ask(3 * i + 2, 20 * KIB64);
        drop(3 * i + 1);
    }
    for (unsigned i = n; i-- > 0;) {
        ask(3 * i + 1, 11 * KIB64);
        drop(3 * i + 2);
        ask(3 * i + 2, 9 * KIB64);
        drop(3 * i + 1);
        drop(3 * i + 2);
        drop(3 * i);
    }
    for (unsigned i = 0; optimize && i < 3 * n; i++) {
        for (unsigned k = 0; k < 12; k++) {
            ask(k, (size_t)(k + 2) * KIB64);
            drop(k);
        }
    }
}

static void one_step_a_turn(void (*turn)(void), unsigned turns)
{
    for (unsigned i = 0; i < turns; i++) {
        unsigned before = prog.steps;
        turn();
        assert_int_equal(prog.steps, before + 1);
    }
    assert_int_equal(prog.losses, 0);
}

static void turn_of_40(void)
{
    loop(40, 4096);
}

static void turn_of_10(void)
{
    loop(10, 8192);
}

static void turn_of_layers(void)
{
    layers(16, true);
}

static void a_loop_is_followed_after_two_turns(void **state)
{
    (void)state;
    ask(200, 50 * KIB64); /* what the program holds all the time */
    for (int i = 0; i < 2; i++) {
        turn_of_40();
    }
    turn_of_40();
    assert_int_equal(fl_detect_period(prog.d), 80);
    one_step_a_turn(turn_of_40, 20);
    assert_int_equal(prog.live_at_step, 50 * KIB64);
}

/* Some of the stream went by unseen. */
static void after_a_pause_a_loop_is_found_again(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        turn_of_40();
    }
    assert_int_equal(fl_detect_period(prog.d), 80);
    fl_detect_go_on(prog.d);
    assert_int_equal(fl_detect_period(prog.d), 0);
    for (int i = 0; i < 3; i++) {
        turn_of_40();
    }
    assert_int_equal(fl_detect_period(prog.d), 80);
    one_step_a_turn(turn_of_40, 20);
}

/* It has to come more than twice as often as it was good for; two or three turns are no step
 * either. */
static void what_was_no_step_has_to_come_more_often(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        turn_of_40();
    }
    fl_detect_doubt(prog.d, 80, 4);
    fl_detect_go_on(prog.d);
    for (int i = 0; i < 9; i++) {
        turn_of_40();
        assert_int_equal(fl_detect_period(prog.d), 0);
    }
    for (int i = 0; i < 4; i++) {
        turn_of_40();
    }
    assert_int_equal(fl_detect_period(prog.d), 80);
    one_step_a_turn(turn_of_40, 5);
}

static void a_short_loop_is_followed_after_three_turns(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        turn_of_10();
    }
    assert_int_equal(fl_detect_period(prog.d), 20);
    one_step_a_turn(turn_of_10, 20);
    assert_int_equal(prog.live_at_step, 0);
}

static void neither_layers_nor_an_optimizers_loop_are_steps(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        turn_of_layers();
    }
    assert_in_range(prog.steps, 0, 3);
    assert_int_equal(fl_detect_period(prog.d), 16 * 10 + 48 * 24);
    one_step_a_turn(turn_of_layers, 5);
}

static void micro_steps_are_steps_only_until_the_optimizer_comes(void **state)
{
    (void)state;
    ask(200, 3 * KIB64);
    for (int step = 0; step < 9; step++) {
        unsigned before = prog.steps;
        for (unsigned micro = 0; micro < 4; micro++) {
            layers(5, false);
            if (micro == 0) {
                ask(201, 20 * KIB64); /* the gradients */
            }
        }
        for (unsigned k = 0; k < 30; k++) {
            ask(100 + k, (size_t)(k + 3) * KIB64);
        }
        for (unsigned k = 30; k-- > 0;) {
            drop(100 + k);
        }
        drop(201);
        assert_true(step < 4 || prog.steps == before + 1);
    }
    assert_int_equal(fl_detect_period(prog.d), 4 * 50 + 62);
    assert_in_range(prog.losses, 0, 1);
}

static void a_few_foreign_requests_do_no_harm(void **state)
{
    (void)state;
    unsigned well = 0;

    for (uint64_t seed = 1; seed <= 20; seed++) {
        (void)begin(NULL);
        prog.seed = seed;
        prog.foreign = 10;
        for (int i = 0; i < 5; i++) {
            turn_of_layers();
        }
        unsigned before = prog.steps;
        for (int i = 0; i < 20; i++) {
            turn_of_layers();
        }
        /* 1312, and the foreign ones */
        assert_in_range(fl_detect_period(prog.d), 1313, 1345);
        well += prog.steps >= before + 18 && prog.steps <= before + 22;
    }
    assert_in_range(well, 18, 20);
}

static void sizes_may_vary_when_lives_do_not(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        unsigned before = prog.steps;
        prog.scale = 1 + next() % 9;
        turn_of_layers();
        assert_true(i < 4 || prog.steps == before + 1);
    }
    assert_int_equal(prog.losses, 0);
}

static void what_repeats_no_more_is_lost_once(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        turn_of_40();
    }
    unsigned before = prog.steps;
    for (int i = 0; i < 2000; i++) {
        unsigned k = 50 + (unsigned)(next() % 60);
        if (prog.block[k].size != 0) {
            drop(k);
        } else {
            ask(k, KIB64 + next() % 1000000);
        }
    }
    assert_int_equal(prog.losses, 1);
    assert_in_range(prog.steps, before, before + 1);
    assert_int_equal(fl_detect_period(prog.d), 0);
}

static void a_phase_that_comes_back_is_known_within_two_turns(void **state)
{
    (void)state;
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 20; i++) {
            unsigned before = prog.steps;
            turn_of_40();
            assert_true(i < (round == 0 ? 3 : 2) || prog.steps == before + 1);
        }
        for (int i = 0; i < 20; i++) {
            unsigned before = prog.steps;
            loop(12, 300);
            assert_true(i < (round == 0 ? 4 : 3) || prog.steps == before + 1);
        }
    }
}

static void what_leaves_something_behind_each_time_is_no_step(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 40; i++) {
        turn_of_40();
        ask(100 + i, 2 * KIB64);
    }
    assert_int_equal(prog.steps, 0);
}

static void loops_of_one_size_are_no_steps(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        for (unsigned k = 0; k < 12; k++) {
            ask(k, 100012);
        }
        for (unsigned k = 0; k < 12; k++) {
            drop(k);
        }
    }
    assert_int_equal(prog.steps, 0);
}

static void little_is_touched_while_little_happens(void **state)
{
    unsigned char core[1024];
    size_t pages = fl_detect_size() / 4096, touched = 0;

    (void)state;
    assert_in_range(pages, 1, 256);
    loop(50, 4096);
    assert_int_equal(mincore(prog.d, fl_detect_size(), core), 0);
    for (size_t i = 0; i < pages; i++) {
        touched += core[i] & 1;
    }
    assert_in_range(touched, 1, 4);
}

static void turn_of_14000(void)
{
    for (unsigned i = 0; i < 14000; i++) {
        if (i >= 100) {
            drop(i % 100);
        }
        ask(i % 100, KIB64 + (size_t)4096 * (i * i % 9973 % 97));
    }
    for (unsigned i = 0; i < 100; i++) {
        drop(i);
    }
}

static void a_very_long_step_is_found_as_soon(void **state)
{
    (void)state;
    turn_of_14000();
    turn_of_14000();
    turn_of_14000();
    assert_int_equal(fl_detect_period(prog.d), 28000);
    one_step_a_turn(turn_of_14000, 5);
}

static void a_detector_goes_on_for_ever(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        turn_of_layers();
    }
    one_step_a_turn(turn_of_layers, 300); /* several times around the ring */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_loop_is_followed_after_two_turns, begin),
        cmocka_unit_test_setup(after_a_pause_a_loop_is_found_again, begin),
        cmocka_unit_test_setup(what_was_no_step_has_to_come_more_often, begin),
        cmocka_unit_test_setup(a_short_loop_is_followed_after_three_turns, begin),
        cmocka_unit_test_setup(neither_layers_nor_an_optimizers_loop_are_steps, begin),
        cmocka_unit_test_setup(micro_steps_are_steps_only_until_the_optimizer_comes, begin),
        cmocka_unit_test_setup(a_few_foreign_requests_do_no_harm, begin),
        cmocka_unit_test_setup(sizes_may_vary_when_lives_do_not, begin),
        cmocka_unit_test_setup(what_repeats_no_more_is_lost_once, begin),
        cmocka_unit_test_setup(a_phase_that_comes_back_is_known_within_two_turns, begin),
        cmocka_unit_test_setup(what_leaves_something_behind_each_time_is_no_step, begin),
        cmocka_unit_test_setup(loops_of_one_size_are_no_steps, begin),
        cmocka_unit_test_setup(little_is_touched_while_little_happens, begin),
        cmocka_unit_test_setup(a_very_long_step_is_found_as_soon, begin),
        cmocka_unit_test_setup(a_detector_goes_on_for_ever, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
