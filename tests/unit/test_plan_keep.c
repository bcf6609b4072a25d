/* Plans that live on: what one run has learned is there in the next one, and stays when that learns more. Each run is a process. */
#include "unit/plan_fixture.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 30 };

static char path[] = "/tmp/faultless-keep-XXXXXX";

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
        fl_keep_save(true);
        _exit(0);
    }
    int status = 1;
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
}

/* How many of this program the file has. */
static unsigned plans(void)
{
    static union {
        unsigned char bytes[1 << 20];
        uint64_t aligned;
    } file;
    struct fl_file_plan p;
    size_t at = 0, len = 0;
    unsigned n = 0;

    assert_int_equal(fl_file_look(path, &len), 0);
    assert_true(len < sizeof file.bytes);
    assert_int_equal(fl_file_read(path, file.bytes, len), 0);
    while (fl_file_find(file.bytes, fl_file_key_here(), &at, &p) == 0) {
        assert_true(p.horizon != 0 && p.n == N);
        n++;
    }
    return n;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_an_earlier_run_has_learned_stays),
    };
    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
