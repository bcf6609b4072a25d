/* A loop whose iterations ask for large blocks in the same way, or nearly.
 *
 *   victim_steps SHAPE STEPS [declare] [THREADS]
 *
 * fixed: each step is the same. vary: all sizes change together. jitter: now and then one request
 * more or less. phases: five steps of one kind, three of another. random: nothing repeats. Each
 * step has blocks that live on into the next one, and the first step has some that stay. declare:
 * fl_step_begin and fl_step_end, where there are such functions.
 * Every block knows what it holds. Prints the share of blocks, in percent, that lie where they lay
 * in the step before, over the last quarter of the steps, and the faults that those took. */
#include "blocks.h"
#include "worker.h"

#include <stdbool.h>

#include <dlfcn.h>
#include <stdatomic.h>

enum { REQUESTS = 120, KINDS = 2, STAY = 6, CROSS = 4, MOST = 4 };

struct request {
    size_t n;
    int lives; /* requests until it is freed; beyond the step: in the next */
};

static int (*begin)(void *), (*end)(void *);
static int steps;
static const char *shape;
static atomic_long same, compared, faults;

static void plan(struct request *r, uint64_t seed)
{
    for (int i = 0; i < REQUESTS; i++) {
        /* what varies never becomes small */
        size_t from = (shape[0] == 'v' ? 512 : 64) * KIB << next_random(&seed) % 6;
        r[i].n = from + next_random(&seed) % from;
        r[i].lives = 1 + (int)(next_random(&seed) % 20);
        if (i < CROSS) {
            r[i].lives = REQUESTS + 8;
        } else if (i + r[i].lives >= REQUESTS) {
            r[i].lives = REQUESTS - 1 - i;
        }
    }
}

static struct block make(size_t n, uint64_t seed, int how)
{
    void *p = NULL;

    if (how % 11 == 3) {
        p = calloc(1, n);
        check_zero(p, malloc_usable_size(p));
    } else if (how % 11 == 5) {
        CHECK(posix_memalign(&p, 4096, n) == 0);
    } else if (how % 11 == 7) {
        p = written(n / 2, 1);
        p = realloc(p, n);
        CHECK(is_stamped_part(p, n / 2, n / 2, 1));
    } else {
        p = malloc(n);
    }
    CHECK(p != NULL);
    stamp(p, n, seed);
    return (struct block){p, n, seed};
}

struct loop {
    struct block live[2 * REQUESTS]; /* by number in the step and parity */
    const char *was[REQUESTS];
    struct block stays[STAY];
    uint64_t random;
};

static void drop_due(struct loop *l, const struct request *r, int step, int i)
{
    for (int k = 0; k < REQUESTS; k++) {
        if (k + r[k].lives == i) {
            drop(&l->live[step % 2 * REQUESTS + k]);
        }
        if (k + r[k].lives == i + REQUESTS) {
            drop(&l->live[(step + 1) % 2 * REQUESTS + k]);
        }
    }
}

static void run_step(struct loop *l, const struct request *r, int step, bool last)
{
    size_t scale = shape[0] == 'v' ? 3 + (size_t)step * 7 % 6 : 8;

    for (int i = 0; i < REQUESTS; i++) {
        struct block *b = &l->live[step % 2 * REQUESTS + i];
        drop_due(l, r, step, i);
        drop(b);
        size_t n =
            shape[0] == 'r' ? some_size(&l->random) % (4 * MIB) + 64 * KIB : r[i].n * scale / 8;
        if (shape[0] == 'j' && next_random(&l->random) % 100 == 0) {
            struct block more = make(some_size(&l->random) % MIB + 64 * KIB, 5, 0);
            drop(&more);
            if (next_random(&l->random) % 2 == 0) {
                continue;
            }
        }
        *b = make(n, l->random + (uint64_t)i, i);
        if (last) {
            same += b->p == l->was[i];
            compared++;
        }
        l->was[i] = b->p;
        if (step == 0 && i < STAY) {
            l->stays[i] = make(r[i].n * 3, 77, 0);
        }
    }
    for (int k = 0; k < REQUESTS; k++) {
        if (r[k].lives < REQUESTS) {
            drop(&l->live[step % 2 * REQUESTS + k]);
        }
    }
}

static void *loop(void *arg)
{
    static __thread struct request r[KINDS][REQUESTS];
    struct loop *l = calloc(1, sizeof *l);
    uint64_t seed = 1000 + (uintptr_t)arg;
    long before = 0;

    CHECK(l != NULL);
    l->random = seed;
    plan(r[0], seed);
    plan(r[1], seed + 77);
    for (int step = 0; step < steps; step++) {
        bool last = step >= steps - steps / 4;
        int kind = shape[0] == 'p' && step % 8 >= 5;
        before = step == steps - steps / 4 ? faults_of(RUSAGE_THREAD) : before;
        if (shape[0] == 'p' && (step % 8 == 5 || step % 8 == 0)) { /* blocks do not cross */
            drop_all(l->live, 2 * REQUESTS);
            last = false;
        }
        if (begin != NULL) {
            CHECK(begin(NULL) == 0);
        }
        run_step(l, r[kind], step, last);
        if (end != NULL) {
            CHECK(end(NULL) == 0);
        }
        wait_until_worker_sleeps(); /* it makes the plan */
    }
    faults += faults_of(RUSAGE_THREAD) - before;
    drop_all(l->stays, STAY);
    drop_all(l->live, 2 * REQUESTS);
    free(l);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[MOST];
    bool declare = argc > 3 && strcmp(argv[3], "declare") == 0;
    int threads = argc > 4 ? atoi(argv[4]) : 1;

    CHECK(argc >= 3 && threads >= 1 && threads <= MOST);
    shape = argv[1];
    steps = atoi(argv[2]);
    if (declare) {
        *(void **)&begin = dlsym(RTLD_DEFAULT, "fl_step_begin");
        *(void **)&end = dlsym(RTLD_DEFAULT, "fl_step_end");
    }
    for (int i = 1; i < threads; i++) {
        CHECK(pthread_create(&t[i], NULL, loop, (void *)(uintptr_t)i) == 0);
    }
    loop(NULL);
    for (int i = 1; i < threads; i++) {
        CHECK(pthread_join(t[i], NULL) == 0);
    }
    printf("same %ld %% faults %ld\n", compared != 0 ? 100 * same / compared : 0, (long)faults);
    puts("done");
    return 0;
}
