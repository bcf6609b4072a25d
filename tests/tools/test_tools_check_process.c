/* faultless --check PID, judged from outside: each process of a tree, its memory, what is in the
 * way, the exit status. */
#include "cases.h"
#include "child.h"
#include "live_victim.h"

#include <sys/prctl.h>
#include <sys/wait.h>

#define PRELOAD "LD_PRELOAD=" FL_LIBRARY

static void check(pid_t pid)
{
    fl_child_run(ARGV(FL_LAUNCHER, "--check", fl_live_victim_text(pid)), NULL);
}

/* The same as JSON, which is the caller's. */
static const json_t *check_json(pid_t pid)
{
    fl_child_run(ARGV(FL_LAUNCHER, "--check", fl_live_victim_text(pid), "--json=-"), NULL);
    return fl_child_json(output.out);
}

static const json_t *process_of(const json_t *all, size_t i)
{
    return fl_child_item(all, "processes", i);
}

/* A program that has said that it is there. */
static struct fl_live_victim waiting(const char *const argv[], const char *const env[])
{
    struct fl_live_victim v = fl_live_victim_start(argv, env);

    assert_string_equal(fl_live_victim_line(&v), "ready");
    return v;
}

/* Whether a row is wrapped is no matter. */
static void assert_row(const char *wanted)
{
    static const char wrapped[] = "\n            ";
    char text[4096];
    size_t n = 0;

    for (const char *at = output.out; *at != '\0' && n < sizeof text - 1; at++) {
        bool is_wrapped = strncmp(at, wrapped, sizeof wrapped - 1) == 0;
        text[n++] = is_wrapped ? ' ' : *at;
        at += is_wrapped ? sizeof wrapped - 2 : 0;
    }
    text[n] = '\0';
    if (strstr(text, wanted) == NULL) {
        fail_msg("'%s' is not in: %s", wanted, text);
    }
}

/* It is one line of its process's; the status is that of a tree of one. */
static void assert_one(struct fl_live_victim v, bool served, const char *line)
{
    check(v.pid);
    (void)fl_live_victim_end(&v);
    assert_row(line);
    assert_int_equal(output.status, !served);
    assert_string_equal(output.err, "");
}

CASE(a_served_process_says_how_much_is_its)
{
    struct fl_live_victim v = fl_live_victim_begin("work", fl_live_victim_still);
    const json_t *all = check_json(v.pid);
    const json_t *p = process_of(all, 0);
    assert_int_equal(output.status, 0);
    assert_int_equal(fl_child_number(all, "served"), 1);
    assert_string_equal(fl_child_text(p, "verdict"), "served");
    double ours = fl_child_number(p, "ours_bytes");
    assert_true(ours >= fl_child_number(v.said, "live_bytes"));
    assert_true(ours <= fl_child_number(p, "anonymous_bytes"));
    check(v.pid);
    assert_row("victim_live: served ");
    assert_row(" are faultless's");
    assert_row("\nverdict     1 of 1 process is served\n");
}

CASE_IS(one_without_a_large_request_would_be_served,
        assert_one(waiting(ARGV(FL_WAITING), ARGV(PRELOAD)), true,
                   ": served, but no large request yet "))

CASE(what_is_not_preloaded_is_told)
{
    assert_one(waiting(ARGV(FL_WAITING), NULL), false, ": not served: not preloaded ");
    assert_one(waiting(ARGV(FL_WAITING), ARGV("LD_PRELOAD=/nonexistent/libfaultless.so")), false,
               ": not served: the loader did not find what LD_PRELOAD names ");
    assert_one(waiting(ARGV(FL_WAITING_STATIC), ARGV(PRELOAD)), false,
               ": not served: static program ");
    assert_one(waiting(ARGV(FL_WAITING_MALLOC), ARGV(PRELOAD)), false, "the program's own malloc ");
    assert_one(waiting(ARGV(FL_WAITING), ARGV(PRELOAD, "FAULTLESS_DISABLE=all")), false,
               ": not served: the library is not active ");
}

