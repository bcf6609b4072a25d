/* The live page is no matter of the host program's: fork, exec, filters and signals are as without
 * it, and nothing of it is to be found in the process or left behind. */
#include "cases.h"
#include "child.h"
#include "live_victim.h"
#include "seccomp.h"

#include <dirent.h>
#include <signal.h>

/* ---- fork, exec, filters ---- */

CASE(a_child_of_fork_has_figures_of_its_own)
{
    struct fl_live_victim v = fl_live_victim_begin("fork", fl_live_victim_still);
    const json_t *child = fl_child_json(fl_live_victim_line(&v));
    pid_t pid = (pid_t)fl_child_number(child, "pid");
    assert_int_not_equal(pid, v.pid);
    double of_parent = fl_child_number(fl_live_victim_top(v.pid), "live_bytes");
    const json_t *seen = fl_live_victim_top(pid);
    fl_live_victim_same(seen, child, "requests");
    fl_live_victim_near(fl_child_number(seen, "live_bytes"), of_parent + (24 << 20), 0, "live");
}

CASE(exec_ends_it)
{
    char comm[32] = "";
    struct fl_live_victim v = fl_live_victim_begin("exec", fl_live_victim_still);
    (void)fl_live_victim_top(v.pid);
    assert_int_equal(write(v.in, "\nx\n", 3), 3);
    assert_string_equal(fl_live_victim_line(&v), "x"); /* by cat */
    (void)read_text(text_as("/proc/%d/comm", (int)v.pid), comm, sizeof(comm));
    assert_string_equal(comm, "cat\n");
    TOP(1, "--batch", "-n", "1", "-p", fl_live_victim_text(v.pid));
    assert_says(output.err, ": not under faultless\n");
}

/* And it is not killed: its status is 0 in the end. */
CASE(a_strict_filter_is_no_obstacle)
{
    struct fl_live_victim v = fl_live_victim_begin("filter", fl_live_victim_still);
    while (fl_live_victim_kib(v.pid, "status", "Seccomp:") != 1) {
        usleep(1000);
    }
    fl_live_victim_same(fl_live_victim_top(v.pid), v.said, "requests");
}

/* A stopped process answers, too. */
CASE(a_stopped_process_is_read)
{
    struct fl_live_victim v = fl_live_victim_begin("work", fl_live_victim_still);
    assert_int_equal(kill(v.pid, SIGSTOP), 0);
    fl_live_victim_same(fl_live_victim_top(v.pid), v.said, "requests");
    assert_int_equal(kill(v.pid, SIGCONT), 0);
}

static size_t count_in(const char *path)
{
    size_t n = 0;
    DIR *folder = opendir(path);
    while (folder != NULL && readdir(folder) != NULL) {
        n++;
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return n;
}

/* Numbers of pipes that both inherit from the program that runs this. */
static void hide_pipes(char *line)
{
    for (char *at = line; (at = strstr(at, "pipe:[")) != NULL; at++) {
        memset(at, '.', strcspn(at, "]"));
    }
}

/* No descriptor and no shared mapping, and no file in a runtime folder, also after SIGKILL. */
CASE(the_host_sees_nothing)
{
    static char line[16384];
    static char without[16384];
    const char *variable = text_as("XDG_RUNTIME_DIR=%s", fl_child_folder);
    size_t before = count_in("/dev/shm");
    const char *const with[] = {"LD_PRELOAD=" FL_LIBRARY, variable, NULL};
    struct fl_live_victim v = fl_live_victim_start(ARGV(FL_LIVE, "files"), NULL);
    snprintf(without, sizeof(without), "%s", fl_live_victim_line(&v));
    assert_int_equal(fl_live_victim_end(&v), 0);
    v = fl_live_victim_start(ARGV(FL_LIVE, "files"), with);
    hide_pipes(without);
    snprintf(line, sizeof(line), "%s", fl_live_victim_line(&v));
    hide_pipes(line);
    assert_string_equal(line, without);
    TOP(0, "--batch", "-n", "1", "-p", fl_live_victim_text(v.pid));
    assert_int_equal(kill(v.pid, SIGKILL), 0);
    assert_int_equal(fl_live_victim_end(&v), 128 + SIGKILL);
    assert_int_equal(count_in(fl_child_folder), 2); /* . and .. */
    assert_int_equal(count_in("/dev/shm"), before);
}

/* ---- who may read ---- */

/* As Yama answers, or a container's filter. */
static void lose_the_right_to_read(void)
{
    static struct filter f;

    filter_begin(&f);
    filter_answer(&f, SYS_process_vm_readv, SECCOMP_RET_ERRNO | EPERM);
    filter_end(&f, SECCOMP_RET_ALLOW);
    if (filter_install(&f) != 0) {
        _exit(99);
    }
}

CASE(without_the_right_to_read_the_kernels_figures_remain)
{
    char row[512];
    struct fl_live_victim v = fl_live_victim_begin("work", fl_live_victim_still);
    fl_child_run_changed(
        ARGV(FL_FAULTSTAT, "top", "--batch", "-n", "1", "-p", fl_live_victim_text(v.pid)),
        lose_the_right_to_read);
    assert_int_equal(output.status, 0);
    assert_says(output.out, "no counters of 1 process: not permitted");
    const char *found = strstr(output.out, "victim_live");
    assert_non_null(found);
    snprintf(row, sizeof(row), "%.*s", (int)strcspn(found, "\n"), found);
    /* Method, plan, hit rate and live; resident; reserve. */
    char word[6][16];
    assert_int_equal(sscanf(row, "victim_live %15s %15s %15s %15s %15s %15s", word[0], word[1],
                            word[2], word[3], word[4], word[5]),
                     6);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(strcmp(word[i], "-") == 0, i != 4);
    }
}

LIVE_VICTIM_MAIN("test_tools_top_host", .teardown = fl_live_victims_end_well, IN_FOLDER)
