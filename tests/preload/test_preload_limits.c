/* Where memory or address space is limited: nearly as much as under glibc, then ENOMEM, then life
 * goes on. */
#include "run.h"

#include <signal.h>
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

/* The same program under the same limit. */
static void nearly_as_much(struct limit l, const char *const argv[], long percent)
{
    const struct fl_run *ours = FL_RUN(argv, .in_child = set_limit, .arg = &l);
    const struct fl_run *plain = FL_RUN(argv, .in_child = set_limit, .arg = &l, .preload = "");
    bool has_small = strstr(plain->out, "small ") != NULL;

    fl_run_assert_as_much(ours, plain, percent,
                          has_small ? FL_ARGV("first ", "again ", "small ")
                                    : FL_ARGV("first ", "again "));
}

CASE(limits_are_used_nearly_in_full)
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

    for (size_t i = 0; i < (fl_rung()[0] == '\0' ? n : n - 2); i++) {
        nearly_as_much(rows[i].limit, FL_ARGV("victim_fill", rows[i].kib, rows[i].touched, "9999"),
                       rows[i].percent);
    }
}

/* So small that no window can be had: everything passes through. */
CASE(a_tiny_address_space_still_runs)
{
    for (size_t mib = 8; mib <= 96; mib += 8) {
        nearly_as_much((struct limit){RLIMIT_AS, mib}, FL_ARGV("victim_fill", "100", "100", "9999"),
                       95);
    }
}

CASE_IS(a_program_may_limit_itself,
        nearly_as_much((struct limit){RLIMIT_CORE, 0},
                       FL_ARGV("victim_fill", "1024", "100", "300", "late", "1024"), 90))

/* What was freed before counts, too: it goes back when the limit comes. */
CASE(what_is_free_is_not_in_the_way_of_a_new_limit)
{
    const char *const *modes = FL_ARGV("by_setrlimit", "by_prlimit", "by_number");

    fl_plain_modes("victim_limited", modes);
    fl_run_modes("victim_limited", modes, NULL);
}

CASE(small_requests_find_what_large_ones_left)
{
    const struct limit limits[] = {{RLIMIT_AS, 512}, {RLIMIT_DATA, 512}};

    for (size_t i = 0; i < 2; i++) {
        nearly_as_much(limits[i], FL_ARGV("victim_fill", "1024", "100", "300", "small"), 97);
    }
}

CASE(sparse_giants_stay_small)
{
    fl_run_modes("victim_sparse",
                 FL_ARGV("by_malloc", "by_calloc", "by_memalign", "shrunk", "moved"), NULL);
    fl_run_modes("victim_sparse", FL_ARGV("by_malloc", "by_calloc"),
                 FL_ENV("FAULTLESS_DISABLE=thp"));
}

/* What the kernel's own rule refuses glibc is refused here, too; what it allows is served. */
CASE_IS(what_exceeds_all_memory_is_as_without_us,
        fl_run_assert_active(fl_run_same(&(struct fl_how){.argv = FL_ARGV("victim_beyond")}, "")))

CASE(eager_max_is_obeyed)
{
    const struct fl_run *r =
        FL_ACTIVE(FL_ARGV("victim_sparse", "above_eager_max"), FL_ENV("FAULTLESS_EAGER_MAX=32M"));
    assert_true(fl_run_stat(r, "lazy") >= 1);
}

CASE(limit_is_obeyed)
{
    const struct fl_run *r =
        FL_ACTIVE(FL_ARGV("victim_sparse", "above_limit"), FL_ENV("FAULTLESS_LIMIT=64M"));
    assert_true(fl_run_stat(r, "populated_peak_bytes") <= 64 << 20);
}

CASE(locked_memory_is_what_was_asked_for)
{
    const struct fl_run *r = FL_CLEAN(FL_ARGV("victim_sparse", "locked"));
    if (strcmp(r->out, "a window\n") == 0) { /* else all is the next one's */
        fl_run_assert_active(r);
    }
}

CASE_IS(without_huge_pages_all_is_served,
        FL_ACTIVE(FL_ARGV("victim_contents", "realloc_random"), .in_child = no_thp))

CASES_MAIN()
