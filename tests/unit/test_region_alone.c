/* Where no worker ticks, requests and frees do: what is not used goes back, what is used again
 * stays. */
#include "cases.h"
#include "unit/region_fixture.h"

static const uint64_t tick = 100000000; /* ns */
static const struct fl_region_config alone = {.huge = true, .tick_ns = 100000000};

/* A request and its free that no memory has to be got for, `later` ticks from now. */
static void call(double later)
{
    fake.now_ns += (uint64_t)(later * (double)tick);
    give(take(KIB(64)));
}

static void call_times(int n, double later)
{
    for (int i = 0; i < n; i++) {
        call(later);
    }
}

static void begin(const struct fl_region_config *c)
{
    region_begin(c);
    fake.pretend_populate = true;
    fake.now_ns = 1;
    struct fl_extent *small = take(MIB(1)); /* of which no page ever ages */
    assert_non_null(take(MIB(3)));
    give(small);
}

/* It merges with nothing behind it. */
static struct fl_extent *take_fenced(size_t len)
{
    struct fl_extent *e = take(len);

    assert_non_null(take(MIB(2)));
    return e;
}

CASE(idle_memory_goes_back)
{
    begin(&alone);
    give(take_fenced(MIB(32)));
    call_times(3, 1);
    assert_int_equal(fake_purged(), 0);
    call(1);
    assert_int_equal(fake_purged(), MIB(32));
    assert_settled();
}

CASE(a_tick_is_once_in_its_time)
{
    begin(&alone);
    uint32_t epoch = region.epoch;
    call_times(100, 0.01);
    assert_int_equal(region.epoch - epoch, 1);
    call(1000); /* one, however long no call came */
    assert_int_equal(region.epoch - epoch, 2);
}

CASE(steps_keep_their_memory)
{
    begin(&alone);
    for (int step = 0; step < 40; step++) {
        fake.now_ns += 3 * tick; /* nearly the whole age, asleep */
        struct fl_extent *a = take(MIB(8)), *b = take(MIB(16));
        if (step == 1) {
            fake_forget();
        }
        give(a);
        give(b);
    }
    assert_int_equal(fake.count[FAKE_POPULATE], 0);
    assert_int_equal(fake_purged(), 0);
    assert_settled();
}

CASE(a_request_gives_only_so_much_back)
{
    begin(&alone);
    give(take_fenced(MIB(200)));
    call_times(3, 1);
    assert_int_equal(fake_purged(), 0);
    fake.now_ns += tick;
    size_t before = 0, calls = 0;
    while (fake_purged() < MIB(200)) {
        assert_true(++calls < 100);
        struct fl_extent *one = take(KIB(64));
        assert_true(fake_purged() - before <= MIB(64));
        before = fake_purged();
        give(one);
        assert_true(fake_purged() - before <= MIB(64));
        before = fake_purged();
    }
    assert_true(calls <= 2);
    assert_settled();
}

CASE(free_memory_is_hidden_from_dumps_too)
{
    begin(&alone);
    give(take_fenced(MIB(32)));
    call_times(2, 1);
    assert_int_equal(fake_hidden(region.space.window.all), MIB(32));
    struct fl_extent *e = take(MIB(32));
    assert_int_equal(fake_hidden(region.space.window.all), 0);
    give(e);
    assert_settled();
}

CASE(caches_are_aged_too)
{
    begin(&alone);
    (void)cache_put(fl_cache_acquire(&region), take_fenced(MIB(8)));
    call_times(4, 1);
    assert_int_equal(fake_purged(), MIB(8));
    assert_settled();
}

static unsigned aged;

static uint64_t age_others(struct fl_region *r)
{
    aged++;
    give(fl_region_take(r, NULL, KIB(64), KIB(4),
                        false)); /* no lock is held, and it is not called again */
    return 0;
}

CASE(others_age_what_they_hold)
{
    begin(&alone);
    region.hooks.age_more = age_others;
    aged = 0;
    for (unsigned i = 1; i <= 3; i++) {
        call(1);
        assert_int_equal(aged, i);
        call(0.1);
        assert_int_equal(aged, i);
    }
    struct fl_extent *e = take(KIB(64));
    fake.now_ns += tick;
    give(e); /* this may come from them */
    assert_int_equal(aged, 3);
    call(0.1);
    assert_int_equal(aged, 4);
}

CASE(with_a_worker_requests_do_not_tick)
{
    begin(&alone);
    fl_region_set_worker(&region, true);
    uint32_t epoch = region.epoch;
    call_times(10, 1);
    assert_int_equal(region.epoch, epoch);
    fl_region_set_worker(&region, false); /* it has ended */
    call_times(2, 1);
    assert_true(region.epoch != epoch);
}

static int child(void)
{
    fl_region_fork_child(&region, NULL);
    struct fl_extent *e = take(MIB(32));
    if (e == NULL) {
        return 1;
    }
    give(e);
    size_t before = fake_purged();
    call_times(6, 1);
    return fake_purged() - before >= MIB(32) && fl_region_check(&region) == NULL ? 0 : 2;
}

CASE(nor_does_a_child_wait_for_one)
{
    begin(&alone);
    fl_region_set_worker(&region, true);
    assert_non_null(take(MIB(2)));
    assert_int_equal(fork_with(child), 0);
}

CASE(without_decay_nothing_ages)
{
    begin(NULL);
    give(take(MIB(32)));
    call_times(10, 1);
    assert_int_equal(fake_purged(), 0);
    assert_int_equal(region.epoch, 0);
}

CASES_MAIN()
