/* Blocks are freed with what the program did to their pages still in force. glibc unmaps such
 * blocks; the ones that come after are as good as new. */
#include "run.h"

static void nothing_is_left(const char *const modes[])
{
    for (; *modes != NULL; modes++) {
        if (fl_rung()[0] == '\0') { /* the victim itself */
            fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_left", *modes)));
        }
        FL_ACTIVE(FL_ARGV("victim_left", *modes));
    }
}

CASE_IS(of_calls_by_number, nothing_is_left(FL_ARGV("by_number")))
CASE_IS(of_mprotect, nothing_is_left(FL_ARGV("read_only", "inaccessible")))
CASE_IS(of_munmap, nothing_is_left(FL_ARGV("hole")))
CASE_IS(of_mmap, nothing_is_left(FL_ARGV("mapped_file")))
CASE_IS(of_madvise_dontfork, nothing_is_left(FL_ARGV("dontfork", "dontfork_in_child")))
CASE_IS(of_madvise_wipeonfork, nothing_is_left(FL_ARGV("wipeonfork")))
CASE_IS(of_mlock, nothing_is_left(FL_ARGV("locked", "locked_again")))
CASE_IS(of_userfaultfd, nothing_is_left(FL_ARGV("watched")))

CASES_MAIN()
