#include "unit/crew_fixture.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct fl_range map(size_t len)
{
    struct fl_range all = {0, len + fl_page.huge};

    assert_int_equal(fl_sys_linux.reserve(all.len, &all.base), 0);
    struct fl_range r = {fl_align_up(all.base, fl_page.huge), len};
    if (r.base != all.base) {
        assert_int_equal(fl_sys_linux.unmap((struct fl_range){all.base, r.base - all.base}), 0);
    }
    struct fl_range rest = {fl_range_end(r), fl_range_end(all) - fl_range_end(r)};
    if (rest.len != 0) {
        assert_int_equal(fl_sys_linux.unmap(rest), 0);
    }
    assert_int_equal(fl_sys_linux.commit(r), 0);
    (void)fl_sys_linux.advise(r, FL_ADVICE_NO_HUGE); /* refused in a confined process */
    return r;
}

void empty(struct fl_range r)
{
    assert_int_equal(madvise((void *)r.base, r.len, MADV_DONTNEED), 0);
}

size_t resident(struct fl_range r)
{
    size_t n = 0;

    assert_int_equal(fl_sys_linux.resident(r, &n), 0);
    return n;
}

bool has_uring(void)
{
    char params[256] = {0};
    long fd = syscall(SYS_io_uring_setup, 4, params);

    if (fd >= 0) {
        close((int)fd);
    }
    return FL_HAVE_URING && fd >= 0;
}

bool can_share(const char *test)
{
    cpu_set_t cpus;

    fl_sys_boot();
    fl_home_settle();
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) < 2) {
        printf("SKIP %s: needs two CPUs\n", test);
        return false;
    }
    struct fl_range r = map(fl_page.huge);
    int rc = fl_sys_linux.populate(r);
    if (rc != 0) {
        printf("SKIP %s: needs MADV_POPULATE_WRITE, got %d\n", test, rc);
    }
    return fl_sys_linux.unmap(r) == 0 && rc == 0;
}

unsigned descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    unsigned n = 0;

    assert_non_null(d);
    while (readdir(d) != NULL) {
        n++;
    }
    closedir(d);
    return n;
}
