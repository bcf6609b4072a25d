/* Plans that live on: what one run has learned is there in the next one, and stays when that learns more. Each run is a process. */
#include "plan/store/store.h"
#include "unit/plan_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 30 };

static char path[128] = "/tmp/faultless-keep-XXXXXX";
static const char *elsewhere; /* where a run goes before it ends; NULL: it stays */

static void nothing(void)
{
}

static void begin(void)
{
    struct fl_plan_config config = {
        .on = true, .file = path, .max = 4, .tick_ns = 1, .watch_thread = nothing};

    plan_begin(NULL);
    fl_sys.read_file = fl_sys_linux.read_file; /* the file is a real one */
    fl_plan_start(&region, &config);
}

/* Twenty steps of sizes that are `scale` sixteenths. */
static void run(unsigned scale)
{
    pid_t pid = fork();

    if (pid == 0) {
        struct loop l = {.ask = loop_usual(N), .n = N};
        begin();
        for (unsigned i = 0; i < 20; i++) {
            l.scale = scale;
            loop_declared(&l, NULL, 1);
        }
        loop_over(&l);
        assert_true(elsewhere == NULL || chdir(elsewhere) == 0);
        fl_keep_save(true);
        _exit(0);
    }
    int status = 1;
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
}

/* Those of this program that the file has. Returns how many. */
static size_t read_plans(struct fl_file_plan out[static 17])
{
    static union {
        unsigned char bytes[1 << 20];
        uint64_t aligned;
    } file;
    struct fl_file_plan p;
    size_t at = 0, len = 0, n = 0;

    assert_int_equal(fl_file_look(path, &len), 0);
    assert_true(len < sizeof file.bytes);
    assert_int_equal(fl_file_read(path, file.bytes, len), 0);
    while (fl_file_find(file.bytes, fl_file_key_here(), &at, &p) == 0) {
        assert_true(p.horizon != 0 && p.n == N && n < 17);
        out[n++] = p;
    }
    return n;
}

static size_t plans(void)
{
    struct fl_file_plan p[17];

    return read_plans(p);
}

static void what_an_earlier_run_has_learned_stays(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    run(16);
    assert_int_equal(plans(), 1);
    run(20);
    assert_int_equal(plans(), 2);
    run(24);
    assert_int_equal(plans(), 3);
    run(16); /* known: nothing is new */
    assert_int_equal(plans(), 3);
    (void)unlink(path);
}

/* After sixteen plans the oldest goes for a new one. */
static void the_newest_plans_are_kept(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    for (unsigned i = 0; i < 18; i++) {
        run(16 + 2 * i);
    }
    assert_int_equal(plans(), 16);
    struct fl_file_plan newest[17];
    size_t n = read_plans(newest);
    uint64_t tallest = 0;
    for (size_t i = 0; i < n; i++) {
        tallest = fl_max(tallest, newest[i].height);
    }
    run(60); /* taller than all */
    assert_int_equal(plans(), 16);
    n = read_plans(newest);
    bool found = false;
    for (size_t i = 0; i < n; i++) {
        found = found || newest[i].height > tallest;
    }
    assert_true(found);
    (void)unlink(path);
}

/* Its name is relative, and the program goes elsewhere before it saves its plans. */
static void the_folder_may_change(void **state)
{
    (void)state;
    char dir[] = "/tmp/faultless-keep-dir-XXXXXX", was[512], whole[64];
    assert_non_null(getcwd(was, sizeof was));
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    strcpy(path, "plans");
    elsewhere = "/";
    run(16);
    assert_int_equal(chdir(was), 0);
    snprintf(whole, sizeof whole, "%s/plans", dir);
    strcpy(path, whole);
    assert_int_equal(plans(), 1);
    (void)unlink(path);
    (void)rmdir(dir);
}

/* One slot of a terabyte, which the program never asks for. */
static void what_a_file_claims_is_not_held(void **state)
{
    (void)state;
    static union {
        unsigned char bytes[4096];
        uint64_t aligned;
    } file;
    struct fl_file f;
    const uint64_t huge = (uint64_t)1 << 40;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    for (int tall = 0; tall < 2; tall++) {
        struct fl_slot slot = {.size = tall ? FL_MIB : huge,
                               .least = FL_MIB,
                               .most = FL_MIB,
                               .death = 1,
                               .offset = {0, FL_PACK_NONE}};
        struct fl_file_plan p = {.key = fl_file_key_here(),
                                 .horizon = 1,
                                 .height = huge,
                                 .granule = FL_GRANULE,
                                 .slot = &slot,
                                 .n = 1};
        assert_true(fl_file_begin(&f, file.bytes, sizeof file.bytes));
        assert_int_equal(fl_file_add(&f, &p), 0);
        assert_int_equal(pwrite(fd, file.bytes, fl_file_end(&f), 0), (ssize_t)fl_file_end(&f));
        pid_t pid = fork();
        if (pid == 0) {
            begin();
            size_t most = tall ? 0 : fl_sys.memory_total() / 64 + fl_page.huge;
            _exit(region.stock.expected <= most ? 0 : 1);
        }
        int status = 1;
        assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
        assert_int_equal(status, 0);
    }
    (void)close(fd);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_newest_plans_are_kept),
        cmocka_unit_test(the_folder_may_change),
        cmocka_unit_test(what_a_file_claims_is_not_held),
        cmocka_unit_test(what_an_earlier_run_has_learned_stays),
    };
    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
