/* The detector on what real programs asked for (bench/plan/streams), and on what has no order at
 * all. */
#include "unit/cmocka_all.h"
#include "prop/seed.h"
#include "plan/stream.h"
#include <string.h>
#include <sys/mman.h>

static struct judged judge(const char *name, unsigned foreign, uint64_t seed)
{
    char path[512];
    struct stream s;

    (void)snprintf(path, sizeof path, FL_STREAMS "/%s.stream", name);
    if (!stream_read(&s, path)) {
        fail_msg("%s is no stream", path);
    }
    stream_disturb(&s, foreign, seed);
    struct fl_detect *d =
        mmap(NULL, fl_detect_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(d, MAP_FAILED);
    struct judged j = stream_judge(&s, d, 0);
    (void)munmap(d, fl_detect_size());
    stream_end(&s);
    return j;
}

static void steps_of_real_programs_are_followed_within_three_of_them(void **state)
{
    /* `wrong`: of four micro-steps the second to the fourth look like steps, the first time. */
    static const struct {
        const char *name;
        unsigned wrong;
    } program[] = {{"mlp", 0},   {"cnn", 0},    {"transformer", 0}, {"variable", 0},  {"dlrm", 0},
                   {"numpy", 0}, {"loader", 0}, {"train-eval", 0},  {"accumulate", 1}};

    (void)state;
    for (size_t i = 0; i < sizeof program / sizeof program[0]; i++) {
        struct judged j = judge(program[i].name, 0, 0);
        print_message("%s: %u of %u phases, after %.2f steps\n", program[i].name, j.right, j.phases,
                      j.worst);
        assert_true(j.phases > 0);
        assert_int_equal(j.right, j.phases);
        assert_true(j.worst <= 3);
        assert_in_range(j.wrong, 0, program[i].wrong);
        assert_true(program[i].wrong != 0 || j.astray <= 8);
    }
}

static void programs_without_steps_have_none(void **state)
{
    static const char *const program[] = {"redis", "gcc"};

    (void)state;
    for (size_t i = 0; i < sizeof program / sizeof program[0]; i++) {
        struct judged j = judge(program[i], 0, 0);
        assert_true(j.events > 1000);
        assert_int_equal(j.said, 0);
    }
}

static void what_has_no_order_has_no_steps(void **state)
{
    uint64_t seed = seed_read();

    (void)state;
    for (int i = 0; i < 20; i++) {
        struct stream s;
        stream_random(&s, 20000, stream_next(&seed));
        struct fl_detect *d = mmap(NULL, fl_detect_size(), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_ptr_not_equal(d, MAP_FAILED);
        struct judged j = stream_judge(&s, d, 0);
        assert_int_equal(j.said, 0);
        assert_int_equal(j.period, 0);
        (void)munmap(d, fl_detect_size());
        stream_end(&s);
    }
}

/* Chance may hold up one or the other; most must be found, and none be taken for something else for
 * long. */
static void foreign_requests_hold_up_few(void **state)
{
    static const char *const program[] = {"mlp", "cnn", "transformer", "dlrm", "numpy"};
    uint64_t seed = seed_read();
    unsigned found = 0, all = 0;

    (void)state;
    for (int round = 0; round < 6; round++) {
        for (size_t i = 0; i < sizeof program / sizeof program[0]; i++) {
            struct judged j = judge(program[i], 10, stream_next(&seed));
            found += j.worst <= 4 && j.right == j.phases;
            all++;
        }
    }
    print_message("%u of %u within four steps\n", found, all);
    assert_true(found * 3 >= all * 2);
}

/* Sizes that vary leave the shapes alone to go by, and foreign requests change those. */
static void foreign_requests_hold_up_few_of_what_varies(void **state)
{
    enum { SEEDS = 20 };
    unsigned followed = 0;

    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct judged j = judge("variable", 30, seed);
        followed += j.right == j.phases;
    }
    print_message("%u of %u followed to their end\n", followed, SEEDS);
    assert_true(followed * 4 >= SEEDS * 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_of_real_programs_are_followed_within_three_of_them),
        cmocka_unit_test(programs_without_steps_have_none),
        cmocka_unit_test(what_has_no_order_has_no_steps),
        cmocka_unit_test(foreign_requests_hold_up_few),
        cmocka_unit_test(foreign_requests_hold_up_few_of_what_varies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
