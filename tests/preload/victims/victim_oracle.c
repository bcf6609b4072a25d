/* Loops in the shape of training steps, at random, in which each block says whose it is.
 *
 *   victim_oracle OPERATIONS [SEED]
 *
 * A run is a row of rounds. In each, 1 to 8 threads run steps of their own: declared or not, alike,
 * with sizes that drift, in two phases, with requests more or less, or at random; with calloc,
 * realloc, alignment, blocks that outlive their step, and blocks that another thread frees. In some
 * rounds threads fork, and the children go on; in others signal handlers allocate and free. Between
 * two rounds blocks live on that stay for ever.
 * The first word that is another block's ends the run with status 1, and says the seed, both blocks
 * and the operations so far. A malloc, a free or a realloc is one operation. */
#include "oracle.h"

#include <dlfcn.h>
#include <signal.h>
#include <time.h>

static struct worker worker[THREADS];
static _Thread_local struct worker *me; /* while its signal handler may work */
static long done;                       /* operations of rounds that are over */
static atomic_long signals;             /* handled */
static atomic_uint parked;              /* threads that have done theirs */
static pthread_barrier_t all_parked, all_go;
static int (*context_new)(void **), (*context_free)(void *); /* NULL: there are none */

/* ---- signals ---- */

/* A handler allocates and frees large blocks of its own, and frees those of threads. In rounds with
 * signals nothing else comes from the next allocator, which a handler may not interrupt and use. */
static void on_signal(int sig)
{
    struct worker *w = me;
    int e = errno;

    (void)sig;
    if (w == NULL) {
        return;
    }
    struct owned given = {NULL, 0, 0}, *own = &w->handler.block[draw(&w->handler.random, CAUGHT)];
    if (exchange(&w->handler.random, &given)) {
        owned_drop(&given, "freed by a handler");
    }
    owned_drop(own, "a handler's");
    *own = (struct owned){NULL, LARGE + (size_t)draw(&w->handler.random, 700 * KIB),
                          owned_mark(w->owner + FROM_HANDLER, ++w->handler.serial)};
    own->p = taken(own->n);
    owned_write(own);
    atomic_fetch_add_explicit(&signals, 1, memory_order_relaxed);
    errno = e;
}

static void mask_signal(int how)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(how, &set, NULL) == 0);
}

/* To some thread each 50 us or more, until all are done. */
static void send_signals(uint64_t *random)
{
    const struct timespec pause = {0, 50000};

    while (atomic_load(&parked) < oracle.threads) {
        CHECK(pthread_kill(worker[draw(random, oracle.threads)].thread, SIGUSR1) == 0);
        nanosleep(&pause, NULL);
    }
}

/* ---- rounds ---- */

static void *work(void *arg)
{
    struct worker *w = arg;

    if (oracle.signals) {
        me = w;
        mask_signal(SIG_UNBLOCK);
    }
    run_steps(w);
    mask_signal(SIG_BLOCK);
    me = NULL;
    atomic_fetch_add(&parked, 1);
    pthread_barrier_wait(&all_parked);
    pthread_barrier_wait(&all_go);
    drop_all(w);
    return NULL;
}

static void begin_worker(unsigned i, uint64_t random, long operations, void *context)
{
    struct worker *w = &worker[i];

    *w = (struct worker){.owner = i + 1, .random = random | 1, .limit = operations};
    w->serial = (uint64_t)done * 2; /* no number comes twice */
    w->handler.random = w->random ^ UINT64_C(0x5555555555555555);
    w->handler.serial = w->serial;
    w->context = one_in(w, 2) ? context : NULL;
    w->fork_at = oracle.forks ? (long)draw(&w->random, (uint64_t)operations) : NEVER;
    some_steps(w);
    CHECK(pthread_create(&w->thread, NULL, work, w) == 0);
}

/* All threads wait: nothing is half-written. */
static void fork_between(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        for (unsigned i = 0; i < oracle.threads; i++) {
            check_all(&worker[i], "in a child");
        }
        for (unsigned i = 0; i < POSTS; i++) {
            owned_check(&post[i].block, "in a child");
        }
        worker[0].alone = true;
        worker[0].declared = false;
        worker[0].limit = worker[0].operations + CHILD_OPERATIONS;
        run_steps(&worker[0]);
    }
    reap(pid);
}

