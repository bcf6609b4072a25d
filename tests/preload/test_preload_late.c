/* Objects that are loaded late and bind past us: they are handed our blocks, and libc's, as under
 * glibc. */
#include "run.h"

/* glibc learns from blocks that are freed which are mapped; a block of its heap is not to be had in
 * another namespace. */
static const char *const mapped[] = {"GLIBC_TUNABLES=glibc.malloc.mmap_threshold=131072", NULL};

static void as_under_glibc(const char *const modes[])
{
    for (; *modes != NULL; modes++) {
        print_message("           %s\n", *modes);
        const char *const argv[] = {"victim_late", *modes, NULL};
        const struct fl_run *ours = fl_run_how(&(struct fl_how){.argv = argv, .env = mapped});
        fl_run_assert_active(ours);
        if (fl_rung()[0] == '\0') { /* once is enough */
            const struct fl_run *plain =
                fl_run_how(&(struct fl_how){.argv = argv, .env = mapped, .preload = ""});
            fl_run_assert_clean(plain);
            assert_string_equal(ours->out, plain->out);
        }
    }
}

static void with_deepbind(void **state)
{
    (void)state;
    as_under_glibc(FL_ARGV("deep", "deep_by_dlmopen", "nested", "own_malloc", "threads",
                           "credentials", "munmap_of_libc"));
}

static void in_its_constructor(void **state)
{
    (void)state;
    as_under_glibc(FL_ARGV("constructor_lazy", "constructor_now"));
}

static void by_names_that_are_looked_up(void **state)
{
    (void)state;
    as_under_glibc(FL_ARGV("handle_of_libc", "handle_of_a_library", "handle_of_the_program",
                           "of_a_version", "next_of_a_version", "default_of_a_version",
                           "next_behind"));
}

static void libc_knows_who_asks(void **state)
{
    (void)state;
    as_under_glibc(FL_ARGV("runpath", "errors"));
}

static void in_another_namespace(void **state)
{
    (void)state;
    as_under_glibc(FL_ARGV("namespaces", "namespaces_at_once", "namespace_of_two"));
    fl_run_assert_active(fl_preload_run(FL_ARGV("victim_late", "namespace_64k"), NULL));
}

static void by_a_library_that_starts_before_ours(void **state)
{
    (void)state;
    fl_run_assert_active(fl_run_how(
        &(struct fl_how){.argv = FL_ARGV("victim_late", "deep"),
                         .env = FL_ENV("VICTIM_LATE_EARLY=1"),
                         .preload = FL_LIB_PATH " " FL_VICTIM_DIR "/victim_late_runner.so"}));
}

static void with_all_symbols_bound_at_start(void **state)
{
    (void)state;
    const char *const modes[] = {"deep", "nested", "handle_of_libc", NULL};
    fl_run_modes("victim_late", modes, FL_ENV("LD_BIND_NOW=1"));
}

/* What they serve themselves such a plugin's free cannot know: so it is without us, too. */
static void with_another_allocator_behind(void **state)
{
    (void)state;
    static const char *const others[] = {"libjemalloc.so.2", "libtcmalloc_minimal.so.4",
                                         FL_MIMALLOC};

    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        char preload[512];
        print_message("           %s\n", others[i]);
        snprintf(preload, sizeof preload, "%s %s", FL_LIB_PATH, others[i]);
        fl_run_assert_active(fl_run_how(
            &(struct fl_how){.argv = FL_ARGV("victim_late", "deep_large"), .preload = preload}));
    }
}

/* A tracer finds what is behind it by RTLD_NEXT, at its first call: that must never be us. */
static void with_a_tracer_behind(void **state)
{
    (void)state;
    static const char *const shapes[] = {"malloc", "free", "both", "four"};

    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        char preload[1024];
        print_message("           %s\n", shapes[i]);
        snprintf(preload, sizeof preload, "%s %s/victim_next_%s.so", FL_LIB_PATH, FL_VICTIM_DIR,
                 shapes[i]);
        fl_run_assert_active(fl_run_how(
            &(struct fl_how){.argv = FL_ARGV("victim_late", "deep"), .preload = preload}));
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
        cmocka_unit_test(with_deepbind),
        cmocka_unit_test(in_its_constructor),
        cmocka_unit_test(by_names_that_are_looked_up),
        cmocka_unit_test(libc_knows_who_asks),
        cmocka_unit_test(in_another_namespace),
        cmocka_unit_test(by_a_library_that_starts_before_ours),
        cmocka_unit_test(with_all_symbols_bound_at_start),
        cmocka_unit_test(with_another_allocator_behind),
        cmocka_unit_test(with_a_tracer_behind),
        cmocka_unit_test(where_libc_cannot_be_told_large_blocks_are_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
