/* What was freed between blocks that stay is there for requests of any size, where maps are
 * counted: as under glibc, whose heap has it. */
#include "run.h"

#include <sys/resource.h>

enum { LIMIT_MIB = 100 };

static void set_limit(void *resource)
{
    const struct rlimit r = {(rlim_t)LIMIT_MIB << 20, RLIM_INFINITY};

    setrlimit(*(const __rlimit_resource_t *)resource, &r);
}

/* The victim gets nine tenths of what glibc gives it each time: of small blocks, then of large
 * ones. Not of these where another thread had the small ones: where
 * large blocks are maps of their own, what is free in that thread's arena is no other's, in glibc
 * either. */
static void as_under_glibc(const char *const argv[])
{
    __rlimit_resource_t resource = argv[1][0] == 'a' ? RLIMIT_AS : RLIMIT_DATA;
    bool before = strcmp(argv[2], "before") == 0;
    const struct fl_how ours = {
        .argv = argv, .in_child = before ? set_limit : NULL, .arg = &resource};
    struct fl_how plain = ours;

    plain.preload = "";
    bool alone = strcmp(argv[7], "main") == 0 || strcmp(argv[7], "child") == 0;
    fl_run_assert_as_much(fl_run_how(&ours), fl_run_how(&plain), 90,
                          alone ? FL_ARGV("large ", "small ", "then ", "whole ")
                                : FL_ARGV("large ", "small "));
}

CASE(holes_of_any_length_are_there_for_small_requests)
{
    as_under_glibc(FL_ARGV("victim_room", "as", "before", "64", "2", "3000", "malloc", "main"));
    as_under_glibc(FL_ARGV("victim_room", "data", "before", "100", "3", "1000", "malloc", "main"));
    as_under_glibc(FL_ARGV("victim_room", "as", "before", "1024", "2", "1", "malloc", "main"));
    as_under_glibc(
        FL_ARGV("victim_room", "data", "before", "1945", "2", "60000", "malloc", "main"));
    as_under_glibc(FL_ARGV("victim_room", "as", "before", "3072", "0", "3000", "malloc", "main"));
    as_under_glibc(FL_ARGV("victim_room", "data", "before", "40960", "2", "100", "malloc", "main"));
}

CASE(whenever_the_limit_comes)
{
    as_under_glibc(FL_ARGV("victim_room", "data", "own", "100", "0", "3000", "malloc", "main"));
    as_under_glibc(FL_ARGV("victim_room", "as", "other", "64", "2", "3000", "malloc", "main"));
    as_under_glibc(FL_ARGV("victim_room", "data", "other", "1024", "3", "3000", "malloc", "main"));
}

CASE(by_whatever_name_they_are_asked_for)
{
    static const char *const names[] = {"calloc", "realloc", "memalign", "posix_memalign",
#ifdef FL_HAVE_CXX
                                        "new",
#endif
                                        NULL};
    for (size_t i = 0; names[i] != NULL; i++) {
        as_under_glibc(FL_ARGV("victim_room", i % 2 == 0 ? "as" : "data", "before", "1024", "2",
                               "1000", names[i], "main"));
    }
}

CASE(by_whatever_thread_or_child)
{
    static const char *const who[] = {"thread", "both", "child", NULL};
    for (size_t i = 0; who[i] != NULL; i++) {
        as_under_glibc(FL_ARGV("victim_room", i % 2 == 0 ? "as" : "data", "own", "1024", "2",
                               "1000", "malloc", who[i]));
    }
}

CASES_MAIN()
