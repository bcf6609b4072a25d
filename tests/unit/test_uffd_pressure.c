/* Pressure: who is listened to, and that free memory goes back when they speak, once a second at
 * most. */
#include "cases.h"
#include "unit/uffd_fixture.h"

#define SECOND UINT64_C(1000000000)

static const char psi[] = "/proc/pressure/memory";
static const char v2_psi[] = "/sys/fs/cgroup/a/b/memory.pressure";
static const char v2_events[] = "/sys/fs/cgroup/a/b/memory.events";

static void begin(void)
{
    worker_begin(1000u * DECAY_MS); /* ticks are far away: what goes back is the pressure's doing */
}

/* 4 MiB free, and the thread watches. */
static void hold_free(void)
{
    struct fl_extent *e = take(MIB(4));
    give(e);
    fl_worker_call(&worker, true);
    await_sleep();
}

static void assert_released(unsigned n)
{
    await_sleep();
    assert_int_equal(stats().releases, n);
    assert_int_equal(stats().purge_bytes, n * MIB(4));
    assert_int_equal(ticks, 0);
    assert_sound();
}

static void raise_and_see(const char *path, short what)
{
    fake_events_raise(path, what);
    while (!fake_events_is_seen(path)) {
    }
}

CASE(a_stall_releases_at_once)
{
    fake_events_file(psi, false);
    hold_free();
    assert_string_equal(fake_events.told[0], "some 70000 1000000");
    assert_released(0);
    raise_and_see(psi, POLLPRI);
    assert_released(1);
}

CASE(what_is_in_caches_goes_too)
{
    fake_events_file(psi, false);
    struct fl_cache *c = fl_cache_acquire(&region);
    struct fl_extent *e = take(MIB(4));
    assert_true(fl_extent_claim(e, region.epoch));
    assert_null(fl_cache_put(&region, c, e));
    fl_worker_call(&worker, true);
    await_sleep();
    raise_and_see(psi, POLLPRI);
    assert_released(1);
}

CASE(there_is_a_second_between_two_releases_and_none_is_forgotten)
{
    fake_events_file(psi, false);
    hold_free();
    raise_and_see(psi, POLLPRI);
    assert_released(1);
    hold_free();
    fake_events_raise(psi, POLLPRI);
    unsigned polls = fake_events.polls;
    await_sleep();
    assert_released(1);
    assert_false(fake_events_is_seen(psi));
    assert_int_equal(fake_events.polls, polls); /* it does not even wake up for it */
    pass_ns(SECOND - 1);
    assert_released(1);
    pass_ns(1);
    while (!fake_events_is_seen(psi)) {
    }
    assert_released(2);
}

CASE(two_that_speak_at_once_are_one)
{
    fake_events_file(psi, false);
    fake_file("/proc/self/cgroup", "0::/a/b\n");
    fake_events_file(v2_psi, false);
    hold_free();
    fake_events_raise_two(psi, v2_psi, POLLPRI);
    while (!fake_events_is_seen(psi) || !fake_events_is_seen(v2_psi)) {
    }
    assert_released(1);
}

CASE(the_coarse_trigger_is_taken_where_the_fine_one_is_refused)
{
    fake_events_file(psi, false);
    fake_events.no_fine_trigger = true;
    hold_free();
    assert_int_equal(fake_events.ntold, 1);
    assert_string_equal(fake_events.told[0], "some 150000 2000000");
    raise_and_see(psi, POLLPRI);
    assert_released(1);
}

CASE(where_nothing_can_be_watched_it_sleeps_all_the_same)
{
    fake_events_file(psi, false);
    fake_events.no_trigger = true;
    fake_file("/proc/self/cgroup", "0::/a/b\n");
    fake_events_file(v2_psi, true); /* not to be written to */
    hold_free();
    assert_int_equal(worker.state, FL_WORKER_ASLEEP);
    assert_int_equal(fake_events_open("wake"), 1);
    assert_int_equal(fake_events_open(NULL), 1);
}

