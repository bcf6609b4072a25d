/* Population by several at once, on the real kernel: what is resident, whose faults they were, what
 * stays behind. The linker wraps fl_guest_start (CMakeLists.txt), so that tests count threads and
 * refuse them. */
#include "cases.h"
#include "unit/crew_fixture.h"
#include "unit/guest_fixture.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>

static long faults(int who)
{
    struct rusage u;

    assert_int_equal(getrusage(who, &u), 0);
    return u.ru_minflt;
}

CASE(each_kind_fills_the_range_and_nothing_else)
{
    struct fl_range all = map(MIB(SHARED + 8));
    struct fl_range odd = {all.base + 3 * fl_page.base, MIB(SHARED) + 5 * fl_page.base};
    bool uring = has_uring();
    for (unsigned kind = FL_CREW_ALONE; kind <= FL_CREW_URING; kind++) {
        enum fl_crew_kind used;
        assert_int_equal(fl_crew_populate(odd, 4, kind, &used), 0);
        assert_int_equal(used, kind == FL_CREW_URING && !uring ? FL_CREW_THREADS : kind);
        assert_int_equal(resident(odd), odd.len);
        assert_int_equal(resident(all), odd.len);
        empty(all);
        assert_int_equal(fl_sys_linux.populate_shared(odd, 4), 0);
        assert_int_equal(resident(all), odd.len);
        empty(all);
    }
}

CASE(huge_pages_are_filled_as_huge_pages)
{
    struct fl_range r = map(MIB(SHARED));
    assert_int_equal(fl_sys_linux.advise(r, FL_ADVICE_HUGE), 0);
    for (unsigned kind = FL_CREW_THREADS; kind <= FL_CREW_URING; kind++) {
        long before = faults(RUSAGE_SELF);
        assert_int_equal(fl_crew_populate(r, 4, kind, NULL), 0);
        long taken = faults(RUSAGE_SELF) - before;
        assert_int_equal(resident(r), r.len);
        /* One thread a huge page: beside its fault there is only what a thread's start costs. */
        if (fl_page.thp) {
            assert_in_range(taken, r.len / fl_page.huge / 2, r.len / fl_page.huge + 200);
        }
        empty(r);
    }
}

/* A helper that gets no CPU does nothing; then the next round counts. */
CASE(helpers_take_faults_off_the_caller)
{
    struct fl_range r = map(MIB(SHARED));
    long all = (long)(r.len / fl_page.base);
    for (unsigned kind = FL_CREW_THREADS; kind <= FL_CREW_URING; kind++) {
        long own = all;
        for (int round = 0; round < 100 && own > all - all / 10; round++) {
            long before = faults(RUSAGE_THREAD), before_all = faults(RUSAGE_SELF);
            assert_int_equal(fl_crew_populate(r, 1, kind, NULL), 0);
            own = faults(RUSAGE_THREAD) - before;
            assert_in_range(faults(RUSAGE_SELF) - before_all, all, all + 500);
            empty(r);
        }
        assert_true(own <= all - all / 10);
    }
}

CASE(what_is_short_or_may_not_be_shared_is_done_alone)
{
    struct fl_range r = map(MIB(SHARED));
    struct fl_range small = {r.base, MIB(SMALL)};
    enum fl_crew_kind used;
    cpu_set_t before, one;
    atomic_store(&guests.begun, 0);
    assert_int_equal(fl_crew_populate(small, 4, FL_CREW_URING, &used), 0);
    assert_int_equal(used, FL_CREW_ALONE);
    assert_int_equal(fl_crew_populate(r, 0, FL_CREW_URING, &used), 0);
    assert_int_equal(used, FL_CREW_ALONE);
    assert_int_equal(fl_crew_populate(r, 4, FL_CREW_ALONE, &used), 0);
    assert_int_equal(used, FL_CREW_ALONE);
    assert_int_equal(fl_crew_populate((struct fl_range){r.base, 0}, 4, FL_CREW_THREADS, NULL), 0);
    /* a thread that is bound to one CPU has no helper */
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(fl_crew_populate(r, 4, FL_CREW_URING, &used), 0);
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
    assert_int_equal(used, FL_CREW_ALONE);
    assert_int_equal(atomic_load(&guests.begun), 0);
}

CASE(helpers_are_fewer_than_the_cpus)
{
    struct fl_range r = map(MIB(SHARED));
    cpu_set_t cpus;
    assert_int_equal(sched_getaffinity(0, sizeof cpus, &cpus), 0);
    for (unsigned helpers = 1; helpers < 100; helpers *= 3) {
        atomic_store(&guests.begun, 0);
        assert_int_equal(fl_crew_populate(r, helpers, FL_CREW_THREADS, NULL), 0);
        assert_in_range(atomic_load(&guests.begun), 1,
                        fl_min(helpers, (size_t)CPU_COUNT(&cpus) - 1));
        empty(r);
    }
}

