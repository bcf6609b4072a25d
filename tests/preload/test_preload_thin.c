/* Long new blocks of which next to nothing is touched hold about as much as under glibc, whatever
 * the order; and those that fill come in huge pages as ever. */
#include "run.h"

enum { HUGE_MIB = 2, FAULTS_MORE = 256 }; /* a huge page in base pages would be 512 */
#define MIB_TEXT "1200"

static const char victim[] = "victim_thin";

struct row {
    const char *shape, *blocks, *how;
};

static void is_thin(const struct row *row)
{
    for (; row->shape != NULL; row++) {
        FL_ACTIVE(FL_ARGV(victim, row->shape, MIB_TEXT, row->blocks, row->how));
    }
}

CASE(what_grew)
{
    if (!fl_rung_has("move")) { /* by a copy it holds what was copied */
        FL_ACTIVE(FL_ARGV(victim, "1", MIB_TEXT, "1", "grown"));
    }
}

static void fills(const char *shape, const char *mib, const char *blocks)
{
    const struct fl_run *r = FL_ACTIVE(FL_ARGV(victim, shape, mib, blocks));
    assert_true(fl_run_said(r, "huge ") >= atol(mib) / 100 * 99);
    assert_true(fl_run_said(r, "faults ") <= atol(mib) / HUGE_MIB + FAULTS_MORE);
}

CASE(what_fills_comes_in_huge_pages)
{
    static const char *const shape[] = {"front", "zeros", "threads", "pieces"};

    size_t n = fl_rung()[0] == '\0' ? sizeof shape / sizeof shape[0] : 1;
    for (size_t i = 0; i < n; i++) {
        fills(shape[i], MIB_TEXT, "1");
        fills(shape[i], MIB_TEXT, "100");
    }
    fills("front", MIB_TEXT, "570");
    fills("pieces", MIB_TEXT, "400");
    fills("read", "400", "1");
}

/* And the kernel gives back what is zero of huge pages that it splits. */
static bool has_huge_pages(void)
{
    return strcmp(fl_thp_setting(), "madvise") == 0 && fl_linux_has(6, 12);
}

#define THIN(name, ...)                                                                            \
    CASE_IS(name, is_thin((const struct row[]){__VA_ARGS__, {NULL, NULL, NULL}}))

THIN(a_byte_in_each_mib, {"1", "1", ""}, {"1,back", "1", ""}, {"1,random", "1", ""},
     {"16", "1", ""}, {"16,random", "1", ""})
THIN(pages_at_random, {"%1", "1", ""}, {"%5", "1", ""})
THIN(in_a_hundred_blocks, {"1", "100", ""}, {"1,random", "100", ""}, {"16,back", "100", ""},
     {"%5", "100", ""}, {"1", "99", ""} /* which share huge pages */, {"1", "100", "each"})
/* From 2 MiB on; with few huge pages of its own, or none. */
THIN(in_short_blocks, {"1", "600", ""}, {"1,random", "545", ""}, {"1,back", "300", ""},
     {"%1", "400", ""}, {"1", "550", "each"})
THIN(what_begins_late, {"1", "1", "late"}, {"%1", "100", "late"})

int main(void)
{
    FL_SKIP_UNLESS(has_huge_pages(), "test_preload_thin", "needs Linux 6.12 and THP madvise");
    return RUN_CASES();
}
