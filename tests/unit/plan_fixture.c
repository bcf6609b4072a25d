#include "unit/plan_fixture.h"
#include "unit/route_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What other programs take of the processor does not count. */
static uint64_t own_time(void)
{
    struct timespec t;

    assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

const struct fl_placing *plan_placing;
void (*plan_kernel)(void);

void plan_begin(const struct fl_plan_config *c)
{
    struct fl_plan_config config = c != NULL ? *c : (struct fl_plan_config){.on = true};

    region_clear();
    if (plan_kernel != NULL) {
        plan_kernel();
    }
    assert_int_equal(fl_region_start(&region, &(struct fl_region_config){.huge = true}), 0);
    fake_forget();
    fake.reserve_max = (size_t)8 << 30;
    if (plan_placing != NULL) {
        fl_region_divide(&region, plan_placing);
    }
    fl_sys.now_ns = own_time;
    config.watch_thread = boot_nothing;
    config.tick_ns = 1;
    config.max = config.max != 0 ? config.max : 4; /* as the option has it */
    region.hooks.release_more = fl_plan_release;
    region.hooks.lend = fl_plan_lend;
    fl_plan_start(&region, &config);
    if (fl_plan.memory.used == 0) { /* as the first context does, of this region's addresses */
        fl_plan.memory.asked = false;
        fl_plan_claim_memory();
    }
    fl_route = route_to_region();
    fl_route.caches = true;
    give(take(KIB(64))); /* steps come after requests */
}

int plan_run(const struct CMUnitTest *tests, size_t n)
{
    enum { PATIENCE_S = 60 };
    const char *patience = getenv("FL_TEST_PATIENCE"); /* as in preload/run.c */
    int failed = 0, status;

    for (size_t i = 0; i < n; i++) {
        fflush(stdout);
        fflush(stderr);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(PATIENCE_S * (patience != NULL ? (unsigned)atoi(patience) : 1));
            exit(_cmocka_run_group_tests(tests[i].name, &tests[i], 1, NULL, NULL));
        }
        bool ended = pid > 0 && waitpid(pid, &status, 0) == pid;
        if (!ended || status != 0) { /* SIGALRM: not within its time */
            fprintf(stderr, "FAILED: %s%s%s\n", tests[i].name,
                    ended && WIFSIGNALED(status) ? ", by a signal: " : "",
                    ended && WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "");
            failed++;
        }
    }
    return failed;
}

const struct ask *loop_usual(unsigned n)
{
    static struct ask ask[LOOP_MOST];

    for (unsigned i = 0; i < n; i++) {
        ask[i].n = KIB(70) + i * 37 % 11 * KIB(100) + i * KIB(4);
        ask[i].lives = 1 + i * 7 % 5;
        ask[i].lives = ask[i].lives < n - i ? ask[i].lives : n - i;
    }
    return ask;
}

struct fl_extent *extent_of(const void *p)
{
    return fl_is_ours(p) ? fl_region_find(&region, (uintptr_t)p) : NULL;
}

static bool is_whole(const unsigned char *p, size_t n)
{
    for (size_t at = 0; at < n; at += KIB(4)) {
        if (*(const uintptr_t *)(p + at) != (uintptr_t)p) {
            return false;
        }
    }
    return true;
}

static unsigned char *make(size_t n)
{
    unsigned char *p = fl_malloc_large(n);

    assert_non_null(p);
    for (size_t at = 0; at < n; at += KIB(4)) {
        *(uintptr_t *)(p + at) = (uintptr_t)p;
    }
    return p;
}

static void drop(struct loop *l, unsigned parity, unsigned i)
{
    unsigned char *p = l->live[parity][i];

    if (p != NULL) {
        assert_true(is_whole(p, l->size[parity][i]));
        l->live[parity][i] = NULL;
        if (fl_is_ours(p)) {
            fl_free_ours(p);
        } else {
            free(p);
        }
    }
}

static void drop_due(struct loop *l, unsigned done)
{
    for (unsigned k = 0; k < l->n; k++) {
        if (k + l->ask[k].lives == done) {
            drop(l, l->step % 2, k);
        }
        if (k + l->ask[k].lives == done + l->n) {
            drop(l, (l->step + 1) % 2, k);
        }
    }
}

