/* What was freed between blocks that stay is there for requests of any size, where maps are
 * counted: as under glibc, whose heap has it. */
#include "run.h"

#include <sys/resource.h>

enum { LIMIT_MIB = 100, OVERHEAD_MIB = 6 };

static void set_limit(void *resource)
{
    const struct rlimit r = {(rlim_t)LIMIT_MIB << 20, RLIM_INFINITY};

    setrlimit(*(const __rlimit_resource_t *)resource, &r);
}

/* The victim gets nine tenths of what glibc gives it each time, but for what every process pays:
 * of small blocks, then of large ones. Not of these where another thread had the small ones: where
 * large blocks are maps of their own, what is free in that thread's arena is no other's, in glibc
 * either. */
static void as_under_glibc(const char *const argv[])
{
    static const char *const words[] = {"large ", "small ", "then ", "whole "};
    __rlimit_resource_t resource = argv[1][0] == 'a' ? RLIMIT_AS : RLIMIT_DATA;
    bool before = strcmp(argv[2], "before") == 0;
    const struct fl_how ours = {
        .argv = argv, .in_child = before ? set_limit : NULL, .arg = &resource};
    struct fl_how plain = ours;

    plain.preload = "";
    const struct fl_run *a = fl_run_how(&ours), *b = fl_run_how(&plain);
    fl_run_assert_clean(b);
    fl_run_assert_clean(a);
    bool alone = strcmp(argv[7], "main") == 0 || strcmp(argv[7], "child") == 0;
    for (size_t i = 0; i < (alone ? 4 : 2); i++) {
        long got = fl_run_said(a, words[i]), bar = fl_run_said(b, words[i]);
        print_message("           %s %s, blocks of %s KiB, every %s: %s%ld MiB, glibc %ld MiB\n",
                      argv[1], argv[2], argv[3], argv[4], words[i], got, bar);
        assert_true(bar >= 0 && (got + OVERHEAD_MIB) * 10 >= bar * 9);
    }
}

static void holes_of_any_length_are_there_for_small_requests(void **state)
{
    (void)state;
    as_under_glibc(FL_ARGV("victim_room", "as", "before", "64", "2", "3000", "malloc", "main"));
    as_under_glibc(FL_ARGV("victim_room", "data", "before", "100", "3", "1000", "malloc", "main"));
    as_under_glibc(FL_ARGV("victim_room", "as", "before", "1024", "2", "1", "malloc", "main"));
    as_under_glibc(
        FL_ARGV("victim_room", "data", "before", "1945", "2", "60000", "malloc", "main"));
    as_under_glibc(FL_ARGV("victim_room", "as", "before", "3072", "0", "3000", "malloc", "main"));
    as_under_glibc(FL_ARGV("victim_room", "data", "before", "40960", "2", "100", "malloc", "main"));
}

static void whenever_the_limit_comes(void **state)
{
    (void)state;
    as_under_glibc(FL_ARGV("victim_room", "data", "own", "100", "0", "3000", "malloc", "main"));
    as_under_glibc(FL_ARGV("victim_room", "as", "other", "64", "2", "3000", "malloc", "main"));
    as_under_glibc(FL_ARGV("victim_room", "data", "other", "1024", "3", "3000", "malloc", "main"));
}

static void by_whatever_name_they_are_asked_for(void **state)
{
    static const char *const names[] = {"calloc", "realloc", "memalign", "posix_memalign",
#ifdef FL_HAVE_CXX
                                        "new",
#endif
                                        NULL};
    (void)state;

    for (size_t i = 0; names[i] != NULL; i++) {
        as_under_glibc(FL_ARGV("victim_room", i % 2 == 0 ? "as" : "data", "before", "1024", "2",
                               "1000", names[i], "main"));
    }
}

static void by_whatever_thread_or_child(void **state)
{
    static const char *const who[] = {"thread", "both", "child", NULL};
    (void)state;

    for (size_t i = 0; who[i] != NULL; i++) {
        as_under_glibc(FL_ARGV("victim_room", i % 2 == 0 ? "as" : "data", "own", "1024", "2",
                               "1000", "malloc", who[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holes_of_any_length_are_there_for_small_requests),
        cmocka_unit_test(whenever_the_limit_comes),
        cmocka_unit_test(by_whatever_name_they_are_asked_for),
        cmocka_unit_test(by_whatever_thread_or_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
