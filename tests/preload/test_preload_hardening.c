/* With the options for hardening on, each class of misuse of large blocks ends the program, in ten
 * of ten runs, by a signal or by one exact line; with any of them on, a program without a mistake
 * runs as ever. */
#include "refuse.h"
#include "run.h"

#include <signal.h>
#include <sys/syscall.h>

enum { RUNS = 10 };

static const char *const sizes[] = {"71680", "262144", "33554432"};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

/* The address that a victim printed last. */
static unsigned long address_of(const struct fl_run *r)
{
    const char *last = strrchr(r->out, 'x');

    return last != NULL ? strtoul(last + 1, NULL, 16) : 0;
}

/* The line without its prefix and address; NULL: none, and SIGSEGV. */
static void ends_once(const char *mode, const char *size, const char *const env[], const char *line)
{
    const struct fl_run *r = FL_RUN(FL_ARGV("victim_hardening", mode, size), env);
    const char *want = line != NULL ? text_as("faultless: %s: 0x%lx\n", line, address_of(r)) : "";

    if (strcmp(r->err, want) != 0 || r->term_signal != (line != NULL ? SIGABRT : SIGSEGV)) {
        print_error("%s of %s bytes, %s: signal %d, status %d, said: %s", mode, size, env[0],
                    r->term_signal, r->exit_status, r->out);
    }
    assert_string_equal(r->err, want);
    assert_int_equal(r->term_signal, line != NULL ? SIGABRT : SIGSEGV);
}

#define EVERYTHING                                                                                 \
    FL_ENV("FAULTLESS_GUARD=all", "FAULTLESS_QUARANTINE=4G", "FAULTLESS_FILL=both",                \
           "FAULTLESS_CHECK_FREE=1")

/* With that option alone, and with all of them. */
static void ends_each(const char *mode, const char *size, const char *option, const char *line)
{
    for (int i = 0; i < (fl_rung()[0] == '\0' ? RUNS : 1); i++) {
        ends_once(mode, size, FL_ENV(option), line);
    }
    ends_once(mode, size, EVERYTHING, line);
}

static void ends(const char *mode, const char *option, const char *line)
{
    for (size_t s = 0; s < SIZES; s++) {
        ends_each(mode, sizes[s], option, line);
    }
}

/* `call` names the size divided by `part`, and so many bytes more. */
static void ends_by_size(const char *mode, const char *call, size_t part, long more)
{
    for (size_t s = 0; s < SIZES; s++) {
        size_t n = strtoul(sizes[s], NULL, 10);
        ends_each(mode, sizes[s], "FAULTLESS_CHECK_FREE=1",
                  text_as("%s of a block with another size (%zu, it has %zu)", call,
                          n / part + (size_t)more, n));
    }
}

/* A mistake, an option that finds it, and the line that it says; NULL: SIGSEGV. */
struct row {
    const char *mode, *option, *line;
};

static void end_it(const struct row *row)
{
    for (; row->mode != NULL; row++) {
        ends(row->mode, row->option, row->line);
    }
}

static const char no_block[] =
    "free of a pointer that is not a live block (freed twice, or never allocated)";

CASE(what_is_no_block_is_not_freed)
{
    static const char *const options[] = {"FAULTLESS_GUARD=all", "FAULTLESS_QUARANTINE=4G",
                                          "FAULTLESS_FILL=zero", "FAULTLESS_CHECK_FREE=1"};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        ends("interior", options[i], no_block);
        ends("interior_page", options[i], no_block);
        ends("never", options[i], no_block);
    }
    ends("page_start", "FAULTLESS_GUARD=all", no_block);
}

CASE(a_sized_free_must_name_the_size_and_the_alignment)
{
    ends_by_size("sized", "free_sized", 1, -8);
    ends_by_size("delete_sized", "operator delete", 2, 0);
    ends_by_size("delete_array_sized", "operator delete", 1, 1);
    ends_by_size("delete_aligned_sized", "operator delete", 1, 64);
    ends("sized_of_aligned", "FAULTLESS_CHECK_FREE=1",
         "free_sized of a block with another alignment (16, it has 64)");
    ends("aligned_sized", "FAULTLESS_CHECK_FREE=1",
         "free_aligned_sized of a block with another alignment (128, it has 64)");
    ends("delete_aligned", "FAULTLESS_CHECK_FREE=1",
         "operator delete of a block with another alignment (4096, it has 64)");
}

