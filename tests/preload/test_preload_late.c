/* Objects that are loaded late and bind past us: they are handed our blocks, and libc's, as under
 * glibc. */
#include "run.h"

/* glibc learns from blocks that are freed which are mapped; a block of its heap is not to be had in
 * another namespace. */
static const char *const mapped[] = {"GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072", NULL};

static void as_under_glibc(const char *const modes[])
{
    for (; *modes != NULL; modes++) {
        const struct fl_how how = {.argv = FL_ARGV("victim_late", *modes), .env = mapped};
        /* glibc's once is enough */
        fl_run_assert_active(fl_rung()[0] == '\0' ? fl_run_same(&how, "") : fl_run_how(&how));
    }
}

/* Active, whatever stands before us and behind. */
static void active(const char *mode, const char *preload, const char *env)
{
    FL_ACTIVE(FL_ARGV("victim_late", mode), .env = FL_ENV(env), .preload = preload);
}

CASE_IS(by_a_library_that_starts_before_ours,
        active("deep", fl_in_order(FL_LIB_PATH, FL_VICTIM_DIR "/victim_late_runner.so"),
               "VICTIM_LATE_EARLY=1"))

/* What they serve themselves such a plugin's free cannot know: so it is without us, too. */
CASE(with_another_allocator_behind)
{
    static const char *const others[] = {"libjemalloc.so.2", "libtcmalloc_minimal.so.4",
                                         FL_MIMALLOC};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        active("deep_large", fl_in_order(FL_LIB_PATH, others[i]), NULL);
    }
}

/* A tracer finds what is behind it by RTLD_NEXT, at its first call: that must never be us. */
CASE(with_a_tracer_behind)
{
    static const char *const shapes[] = {"malloc", "free", "both", "four"};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        active("deep", text_as("%s %s/victim_next_%s.so", FL_LIB_PATH, FL_VICTIM_DIR, shapes[i]),
               NULL);
    }
}

/* Then the plugin comes before the first large block, and there is none. */
CASE(where_libc_cannot_be_told_large_blocks_are_its_own)
{
    const char *const modes[] = {"deep", "namespace_first"};

    for (size_t i = 0; i < 2; i++) {
        const struct fl_run *r =
            FL_RUN(FL_ARGV("victim_late", modes[i]), .env = mapped,
                   .preload = FL_LIB_PATH " " FL_VICTIM_DIR "/victim_late_refuse.so");
        assert_int_equal(r->exit_status, 0);
        assert_int_equal(fl_run_lines(r->err), 1);
        assert_says(r->err, "faultless: ");
        assert_says(r->err, " cannot be told of large blocks");
    }
}

CASE_IS(with_deepbind, as_under_glibc(FL_ARGV("deep", "deep_by_dlmopen", "nested", "own_malloc",
                                              "threads", "credentials", "munmap_of_libc")))
CASE_IS(in_its_constructor, as_under_glibc(FL_ARGV("constructor_lazy", "constructor_now")))
CASE_IS(by_names_that_are_looked_up,
        as_under_glibc(FL_ARGV("handle_of_libc", "handle_of_a_library", "handle_of_the_program",
                               "of_a_version", "next_of_a_version", "default_of_a_version",
                               "next_behind")))
CASE_IS(libc_knows_who_asks, as_under_glibc(FL_ARGV("runpath", "errors")))
CASE_IS(in_another_namespace,
        as_under_glibc(FL_ARGV("namespaces", "namespaces_at_once", "namespace_of_two")))
CASE_IS(large_blocks_of_any_size_in_another_namespace,
        FL_ACTIVE(FL_ARGV("victim_late", "namespace_64k")))
CASE_IS(with_all_symbols_bound_at_start,
        fl_run_modes("victim_late", FL_ARGV("deep", "nested", "handle_of_libc"),
                     FL_ENV("LD_BIND_NOW=1")))

CASES_MAIN()
