/* patterns: programs in the shape of training and serving loops, each of which asks for large
 * blocks as real ones do, touches them, and computes nothing.
 *
 *   patterns NAME [--steps N] [--warmup N] [--mib N] [--declare]
 *
 * A model is a row of layers. Forward, a layer makes four blocks that live until its backward pass,
 * and two that do not outlive it; backward, it makes three, and a gradient that lives until the
 * optimizer has used it. Sizes of activations go with the number of tokens, those of gradients do
 * not. --mib is about what is live at once; --declare has fl_step_begin and fl_step_end called.
 * The last lines are `SHARES {json}`, see below, and `SUMMARY {json}`. A request repeats when it
 * got the address of the same request one or two steps before, of a step with as many requests. */
#include "faultless/faultless.h"
#include "meter.h"

#include <dlfcn.h>
#include <getopt.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERS = 12, KEPT = 4, TOKENS = 1024, LENGTHS = 6, THREADS = 4 };
enum { BLOCKS = 4096, PAGE = 4096, LEAST = 66 * 1024 };

struct block {
    char *p;
    size_t len;
};

/* What one thread has of the model. */
struct model {
    struct block weight[LAYERS], gradient[LAYERS], kept[LAYERS][KEPT], cache[LAYERS];
    bool skipped[LAYERS];
    uint64_t random;
};

static struct {
    const char *name;
    int steps, warmup, mib;
    bool declare, alike; /* the latter: as the pattern has it */
} arg = {"fixed", 80, 60, 256, false, false};

static int (*step_begin)(void *), (*step_end)(void *);
static int (*read_stats)(struct fl_stats *);
static struct fl_stats warm; /* after the warm-up */

static void note_stats(struct fl_stats *s)
{
    *s = (struct fl_stats){.size = sizeof *s};
    if (read_stats != NULL) {
        (void)read_stats(s);
    }
}

static double share(uint64_t part, uint64_t all)
{
    return all != 0 ? 100.0 * (double)part / (double)all : 0;
}

/* Of the requests after the warm-up: how many had their address again, how many a plan served. */
static void report_shares(size_t repeated, size_t compared)
{
    struct fl_stats now;

    note_stats(&now);
    uint64_t hits = now.plan_hits - warm.plan_hits, all = now.requests - warm.requests;
    printf("SHARES {\"repeat_pct\": %.1f, \"hit_pct\": %.1f}\n", share(repeated, compared),
           share(hits, all));
}

/* ---- addresses that repeat: those of the thread that marks ---- */

static uintptr_t seen[3][BLOCKS];
static size_t nseen[3], repeated, compared;
static int turn;
static _Thread_local bool is_main;

static void note(const void *p)
{
    if (is_main && nseen[turn] < BLOCKS) {
        seen[turn][nseen[turn]++] = (uintptr_t)p;
    }
}

static void end_notes(int step)
{
    int one = (turn + 2) % 3, two = (turn + 1) % 3;

    for (size_t i = 0; step >= arg.warmup && i < nseen[turn]; i++) {
        bool same = (nseen[one] == nseen[turn] && seen[one][i] == seen[turn][i]) ||
                    (nseen[two] == nseen[turn] && seen[two][i] == seen[turn][i]);
        repeated += same;
        compared++;
    }
    turn = (turn + 1) % 3;
    nseen[turn] = 0;
}

/* ---- blocks ---- */

static struct block get(size_t len)
{
    len = len < LEAST ? LEAST : len;
    struct block b = {malloc(len), len};

    if (b.p == NULL) {
        abort();
    }
    for (size_t at = 0; at < len; at += PAGE) {
        b.p[at] = 1;
    }
    fl_meter_live((ptrdiff_t)len);
    note(b.p);
    return b;
}

static void put(struct block *b)
{
    if (b->p != NULL) {
        fl_meter_live(-(ptrdiff_t)b->len);
        free(b->p);
    }
    *b = (struct block){NULL, 0};
}

static uint64_t any(struct model *m, uint64_t n)
{
    m->random = m->random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (m->random >> 33) % n;
}

/* ---- a model ---- */

/* Bytes of an activation of TOKENS tokens: a sixtieth of what is to be live. */
static size_t unit(void)
{
    return ((size_t)arg.mib << 20) / 60;
}

static size_t activation(size_t tokens, int i)
{
    static const size_t share[] = {8, 4, 6, 3, 10, 5, 12, 2};

    return unit() * share[i % 8] / 8 * tokens / TOKENS;
}

static size_t weight(int layer, bool alike)
{
    return unit() / 4 * (alike ? 2 : 1 + (size_t)layer % 3);
}

