/* A program does to its blocks, and to descriptors, what it may do under glibc: it gets what glibc
 * would give it. */
#include "run.h"

static const struct fl_run *run(const char *victim, const char *mode, const char *env, bool brief,
                                const char *preload)
{
    const char *const argv[] = {victim, mode, NULL};
    const char *const envs[] = {env, brief ? "VICTIM_SHORT=1" : NULL, NULL};

    return fl_run_how(&(struct fl_how){.argv = argv, .env = envs, .preload = preload});
}

/* By default; in short where memory ages at once, where blocks get their pages by touch, and under
 * glibc, there in huge pages: at length, and by base pages, the whole took more of the kernel's
 * time than a busy machine of two cores has within the limit. */
static void as_under_glibc(const char *victim, const char *const modes[])
{
    static const char *const envs[] = {"FAULTLESS_LOG=warn", "FAULTLESS_DECAY_MS=4",
                                       "FAULTLESS_EAGER_MAX=1M"};
    static const char huge[] = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"; /* a fault each 2 MiB */
    size_t nenvs = fl_rung()[0] == '\0' ? sizeof envs / sizeof envs[0] : 1;

    for (; *modes != NULL; modes++) {
        for (size_t i = 0; i < nenvs; i++) {
            print_message("           %s %s\n", *modes, envs[i]);
            const struct fl_run *ours = run(victim, *modes, envs[i], i != 0, NULL);
            fl_run_assert_active(ours);
            if (i == 0 && fl_rung()[0] == '\0') {
                const struct fl_run *plain = run(victim, *modes, huge, true, "");
                fl_run_assert_clean(plain);
                assert_string_equal(ours->out, plain->out);
            }
        }
    }
}

static void madvise_on_pages_of_a_block(void **state)
{
    (void)state;
    as_under_glibc("victim_foreign", FL_ARGV("dontneed_and_free", "advice", "dontfork_and_dofork",
                                             "wipeonfork_and_keeponfork"));
}

static void mprotect_on_pages_of_a_block(void **state)
{
    (void)state;
    as_under_glibc("victim_foreign", FL_ARGV("mprotect_and_back"));
}

static void mremap_and_munmap_of_pages_of_a_block(void **state)
{
    (void)state;
    as_under_glibc("victim_foreign", FL_ARGV("mremap_away_and_back", "mremap_dontunmap",
                                             "munmap_and_mmap", "mmap_over"));
}

static void mlock_of_pages_and_of_all(void **state)
{
    (void)state;
    as_under_glibc("victim_foreign", FL_ARGV("mlock_and_munlock", "mlockall_and_back"));
}

static void descriptors_closed_and_replaced(void **state)
{
    (void)state;
    as_under_glibc("victim_foreign", FL_ARGV("close_all", "dup2_over", "no_descriptors",
                                             "closed_and_idle", "end_of_file"));
}

static void descriptors_are_not_handed_on(void **state)
{
    (void)state;
    as_under_glibc("victim_foreign", FL_ARGV("exec_fds"));
}

static void buffers_registered_with_io_uring(void **state)
{
    (void)state;
    as_under_glibc("victim_pinned",
                   FL_ARGV("registered", "freed_while_registered", "registered_again"));
}

static void blocks_that_the_kernel_or_others_touch(void **state)
{
    (void)state;
    as_under_glibc("victim_pinned", FL_ARGV("other_process", "kernel_touches_first", "spliced"));
}

static void a_userfaultfd_of_the_programs_own(void **state)
{
    (void)state;
    as_under_glibc("victim_pinned", FL_ARGV("own_userfaultfd"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(madvise_on_pages_of_a_block),
        cmocka_unit_test(mprotect_on_pages_of_a_block),
        cmocka_unit_test(mremap_and_munmap_of_pages_of_a_block),
        cmocka_unit_test(mlock_of_pages_and_of_all),
        cmocka_unit_test(descriptors_closed_and_replaced),
        cmocka_unit_test(descriptors_are_not_handed_on),
        cmocka_unit_test(buffers_registered_with_io_uring),
        cmocka_unit_test(blocks_that_the_kernel_or_others_touch),
        cmocka_unit_test(a_userfaultfd_of_the_programs_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
