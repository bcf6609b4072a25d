/* The loops of plan_model.h in four threads at once, twice, so that contexts and arenas change
 * hands; some hand blocks over, or handle them. Beside them one thread does the worker's jobs and
 * takes arenas back at the worst of times. The fake kernel is quiet: it adds no order of its
 * own. */
#include "prop/plan_model.h"
#include "prop/plan_ops.h"
#include "prop/quiet_fake.h"
#include "prop/seed.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

/* Hands: the walk to a block's beginning reads descriptors that others are changing, and says
 * so. */
#if defined(__SANITIZE_THREAD__)
enum { OPS = 4000, HANDS = 0 };
#else
enum { OPS = 16000, HANDS = 1 };
#endif
enum { THREADS = 4, ROUNDS = 2, BOXES = 32 };

static uint64_t seed;
static _Atomic bool over;
static const char *wrong_in[THREADS * ROUNDS]; /* NULL: nothing */
static struct fl_step_context *shared;
static _Atomic(struct model_block *) box[BOXES]; /* handed over: who empties it frees */

static const char *empty(unsigned i, struct model_block *instead)
{
    struct model_block *b = atomic_exchange(&box[i], instead);
    const char *wrong = b != NULL ? model_free(b) : NULL;

    free(b);
    return wrong;
}

static const char *hand_over(struct model_loop *l, struct model_block *b, unsigned to)
{
    struct model_block *handed = malloc(sizeof *handed);

    MUST(handed != NULL, "no memory");
    model_hand_over(l, b, handed);
    return empty(to, handed);
}

/* The program changes the protection of what it then frees. */
static const char *handle(struct model_loop *l, struct model_block *b, size_t page)
{
    if (b->e != NULL && b->n >= fl_page.base) {
        uintptr_t at = (uintptr_t)b->p + page % (b->n / fl_page.base) * fl_page.base;
        fl_region_note_remapped(&region, (struct fl_range){at, fl_page.base});
        MUST(mprotect((void *)at, fl_page.base, PROT_READ) == 0, "no protection");
    }
    return model_drop(l, b);
}

/* What is not the worker's; in its place blocks change hands. */
static const char *disturbed(const struct plan_op *op)
{
    struct model_loop *l = model_current();
    struct model_block *b = model_live_block(l, op->a);

    switch (op->kind) {
    case PLAN_WORK:
    case PLAN_TICK:
    case PLAN_AGE:
    case PLAN_PURGE:
    case PLAN_REFUSE:
        return b == NULL || op->b % 8 > 1 ? model_next(l)
               : op->b % 8 == 0           ? hand_over(l, b, op->b / 8 % BOXES)
               : HANDS != 0               ? handle(l, b, op->b / 8)
                                          : NULL;
    default:
        return plan_ops_apply(op);
    }
}

/* Requests alone, in no step. */
static const char *stepless(const struct plan_op *op)
{
    enum plan_op_kind kind = op->b % 8 < 3   ? PLAN_EXTRA
                             : op->b % 8 < 6 ? PLAN_FREE
                             : op->b % 8 < 7 ? PLAN_RESIZE
                                             : PLAN_WORK;

    return disturbed(&(struct plan_op){kind, op->a, op->b / 8});
}

/* The thread's contexts go before its blocks, or after. */
static const char *leave(bool early)
{
    const char *wrong = NULL;

    if (early) {
        model_end_thread();
    }
    for (unsigned i = 0; i < BOXES / 4 && wrong == NULL; i++) {
        struct model_loop *l = &model.loop[i % LOOPS];
        struct model_block *b = model_live_block(l, 0);
        wrong = b != NULL ? hand_over(l, b, i) : NULL;
    }
    wrong = wrong != NULL ? wrong : model_drop_all();
    for (uint16_t i = 0; i < PLAN_KINDS; i++) {
        (void)plan_ops_apply(&(struct plan_op){PLAN_LET_GO, i, 0});
    }
    model_end_thread();
    for (unsigned i = 0; i < LOOPS && wrong == NULL; i++) {
        wrong = model_other_context(&model.loop[i]);
    }
    return wrong;
}

/* Two threads' loops are steady: a plan must be able to serve them. All ask where blocks lie, or
 * threads that step at once have no plan. */