static void forward(struct model *m, size_t tokens, bool keep)
{
    for (int l = 0; l < LAYERS; l++) {
        struct block brief = {NULL, 0};
        for (int i = 0; i < KEPT && !m->skipped[l]; i++) {
            struct block b = get(activation(tokens, i + l % 2));
            put(&brief);
            if (i % 2 == 0) {
                brief = get(activation(tokens, 4 + i / 2));
            }
            if (keep) {
                m->kept[l][i] = b;
            } else {
                put(&b);
            }
        }
        put(&brief);
    }
}

static void backward(struct model *m, size_t tokens, bool alike)
{
    for (int l = LAYERS - 1; l >= 0; l--) {
        if (m->skipped[l]) {
            continue;
        }
        struct block in = get(activation(tokens, 4)), out = get(activation(tokens, 5));
        for (int i = KEPT - 1; i >= 0; i--) {
            put(&m->kept[l][i]);
        }
        struct block more = get(weight(l, alike));
        if (m->gradient[l].p == NULL) {
            m->gradient[l] = more;
        } else {
            put(&more);
        }
        put(&out);
        put(&in);
    }
}

static void optimize(struct model *m, bool alike)
{
    for (int l = 0; l < LAYERS; l++) {
        struct block a = get(weight(l, alike)), b = get(weight(l, alike));
        put(&a);
        put(&b);
        put(&m->gradient[l]);
    }
}

static size_t one_of_six(struct model *m)
{
    return TOKENS - any(m, LENGTHS) * (TOKENS / 8);
}

/* ---- patterns ---- */

static struct model one = {.random = 1};

static void accumulate(int times, bool lengths)
{
    for (int i = 0; i < times; i++) {
        size_t tokens = lengths ? one_of_six(&one) : TOKENS;
        forward(&one, tokens, true);
        backward(&one, tokens, false);
    }
    optimize(&one, false);
}

static void train(size_t tokens, bool alike)
{
    forward(&one, tokens, true);
    backward(&one, tokens, alike);
    optimize(&one, alike);
}

/* The step of a pattern is its number, or how many micro-steps it has. */
static void fixed(int times)
{
    accumulate(times, false);
}

static void accumulate_lengths(int times)
{
    accumulate(times, true);
}

static void any_length(int step)
{
    (void)step;
    train(TOKENS / 4 + any(&one, TOKENS * 3 / 4), false);
}

static void six_lengths(int step)
{
    (void)step;
    train(one_of_six(&one), arg.alike);
}

static void growth(int step)
{
    train(TOKENS * 2 / 3 + (size_t)step, false);
}

static void dynamic(int step)
{
    (void)step;
    for (int l = 0; l < LAYERS; l++) {
        one.skipped[l] = any(&one, 5) == 0;
    }
    accumulate(1, false);
}

/* Twenty steps of training, ten of evaluation. */
static void train_eval(int step)
{
    if (step % 30 < 20) {
        accumulate(1, false);
    } else {
        forward(&one, TOKENS, false);
    }
}

/* The second form leaves out a layer of twelve: 7 % of the requests. */
static void two_forms(int step)
{
    one.skipped[LAYERS / 2] = step % 2 != 0;
    train(TOKENS, false);
}

/* A token a step; 200 tokens a sequence. Each layer's cache is copied to be one token longer. */
static void kv_cache(int step)
{
    size_t token = unit() / 40;

    for (int l = 0; l < LAYERS; l++) {
        struct block query = get(unit() / 8), longer = get(one.cache[l].len + token);
        put(&one.cache[l]);
        one.cache[l] = longer;
        struct block scores = get(unit() / 16 + longer.len / 8);
        put(&query);
        put(&scores);
        if (step % 200 == 199) {
            put(&one.cache[l]);
        }
    }
}

/* Requests of any size, each of which lives for some time. */
static void server(int step)
{
    static struct block live[64];

    (void)step;
    for (int i = 0; i < 200; i++) {
        struct block *b = &live[any(&one, 64)];
        put(b);
        *b = get(LEAST << any(&one, 8));
    }
}

/* ---- threads ---- */

static struct model each[THREADS];
static pthread_barrier_t start, stop;
static void (*task)(int thread);

static void *work(void *arg_)
{
    int thread = (int)(intptr_t)arg_;

    for (int s = 0; s < arg.steps; s++) {
        pthread_barrier_wait(&start);
        task(thread);
        pthread_barrier_wait(&stop);
    }
    return NULL;
}

