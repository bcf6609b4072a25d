/* A program does to its blocks, and to descriptors, what it may do under glibc: it gets what glibc
 * would give it. */
#include "run.h"

static const struct fl_run *run(const char *victim, const char *mode, const char *env, bool brief,
                                const char *preload)
{
    return FL_RUN(FL_ARGV(victim, mode), .env = FL_ENV(env, brief ? "VICTIM_SHORT=1" : NULL),
                  .preload = preload);
}

/* By default; in short where memory ages at once, where blocks get their pages by touch, and under
 * glibc, there in huge pages: at length, and by base pages, the whole took more of the kernel's
 * time than a busy machine of two cores has within the limit. */
static void as_under_glibc(const char *victim, const char *mode)
{
    static const char *const envs[] = {"FAULTLESS_LOG=warn", "FAULTLESS_DECAY_MS=4",
                                       "FAULTLESS_EAGER_MAX=1M"};
    static const char huge[] = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"; /* a fault each 2 MiB */
    bool whole = fl_rung()[0] == '\0';

    for (size_t i = 0; i < (whole ? sizeof envs / sizeof envs[0] : 1); i++) {
        const struct fl_run *ours = fl_run_assert_active(run(victim, mode, envs[i], i != 0, NULL));
        if (i == 0 && whole) {
            const struct fl_run *plain = fl_run_assert_clean(run(victim, mode, huge, true, ""));
            assert_string_equal(ours->out, plain->out);
        }
    }
}

static void each_as_under_glibc(const char *victim, const char *const modes[])
{
    for (; *modes != NULL; modes++) {
        as_under_glibc(victim, *modes);
    }
}

#define EACH(name, victim, ...) CASE_IS(name, each_as_under_glibc(victim, FL_ARGV(__VA_ARGS__)))
#define FOREIGN(name, ...) EACH(name, "victim_foreign", __VA_ARGS__)
#define PINNED(name, ...) EACH(name, "victim_pinned", __VA_ARGS__)

FOREIGN(madvise_on_pages_of_a_block, "dontneed_and_free", "advice", "dontfork_and_dofork",
        "wipeonfork_and_keeponfork")
FOREIGN(mprotect_on_pages_of_a_block, "mprotect_and_back")
FOREIGN(mremap_and_munmap_of_pages_of_a_block, "mremap_away_and_back", "mremap_dontunmap",
        "munmap_and_mmap", "mmap_over")
FOREIGN(mlock_of_pages_and_of_all, "mlock_and_munlock", "mlockall_and_back")
FOREIGN(descriptors_closed_and_replaced, "close_all", "dup2_over", "no_descriptors",
        "closed_and_idle", "end_of_file")
FOREIGN(descriptors_are_not_handed_on, "exec_fds")
PINNED(buffers_registered_with_io_uring, "registered", "freed_while_registered", "registered_again")
PINNED(blocks_that_the_kernel_or_others_touch, "other_process", "kernel_touches_first", "spliced")
PINNED(a_userfaultfd_of_the_programs_own, "own_userfaultfd")

CASES_MAIN()
