/* Objects that are loaded late and bind past us: they are handed our blocks, and libc's, as under
 * glibc. */
#include "run.h"

/* glibc learns from blocks that are freed which are mapped; a block of its heap is not to be had in
 * another namespace. */
static const char *const mapped[] = {"GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072", NULL};

static void as_under_glibc(void **state)
{
    for (const char *const *mode = *state; *mode != NULL; mode++) {
        const struct fl_how how = {.argv = FL_ARGV("victim_late", *mode), .env = mapped};
        print_message("           %s\n", *mode);
        /* glibc's once is enough */
        fl_run_assert_active(fl_rung()[0] == '\0' ? fl_run_same(&how, "") : fl_run_how(&how));
    }
}

/* Active, whatever stands before us and behind. */
static void active(const char *mode, const char *preload, const char *env)
{
    print_message("           %s\n", preload);
    fl_run_assert_active(fl_run_how(&(struct fl_how){
        .argv = FL_ARGV("victim_late", mode), .env = FL_ENV(env), .preload = preload}));
}

static void by_a_library_that_starts_before_ours(void **state)
{
    (void)state;
    active("deep", fl_in_order(FL_LIB_PATH, FL_VICTIM_DIR "/victim_late_runner.so"),
           "VICTIM_LATE_EARLY=1");
}

/* What they serve themselves such a plugin's free cannot know: so it is without us, too. */
static void with_another_allocator_behind(void **state)
{
    static const char *const others[] = {"libjemalloc.so.2", "libtcmalloc_minimal.so.4",
                                         FL_MIMALLOC};
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        active("deep_large", fl_in_order(FL_LIB_PATH, others[i]), NULL);
    }
}

/* A tracer finds what is behind it by RTLD_NEXT, at its first call: that must never be us. */
static void with_a_tracer_behind(void **state)
{
    static const char *const shapes[] = {"malloc", "free", "both", "four"};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char tracer[512];
        snprintf(tracer, sizeof tracer, "%s/victim_next_%s.so", FL_VICTIM_DIR, shapes[i]);
        active("deep", fl_in_order(FL_LIB_PATH, tracer), NULL);
    }
}

/* Then the plugin comes before the first large block, and there is none. */
static void where_libc_cannot_be_told_large_blocks_are_its_own(void **state)
{
    (void)state;
    const char *const modes[] = {"deep", "namespace_first"};

    for (size_t i = 0; i < 2; i++) {
        const struct fl_run *r = fl_run_how(
            &(struct fl_how){.argv = FL_ARGV("victim_late", modes[i]),
                             .env = mapped,
                             .preload = FL_LIB_PATH " " FL_VICTIM_DIR "/victim_late_refuse.so"});
        print_message("           %s", r->err);
        assert_int_equal(r->exit_status, 0);
        assert_int_equal(fl_run_lines(r->err), 1);
        assert_non_null(strstr(r->err, "faultless: "));
        assert_non_null(strstr(r->err, " cannot be told of large blocks"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FL_CASE(with_deepbind, as_under_glibc,
                FL_ARGV("deep", "deep_by_dlmopen", "nested", "own_malloc", "threads", "credentials",
                        "munmap_of_libc")),
        FL_CASE(in_its_constructor, as_under_glibc, FL_ARGV("constructor_lazy", "constructor_now")),
        FL_CASE(by_names_that_are_looked_up, as_under_glibc,
                FL_ARGV("handle_of_libc", "handle_of_a_library", "handle_of_the_program",
                        "of_a_version", "next_of_a_version", "default_of_a_version",
                        "next_behind")),
        FL_CASE(libc_knows_who_asks, as_under_glibc, FL_ARGV("runpath", "errors")),
        FL_CASE(in_another_namespace, as_under_glibc,
                FL_ARGV("namespaces", "namespaces_at_once", "namespace_of_two")),
        FL_MODES(large_blocks_of_any_size_in_another_namespace, "victim_late",
                 FL_ARGV("namespace_64k"), NULL),
        cmocka_unit_test(by_a_library_that_starts_before_ours),
        FL_MODES(with_all_symbols_bound_at_start, "victim_late",
                 FL_ARGV("deep", "nested", "handle_of_libc"), FL_ENV("LD_BIND_NOW=1")),
        cmocka_unit_test(with_another_allocator_behind),
        cmocka_unit_test(with_a_tracer_behind),
        cmocka_unit_test(where_libc_cannot_be_told_large_blocks_are_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
