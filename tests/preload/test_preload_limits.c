/* Where memory or address space is limited: nearly as much as under glibc, then ENOMEM, then life
 * goes on. */
#include "run.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

struct limit {
    int resource;
    size_t mib;
};

static void set_limit(void *arg)
{
    const struct limit *l = arg;
    const struct rlimit r = {l->mib << 20, l->mib << 20};

    setrlimit((__rlimit_resource_t)l->resource, &r);
}

static void no_thp(void *arg)
{
    (void)arg;
    prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
}

enum { OVERHEAD_MIB = 6 }; /* the library, its boot area and the first descriptors */

/* The same program, under the same limit, gets at least `percent` of what it gets from glibc, each
 * time, but for a few MiB that every process pays. */
static void nearly_as_much(struct limit l, const char *const argv[], long percent)
{
    static const char *const words[] = {"first ", "again ", "small "};
    const struct fl_how ours = {.argv = argv, .in_child = set_limit, .arg = &l};
    const struct fl_how plain = {.argv = argv, .in_child = set_limit, .arg = &l, .preload = ""};
    const struct fl_run *a = fl_run_how(&ours), *b = fl_run_how(&plain);

    for (size_t i = 0; i < 3 && fl_run_said(b, words[i]) >= 0; i++) {
        print_message("           limit %zu MiB, blocks of %s KiB: %s%ld MiB, glibc %ld MiB\n",
                      l.mib, argv[1], words[i], fl_run_said(a, words[i]), fl_run_said(b, words[i]));
    }
    fl_run_assert_clean(b);
    fl_run_assert_clean(a);
    for (size_t i = 0; i < 3 && fl_run_said(b, words[i]) >= 0; i++) {
        assert_true((fl_run_said(a, words[i]) + OVERHEAD_MIB) * 100 >=
                    fl_run_said(b, words[i]) * percent);
    }
}

static void limits_are_used_nearly_in_full(void **state)
{
    static const struct {
        struct limit limit;
        const char *kib, *touched;
        long percent;
    } rows[] = {
        {{RLIMIT_AS, 100}, "1024", "100", 95},   {{RLIMIT_AS, 256}, "100", "100", 97},
        {{RLIMIT_AS, 512}, "3000", "100", 97},   {{RLIMIT_DATA, 100}, "1024", "100", 95},
        {{RLIMIT_DATA, 512}, "3000", "100", 97}, {{RLIMIT_AS, 2048}, "16384", "1", 97},
        {{RLIMIT_DATA, 2048}, "16384", "1", 97},
    };
    size_t n = sizeof rows / sizeof rows[0];

    (void)state;
    for (size_t i = 0; i < (fl_rung()[0] == '\0' ? n : n - 2); i++) {
        nearly_as_much(rows[i].limit, FL_ARGV("victim_fill", rows[i].kib, rows[i].touched, "9999"),
                       rows[i].percent);
    }
}

/* So small that no window can be had: everything passes through. */
static void a_tiny_address_space_still_runs(void **state)
{
    (void)state;
    for (size_t mib = 8; mib <= 96; mib += 8) {
        nearly_as_much((struct limit){RLIMIT_AS, mib}, FL_ARGV("victim_fill", "100", "100", "9999"),
                       95);
    }
}

static void a_program_may_limit_itself(void **state)
{
    (void)state;
    nearly_as_much((struct limit){RLIMIT_CORE, 0},
                   FL_ARGV("victim_fill", "1024", "100", "300", "late", "1024"), 90);
}

/* What was freed before counts, too: it goes back when the limit comes. */
static void what_is_free_is_not_in_the_way_of_a_new_limit(void **state)
{
    static const char *const modes[] = {"by_setrlimit", "by_prlimit", "by_number", NULL};
    (void)state;

    for (size_t i = 0; modes[i] != NULL; i++) {
        fl_run_assert_clean(fl_plain_run(FL_ARGV("victim_limited", modes[i])));
    }
    fl_run_modes("victim_limited", modes, NULL);
}

static void small_requests_find_what_large_ones_left(void **state)
{
    (void)state;
    const struct limit limits[] = {{RLIMIT_AS, 512}, {RLIMIT_DATA, 512}};

    for (size_t i = 0; i < 2; i++) {
        nearly_as_much(limits[i], FL_ARGV("victim_fill", "1024", "100", "300", "small"), 97);
    }
}

static void sparse_giants_stay_small(void **state)
{
    (void)state;
    fl_run_modes("victim_sparse",
                 FL_ARGV("by_malloc", "by_calloc", "by_memalign", "shrunk", "moved"), NULL);
    fl_run_modes("victim_sparse", FL_ARGV("by_malloc", "by_calloc"),
                 FL_ENV("FAULTLESS_DISABLE=thp"));
}

/* What the kernel's own rule refuses glibc is refused here, too; what it allows is served. */
static void what_exceeds_all_memory_is_as_without_us(void **state)
{
    (void)state;
    fl_run_assert_active(fl_run_same(&(struct fl_how){.argv = FL_ARGV("victim_beyond")}, ""));
}

static void eager_max_is_obeyed(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_sparse", "above_eager_max"),
                                            FL_ENV("FAULTLESS_EAGER_MAX=32M"));
    fl_run_assert_active(r);
    assert_true(fl_run_stat(r, "lazy") >= 1);
}

static void limit_is_obeyed(void **state)
{
    (void)state;
    const struct fl_run *r =
        fl_preload_run(FL_ARGV("victim_sparse", "above_limit"), FL_ENV("FAULTLESS_LIMIT=64M"));
    fl_run_assert_active(r);
    assert_true(fl_run_stat(r, "populated_peak_bytes") <= 64 << 20);
}

static void locked_memory_is_what_was_asked_for(void **state)
{
    (void)state;
    const struct fl_run *r = fl_preload_run(FL_ARGV("victim_sparse", "locked"), NULL);
    fl_run_assert_clean(r);
    if (strcmp(r->out, "a window\n") == 0) { /* else all is the next one's */
        fl_run_assert_active(r);
    }
}

static void without_huge_pages_all_is_served(void **state)
{
    (void)state;
    const struct fl_how how = {.argv = FL_ARGV("victim_contents", "realloc_random"),
                               .in_child = no_thp};
    fl_run_assert_active(fl_run_how(&how));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_used_nearly_in_full),
        cmocka_unit_test(a_tiny_address_space_still_runs),
        cmocka_unit_test(a_program_may_limit_itself),
        cmocka_unit_test(what_is_free_is_not_in_the_way_of_a_new_limit),
        cmocka_unit_test(small_requests_find_what_large_ones_left),
        cmocka_unit_test(sparse_giants_stay_small),
        cmocka_unit_test(what_exceeds_all_memory_is_as_without_us),
        cmocka_unit_test(eager_max_is_obeyed),
        cmocka_unit_test(limit_is_obeyed),
        cmocka_unit_test(locked_memory_is_what_was_asked_for),
        cmocka_unit_test(without_huge_pages_all_is_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