/* As a launcher does that puts its own allocator in front, of the child alone. */
CASE(a_shadowed_child_is_told)
{
    static const char script[] =
        "exec 3<&0; LD_PRELOAD=" FL_OTHER_MALLOC ":$LD_PRELOAD " FL_WAITING " <&3 & read x";
    struct fl_live_victim v = waiting(ARGV("/bin/sh", "-c", script), ARGV(PRELOAD));
    check(v.pid);
    (void)fl_live_victim_end(&v);
    assert_int_equal(output.status, 1);
    assert_row(": not served: its malloc is that of victim_other_malloc.so ");
    assert_row("\nverdict     1 of 2 processes are served\n");
}

/* redis-server writes over its environment, as others do that say what they do in ps. */
CASE_IS(one_that_has_lost_its_environment_is_told,
        assert_one(waiting(ARGV(FL_WAITING, "forget"),
                           ARGV("LD_PRELOAD=" FL_OTHER_MALLOC ":" FL_LIBRARY)),
                   false, ": not served: its malloc is that of victim_other_malloc.so "))

/* LD_PRELOAD has a link to the library, and maps what it leads to. */
CASE(an_allocator_behind_is_no_shadow)
{
    const char *link = text_as("%s/libfaultless.so", fl_child_folder);
    assert_int_equal(symlink(FL_LIBRARY, link), 0);
    assert_one(waiting(ARGV(FL_WAITING), ARGV(text_as("LD_PRELOAD=%s:" FL_OTHER_MALLOC, link))),
               true, ": served, ");
}

CASE(allocators_beside_malloc_are_told)
{
    assert_one(waiting(ARGV(FL_WAITING_JEMALLOC), ARGV(PRELOAD)), true,
               " VICTIM_MALLOC_CONF=thp:always,dirty_decay_ms:10000,");
    assert_row("victim_check_jemalloc: the memory of its jemalloc is not");
    assert_one(waiting(ARGV(FL_WAITING_JEMALLOC), ARGV(PRELOAD, "VICTIM_MALLOC_CONF=narenas:1")),
               true, "the memory of its jemalloc is not malloc's");
    assert_null(strstr(output.out, "thp:always")); /* what is set is theirs to say */
}

CASE(what_limits_it_is_told)
{
    assert_one(
        waiting(ARGV("/bin/sh", "-c", "ulimit -v 33554432; exec " FL_WAITING), ARGV(PRELOAD)), true,
        "limits: address space 32G, data none, ");
    assert_int_equal(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0); /* children have it from us */
    struct fl_live_victim v = waiting(ARGV(FL_WAITING), ARGV(PRELOAD));
    assert_int_equal(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0);
    assert_one(v, true, "huge pages are off for it: ");
    v = waiting(ARGV(FL_WAITING), ARGV(PRELOAD));
    check(v.pid);
    (void)fl_live_victim_end(&v);
    assert_null(strstr(output.out, "huge pages"));
}

CASE(one_that_is_not_there_is_told)
{
    pid_t pid = fork();
    if (pid == 0) {
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    check(pid);
    assert_int_equal(output.status, 127);
    assert_says(output.err, ": No such process\n");
    assert_string_equal(output.out, "");
}

/* A child that was not waited for is none that could be served. */
CASE(a_child_that_has_ended_is_left_out)
{
    static const char script[] = "(exit 0) & echo ready; exec cat"; /* which waits for none */
    struct fl_live_victim v = fl_live_victim_start(ARGV("/bin/sh", "-c", script), ARGV(PRELOAD));
    assert_string_equal(fl_live_victim_line(&v), "ready");
    do {
        check(v.pid); /* until cat is there, and the child has ended */
    } while (strstr(output.out, "cat: served") == NULL || output.status != 0);
    assert_row("\nverdict     1 of 1 process is served\n");
    (void)fl_live_victim_end(&v);
}

LIVE_VICTIM_MAIN("test_tools_check_process", .teardown = fl_live_victims_end_well, IN_FOLDER)
