/* Plans that live on: what one run has learned is there in the next one, and stays when that learns
 * more. Each run is a process. */
#include "plan/store/store.h"
#include "unit/plan_fixture.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 30 };

static char path[128] = "/tmp/faultless-keep-XXXXXX";
static bool in_one_context;
static const char *elsewhere; /* where a run goes before it ends; NULL: it stays */

static void nothing(void)
{
}

static void begin_with(bool background)
{
    struct fl_plan_config config = {.on = true,
                                    .background = background,
                                    .file = path,
                                    .max = 4,
                                    .tick_ns = 1,
                                    .watch_thread = nothing};

    plan_begin(NULL);
    fl_sys.read_file = fl_sys_linux.read_file; /* the file is a real one */
    fl_plan_start(&region, &config);
}

static void begin(void)
{
    begin_with(false);
}

/* A process that has read the file; it may wait for a byte before it saves. */
struct run {
    pid_t pid;
    int go[2];
};

/* Twenty steps of each size, in a context each unless told otherwise, which is `scale` sixteenths;
 * as many as end at 0. Saves when it may. The answer: layouts that were learned. */
static int learn(const unsigned *scale)
{
    for (; *scale != 0; scale++) {
        struct loop l = {.ask = loop_usual(N), .n = N, .scale = *scale};
        struct fl_step_context *c = NULL;
        assert_int_equal(in_one_context ? 0 : fl_plan_context_new(&c), 0);
        loop_declared(&l, c, 20);
        loop_over(&l);
    }
    return (int)plan_stats().layouts;
}

static struct run start(const unsigned *scale, bool waits)
{
    int begun[2], go[2];
    char byte = 0;

    assert_true(pipe(begun) == 0 && pipe(go) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        begin();
        assert_int_equal(write(begun[1], &byte, 1), 1);
        int learned = learn(scale);
        assert_true(elsewhere == NULL || chdir(elsewhere) == 0);
        assert_true(!waits || read(go[0], &byte, 1) == 1);
        fl_keep_save(true);
        _exit(learned);
    }
    assert_true(pid > 0 && read(begun[0], &byte, 1) == 1);
    close(begun[0]);
    close(begun[1]);
    return (struct run){.pid = pid, .go = {go[0], go[1]}};
}

/* How many layouts it has learned. */
static int finish(struct run r)
{
    int status = 1;

    assert_int_equal(write(r.go[1], "", 1), 1); /* also to one that does not wait */
    assert_true(waitpid(r.pid, &status, 0) == r.pid && WIFEXITED(status));
    close(r.go[0]);
    close(r.go[1]);
    return WEXITSTATUS(status);
}

static int run(unsigned scale)
{
    return finish(start((const unsigned[]){scale, 0}, false));
}

static void make_path(void)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    (void)close(fd);
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
    make_path();
    run(16);
    assert_int_equal(plans(), 1);
    run(20);
    assert_int_equal(plans(), 2);
    run(24);
    assert_int_equal(plans(), 3);
    assert_int_equal(run(16), 0); /* known: nothing is new */
    assert_int_equal(plans(), 3);
    (void)unlink(path);
}

/* Plans of `n` scales, 2 apart. The first two by processes that see none: one that finds a single
 * plan tries that first. */
static void make_plans(unsigned scale, unsigned n)
{
    struct run first = start((const unsigned[]){scale, 0}, true);

    assert_int_equal(run(scale + 2), 1);
    assert_int_equal(finish(first), 1);
    for (unsigned i = 2; i < n; i++) {
        assert_int_equal(run(scale + 2 * i), 1);
    }
    assert_int_equal(plans(), n);
}

static void what_was_not_used_for_the_longest_time_goes(void **state)
{
    (void)state;
    make_path();
    make_plans(16, 16);
    /* That one was learned before all others but one, and is far from the first four of the file.
     * */
    assert_int_equal(run(18), 0);
    assert_int_equal(run(60), 1);
    assert_int_equal(plans(), 16);
    assert_int_equal(run(18), 0);
    assert_int_equal(run(20), 0);
    assert_int_equal(run(16), 1); /* it went in place of that one */
    (void)unlink(path);
}

