/* Wrong frees of ours end in one clear line and SIGABRT; wrong frees of others' are as under
 * glibc. */
#include "run.h"

#include <signal.h>
#include <stdlib.h>

#define MIB "1048576"

static void dies(const char *mode, const char *call, const char *env)
{
    char want[256];
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_hardening", mode, MIB), FL_ENV(env));
    const char *address = strrchr(r->out, 'x'); /* the last that it printed */

    print_message("           %s %s\n", mode, env);
    assert_non_null(address);
    snprintf(want, sizeof want,
             "faultless: %s of a pointer that is not a live block (freed twice, or never "
             "allocated): 0x%lx\n",
             call, strtoul(address + 1, NULL, 16));
    assert_string_equal(r->err, want);
    assert_int_equal(r->term_signal, SIGABRT);
}

static void misuse_of_our_blocks_is_told_once_and_ends(void **state)
{
    static const char *const envs[] = {"FAULTLESS_LOG=warn", "FAULTLESS_DISABLE=cache",
                                       "FAULTLESS_DISABLE=populate,thp"};
    static const char *const rows[][2] = {
        {"double_now", "free"},
        {"double_uncached", "free"},
        {"interior_page", "free"},
        {"interior", "free"},
        {"never", "free"},
        {"realloc_middle", "realloc"},
        {"realloc_freed", "realloc"},
        {"usable_middle", "malloc_usable_size"},
        {"usable_freed", "malloc_usable_size"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof envs / sizeof envs[0]; i++) {
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            dies(rows[k][0], rows[k][1], envs[i]);
        }
    }
}

static void foreign_pointers_are_the_next_allocators_business(void **state)
{
    (void)state;
    for (const char *const *mode =
             FL_ARGV("foreign_free", "foreign_realloc", "foreign_usable", "small_twice");
         *mode != NULL; mode++) {
        const char *const *argv = FL_ARGV("victim_hardening", *mode, MIB);
        const struct fl_run *ours = fl_preload_run(argv, NULL), *plain = fl_plain_run(argv);
        print_message("           %s\n", *mode);
        assert_string_equal(ours->out, plain->out);
        assert_string_equal(ours->err, plain->err);
        assert_int_equal(ours->term_signal, plain->term_signal);
        assert_int_equal(ours->exit_status, plain->exit_status);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse_of_our_blocks_is_told_once_and_ends),
        cmocka_unit_test(foreign_pointers_are_the_next_allocators_business),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