static void says(const char *mode, const char *const env[], const char *what)
{
    for (size_t s = 0; s < SIZES; s++) {
        const struct fl_run *r = FL_ACTIVE(FL_ARGV("victim_hardening", mode, sizes[s]), env);
        assert_string_equal(r->out, what);
    }
}

CASE(sized_frees_that_are_right_pass)
{
    says("sized_right", FL_ENV("FAULTLESS_CHECK_FREE=1"), "through\n");
    says("sized_right", EVERYTHING, "through\n");
}

CASE(mistakes_in_sized_frees_pass_without_the_option)
{
    static const char *const modes[] = {"sized", "sized_of_aligned", "aligned_sized",
                                        "delete_sized", "delete_aligned"};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        FL_CLEAN(FL_ARGV("victim_hardening", modes[i], sizes[0]));
    }
}

CASE(nothing_of_a_freed_block_is_left_to_the_next)
{
    for (int i = 0; i < RUNS; i++) {
        says("stale", FL_ENV("FAULTLESS_FILL=zero"), "stale 0\nthrough\n");
        says("stale", FL_ENV("FAULTLESS_QUARANTINE=4G"), "stale 0\nthrough\n");
        says("stale", FL_ENV("FAULTLESS_FILL=junk"), "stale 0\nthrough\n");
        says("stale", EVERYTHING, "stale 0\nthrough\n");
    }
}

CASE(junk_is_in_what_malloc_gives_and_not_in_what_calloc_gives)
{
    for (size_t s = 0; s < SIZES; s++) {
        const struct fl_run *r =
            FL_RUN(FL_ARGV("victim_hardening", "junk", sizes[s]), FL_ENV("FAULTLESS_FILL=junk"));
        assert_string_equal(r->out, text_as("junk %s\nthrough\n", sizes[s]));
        fl_run_assert_active(r);
    }
}

CASE(a_child_of_fork_finds_what_its_parent_freed)
{
    for (size_t s = 0; s < SIZES; s++) {
        const struct fl_run *r =
            FL_RUN(FL_ARGV("victim_hardening", "in_child", sizes[s]), EVERYTHING);
        assert_says(r->out, "child 6\n");
        assert_int_equal(r->exit_status, 0);
    }
}

/* One block in four has a guard: of many overflows some end the program, and some do not. */
CASE(a_sample_guards_some)
{
    int ended = 0, passed = 0;

    for (int i = 0; i < 200 && (ended == 0 || passed == 0); i++) {
        const struct fl_run *r = FL_RUN(FL_ARGV("victim_hardening", "overflow_write", sizes[0]),
                                        FL_ENV("FAULTLESS_GUARD=4"));
        ended += r->term_signal == SIGSEGV;
        passed += r->exit_status == 0;
        assert_string_equal(r->err, "");
    }
    assert_int_not_equal(ended, 0);
    assert_int_not_equal(passed, 0);
}

/* Where the kernel has no advice for guards they are made by mprotect(2). */
CASE(guards_need_no_advice)
{
    static const unsigned refused[] = {SYS_madvise, 0};

    for (size_t s = 0; s < SIZES; s++) {
        for (int i = 0; i < 3; i++) {
            static const char *const modes[] = {"overflow_write", "overflow_read",
                                                "overflow_slack"};
            const struct fl_run *r =
                FL_RUN(FL_ARGV("victim_hardening", modes[i], sizes[s]),
                       .env = FL_ENV("FAULTLESS_GUARD=all"), .in_child = fl_refuse,
                       .arg = (void *)(uintptr_t)refused);
            assert_int_equal(r->term_signal, i < 2 ? SIGSEGV : SIGABRT);
        }
    }
    FL_ACTIVE(FL_ARGV("victim_hardened"), .env = EVERYTHING, .in_child = fl_refuse,
              .arg = (void *)(uintptr_t)refused);
}

