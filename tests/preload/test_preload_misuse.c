/* Wrong frees of ours end in one clear line and SIGABRT; wrong frees of others' and odd requests
 * are as under glibc. */
#include "run.h"

#include <signal.h>
#include <stdlib.h>

static void dies(const char *mode, const char *call, const char *env)
{
    char want[256];
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_misuse", mode), FL_ENV(env));
    unsigned long p = strtoul(r->out, NULL, 16);

    print_message("           %s %s\n", mode, env);
    snprintf(want, sizeof want,
             "faultless: %s of a pointer that is not a live block (freed twice, or never "
             "allocated): 0x%lx\n",
             call, p);
    assert_string_equal(r->err, want);
    assert_int_equal(r->term_signal, SIGABRT);
}

static void misuse_of_our_blocks_is_told_once_and_ends(void **state)
{
    static const char *const envs[] = {"FAULTLESS_LOG=warn", "FAULTLESS_DISABLE=cache",
                                       "FAULTLESS_DISABLE=populate,thp"};
    (void)state;
    for (size_t i = 0; i < sizeof envs / sizeof envs[0]; i++) {
        dies("twice", "free", envs[i]);
        dies("twice_uncached", "free", envs[i]);
        dies("middle", "free", envs[i]);
        dies("odd", "free", envs[i]);
        dies("never", "free", envs[i]);
        dies("realloc_middle", "realloc", envs[i]);
        dies("realloc_freed", "realloc", envs[i]);
        dies("usable_middle", "malloc_usable_size", envs[i]);
        dies("usable_freed", "malloc_usable_size", envs[i]);
    }
}

static void same_as_glibc(const char *const argv[])
{
    const struct fl_run *ours = fl_preload_run(argv, NULL), *plain = fl_plain_run(argv);

    assert_string_equal(ours->out, plain->out);
    assert_string_equal(ours->err, plain->err);
    assert_int_equal(ours->term_signal, plain->term_signal);
    assert_int_equal(ours->exit_status, plain->exit_status);
}

static void foreign_pointers_are_the_next_allocators_business(void **state)
{
    (void)state;
    same_as_glibc(FL_ARGV("victim_misuse", "foreign_free"));
    same_as_glibc(FL_ARGV("victim_misuse", "foreign_realloc"));
    same_as_glibc(FL_ARGV("victim_misuse", "foreign_usable"));
    same_as_glibc(FL_ARGV("victim_misuse", "small_twice"));
}

static void odd_requests_give_what_glibc_gives(void **state)
{
    (void)state;
    same_as_glibc(FL_ARGV("victim_odd"));
    fl_run_assert_active(fl_preload_run(FL_ARGV("victim_odd"), NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse_of_our_blocks_is_told_once_and_ends),
        cmocka_unit_test(foreign_pointers_are_the_next_allocators_business),
        cmocka_unit_test(odd_requests_give_what_glibc_gives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