static void *run(void *arg)
{
    uintptr_t i = (uintptr_t)arg, kind = i % THREADS;
    struct plan_op *ops = calloc(OPS, sizeof *ops);
    const char *wrong = ops == NULL ? "no memory" : NULL;

    model_start_thread((unsigned)i);
    model.ever_refused = true; /* others have what a plan has idle: it need not serve */
    model.chosen = &model.loop[kind % 2];
    model.loop[2].context = kind > 1 ? shared : NULL;
    model.loop[2].shared = kind > 1;
    plan_ops_draw(ops, wrong == NULL ? OPS : 0, seed + i * 0x1000193);
    for (size_t k = 0; k < OPS && wrong == NULL; k++) {
        wrong = kind == 3 ? stepless(&ops[k]) : kind == 2 ? disturbed(&ops[k]) : NULL;
        wrong = kind < 2 ? model_next(model_current()) : wrong;
        if (kind < 3 && k % 1024 == 1 && wrong == NULL) {
            wrong = plan_ops_apply(&(struct plan_op){PLAN_LOOK, kind % 2, 0});
        }
    }
    free(ops);
    wrong_in[i] = wrong != NULL ? wrong : leave(seed >> i & 1);
    return NULL;
}

static void one_job(uint64_t r)
{
    switch (r % 64) {
    case 0:
        (void)fl_plan_release();
        break;
    case 1:
        (void)fl_region_tick(&region, 4);
        break;
    case 2:
        assert_sound();
        break;
    case 3:
        fl_lock_acquire(fl_plan_fork_word());
        fl_region_fork_lock(&region);
        fl_lock_hold_for_fork(fl_plan_fork_word());
        fl_region_fork_parent(&region);
        fl_lock_release_in_parent(fl_plan_fork_word());
        break;
    case 4:
    case 5:
    case 6:
        (void)fl_plan_age(&region);
        break;
    case 7:
        (void)plan_stats();
        break;
    case 8:
        (void)fl_trim(0);
        break;
    default:
        (void)fl_plan_work(&region);
        sched_yield();
    }
}

static void *work(void *arg)
{
    uint64_t random = seed ^ 0x77;

    while (!atomic_load_explicit(&over, memory_order_relaxed)) {
        one_job(seed_next(&random) >> 16);
    }
    return arg;
}

static void start(void)
{
    plan_kernel = install_quiet_fake;
    plan_begin(&(struct fl_plan_config){.on = true, .background = seed % 4 != 1});
    fl_sys.now_ns = fl_sys_linux.now_ns;
    region.config.limit = seed / 2 % 4 == 0 ? MIB(96) : 0;
    fl_route.caches = seed / 8 % 4 != 0;
    model_start();
    assert_int_equal(fl_plan_context_new(&shared), 0);
}

static void assert_right(const char *wrong)
{
    if (wrong != NULL) {
        fail_msg("%s", wrong);
    }
}

static void whatever_repeats_or_not_no_byte_is_lost(void **state)
{
    pthread_t t[THREADS], worker;
    (void)state;
    start();
    assert_int_equal(pthread_create(&worker, NULL, work, NULL), 0);
    for (uintptr_t round = 0; round < ROUNDS; round++) {
        for (uintptr_t i = 0; i < THREADS; i++) {
            void *arg = (void *)(round * THREADS + i);
            assert_int_equal(pthread_create(&t[i], NULL, run, arg), 0);
        }
        for (uintptr_t i = 0; i < THREADS; i++) {
            pthread_join(t[i], NULL);
            assert_right(wrong_in[round * THREADS + i]);
        }
    }
    atomic_store(&over, true);
    pthread_join(worker, NULL);
    assert_int_equal(fl_plan_context_free(shared), 0);
    for (unsigned i = 0; i < BOXES; i++) {
        assert_right(empty(i, NULL));
    }
    struct fl_plan_stats s = plan_stats();
    print_message("  hits %" PRIu64 " misses %" PRIu64 " steps %" PRIu64 " layouts %" PRIu64
                  " drops %" PRIu64 ", %" PRIu64 " MiB moved\n",
                  s.hits, s.misses, s.steps, s.layouts, s.drops, stats().move_bytes >> 20);
    assert_right(plan_ops_all_is_free());
    assert_true(s.hits > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whatever_repeats_or_not_no_byte_is_lost),
    };
    seed = seed_read();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