/* A context is given four plans; it finds another one when that one's step begins. */
static void one_run_uses_all_plans_of_the_file(void **state)
{
    static unsigned scale[13];
    (void)state;
    make_path();
    make_plans(16, 12);
    for (unsigned i = 0; i < 12; i++) {
        scale[i] = 16 + 2 * i;
    }
    assert_int_equal(finish(start(scale, false)), 0);
    assert_int_equal(plans(), 12);
    /* One that is served meets the others' sizes for a step's first requests, and may grow by that.
     * */
    in_one_context = true;
    assert_true(finish(start(scale, false)) <= 4);
    assert_true(plans() >= 12);
    (void)unlink(path);
}

/* Amid a step that is declared it is seen to be another one: a plan of the file, which is taller
 * than the arena of the four that the context was given. */
static void a_plan_that_is_found_amid_a_step_has_an_arena(void **state)
{
    (void)state;
    make_path();
    struct run first = start((const unsigned[]){80, 0}, true);
    assert_int_equal(run(16), 1);
    assert_int_equal(finish(first), 1);
    for (unsigned scale = 18; scale <= 24; scale += 2) {
        assert_int_equal(run(scale), 1);
    }
    assert_int_equal(plans(), 6);
    in_one_context = true;
    assert_int_equal(finish(start((const unsigned[]){24, 80, 24, 80, 0}, false)), 0);
    (void)unlink(path);
}

/* A run whose sizes vary, and then grow: also while the worker has a larger layout at work. */
static void grow(void)
{
    static const unsigned scale[] = {16, 17, 18, 17, 16, 18, 17, 16, 18, 17, 18, 20, 21};
    struct loop l = {.ask = loop_usual(N), .n = N};

    begin_with(true);
    for (unsigned i = 0; i < sizeof scale / sizeof scale[0]; i++) {
        l.scale = scale[i];
        loop_declared(&l, NULL, 1);
        if (scale[i] != 20) {
            (void)fl_plan_work(&region);
        }
    }
    uint64_t layouts = plan_stats().layouts;
    loop_declared(&l, NULL, 1);
    assert_int_equal(plan_stats().layouts, layouts + 1);
    assert_non_null(fl_plan_default->job.grown); /* and one more is to follow */
    fl_keep_save(true);
    _exit(0);
}

