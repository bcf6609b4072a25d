/* Long new blocks of which next to nothing is touched hold about as much as under glibc, whatever
 * the order; and those that fill come in huge pages as ever. */
#include "run.h"

#include <stdlib.h>
#include <sys/utsname.h>

enum { HUGE_MIB = 2, FAULTS_MORE = 256 }; /* a huge page in base pages would be 512 */
#define MIB_TEXT "1200"

static const char victim[] = "victim_thin";

static void is_thin(const char *shape, const char *blocks, const char *how)
{
    const struct fl_run *r = fl_preload_run(FL_ARGV(victim, shape, MIB_TEXT, blocks, how), NULL);

    fl_run_assert_active(r);
    print_message("%s of %s, %s: %s", shape, blocks, how, r->out);
}

static void a_byte_in_each_mib(void **state)
{
    (void)state;
    is_thin("1", "1", "");
    is_thin("1,back", "1", "");
    is_thin("1,random", "1", "");
    is_thin("16", "1", "");
    is_thin("16,random", "1", "");
}

static void pages_at_random(void **state)
{
    (void)state;
    is_thin("%1", "1", "");
    is_thin("%5", "1", "");
}

static void in_a_hundred_blocks(void **state)
{
    (void)state;
    is_thin("1", "100", "");
    is_thin("1,random", "100", "");
    is_thin("16,back", "100", "");
    is_thin("%5", "100", "");
    is_thin("1", "99", ""); /* which share huge pages */
    is_thin("1", "100", "each");
}

/* From 2 MiB on; with few huge pages of its own, or none. */
static void in_short_blocks(void **state)
{
    (void)state;
    is_thin("1", "600", "");
    is_thin("1,random", "545", "");
    is_thin("1,back", "300", "");
    is_thin("%1", "400", "");
    is_thin("1", "550", "each");
}

static void what_begins_late(void **state)
{
    (void)state;
    is_thin("1", "1", "late");
    is_thin("%1", "100", "late");
}

static void what_grew(void **state)
{
    (void)state;
    if (!fl_rung_has("move")) { /* by a copy it holds what was copied */
        is_thin("1", "1", "grown");
    }
}

static void fills(const char *shape, const char *mib, const char *blocks)
{
    const struct fl_run *r = fl_preload_run(FL_ARGV(victim, shape, mib, blocks), NULL);

    fl_run_assert_active(r);
    assert_true(fl_run_said(r, "huge ") >= atol(mib) / 100 * 99);
    assert_true(fl_run_said(r, "faults ") <= atol(mib) / HUGE_MIB + FAULTS_MORE);
}

static void what_fills_comes_in_huge_pages(void **state)
{
    static const char *const shape[] = {"front", "zeros", "threads", "pieces"};

    (void)state;
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
    char text[64] = "";
    struct utsname u;
    FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");

    if (f != NULL) {
        (void)fgets(text, sizeof text, f);
        (void)fclose(f);
    }
    assert_int_equal(uname(&u), 0);
    char *end;
    long major = strtol(u.release, &end, 10), minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    return strstr(text, "[madvise]") != NULL && (major > 6 || (major == 6 && minor >= 12));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_byte_in_each_mib),
        cmocka_unit_test(pages_at_random),
        cmocka_unit_test(in_a_hundred_blocks),
        cmocka_unit_test(in_short_blocks),
        cmocka_unit_test(what_begins_late),
        cmocka_unit_test(what_grew),
        cmocka_unit_test(what_fills_comes_in_huge_pages),
    };
    FL_SKIP_UNLESS(has_huge_pages(), "test_preload_thin", "needs Linux 6.12 and THP madvise");
    return cmocka_run_group_tests_name("thin", tests, NULL, NULL);
}