CASE(a_program_without_a_mistake_runs_as_ever)
{
    static const char *const alone[] = {"FAULTLESS_GUARD=all",     "FAULTLESS_GUARD=3",
                                        "FAULTLESS_QUARANTINE=1M", "FAULTLESS_QUARANTINE=1G",
                                        "FAULTLESS_FILL=zero",     "FAULTLESS_FILL=junk",
                                        "FAULTLESS_CHECK_FREE=1"};
    static const char *const more[] = {"FAULTLESS_NUMA=first-touch", "FAULTLESS_THRESHOLD=4K",
                                       "FAULTLESS_EAGER_MAX=1M", "FAULTLESS_DECAY_MS=1"};
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
        FL_ACTIVE(FL_ARGV("victim_hardened"), FL_ENV(alone[i]));
    }
    FL_ACTIVE(FL_ARGV("victim_hardened"), EVERYTHING);
    for (size_t i = 0; i < sizeof more / sizeof more[0]; i++) {
        FL_ACTIVE(FL_ARGV("victim_hardened"),
                  FL_ENV("FAULTLESS_GUARD=2", "FAULTLESS_QUARANTINE=64M", "FAULTLESS_FILL=both",
                         "FAULTLESS_CHECK_FREE=1", more[i]));
    }
}

static void as_without(const char *const argv[])
{
    const struct fl_run *r =
        fl_run_assert_active(fl_run_same(&(struct fl_how){.argv = argv, .env = EVERYTHING}, ""));
    assert_true(strlen(r->out) > 0);
}

CASE(real_programs_give_the_same_output)
{
    as_without(
        FL_ARGV("/bin/sh", "-c", "seq 200000 | sort --buffer-size=8M --parallel=2 -r | md5sum"));
    if (access("/usr/bin/python3", X_OK) == 0) {
        as_without(FL_ARGV("/usr/bin/python3", "-c",
                           "b = bytearray(5 << 20)\n"
                           "for i in range(0, len(b), 4096): b[i] = i // 4096 & 255\n"
                           "l = [bytes(b[i:]) for i in range(0, 1 << 20, 65536)]\n"
                           "l.sort(); b.extend(b)\n"
                           "try:\n"
                           " import numpy\n"
                           " a = numpy.arange(1 << 20, dtype=float).reshape(1024, -1)\n"
                           " print(float((a @ a.T).sum()), float(numpy.sort(a, axis=None)[77]))\n"
                           "except ImportError: pass\n"
                           "print(sum(map(len, l)), len(b), hash(tuple(map(len, l))), b[8192])"));
    }
}

#define ENDS(name, ...) CASE_IS(name, end_it((const struct row[]){__VA_ARGS__, {NULL, NULL, NULL}}))

ENDS(what_is_written_or_read_beyond_a_block_ends_it,
     {"overflow_write", "FAULTLESS_GUARD=all", NULL},
     {"overflow_read", "FAULTLESS_GUARD=all", NULL}, {"overflow_write", "FAULTLESS_GUARD=1", NULL})
ENDS(what_is_written_between_a_block_and_its_guard_is_found_by_free,
     {"overflow_slack", "FAULTLESS_GUARD=all",
      "free of a block with bytes overwritten behind its end"},
     {"underflow", "FAULTLESS_GUARD=all",
      "free of a block with bytes overwritten before its start"})
ENDS(use_after_free_ends_it, {"used_write", "FAULTLESS_QUARANTINE=4G", NULL},
     {"used_read", "FAULTLESS_QUARANTINE=4G", NULL},
     {"used_after_realloc", "FAULTLESS_QUARANTINE=4G", NULL},
     {"stale_after_free", "FAULTLESS_QUARANTINE=4G", NULL})
ENDS(double_free_is_found_at_once_and_later, {"double_now", "FAULTLESS_QUARANTINE=4G", no_block},
     {"double_later", "FAULTLESS_QUARANTINE=4G", no_block},
     {"double_elsewhere", "FAULTLESS_QUARANTINE=4G", no_block},
     {"double_now", "FAULTLESS_GUARD=all", no_block},
     {"double_now", "FAULTLESS_FILL=junk", no_block})

CASES_MAIN()