static void ask_for(struct loop *l, unsigned i)
{
    size_t n = l->scale != 0 ? l->ask[i].n * l->scale / 16 : l->ask[i].n;
    unsigned parity = l->step % 2;

    l->live[parity][i] = make(n);
    l->size[parity][i] = n;
    l->at[i] = l->live[parity][i];
    struct fl_extent *e = extent_of(l->at[i]);
    l->planned[i] = e != NULL && e->content == FL_CONTENT_INNER;
}

void loop_step(struct loop *l)
{
    memcpy(l->was, l->at, sizeof l->was);
    for (unsigned i = 0; i < l->n; i++) {
        if (l->also != NULL) {
            l->also(i);
        }
        drop_due(l, i);
        if (l->freed != NULL) {
            l->freed(i);
        }
        if (l->extra == i + 1) {
            fl_free_ours(make(KIB(333)));
        }
        if (l->skip != i + 1) {
            ask_for(l, i);
        }
    }
    for (unsigned k = 0; k < l->n; k++) {
        if (k + l->ask[k].lives == l->n) {
            drop(l, l->step % 2, k);
        }
    }
    l->step++;
    l->skip = l->extra = 0;
}

void loop_declared(struct loop *l, struct fl_step_context *c, unsigned steps)
{
    for (unsigned s = 0; s < steps; s++) {
        assert_int_equal(fl_plan_begin(c), 0);
        loop_step(l);
        assert_int_equal(fl_plan_end(c), 0);
    }
}

void loop_over(struct loop *l)
{
    for (unsigned i = 0; i < 2 * l->n; i++) {
        drop(l, i / l->n, i % l->n);
    }
}

unsigned loop_same(const struct loop *l)
{
    unsigned same = 0;

    for (unsigned i = 0; i < l->n; i++) {
        same += l->at[i] == l->was[i];
    }
    return same;
}

unsigned loop_planned(const struct loop *l)
{
    unsigned n = 0;

    for (unsigned i = 0; i < l->n; i++) {
        n += l->planned[i];
    }
    return n;
}

struct loop usual;

void usual_begin(const struct fl_plan_config *c)
{
    plan_begin(c);
    usual = (struct loop){.ask = loop_usual(USUAL), .n = USUAL};
}

int usual_each(void **state)
{
    (void)state;
    usual_begin(NULL);
    return 0;
}

void usual_learn(void)
{
    loop_declared(&usual, NULL, 5);
    assert_planned(&usual);
}

struct fl_plan_stats plan_stats(void)
{
    struct fl_plan_stats s;

    fl_plan_stats_read(&s);
    return s;
}

void *in_thread(void *(*f)(void *), void *arg)
{
    pthread_t t;
    void *got = NULL;

    assert_int_equal(pthread_create(&t, NULL, f, arg), 0);
    assert_int_equal(pthread_join(t, &got), 0);
    return got;
}

int plan_fork(int (*child)(void))
{
    fl_lock_acquire(fl_plan_fork_word());
    fl_region_fork_lock(&region);
    fl_lock_hold_for_fork(fl_plan_fork_word());
    int rc = fake_child(child);
    fl_region_fork_parent(&region);
    fl_lock_release_in_parent(fl_plan_fork_word());
    return rc;
}

void plan_in_child(void)
{
    fl_region_fork_child(&region, fl_thread_cache());
    fl_plan_fork_child(fl_lock_release_in_child(fl_plan_fork_word()));
}

void thread_end(void)
{
    fl_plan_thread_ends();
    if (fl_thread_cache() != NULL) {
        fl_thread_end(fl_thread_cache());
    }
}

struct fl_arena arena;

void open_at(size_t height)
{
    plan_begin(NULL);
    assert_true(fl_arena_open(&arena, height));
}

struct fl_extent *block(size_t granule, size_t len, size_t room)
{
    return fl_arena_take(&arena, granule, len, room);
}

void give_block(struct fl_extent *e)
{
    assert_true(fl_extent_claim(e, region.epoch));
    fl_plan_give(e);
}

uint64_t loop_roll(void)
{
    static uint64_t dice = 88172645463325252u;

    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice;
}
