/* A limit of threads and processes met exactly: each place that the program has under glibc it has
 * here, whatever it takes the place with. */
#include "host.h"

#include <grp.h>
#include <sys/resource.h>
#include <sys/stat.h>

enum { PLACES = 5, FIRST_USER = 500000, USERS = 1000000, EACH = 20 };

/* The user's limit, for one that no other process has. */
static void become_a_user_of(rlim_t places)
{
    const struct rlimit limit = {places, places};
    uid_t user = FIRST_USER + (uid_t)getppid() % USERS;

    if ((places != 0 && setrlimit(RLIMIT_NPROC, &limit) != 0) || setgroups(0, NULL) != 0 ||
        setresgid(user, user, user) != 0 || setresuid(user, user, user) != 0) {
        _exit(98);
    }
}

static void become_unlimited_user(void *unused)
{
    (void)unused;
    become_a_user_of(0);
}

static void become_limited_user(void *unused)
{
    (void)unused;
    become_a_user_of(PLACES + 1);
}

static char group[256];

static bool write_to(const char *file, const char *text)
{
    char path[300];

    snprintf(path, sizeof path, "%s/%s", group, file);
    return fl_write_text(path, text);
}

/* Version 1's, or version 2's where it has the controller. */
static bool make_group(const char *places)
{
    static const char *const mounts[] = {"/sys/fs/cgroup/pids", "/sys/fs/cgroup"};

    for (size_t i = 0; i < sizeof mounts / sizeof mounts[0]; i++) {
        snprintf(group, sizeof group, "%s/faultless-test-%d", mounts[i], getpid());
        if (mkdir(group, 0755) == 0) {
            if (write_to("pids.max", places)) {
                return true;
            }
            rmdir(group);
        }
    }
    return false;
}

static void remove_group(void)
{
    for (int i = 0; rmdir(group) != 0 && i < 1000; i++) {
        usleep(1000); /* the kernel is still taking the last process out */
    }
}

static void join(void *unused)
{
    (void)unused;
    if (!write_to("cgroup.procs", "0")) {
        _exit(98);
    }
}

static const char *const kinds[] = {"pthread_create", "thrd_create",  "fork",   "_Fork",
                                    "posix_spawn",    "posix_spawnp", "clone",  "SYS_clone",
                                    "SYS_clone3",     "popen",        "system", "forkpty"};

/* Each kind, as glibc does it. */
static void compare(void (*in_child)(void *), const char *limit)
{
    static struct fl_run plain;
    struct fl_host_tally tally = {0};
    char *victim = fl_for_user(FL_VICTIM_DIR "/victim_host_places", FL_AS_NOBODY);
    char *library = fl_for_user(FL_LIB_PATH, FL_AS_NOBODY);
    char places[8];

    snprintf(places, sizeof places, "%d", PLACES);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct fl_how how = {.argv =
                                 (const char *const[]){victim, kinds[i], places, "3", limit, NULL},
                             .in_child = in_child,
                             .preload = ""};
        plain = *fl_run_how(&how);
        fl_run_assert_clean(&plain);
        how.preload = library;
        how.env = FL_ENV("FAULTLESS_STATS=0");
        const struct fl_run *r = fl_run_how(&how);
        tally.rows++;
        if (strcmp(r->out, plain.out) != 0 || r->err[0] != '\0' || r->exit_status != 0) {
            fl_host_failed(&tally, "%s\nglibc: %sours: %s%s%s\n", kinds[i], plain.out, r->out,
                           r->err, fl_host_end(r));
        }
    }
    free(victim);
    free(library);
    fl_host_judge(&tally);
}

CASE_IS(the_users_limit_is_there_from_the_beginning, compare(become_limited_user, NULL))

/* When the library's thread is there already. */
CASE_IS(the_users_limit_comes_later, compare(become_unlimited_user, "limit"))

CASE(a_groups_limit)
{
    char places[8];
    snprintf(places, sizeof places, "%d", PLACES + 1);
    if (!make_group(places)) {
        print_message("           no control group of processes\n");
        skip();
    }
    compare(join, NULL);
    remove_group();
}

/* Programs of one user at the same time, which together have as many places as they take. */
static void start_all(void *library)
{
    (void)library;
    become_a_user_of((PLACES + 1) * EACH + 1);
}

CASE(programs_share_a_limit)
{
    char *victim = fl_for_user(FL_VICTIM_DIR "/victim_host_places", FL_AS_NOBODY);
    char *library = fl_for_user(FL_LIB_PATH, FL_AS_NOBODY);
    char script[1024];
    snprintf(script, sizeof script,
             "i=0; while [ $i -lt %d ]; do %s hold_all %d 1 & i=$((i+1)); done; wait", EACH, victim,
             PLACES);
    struct fl_how how = {.argv = FL_ARGV("/bin/sh", "-c", script),
                         .in_child = start_all,
                         .preload = library,
                         .seconds = 120,
                         .env = FL_ENV("FAULTLESS_STATS=0")};
    const struct fl_run *r = fl_run_assert_clean(fl_run_how(&how));
    size_t full = 0;
    for (const char *at = r->out; (at = strstr(at, "5 held\n")) != NULL; at++) {
        full++;
    }
    free(victim);
    free(library);
    assert_int_equal(full, EACH);
}

int main(void)
{
    FL_SKIP_UNLESS(geteuid() == 0, "test_host_places", "needs root");
    return RUN_CASES();
}