CASE(one_that_is_gone_is_closed_and_the_others_stay)
{
    fake_events_file(psi, false);
    fake_file("/proc/self/cgroup", "0::/a/b\n");
    fake_events_file(v2_psi, false);
    hold_free();
    assert_int_equal(fake_events_open(v2_psi), 1);
    raise_and_see(v2_psi, POLLERR | POLLPRI);
    await_sleep();
    assert_int_equal(fake_events_open(v2_psi), 0);
    assert_released(0);
    raise_and_see(psi, POLLPRI);
    assert_released(1);
}

CASE(a_limit_counts_when_it_is_not_the_page_cache_that_meets_it)
{
    fake_file("/proc/self/cgroup", "5:cpu:/\n0::/a/b\n");
    fake_file("/sys/fs/cgroup/a/b/memory.max", "1000000000\n");
    fake_file("/sys/fs/cgroup/a/b/memory.current", "1000000000\n");
    fake_file("/sys/fs/cgroup/a/b/memory.stat", "anon 300000000\ninactive_file 700000000\n");
    fake_events_file(v2_events, true);
    hold_free();
    unsigned takes = fake_events.takes;
    assert_int_equal(takes, 1); /* so that changes count from there */
    raise_and_see(v2_events, POLLPRI | POLLERR);
    assert_released(0);
    assert_int_equal(fake_events.takes, 2);
    fake_file("/sys/fs/cgroup/a/b/memory.stat", "anon 800000000\ninactive_file 200000000\n");
    raise_and_see(v2_events, POLLPRI | POLLERR);
    assert_released(1);
    assert_int_equal(fake_events_open(v2_events), 1);
}

static void level_of_v1(const char *control, const char *level)
{
    fake_file("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000000000\n");
    fake_file("/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "900000000\n");
    fake_events_file(control, false);
    fake_events_file(level, true);
    hold_free();
    assert_int_equal(fake_events_open("counter"), 1);
    assert_int_equal(fake_events_open(NULL), 2); /* with the wake */
    assert_int_equal(fake_events.ntold, 1);
    assert_string_equal(fake_events.told[0] + 9, " medium");
}

CASE(the_pressure_level_of_v1_is_asked_for)
{
    fake_file("/proc/self/cgroup", "4:memory:/a\n0::/\n");
    level_of_v1("/sys/fs/cgroup/memory/a/cgroup.event_control",
                "/sys/fs/cgroup/memory/a/memory.pressure_level");
    raise_and_see("counter", POLLIN);
    assert_released(1);
}

/* In a container the path is the host's, and the mount is the cgroup. */
CASE(the_nearest_folder_that_is_there_is_the_cgroup_s)
{
    fake_file("/proc/self/cgroup", "4:cpu,memory:/docker/0123456789abcdef\n");
    level_of_v1("/sys/fs/cgroup/memory/cgroup.event_control",
                "/sys/fs/cgroup/memory/memory.pressure_level");
}

CASE(a_level_that_cannot_be_asked_for_leaves_nothing_open)
{
    fake_file("/proc/self/cgroup", "4:memory:/a\n");
    fake_events_file("/sys/fs/cgroup/memory/a/cgroup.event_control", false);
    hold_free();
    assert_int_equal(fake_events_open(NULL), 1);
    assert_int_equal(fake_events_open("wake"), 1);
}

CASE(the_watch_ends_with_what_is_held)
{
    fake_events_file(psi, false);
    hold_free();
    raise_and_see(psi, POLLPRI);
    assert_released(1);
    pass_ns(250 * SECOND); /* the tick that finds nothing left */
    await(&ticks, 1);
    await_state(FL_WORKER_ASLEEP);
    assert_int_equal(fake_events_open(psi), 0);
    hold_free();
    assert_int_equal(fake_events_open(psi), 1);
}

CASES_MAIN(.setup = begin, .teardown = worker_end)
