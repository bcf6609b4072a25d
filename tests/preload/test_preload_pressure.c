/* When others need memory, what is held free goes back at once: not when it has aged, an hour from
 * now. */
#include "cgroup.h"
#include "refuse.h"
#include "run.h"

#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

enum { LIMIT_MIB = 576 }; /* below 512 MiB nothing that is free is kept */
/* Each time a limit's worth of page cache is read: seconds where that is emulated. */
#define TWICE "2"

static const char *const folders[] = {FL_BUILD_DIR, "/var/tmp"};
static const char *disk; /* the first of them whose files the kernel can drop from memory */

static void find_disk(void)
{
    for (size_t i = 0; disk == NULL && i < sizeof folders / sizeof folders[0]; i++) {
        struct statfs fs;
        bool there = statfs(folders[i], &fs) == 0;
        disk = there && fs.f_type != TMPFS_MAGIC && fs.f_type != RAMFS_MAGIC ? folders[i] : NULL;
    }
}

/* With a descriptor table of its own refused, as where close_range(2) is not there. */
static void join_without_table(void *arg)
{
    static unsigned calls[] = {SYS_close_range, 0};

    fl_cgroup_join(arg);
    fl_refuse(calls);
}

static void ends_with(const char *what, const char *times, void (*in_child)(void *),
                      const char *disable)
{
    long long kills = fl_cgroup_kills();

    const struct fl_run *r = FL_ACTIVE(
        FL_ARGV("victim_pressure", disk, times, fl_cgroup_limit_that_refuses()),
        .env = FL_ENV("FAULTLESS_DECAY_MS=3600000", text_as("FAULTLESS_DISABLE=%s", disable)),
        .in_child = in_child);
    assert_string_equal(r->out, what);
    assert_true(fl_cgroup_kills() == kills);
}

/* Until it does: v2 counts each time that the limit is met, v1 each look in vain. */
CASE_IS(free_memory_goes_back_at_once, ends_with("released\n", "0", fl_cgroup_join, ""))

/* So it was the pressure: nothing else gives it back. */
CASE(without_a_listener_it_stays)
{
    ends_with("kept\n", TWICE, fl_cgroup_join, "worker");
    ends_with("kept\n", TWICE, join_without_table, "");
}

int main(void)
{
    find_disk();
    FL_SKIP_UNLESS(disk != NULL, "test_preload_pressure",
                   "needs a disk, got a build folder and /var/tmp in memory");
    FL_SKIP_UNLESS(fl_cgroup_make(LIMIT_MIB), "test_preload_pressure", fl_cgroup_missing());
    return RUN_CASES(.group_teardown = fl_cgroup_remove);
}
