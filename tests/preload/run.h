/* Runs a victim under libfaultless.so and keeps all that can be judged from outside. The parent is
 * never preloaded. */
#ifndef FAULTLESS_TESTS_PRELOAD_RUN_H
#define FAULTLESS_TESTS_PRELOAD_RUN_H

#include "cases.h"

#include <stdint.h>
#include <sys/types.h>

enum { FL_RUN_TEXT = 65536, FL_SKIP = 77 };

struct fl_run {
    int exit_status; /* -1 when a signal ended it */
    int term_signal; /* 0 when it exited */
    bool timed_out;  /* the parent killed it */
    char out[FL_RUN_TEXT];
    char err[FL_RUN_TEXT];
    char stats[FL_RUN_TEXT]; /* what FAULTLESS_STATS got: a line of JSON a process */
};

struct fl_how {
    const char *const *argv; /* ends with NULL */
    const char *const *env;  /* NAME=VALUE, ends with NULL; may be NULL. Later ones win */
    const char *preload;     /* NULL: libfaultless.so alone; "": nothing */
    void (*in_child)(
        void *); /* between fork and exec: limits, cgroup, another user. NULL: nothing */
    void *arg;
    int seconds; /* then it is killed, later on a busy machine; 0: 60 */
    unsigned as; /* enum fl_as, beside what the rung says */
};

/* Taken on between in_child and exec. */
enum fl_as {
    FL_AS_NOBODY = 1, /* uid and gid 65534, no groups, no capabilities; needs root */
    /* Under a seccomp filter that answers as Docker's default profile does; works for any user. */
    FL_AS_CONTAINED = 2,
};

/* FL_TEST_RUNG: words with commas between, under which every victim of a test program runs.
 * `nobody` and `seccomp` are FL_AS_NOBODY and FL_AS_CONTAINED; what is left becomes
 * FAULTLESS_DISABLE where a test does not set that itself. Victims that run for a time, or often,
 * are told to be short (VICTIM_SHORT). */
const char *fl_rung(void); /* "" without */
bool fl_rung_has(const char *word);
const char *fl_rung_disabled(void);
unsigned fl_rung_as(void);
/* In the child: becomes so, or ends. */
void fl_become(unsigned as);
/* A copy, to free, of a text in which paths into the build folder lead to a place that every user
 * may read. Then the library, victims and FL_VICTIM_DIR are found as `nobody` too, though the build
 * folder may be closed to that user. */
char *fl_for_user(const char *text, unsigned as);

/* In the child, set by in_child: it has a filter such as containers have, on processes that
 * fork. */
extern bool fl_is_contained;

/* Victims are named by their file in FL_VICTIM_DIR; anything with a slash is taken as it is. A
 * failure to start ends the test. A line says what ran. The result lives until the next run but
 * one: two runs may be compared. */
const struct fl_run *fl_run_how(const struct fl_how *how);
/* The same of members of struct fl_how, of which argv comes first; and its result is clean, or
 * active. */
#define FL_RUN(...) fl_run_how(&(struct fl_how){.argv = __VA_ARGS__})
#define FL_CLEAN(...) fl_run_assert_clean(FL_RUN(__VA_ARGS__))
#define FL_ACTIVE(...) fl_run_assert_active(FL_RUN(__VA_ARGS__))
/* Without the library: what glibc does. */
const struct fl_run *fl_plain_run(const char *const argv[]);
/* A copy that every user may run, though the build folder may be closed to it. False: it could not
 * be made. */
bool fl_copy_program(const char *from, const char *to);

/* Sum of a field over the lines of stats; -1 when there is no line. */
long long fl_run_stat(const struct fl_run *r, const char *field);
/* The number behind `word` on stdout; -1 when the word is not there. */
long fl_run_said(const struct fl_run *r, const char *word);
size_t fl_run_lines(const char *text);

/* Exit status 0 and nothing on stderr; else the test fails and shows what there was. Gives what it
 * is given. */
const struct fl_run *fl_run_assert_clean(const struct fl_run *r);
/* The same, and faultless served large requests. */
const struct fl_run *fl_run_assert_active(const struct fl_run *r);

/* Runs it, then with `alone` preloaded instead: both are clean and print the same. Returns the
 * first. */
const struct fl_run *fl_run_same(const struct fl_how *how, const char *alone);

/* Runs the victim in each of the modes under env: each clean, and faultless active in one or
 * more. */
void fl_run_modes(const char *victim, const char *const modes[], const char *const env[]);
/* Without the library: the victim is right itself. */
void fl_plain_modes(const char *victim, const char *const modes[]);

/* Both are clean, and of what the victim says behind each of the words, in MiB, ours has at least
 * `percent` of plain's, but for a few MiB that every process pays. */
void fl_run_assert_as_much(const struct fl_run *ours, const struct fl_run *plain, long percent,
                           const char *const words[]);

#define FL_ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})
#define FL_ENV(...) ((const char *const[]){__VA_ARGS__, NULL})

/* "FIRST THEN", for fl_how.preload. It lives as long as the process. */
const char *fl_in_order(const char *first, const char *then);

/* A new folder where every user may write. It is removed at exit with all that is in it. */
const char *fl_folder(void);
void fl_remove_folder(const char *path);
/* What is in FOLDER/NAME; the test fails where there is no such file. Until the next one. */
const char *fl_text_of(const char *folder, const char *name);

/* For main, before cmocka starts. */
#define FL_SKIP_UNLESS(cond, test, reason)                                                         \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            printf("SKIP %s: %s\n", test, reason);                                                 \
            return FL_SKIP;                                                                        \
        }                                                                                          \
    } while (0)

/* A file under /proc or /sys that a test changes for a while. A watcher process puts the old value
 * back even when the test is killed. False: it cannot be written. */
bool fl_sysctl_set(const char *path, const char *value);
/* Puts everything back that fl_sysctl_set changed. */
void fl_sysctl_restore(void);
/* True: the file has taken the text, at once. Else errno says why not. */
bool fl_write_text(const char *path, const char *text);
/* First number in the file at `path` behind `key` ("" for its start); -1 when there is none. */
long long fl_read_number(const char *path, const char *key);
/* The machine's word for transparent huge pages; "" where it has none. */
const char *fl_thp_setting(void);
/* The kernel is of that version, or newer. */
bool fl_linux_has(unsigned major, unsigned minor);

#endif
