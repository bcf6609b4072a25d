/* A memory cgroup: nobody is killed under faultless who is not killed under glibc. */
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT_MIB = 256 };

static char group[256], procs[300];

static bool write_text(const char *file, const char *text)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", group, file);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0) {
        close(fd);
    }
    return done;
}

static void join_group(void *arg)
{
    char pid[16];
    (void)arg;

    int n = snprintf(pid, sizeof pid, "%d", getpid());
    int fd = open(procs, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, pid, (size_t)n) != n) {
        _exit(98);
    }
}

static const struct fl_run *run(const char *const argv[], const char *preload)
{
    return fl_run_how(&(struct fl_how){.argv = argv, .preload = preload, .in_child = join_group});
}

/* Both runs end well and get as far. */
static void lives_where_glibc_lives(const char *const argv[])
{
    const struct fl_run *plain = run(argv, ""), *ours = run(argv, NULL);

    print_message("           %s %s %s\n", argv[1], argv[1] != NULL ? argv[2] : "",
                  argv[1] != NULL && argv[2] != NULL ? argv[3] : "");
    fl_run_assert_clean(plain);
    fl_run_assert_active(ours);
    assert_string_equal(ours->out, plain->out);
}

static void what_fits_is_served(void **state)
{
    (void)state;
    lives_where_glibc_lives(FL_ARGV("victim_fill", "1024", "100", "200"));
    lives_where_glibc_lives(FL_ARGV("victim_fill", "30000", "100", "200"));
    lives_where_glibc_lives(FL_ARGV("victim_fill", "100", "100", "180"));
}

static void what_is_not_touched_is_not_taken(void **state)
{
    (void)state;
    lives_where_glibc_lives(FL_ARGV("victim_fill", "102400", "1", "5000"));
    lives_where_glibc_lives(FL_ARGV("victim_fill", "16384", "1", "1000"));
    fl_run_assert_active(run(FL_ARGV("victim_sparse", "by_malloc"), NULL)); /* glibc: refused */
}

/* A third of a program's large blocks touched, then small ones: those that were populated for nothing must leave room. */
static void small_requests_find_room_beside_untouched_blocks(void **state)
{
    (void)state;
    lives_where_glibc_lives(FL_ARGV("victim_beside", "1024", "400", "10"));
    lives_where_glibc_lives(FL_ARGV("victim_beside", "8192", "400", "60"));
    lives_where_glibc_lives(FL_ARGV("victim_beside", "40960", "400", "60"));
    lives_where_glibc_lives(FL_ARGV("victim_beside", "1024", "400", "60"));
    lives_where_glibc_lives(FL_ARGV("victim_fill", "1024", "10", "1000"));
}

/* What is free in one kind of block has to be there for the other, in each round. */
static void large_and_small_requests_take_turns(void **state)
{
    (void)state;
    lives_where_glibc_lives(FL_ARGV("victim_fill", "100", "100", "180", "small"));
    lives_where_glibc_lives(FL_ARGV("victim_alternate", "20", "8", "170", "3"));
    lives_where_glibc_lives(FL_ARGV("victim_alternate", "1", "160", "170", "3"));
    lives_where_glibc_lives(FL_ARGV("victim_alternate", "170", "1", "170", "3"));
}

static bool make_group(void)
{
    static const struct {
        const char *mount, *limit;
    } kinds[] = {{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
                 {"/sys/fs/cgroup", "memory.max"}};
    char bytes[32];

    snprintf(bytes, sizeof bytes, "%d", LIMIT_MIB << 20);
    for (size_t i = 0; i < 2; i++) {
        snprintf(group, sizeof group, "%s/faultless-test-%d", kinds[i].mount, getpid());
        snprintf(procs, sizeof procs, "%s/cgroup.procs", group);
        if (mkdir(group, 0755) != 0) {
            continue;
        }
        if (write_text(kinds[i].limit, bytes) && access(procs, W_OK) == 0) {
            (void)write_text("memory.swap.max", "0");
            return true;
        }
        rmdir(group);
    }
    return false;
}

static int remove_group(void **state)
{
    (void)state;
    for (int i = 0; rmdir(group) != 0 && errno == EBUSY && i < 1000; i++) {
        usleep(1000); /* the kernel is still taking the last process out */
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_fits_is_served),
        cmocka_unit_test(what_is_not_touched_is_not_taken),
        cmocka_unit_test(small_requests_find_room_beside_untouched_blocks),
        cmocka_unit_test(large_and_small_requests_take_turns),
    };
    FL_SKIP_UNLESS(make_group(), "test_preload_cgroup", "needs to make a memory cgroup");
    return cmocka_run_group_tests(tests, NULL, remove_group);
}