CASE(a_refusal_is_passed_on_and_ends_the_work)
{
    struct fl_range r = map(MIB(SHARED));
    for (unsigned hole = 0; hole < MIB(SHARED) / fl_page.base; hole += 4999) {
        struct fl_range page = {r.base + hole * fl_page.base, fl_page.base};
        assert_int_equal(fl_sys_linux.unmap(page), 0);
        for (unsigned kind = FL_CREW_ALONE; kind <= FL_CREW_URING; kind++) {
            assert_int_equal(fl_crew_populate(r, 4, kind, NULL), -ENOMEM);
            assert_int_equal(fl_sys_linux.map_at(page), 0);
            empty(r);
            for (int look = 0; look < 3; look++) {
                assert_int_equal(resident(r), 0);
                sched_yield();
            }
            assert_int_equal(fl_sys_linux.unmap(page), 0);
        }
        assert_int_equal(fl_sys_linux.map_at(page), 0);
    }
}

CASE(memory_that_may_not_be_written_is_refused)
{
    struct fl_range r = map(MIB(SHARED));
    assert_int_equal(mprotect((void *)r.base, r.len, PROT_READ), 0);
    for (unsigned kind = FL_CREW_ALONE; kind <= FL_CREW_URING; kind++) {
        assert_int_equal(fl_crew_populate(r, 4, kind, NULL), fl_sys_linux.populate(r));
        assert_int_not_equal(fl_sys_linux.populate(r), 0);
    }
    assert_int_equal(resident(r), 0);
}

CASE(without_a_thread_the_caller_does_it)
{
    struct fl_range r = map(MIB(SHARED));
    enum fl_crew_kind used;
    atomic_store(&guests.refuse_as, -EAGAIN);
    atomic_store(&guests.refusals, 100);
    assert_int_equal(fl_crew_populate(r, 4, FL_CREW_THREADS, &used), 0);
    assert_int_equal(used, FL_CREW_ALONE);
    assert_int_equal(resident(r), r.len);
    atomic_store(&guests.refusals, 0);
}

CASE(signals_stay_as_they_are)
{
    struct fl_range r = map(MIB(SHARED));
    sigset_t before, after;
    sigemptyset(&before);
    sigaddset(&before, SIGUSR2);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
    for (unsigned kind = FL_CREW_THREADS; kind <= FL_CREW_URING; kind++) {
        assert_int_equal(fl_crew_populate(r, 4, kind, NULL), 0);
        assert_int_equal(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
        for (int sig = 1; sig < 32; sig++) {
            assert_int_equal(sigismember(&after, sig), sig == SIGUSR2);
        }
    }
    sigemptyset(&before);
    assert_int_equal(pthread_sigmask(SIG_SETMASK, &before, NULL), 0);
}

CASE(nothing_of_a_ring_stays)
{
    struct fl_range r = map(MIB(SHARED));
    unsigned before = descriptors();
    char line[512];
    for (int i = 0; i < 20; i++) {
        assert_int_equal(fl_crew_populate(r, 4, FL_CREW_URING, NULL), 0);
    }
    assert_int_equal(descriptors(), before);
    FILE *maps = fopen("/proc/self/maps", "r");
    assert_non_null(maps);
    while (fgets(line, sizeof line, maps) != NULL) {
        assert_null(strstr(line, "io_uring"));
    }
    fclose(maps);
}

/* The end of a ring is signalled to the thread that had it: so a program's thread must have
 * none. */
CASE(a_program_s_thread_is_not_interrupted_afterwards)
{
    struct fl_range r = map(MIB(SHARED));
    struct epoll_event event;
    int ep = epoll_create1(EPOLL_CLOEXEC);
    assert_true(ep >= 0);
    assert_int_equal(fl_sys_linux.populate_shared(r, 4), 0);
    assert_int_equal(epoll_wait(ep, &event, 1, 100), 0);
    close(ep);
}

static void *fill_some(void *arg)
{
    struct fl_range r = *(struct fl_range *)arg;
    size_t n = 0;

    for (int i = 0; i < 3; i++) {
        if (madvise((void *)r.base, r.len, MADV_DONTNEED) != 0 ||
            fl_sys_linux.populate_shared(r, 2) != 0 || fl_sys_linux.resident(r, &n) != 0 ||
            n != r.len) {
            return NULL;
        }
    }
    return arg;
}

CASE(many_threads_fill_at_once)
{
    struct fl_range r[6];
    pthread_t t[6];
    void *good;
    for (size_t i = 0; i < 6; i++) {
        r[i] = map(MIB(SHARED));
        assert_int_equal(pthread_create(&t[i], NULL, fill_some, &r[i]), 0);
    }
    for (size_t i = 0; i < 6; i++) {
        assert_int_equal(pthread_join(t[i], &good), 0);
        assert_non_null(good);
    }
}

int main(void)
{
    if (!can_share("test_sys_crew")) {
        return CANNOT_SHARE;
    }
    return RUN_CASES(.teardown = unmap_all);
}
