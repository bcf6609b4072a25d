/* The machine's setting for huge pages: never, madvise, always. */
#include "run.h"

#include <sys/prctl.h>
#include <sys/wait.h>

static const char setting[] = "/sys/kernel/mm/transparent_hugepage/enabled";

static void as_the_machine_says(const char *value)
{
    assert_true(fl_sysctl_set(setting, value));
    fl_run_modes("victim_contents", FL_ARGV("realloc_random", "calloc_in_pieces", "calloc_lazy"),
                 NULL);
    fl_run_modes("victim_sparse", FL_ARGV("by_malloc", "by_calloc"), NULL);
    const struct fl_run *r =
        FL_RUN(FL_ARGV("victim_names", "f_malloc"), FL_ENV("FAULTLESS_LOG=info"));
    assert_says(r->err, strcmp(value, "never") == 0 ? ", base pages" : ", huge pages");
}

/* The administrator said never; the user says: by collapse. */
CASE(never_but_by_collapse)
{
    static const char *const env[] = {"FAULTLESS_THP=collapse", "FAULTLESS_LOG=info", NULL};
    assert_true(fl_sysctl_set(setting, "never"));
    const struct fl_run *r = FL_RUN(FL_ARGV("victim_names", "f_malloc"), env);
    bool may = !fl_rung_has("thp") && !fl_rung_has("worker");
    assert_says(r->err, may ? ", huge pages by collapse" : ", base pages,");
    fl_run_modes("victim_contents", FL_ARGV("realloc_random", "calloc_in_pieces", "calloc_lazy"),
                 FL_ENV("FAULTLESS_THP=collapse"));
    fl_run_modes("victim_sparse", FL_ARGV("by_malloc", "by_calloc"),
                 FL_ENV("FAULTLESS_THP=collapse"));
    /* by MADV_COLLAPSE (Linux 6.1), of what PAGEMAP_SCAN finds (6.7) */
    fl_run_modes("victim_thp",
                 may && fl_linux_has(6, 7) ? FL_ARGV("full_becomes_huge", "half_stays_as_it_is")
                                           : FL_ARGV("nothing_becomes_huge"),
                 FL_ENV("FAULTLESS_THP=collapse"));
    FL_ACTIVE(FL_ARGV("victim_thp", "nothing_becomes_huge"));
}

/* Where it is not never the option changes nothing. */
CASE(collapse_is_of_never_alone)
{
    static const char *const env[] = {"FAULTLESS_THP=collapse", "FAULTLESS_LOG=info", NULL};
    assert_true(fl_sysctl_set(setting, "madvise"));
    const struct fl_run *r = FL_RUN(FL_ARGV("victim_names", "f_malloc"), env);
    assert_null(strstr(r->err, "by collapse"));
}

CASE(settings_may_change_beside_a_program)
{
    static const char *const option[] = {"FAULTLESS_THP=auto", "FAULTLESS_THP=collapse"};
    static const char *const first[] = {"never", "madvise", "always"};
    if (fl_rung_has("nobody")) { /* the victim changes it */
        return;
    }
    for (size_t i = 0; i < 6; i++) {
        assert_true(fl_sysctl_set(setting, first[i % 3]));
        FL_ACTIVE(FL_ARGV("victim_thp", "settings_change"), FL_ENV(option[i / 3]));
        fl_sysctl_restore();
    }
}

/* The kernel keeps huge pages to memory that asks for them: Linux 6.18. Asked in a child, which has
 * it so from then on. */
static bool keeps_huge(void)
{
    int status = 1;
    pid_t child = fork();

    if (child == 0) {
        _exit(prctl(PR_SET_THP_DISABLE, 1, 2, 0, 0) == 0 ? 0 : 1);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    return status == 0;
}

static long said(const struct fl_run *r, const char *who, const char *what)
{
    const char *line = strstr(r->out, who), *number = line != NULL ? strstr(line, what) : NULL;

    assert_non_null(number);
    return strtol(number + strlen(what), NULL, 10);
}

enum { BLOCK_KIB = 64 << 10, SOME_KIB = BLOCK_KIB / 2 };

static const struct fl_run *whose(const char *option)
{
    const struct fl_run *r = FL_RUN(FL_ARGV("victim_thp", "whose_pages_are_huge"), FL_ENV(option));

    assert_int_equal(r->exit_status, 0);
    return r;
}

CASE(ours_alone_are_huge)
{
    bool may = keeps_huge();

    assert_true(fl_sysctl_set(setting, "always"));
    const struct fl_run *r = whose("FAULTLESS_THP=auto");
    assert_string_equal(r->err, "");
    assert_in_range(said(r, "here", " own "), SOME_KIB, BLOCK_KIB);
    r = whose("FAULTLESS_THP=own");
    bool unset = fl_rung_has("thp"); /* then nothing asks for any */
    assert_in_range(said(r, "here", "malloc "), unset ? 0 : SOME_KIB, BLOCK_KIB);
    if (may && !unset) {
        assert_string_equal(r->err, "");
        assert_int_equal(said(r, "here", " own "), 0);
        assert_int_equal(said(r, "child", "malloc "), 0);
        assert_int_equal(said(r, "child", " own "), 0);
    } else if (!unset) {
        assert_says(r->err, "FAULTLESS_THP=own changes nothing: this kernel cannot");
        assert_int_equal(fl_run_lines(r->err), 1);
        assert_in_range(said(r, "here", " own "), SOME_KIB, BLOCK_KIB);
    }
}

CASE_IS(never, as_the_machine_says("never"))
CASE_IS(by_advice, as_the_machine_says("madvise"))
CASE_IS(always, as_the_machine_says("always"))

int main(void)
{
    FL_SKIP_UNLESS(access(setting, W_OK) == 0, "test_preload_thp",
                   "needs to write /sys/kernel/mm/transparent_hugepage/enabled");
    return RUN_CASES(.teardown = fl_sysctl_restore);
}