static void begin_threads(int n, void (*what)(int))
{
    static bool begun;

    if (begun) {
        return;
    }
    begun = true;
    task = what;
    pthread_barrier_init(&start, NULL, (unsigned)n + 1);
    pthread_barrier_init(&stop, NULL, (unsigned)n + 1);
    for (int i = 0; i < n; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, work, (void *)(intptr_t)i) != 0) {
            abort();
        }
    }
}

static void all_work(void)
{
    pthread_barrier_wait(&start);
    pthread_barrier_wait(&stop);
}

static void backward_task(int thread)
{
    (void)thread;
    backward(&one, TOKENS, false);
}

static void backward_thread(int step)
{
    (void)step;
    begin_threads(1, backward_task);
    forward(&one, TOKENS, true);
    all_work();
    optimize(&one, false);
}

/* A quarter of the tokens each. */
static void parallel_task(int thread)
{
    struct model *m = &each[thread];

    if (arg.declare) {
        (void)step_begin(NULL);
    }
    forward(m, TOKENS / THREADS, true);
    backward(m, TOKENS / THREADS, false);
    optimize(m, false);
    if (arg.declare) {
        (void)step_end(NULL);
    }
}

static void data_parallel(int step)
{
    (void)step;
    begin_threads(THREADS, parallel_task);
    all_work();
}

static const struct pattern {
    const char *name;
    void (*step)(int);
    int times;    /* micro-steps; 0: the step's number is passed */
    bool alike;   /* weights of one size */
    bool threads; /* which declare for themselves */
} patterns[] = {
    {"fixed", fixed, 1, false, false},
    {"accumulate-4", fixed, 4, false, false},
    {"accumulate-8", fixed, 8, false, false},
    {"accumulate-16", fixed, 16, false, false},
    {"accumulate-lengths", accumulate_lengths, 4, false, false},
    {"six-lengths", six_lengths, 0, false, false},
    {"any-length", any_length, 0, false, false},
    {"six-lengths-alike", six_lengths, 0, true, false},
    {"growth", growth, 0, false, false},
    {"dynamic", dynamic, 0, false, false},
    {"train-eval", train_eval, 0, false, false},
    {"two-forms", two_forms, 0, false, false},
    {"kv-cache", kv_cache, 0, false, false},
    {"backward-thread", backward_thread, 0, false, false},
    {"data-parallel", data_parallel, 0, false, true},
    {"server", server, 0, false, false},
};

static void run(const struct pattern *p)
{
    bool declare = arg.declare && !p->threads;

    fl_meter_base();
    arg.alike = p->alike;
    for (int l = 0; l < LAYERS; l++) {
        one.weight[l] = get(weight(l, p->alike));
    }
    fl_meter_begin();
    for (int s = 0; s < arg.steps; s++) {
        if (declare) {
            (void)step_begin(NULL);
        }
        p->step(p->times != 0 ? p->times : s);
        if (declare) {
            (void)step_end(NULL);
        }
        end_notes(s);
        if (s + 1 == arg.warmup) {
            note_stats(&warm);
        }
        fl_meter_step(0);
    }
}

static void read_arguments(int argc, char **argv)
{
    static const struct option options[] = {{"steps", 1, NULL, 's'},
                                            {"warmup", 1, NULL, 'w'},
                                            {"mib", 1, NULL, 'm'},
                                            {"declare", 0, NULL, 'd'},
                                            {NULL, 0, NULL, 0}};
    int c;

    while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (c) {
        case 's':
            arg.steps = atoi(optarg);
            break;
        case 'w':
            arg.warmup = atoi(optarg);
            break;
        case 'm':
            arg.mib = atoi(optarg);
            break;
        case 'd':
            arg.declare = true;
            break;
        default:
            exit(2);
        }
    }
    arg.name = optind < argc ? argv[optind] : arg.name;
}

int main(int argc, char **argv)
{
    is_main = true;
    read_arguments(argc, argv);
    step_begin = (int (*)(void *))dlsym(RTLD_DEFAULT, "fl_step_begin");
    step_end = (int (*)(void *))dlsym(RTLD_DEFAULT, "fl_step_end");
    read_stats = (int (*)(struct fl_stats *))dlsym(RTLD_DEFAULT, "fl_stats_read");
    arg.declare = arg.declare && step_begin != NULL && step_end != NULL;
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        if (strcmp(patterns[i].name, arg.name) == 0) {
            run(&patterns[i]);
            report_shares(repeated, compared);
            fl_meter_report(arg.name, arg.warmup);
            return 0;
        }
    }
    fprintf(stderr, "patterns: no pattern of that name: %s\n", arg.name);
    return 2;
}