static void a_plan_that_has_grown_is_of_use(void **state)
{
    (void)state;
    int status = 1;
    struct fl_step_context *c = NULL;
    make_path();
    pid_t pid = fork();
    if (pid == 0) {
        grow();
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    begin();
    assert_int_equal(fl_plan_context_new(&c), 0);
    assert_true(fl_context_knows_any(c));
    (void)unlink(path);
}

/* The worker is amid the file when the process ends: the end waits for it. */
static _Atomic bool amid, awaited, written;

static int replace_when_awaited(const char *file, const void *data, size_t len)
{
    atomic_store(&amid, true);
    while (!atomic_load(&awaited)) {
        (void)sched_yield();
    }
    atomic_store(&written, true);
    return fl_sys_linux.replace_file(file, data, len);
}

static int note_wait(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    atomic_store(&awaited, true);
    return fl_sys_linux.wait(word, expected, timeout_ns);
}

static void *save_as_worker(void *unused)
{
    fl_keep_save(false);
    return unused;
}

static void what_the_worker_writes_is_not_cut_short(void **state)
{
    (void)state;
    int status = 1;
    pthread_t worker;
    make_path();
    pid_t pid = fork();
    if (pid == 0) {
        begin();
        assert_int_equal(learn((const unsigned[]){16, 0}), 1);
        fl_sys.replace_file = replace_when_awaited;
        fl_sys.wait = note_wait;
        assert_int_equal(pthread_create(&worker, NULL, save_as_worker, NULL), 0);
        while (!atomic_load(&amid)) {
            (void)sched_yield();
        }
        fl_keep_save(true);
        bool whole = atomic_load(&written);
        assert_int_equal(pthread_join(worker, NULL), 0);
        _exit(whole ? 0 : 1);
    }
    assert_true(pid > 0 && waitpid(pid, &status, 0) == pid);
    assert_int_equal(status, 0);
    (void)unlink(path);
}

/* There is no memory to watch it with. */
static void a_thread_that_is_not_watched_has_its_plan(void **state)
{
    (void)state;
    make_path();
    run(16);
    begin();
    size_t most = fake.commit_max;
    fake.commit_max = fl_detect_size() / 2;
    struct fl_step_context *c = fl_context_make(false);
    fake.commit_max = most;
    assert_non_null(c);
    assert_null(c->watch.detect);
    fl_context_enter(c);
    struct loop l = {.ask = loop_usual(N), .n = N, .scale = 16};
    for (unsigned i = 0; i < 4; i++) {
        loop_step(&l);
    }
    assert_int_equal(loop_planned(&l), N);
    loop_over(&l);
    (void)unlink(path);
}

/* Two processes have read the same file; each learns a plan, and each plan is there in the end. */
static void two_processes_keep_each_others_plans(void **state)
{
    const unsigned scale[2] = {20};
    (void)state;
    make_path();
    run(16);
    struct run first = start(scale, true);
    assert_int_equal(run(24), 1);
    assert_int_equal(plans(), 2);
    assert_int_equal(finish(first), 1);
    assert_int_equal(plans(), 3);
    assert_int_equal(run(16) + run(20) + run(24), 0);
    (void)unlink(path);
}

/* At once, many times over: a reader in between finds a whole file. */
static void a_file_is_never_torn(void **state)
{
    enum { WRITERS = 4, TIMES = 50 };
    static _Alignas(8) unsigned char file[WRITERS][FL_FILE_HEAD + 4096];
    static _Alignas(8) unsigned char read[FL_FILE_HEAD + 4097];
    size_t len[WRITERS], found;
    pid_t pid[WRITERS];
    (void)state;
    fl_sys = fl_sys_linux;
    make_path();
    for (unsigned w = 0; w < WRITERS; w++) {
        struct fl_file f;
        struct fl_file_plan p = {.key = w, .granule = FL_GRANULE};
        assert_true(fl_file_begin(&f, file[w], sizeof file[w]));
        for (unsigned i = 0; i <= 10 * w; i++) {
            assert_int_equal(fl_file_add(&f, &p), 0);
        }
        len[w] = fl_file_end(&f);
        pid[w] = fork();
        for (unsigned i = 0; pid[w] == 0 && i < TIMES; i++) {
            if (fl_file_write(path, file[w], len[w]) != 0) {
                _exit(1);
            }
        }
        if (pid[w] == 0) {
            _exit(0);
        }
    }
    for (unsigned w = 0; w < WRITERS; w++) {
        int status = -1;
        while (waitpid(pid[w], &status, WNOHANG) == 0) {
            int rc = fl_file_look(path, &found);
            rc = rc == 0 ? fl_file_read(path, read, sizeof read - 1) : rc;
            assert_true(rc == 0 || (rc == -EINVAL && found == 0)); /* empty: at first */
        }
        assert_int_equal(status, 0);
    }
    assert_int_equal(fl_file_look(path, &found), 0);
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
            size_t most = tall ? 0 : fl_sys.memory_total(NULL) / 64 + fl_page.huge;
            _exit(region.refill.expected <= most ? 0 : 1);
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
        cmocka_unit_test(what_was_not_used_for_the_longest_time_goes),
        cmocka_unit_test(one_run_uses_all_plans_of_the_file),
        cmocka_unit_test(a_plan_that_is_found_amid_a_step_has_an_arena),
        cmocka_unit_test(a_plan_that_has_grown_is_of_use),
        cmocka_unit_test(a_thread_that_is_not_watched_has_its_plan),
        cmocka_unit_test(what_the_worker_writes_is_not_cut_short),
        cmocka_unit_test(two_processes_keep_each_others_plans),
        cmocka_unit_test(a_file_is_never_torn),
        cmocka_unit_test(the_folder_may_change),
        cmocka_unit_test(what_a_file_claims_is_not_held),
        cmocka_unit_test(what_an_earlier_run_has_learned_stays),
    };
    return plan_run(tests, sizeof tests / sizeof tests[0]);
}
