/* A memory control group: the kernel kills no program under faultless that it does not kill under
 * glibc. */
#include "cgroup.h"
#include "run.h"

/* IN_FLIGHT: what a request and the worker may each have been granted when neither's pages are
 * counted by the kernel yet. */
enum { LIMIT_MIB = 256, IN_FLIGHT_MIB = 8 };

static const char *extra; /* an entry of the environment */

static const struct fl_run *run(const char *const argv[], const char *preload)
{
    return FL_RUN(argv, .env = FL_ENV(extra), .preload = preload, .in_child = fl_cgroup_join);
}

/* Both runs end well and get as far. */
static void lives_where_glibc_lives(const char *const argv[])
{
    long long kills = fl_cgroup_kills();
    const struct fl_run *plain = run(argv, ""), *ours = run(argv, NULL);

    fl_run_assert_clean(plain);
    fl_run_assert_active(ours);
    assert_string_equal(ours->out, plain->out);
    assert_true(fl_cgroup_kills() == kills);
}

/* What is handed out for its first touch has to find that room too. */
CASE(what_is_populated_on_touch_takes_turns_too)
{
    extra = "FAULTLESS_NUMA=first-touch";
    lives_where_glibc_lives(FL_ARGV("victim_fill", "174080", "100", "170", "turns", "170"));
    lives_where_glibc_lives(FL_ARGV("victim_fill", "34816", "100", "170", "turns", "170"));
    extra = NULL;
}

static void all_live(const char *const *const argvs[])
{
    for (; *argvs != NULL; argvs++) {
        lives_where_glibc_lives(*argvs);
    }
}

/* What is populated unasked is half of the limit at most but for what is in flight, and on the
 * highest rung not much less. */
CASE(the_groups_limit_is_ours)
{
    extra = "FAULTLESS_EAGER_MAX=0"; /* else nothing untouched is populated */
    for (int mib = LIMIT_MIB / 2; mib <= 2 * LIMIT_MIB; mib *= 2) {
        assert_true(fl_cgroup_limit(mib));
        const struct fl_run *r = run(FL_ARGV("victim_pieces", "1024", "400", "0", "0"), NULL);
        long long populated = fl_run_stat(r, "populate_bytes") >> 20;
        fl_run_assert_active(r);
        assert_in_range(populated, fl_rung()[0] != '\0' ? 0 : mib / 4, mib / 2 + IN_FLIGHT_MIB);
    }
    extra = NULL;
    assert_true(fl_cgroup_limit(LIMIT_MIB));
}

/* Pages that a program gives back are the group's at once, though they were a part of a huge page.
 * */
CASE(what_is_given_back_in_pieces_is_not_counted)
{
    const struct fl_run *r =
        fl_run_assert_active(run(FL_ARGV("victim_punched", fl_cgroup_usage_file()), NULL));
    long before = fl_run_said(r, "before "), after = fl_run_said(r, "after ");
    assert_true(before >= 128);
    assert_in_range(after, 0, before - 128 + 128 / 16 + IN_FLIGHT_MIB);
}

static bool lives(const char *const argv[], const char *preload, long kib)
{
    assert_true(fl_cgroup_limit_kib(kib));
    const struct fl_run *r = run(argv, preload);
    return r->exit_status == 0;
}

/* The least limit that it lives with under glibc, to a 64th. */
static long least_of_glibc(const char *const argv[], long kib)
{
    long dies = kib / 2, does = 4 * kib;

    while (does - dies > does / 64) {
        long between = (dies + does) / 2;
        if (lives(argv, "", between)) {
            does = between;
        } else {
            dies = between;
        }
    }
    return does;
}

/* With a twentieth more than what glibc needs, whatever comes between large and small blocks. */
static void needs_little_more_than_glibc(const char *what, const char *mib)
{
    const char *const *argv = FL_ARGV("victim_group", what, mib);
    long least = least_of_glibc(argv, atol(mib) << 10);

    print_message("           %s of %s MiB: glibc needs %ld KiB\n", what, mib, least);
    for (int i = 0; i < 3; i++) {
        assert_true(lives(argv, NULL, least + least / 20));
    }
}

CASE(a_small_group_is_enough_where_it_is_for_glibc)
{
    needs_little_more_than_glibc("Ls", "16");
    if (fl_rung()[0] != '\0') { /* each of these runs a program some thirty times */
        assert_true(fl_cgroup_limit(LIMIT_MIB));
        return;
    }
    needs_little_more_than_glibc("lsLs", "64");
    needs_little_more_than_glibc("mlsFcLs", "24");
    needs_little_more_than_glibc("hFsfl", "48");
    needs_little_more_than_glibc("Ts", "32");
    needs_little_more_than_glibc("ksrs", "32");
    needs_little_more_than_glibc("lsLmFs", "160");
    assert_true(fl_cgroup_limit(LIMIT_MIB));
}

#define LIVES(name, ...) CASE_IS(name, all_live((const char *const *const[]){__VA_ARGS__, NULL}))

LIVES(what_fits_is_served, FL_ARGV("victim_fill", "1024", "100", "200"),
      FL_ARGV("victim_fill", "30000", "100", "200"), FL_ARGV("victim_fill", "100", "100", "180"))
LIVES(what_is_not_touched_is_not_taken, FL_ARGV("victim_fill", "102400", "1", "5000"),
      FL_ARGV("victim_fill", "16384", "1", "1000"), FL_ARGV("victim_sparse", "by_malloc"))
/* those that were populated for nothing must leave room */
LIVES(small_requests_find_room_beside_untouched_blocks,
      FL_ARGV("victim_pieces", "1024", "400", "0", "10"),
      FL_ARGV("victim_pieces", "8192", "400", "0", "60"),
      FL_ARGV("victim_pieces", "40960", "400", "0", "60"),
      FL_ARGV("victim_pieces", "1024", "400", "0", "60"),
      FL_ARGV("victim_fill", "1024", "10", "1000"))
LIVES(large_and_small_requests_take_turns, FL_ARGV("victim_fill", "100", "100", "180", "small"),
      FL_ARGV("victim_fill", "20480", "100", "160", "turns", "170"),
      FL_ARGV("victim_fill", "1024", "100", "160", "turns", "170"),
      FL_ARGV("victim_fill", "174080", "100", "170", "turns", "170"))
/* glibc needs a tenth less than the limit */
LIVES(small_requests_find_room_between_large_blocks,
      FL_ARGV("victim_pieces", "512", "228", "4", "165"),
      FL_ARGV("victim_pieces", "192", "228", "8", "190"),
      FL_ARGV("victim_pieces", "2560", "228", "2", "110"))

int main(void)
{
    FL_SKIP_UNLESS(fl_cgroup_make(LIMIT_MIB), "test_preload_cgroup", fl_cgroup_missing());
    return RUN_CASES(.group_teardown = fl_cgroup_remove);
}
