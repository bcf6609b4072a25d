/* Blocks are freed with what the program did to their pages still in force. glibc unmaps such
 * blocks; the ones that come after are as good as new. */
#include "run.h"

static const struct fl_run *run(const char *mode, const char *preload)
{
    return fl_run_how(&(struct fl_how){.argv = FL_ARGV("victim_left", mode), .preload = preload});
}

static void nothing_is_left(const char *mode)
{
    if (fl_rung()[0] == '\0') { /* the victim itself */
        fl_run_assert_clean(run(mode, ""));
    }
    fl_run_assert_active(run(mode, NULL));
}

static void of_mprotect(void **state)
{
    (void)state;
    nothing_is_left("read_only");
    nothing_is_left("inaccessible");
}

static void of_munmap(void **state)
{
    (void)state;
    nothing_is_left("hole");
}

static void of_mmap(void **state)
{
    (void)state;
    nothing_is_left("mapped_file");
}

static void of_madvise_dontfork(void **state)
{
    (void)state;
    nothing_is_left("dontfork");
    nothing_is_left("dontfork_in_child");
}

static void of_madvise_wipeonfork(void **state)
{
    (void)state;
    nothing_is_left("wipeonfork");
}

static void of_mlock(void **state)
{
    (void)state;
    nothing_is_left("locked");
    nothing_is_left("locked_again");
}

static void of_calls_by_number(void **state)
{
    (void)state;
    nothing_is_left("by_number");
}

static void of_userfaultfd(void **state)
{
    (void)state;
    nothing_is_left("watched");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(of_calls_by_number),
        cmocka_unit_test(of_mprotect),
        cmocka_unit_test(of_munmap),
        cmocka_unit_test(of_mmap),
        cmocka_unit_test(of_madvise_dontfork),
        cmocka_unit_test(of_madvise_wipeonfork),
        cmocka_unit_test(of_mlock),
        cmocka_unit_test(of_userfaultfd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
