/* fork, vfork, posix_spawn and exec, with threads allocating. */
#include "run.h"

static void children_of_an_allocating_process_live(void **state)
{
    (void)state;
    fl_run_modes("victim_fork", FL_ARGV("many", "nested", "two_forkers", "others_blocks"), NULL);
}

static void children_live_with_quick_decay_and_touch(void **state)
{
    (void)state;
    fl_run_modes("victim_fork", FL_ARGV("two_forkers", "nested"),
                 FL_ENV("FAULTLESS_DECAY_MS=4", "FAULTLESS_DISABLE=populate"));
}

static void each_child_that_exits_reports(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_fork", "by_exit"), NULL);
    fl_run_assert_active(r);
    assert_int_equal(fl_run_lines(r->stats), 21);
}

static void vfork_spawn_system_and_exec_work(void **state)
{
    (void)state;
    fl_run_modes("victim_fork", FL_ARGV("vforks", "spawns", "systems", "exec_amid"), NULL);
}

static void huge_pages_outlive_a_child(void **state)
{
    unsigned long before, after;
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_fork", "keeps_huge"), NULL);
    fl_run_assert_active(r);
    assert_int_equal(sscanf(r->out, "huge %lu %lu", &before, &after), 2);
    assert_true(after * 10 >= before * 9);
}

static void a_fork_may_come_amid_another(void **state)
{
    static const char *const modes[] = {"amid_a_fork", "amid_a_fork_by_signal"};
    (void)state;
    for (size_t i = 0; i < 2; i++) { /* what still holds its locks says nothing at exit */
        const struct fl_run *r = fl_preload_run(FL_ARGV("victim_fork", modes[i]), NULL);
        assert_int_equal(r->term_signal, 0);
        fl_run_assert_active(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(children_of_an_allocating_process_live),
        cmocka_unit_test(children_live_with_quick_decay_and_touch),
        cmocka_unit_test(each_child_that_exits_reports),
        cmocka_unit_test(vfork_spawn_system_and_exec_work),
        cmocka_unit_test(huge_pages_outlive_a_child),
        cmocka_unit_test(a_fork_may_come_amid_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
