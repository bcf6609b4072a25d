/* Blocks are freed with what the program did to their pages still in force. glibc unmaps such
 * blocks; the ones that come after are as good as new. */
#include "run.h"

static void nothing_is_left(void **state)
{
    for (const char *const *mode = *state; *mode != NULL; mode++) {
        if (fl_rung()[0] == '\0') { /* the victim itself */
            fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_left", *mode)));
        }
        fl_run_assert_active(fl_preload_run(FL_ARGV("victim_left", *mode), NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FL_CASE(of_calls_by_number, nothing_is_left, FL_ARGV("by_number")),
        FL_CASE(of_mprotect, nothing_is_left, FL_ARGV("read_only", "inaccessible")),
        FL_CASE(of_munmap, nothing_is_left, FL_ARGV("hole")),
        FL_CASE(of_mmap, nothing_is_left, FL_ARGV("mapped_file")),
        FL_CASE(of_madvise_dontfork, nothing_is_left, FL_ARGV("dontfork", "dontfork_in_child")),
        FL_CASE(of_madvise_wipeonfork, nothing_is_left, FL_ARGV("wipeonfork")),
        FL_CASE(of_mlock, nothing_is_left, FL_ARGV("locked", "locked_again")),
        FL_CASE(of_userfaultfd, nothing_is_left, FL_ARGV("watched")),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