static void one_round(uint64_t *random, unsigned number, long operations)
{
    void *context = NULL;

    oracle.forks = number % 3 == 1;
    oracle.signals = number % 3 == 2;
    oracle.threads = 1 + (unsigned)draw(random, THREADS);
    atomic_store(&parked, 0);
    CHECK(pthread_barrier_init(&all_parked, NULL, oracle.threads + 1) == 0);
    CHECK(pthread_barrier_init(&all_go, NULL, oracle.threads + 1) == 0);
    int rc = context_new != NULL ? context_new(&context) : -ENOSYS;
    CHECK(rc == 0 || rc == -ENOSYS);
    if (rc != 0) { /* steps are off */
        oracle.step_begin = NULL;
    }
    for (unsigned i = 0; i < oracle.threads; i++) {
        begin_worker(i, next_random(random), operations / oracle.threads, context);
    }
    if (oracle.signals) {
        send_signals(random);
    }
    pthread_barrier_wait(&all_parked);
    if (oracle.forks) {
        fork_between();
    }
    pthread_barrier_wait(&all_go);
    for (unsigned i = 0; i < oracle.threads; i++) {
        CHECK(pthread_join(worker[i].thread, NULL) == 0);
        done += worker[i].operations;
        worker[i].operations = 0;
    }
    for (unsigned i = 0; i < POSTS; i++) {
        owned_drop(&post[i].block, "posted, at the end");
    }
    if (context != NULL) {
        CHECK(context_free(context) == 0);
    }
}

/* One more block that stays, or another in its place. */
static void keep_one(uint64_t *random, unsigned number)
{
    struct owned *b = &oracle.stay[number % STAY];

    if (number / STAY % 4 == 0) {
        owned_drop(b, "what stays");
        *b = (struct owned){NULL, LARGE + (size_t)draw(random, MIB), owned_mark(MAIN, number + 1)};
        b->p = taken(b->n);
        owned_write(b);
    }
    for (size_t i = 0; i < STAY; i++) {
        owned_check(&oracle.stay[i], "what stays");
    }
}

static long operations_now(void)
{
    long all = done;

    for (unsigned i = 0; i < THREADS; i++) {
        all += worker[i].operations;
    }
    return all;
}

static void run(long operations, uint64_t random)
{
    long one = operations / 32;
    long round_of = one < 20000 ? 20000 : one > 300000 ? 300000 : one;

    for (unsigned number = 0; done < operations; number++) {
        keep_one(&random, number);
        one_round(&random, number, round_of);
    }
}

int main(int argc, char **argv)
{
    long operations = argc > 1 ? atol(argv[1]) : 1000000;
    const struct sigaction act = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct timespec from, to;

    owned_operations = operations_now;
    owned_seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 1;
    *(void **)&oracle.step_begin = dlsym(RTLD_DEFAULT, "fl_step_begin");
    *(void **)&oracle.step_end = dlsym(RTLD_DEFAULT, "fl_step_end");
    *(void **)&context_new = dlsym(RTLD_DEFAULT, "fl_step_new");
    *(void **)&context_free = dlsym(RTLD_DEFAULT, "fl_step_free");
    dprintf(1, "seed %llu\n", (unsigned long long)owned_seed); /* the library may end the process */
    mask_signal(SIG_BLOCK);
    CHECK(sigaction(SIGUSR1, &act, NULL) == 0);
    clock_gettime(CLOCK_MONOTONIC, &from);
    run(operations, owned_seed * UINT64_C(0x9e3779b97f4a7c15) | 1);
    clock_gettime(CLOCK_MONOTONIC, &to);
    printf("operations %ld forks %ld signals %ld seconds %ld\n", done, atomic_load(&oracle.forked),
           atomic_load(&signals), (long)(to.tv_sec - from.tv_sec));
    return 0;
}
