/* Wrong frees of ours end in one clear line and SIGABRT; wrong frees of others' are as under
 * glibc. */
#include "run.h"

#include <signal.h>

#define MIB "1048576"

static void dies(const char *mode, const char *call, const char *env)
{
    const struct fl_run *r = FL_RUN(FL_ARGV("victim_hardening", mode, MIB), FL_ENV(env));
    const char *address = strrchr(r->out, 'x'); /* the last that it printed */

    assert_non_null(address);
    assert_string_equal(
        r->err, text_as("faultless: %s of a pointer that is not a live block (freed twice, or "
                        "never allocated): 0x%lx\n",
                        call, strtoul(address + 1, NULL, 16)));
    assert_int_equal(r->term_signal, SIGABRT);
}

CASE(misuse_of_our_blocks_is_told_once_and_ends)
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
    for (size_t i = 0; i < sizeof envs / sizeof envs[0]; i++) {
        for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
            dies(rows[k][0], rows[k][1], envs[i]);
        }
    }
}

CASE(foreign_pointers_are_the_next_allocators_business)
{
    for (const char *const *mode =
             FL_ARGV("foreign_free", "foreign_realloc", "foreign_usable", "small_twice");
         *mode != NULL; mode++) {
        const char *const *argv = FL_ARGV("victim_hardening", *mode, MIB);
        const struct fl_run *ours = FL_RUN(argv), *plain = fl_plain_run(argv);
        assert_string_equal(ours->out, plain->out);
        assert_string_equal(ours->err, plain->err);
        assert_int_equal(ours->term_signal, plain->term_signal);
        assert_int_equal(ours->exit_status, plain->exit_status);
    }
}

CASES_MAIN()
