/* What ranks leave each other, and what is remembered between two looks. */
#include "cases.h"
#include "unit/memory_fixture.h"

/* Half of each total stays for all; what is above is divided. What can be taken at all is not. */
CASE(ranks_divide_what_is_taken_unasked)
{
    static const unsigned ranks[] = {0, 1, 2, 3, 8, 4096};
    for (size_t i = 0; i < sizeof ranks / sizeof ranks[0]; i++) {
        uint64_t n = ranks[i] == 0 ? 1 : ranks[i];
        scratch.ranks = ranks[i];
        struct fl_memory m = look();
        assert_int_equal(m.headroom, GIB(14));
        assert_int_equal(m.eager, GIB(6) / n);
        assert_true(n * m.eager <= GIB(6)); /* all at once */
    }
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 8388608 kB\n");
    assert_int_equal(look().eager, 0);
}

CASE(ranks_divide_cgroups_and_the_commit_limit_too)
{
    scratch.ranks = 4;
    fake_file("/proc/self/cgroup", "0::/job\n");
    GROUP_V2("job/", "8589934592\n", "1073741824\n");
    fake_file("/proc/sys/vm/overcommit_memory", "2\n");
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 14680064 kB\n"
                               "CommitLimit:     8388608 kB\n");
    struct fl_memory m = look();
    assert_int_equal(m.headroom, GIB(7));
    assert_int_equal(m.unused, GIB(7));
    assert_int_equal(m.eager, GIB(3) / 4);
    assert_int_equal(m.keep, GIB(1) / 4);
    fake.limit_as = GIB(1); /* the process's own */
    assert_int_equal(look().keep, GIB(1) / 8);
}

/* MemAvailable as it is when `taken` bytes of 16 GiB are in use. */
static void machine_with(uint64_t taken)
{
    static char text[128];

    snprintf(text, sizeof text, "MemTotal: 16777216 kB\nMemAvailable: %llu kB\n",
             (unsigned long long)((GIB(16) - taken) >> 10));
    fake_file("/proc/meminfo", text);
}

/* A rank that looks again and again takes its part of the half, and no more: the others may yet
 * come. */
CASE(a_rank_alone_takes_one_part)
{
    size_t held = 0;
    scratch.ranks = 8;
    scratch.held = &held;
    for (int i = 0; i < 1000; i++) {
        machine_with(held);
        struct fl_memory m = look();
        assert_true(held + m.eager <= GIB(1));
        held += m.eager / 2;
    }
    assert_true(held > GIB(1) - (64 << 10));
    held = GIB(1);
    assert_int_equal(look().eager, 0);
    held = GIB(2); /* touched, not populated unasked */
    assert_int_equal(look().eager, 0);
    scratch.ranks = 1;
    assert_int_equal(look().eager, GIB(7)); /* no other process to leave memory to */
    scratch.promises = true;                /* what waits for its touch is in no file yet */
    assert_int_equal(look().eager, GIB(6));
    held = GIB(9);
    assert_int_equal(look().eager, 0);
}

/* However they take turns, ranks leave half of the machine, or all that others left them. */
CASE(ranks_together_leave_half)
{
    static const uint64_t others[] = {0, GIB(3), GIB(7), GIB(9)};
    scratch.ranks = 4;
    for (size_t k = 0; k < sizeof others / sizeof others[0]; k++) {
        size_t held[4] = {0}, sum = 0;
        uint64_t seed = 1, room = others[k] < GIB(8) ? GIB(8) - others[k] : 0;
        for (int round = 0; round < 200; round++) {
            uint64_t grant[4];
            machine_with(others[k] + sum);
            for (size_t i = 0; i < 4; i++) { /* all look, then all take */
                scratch.held = &held[i];
                grant[i] = look().eager;
            }
            for (size_t i = 0; i < 4; i++) {
                seed = seed * 6364136223846793005u + 1442695040888963407u;
                size_t takes = seed >> 63 != 0 ? grant[i] & ~(size_t)1023 : 0;
                held[i] += takes;
                sum += takes;
            }
            assert_true(sum <= room);
        }
        assert_true(sum >= room - room / 64); /* and it does not go to waste */
    }
}

static void script_cgroup(const char *own)
{
    fake_file("/proc/self/cgroup", own);
    GROUP_V2("a/", "4294967296\n", "1073741824\n");
    GROUP_V2("b/", "2147483648\n", "1073741824\n");
}

CASE(what_was_found_is_used_sixteen_times)
{
    script_cgroup("0::/a\n");
    assert_int_equal(look_again().headroom, GIB(3));
    fake_file("/proc/self/cgroup", "0::/b\n"); /* moved */
    for (int i = 1; i < 16; i++) {
        fake_forget();
        assert_int_equal(look_again().headroom, GIB(3));
        assert_int_equal(fake.count[FAKE_READ_FILE], 3); /* meminfo, memory.current, memory.stat */
    }
    assert_int_equal(look_again().headroom, GIB(1));
}

CASE(use_is_read_each_time)
{
    script_cgroup("0::/a\n");
    assert_int_equal(look_again().headroom, GIB(3));
    fake_file("/sys/fs/cgroup/a/memory.current", "3221225472\n");
    assert_int_equal(look_again().headroom, GIB(1));
    fake_file("/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 1073741824\n");
    assert_int_equal(look_again().headroom, GIB(2));
    fake_file("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 1024 kB\n");
    assert_int_equal(look_again().headroom, 1 << 20);
}

CASE(what_was_found_is_used_for_a_second)
{
    atomic_store(&fake.now_ns, 5000000000);
    script_cgroup("0::/a\n");
    assert_int_equal(look_again().headroom, GIB(3));
    fake_file("/sys/fs/cgroup/a/memory.max", "3221225472\n");
    atomic_store(&fake.now_ns, 5999999999);
    assert_int_equal(look_again().headroom, GIB(3));
    atomic_store(&fake.now_ns, 6000000000);
    assert_int_equal(look_again().headroom, GIB(2));
}

/* Only one that the process has left can be removed. */
CASE(a_cgroup_that_is_gone_is_searched_for_at_once)
{
    script_cgroup("0::/a\n");
    assert_int_equal(look_again().headroom, GIB(3));
    fake_file("/proc/self/cgroup", "0::/b\n");
    fake_file("/sys/fs/cgroup/a/memory.current", NULL);
    fake_file("/sys/fs/cgroup/a/memory.max", NULL);
    assert_int_equal(look_again().headroom, GIB(1));
    fake_file("/sys/fs/cgroup/b/memory.current", NULL); /* a limit, but no word of its use */
    struct fl_memory m = look_again();
    assert_int_equal(m.headroom, GIB(14));
    assert_false(m.bounded);
}

CASES_MAIN(.setup = each)
