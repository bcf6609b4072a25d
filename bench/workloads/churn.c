/* churn: large-buffer churn without a framework. Each step allocates one buffer of each size (1,
 * 1.5, 2, 3, 4, 6, ... MiB up to --max-mib), writes and reads it, and frees it.
 *
 * Orders of freeing: fifo, lifo, random lifetimes, cross (by another thread); and with fresh sizes
 * at each step, random lifetimes and at most --live-mib live (fragmentation and RSS) vary, and
 * pipe, where every other thread allocates and writes, and its neighbour reads and frees.
 * --new-threads: each step has threads of its own. --reuse is the ideal to compare with: the same
 * calls answered from buffers kept by exact size, in huge pages, populated in the warm-up. Steps
 * are marked for faultstat; the last line is `SUMMARY {json}`. */
#include "meter.h"

#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FL_SIZES = 64, FL_THREADS = 64, FL_KEPT = 16, FL_LIVE = 4096, FL_QUEUE = 16 };
enum { FL_FRESH = 40 };                /* buffers of a step of vary and pipe */
enum { FL_PAGE = 4096, FL_LINE = 64 }; /* strides of touching, not facts of the machine */

static const size_t mib = (size_t)1 << 20;

static struct {
    int steps;
    int threads;
    int warmup;
    int nap_ms;
    int max_mib;
    int live_mib;
    char order; /* first letter of its name */
    const char *order_name;
    bool reuse;
    bool use_calloc;
    bool page_touch;
    bool new_threads;
} o = {
    .steps = 10,
    .threads = 1,
    .warmup = -1,
    .max_mib = 512,
    .live_mib = 1024,
    .order = 'f',
    .order_name = "fifo",
};

static size_t size[FL_SIZES];
static int sizes;
static char *buffer[FL_THREADS][FL_SIZES];
static pthread_barrier_t barrier;
static volatile long sink;

struct block {
    char *base; /* NULL in a queue: the step's end */
    size_t len;
};

/* One thread's state. */
struct worker {
    int index;
    uint64_t random;
    struct {
        char *kept[FL_KEPT];
        int count;
    } pool[FL_SIZES];           /* --reuse */
    struct block live[FL_LIVE]; /* --order vary and pipe */
    int live_count;
    size_t live_len;
};

static struct worker workers[FL_THREADS];

/* --order pipe: what goes from thread 2i to thread 2i + 1. Lock: lock. */
static struct pipe {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct block queue[FL_QUEUE];
    int first;
    int count;
    size_t live_len; /* not yet freed */
} pipes[FL_THREADS / 2];

static int draw(struct worker *w, int below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (int)(w->random % (uint64_t)below);
}

static char *must_have(char *base)
{
    if (base == NULL || base == MAP_FAILED) {
        fprintf(stderr, "churn: out of memory\n");
        _exit(1);
    }
    return base;
}

static char *take(size_t len)
{
    char *base = must_have(o.use_calloc ? calloc(1, len) : malloc(len));
    fl_meter_live((ptrdiff_t)len);
    return base;
}

static void give(char *base, size_t len)
{
    fl_meter_live(-(ptrdiff_t)len);
    free(base);
}

static char *get(struct worker *w, int k)
{
    const size_t huge = 2 * mib;
    if (!o.reuse) {
        return take(size[k]);
    }
    if (w->pool[k].count > 0) {
        return w->pool[k].kept[--w->pool[k].count];
    }
    char *base = must_have(
        mmap(NULL, size[k] + huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    base += (huge - (uintptr_t)base % huge) % huge;
    (void)madvise(base, size[k], MADV_HUGEPAGE);
    (void)madvise(base, size[k], MADV_POPULATE_WRITE);
    return base;
}

static void put(struct worker *w, int k, char *base)
{
    if (!o.reuse) {
        give(base, size[k]);
    } else if (w->pool[k].count < FL_KEPT) {
        w->pool[k].kept[w->pool[k].count++] = base;
    }
}

static void read_all(const char *base, size_t len)
{
    long sum = 0;
    for (size_t i = 0; i < len; i += o.page_touch ? FL_PAGE : FL_LINE) {
        sum += base[i];
    }
    sink = sum;
}

static void touch(char *base, size_t len)
{
    if (o.page_touch) {
        for (size_t i = 0; i < len; i += FL_PAGE) {
            base[i] = 1;
        }
        return;
    }
    memset(base, 1, len);
    read_all(base, len);
}

static void keep_live(struct worker *w, struct block block)
{
    w->live[w->live_count++] = block;
    w->live_len += block.len;
}

/* Returns the length. */
static size_t drop_live(struct worker *w, int j)
{
    struct block block = w->live[j];
    w->live_len -= block.len;
    w->live[j] = w->live[--w->live_count];
    give(block.base, block.len);
    return block.len;
}

/* Log-uniform octave, uniform inside it. */
static size_t draw_len(struct worker *w)
{
    size_t len = mib << (draw(w, 1000) * __builtin_ctz((unsigned)o.max_mib) / 1000);
    return len + (size_t)draw(w, 1 << 20) * (len >> 20);
}

static void step_vary(struct worker *w)
{
    size_t cap = (size_t)o.live_mib * mib / (size_t)o.threads;
    for (int i = 0; i < FL_FRESH; i++) {
        size_t len = draw_len(w);
        if (len > cap) {
            continue;
        }
        while (w->live_count > 0 && (w->live_len + len > cap || w->live_count == FL_LIVE)) {
            (void)drop_live(w, draw(w, w->live_count));
        }
        char *base = take(len);
        touch(base, len);
        keep_live(w, (struct block){base, len});
    }
}

static void pipe_put(struct pipe *p, struct block block)
{
    pthread_mutex_lock(&p->lock);
    while (p->count == FL_QUEUE) {
        pthread_cond_wait(&p->changed, &p->lock);
    }
    p->queue[(p->first + p->count++) % FL_QUEUE] = block;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static struct block pipe_get(struct pipe *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->count == 0) {
        pthread_cond_wait(&p->changed, &p->lock);
    }
    struct block block = p->queue[p->first];
    p->first = (p->first + 1) % FL_QUEUE;
    p->count--;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    return block;
}

/* Wait until `len` more stays within `cap`, and count it in. */
static void pipe_reserve(struct pipe *p, size_t len, size_t cap)
{
    pthread_mutex_lock(&p->lock);
    while (p->live_len + len > cap) {
        pthread_cond_wait(&p->changed, &p->lock);
    }
    p->live_len += len;
    pthread_mutex_unlock(&p->lock);
}

static void pipe_release(struct pipe *p, size_t len)
{
    pthread_mutex_lock(&p->lock);
    p->live_len -= len;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

/* The reader keeps up to half of what may be live, so that the other half can always be
 * reserved. */
static void step_pipe(struct worker *w)
{
    struct pipe *p = &pipes[w->index / 2];
    size_t cap = (size_t)o.live_mib * mib / (size_t)(o.threads / 2);
    bool is_writer = w->index % 2 == 0;
    for (int i = 0; is_writer && i < FL_FRESH; i++) {
        size_t len = draw_len(w);
        if (len <= cap / 2) {
            pipe_reserve(p, len, cap);
            char *base = take(len);
            touch(base, len);
            pipe_put(p, (struct block){base, len});
        }
    }
    if (is_writer) {
        pipe_put(p, (struct block){NULL, 0});
        return;
    }
    for (struct block block = pipe_get(p); block.base != NULL; block = pipe_get(p)) {
        read_all(block.base, block.len);
        keep_live(w, block);
        while (w->live_len > cap / 2 || w->live_count == FL_LIVE) {
            pipe_release(p, drop_live(w, draw(w, w->live_count)));
        }
    }
}

/* Random lifetimes: at most half the sizes live at once. */
static void step_random(struct worker *w)
{
    int live[FL_SIZES];
    int count = 0;
    for (int i = 0; i < 2 * sizes; i++) {
        bool is_filling = i < sizes;
        if (is_filling) {
            int k = draw(w, sizes);
            bool is_live = false;
            for (int j = 0; j < count; j++) {
                is_live = is_live || live[j] == k;
            }
            if (is_live) {
                continue;
            }
            buffer[w->index][k] = get(w, k);
            touch(buffer[w->index][k], size[k]);
            live[count++] = k;
        }
        if (count > (is_filling ? sizes / 2 : 0)) {
            int j = draw(w, count);
            put(w, live[j], buffer[w->index][live[j]]);
            live[j] = live[--count];
        }
    }
}

static void step_in_order(struct worker *w)
{
    int owner = w->index;
    for (int i = 0; i < sizes; i++) {
        int k = (i * 7 + 3) % sizes;
        buffer[owner][k] = get(w, k);
        touch(buffer[owner][k], size[k]);
    }
    if (o.order == 'c') {
        pthread_barrier_wait(&barrier);
        owner = (owner + 1) % o.threads; /* freed by another thread */
    }
    for (int i = 0; i < sizes; i++) {
        int j = o.order == 'l' ? sizes - 1 - i : i;
        int k = (j * 7 + 3) % sizes;
        put(w, k, buffer[owner][k]);
    }
}

static void step(struct worker *w)
{
    switch (o.order) {
    case 'v':
        step_vary(w);
        break;
    case 'p':
        step_pipe(w);
        break;
    case 'r':
        step_random(w);
        break;
    default:
        step_in_order(w);
    }
}

/* Every thread waits while thread 0 marks: no step leaks into the next. */
static void *work(void *arg)
{
    struct worker *w = arg;
    pthread_barrier_wait(&barrier);
    if (w->index == 0) {
        fl_meter_begin();
    }
    pthread_barrier_wait(&barrier);
    for (int s = 0; s < o.steps; s++) {
        step(w);
        pthread_barrier_wait(&barrier);
        if (w->index == 0) {
            fl_meter_step(o.nap_ms);
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static void *work_once(void *arg)
{
    step(arg);
    return NULL;
}

/* Thread `first` and those after it are made here; thread 0, when it is not among them, is this
 * one. */
static void run_threads(int first, void *(*main_of_thread)(void *))
{
    pthread_t thread[FL_THREADS];
    for (int t = first; t < o.threads; t++) {
        if (pthread_create(&thread[t], NULL, main_of_thread, &workers[t]) != 0) {
            must_have(NULL);
        }
    }
    if (first == 1) {
        main_of_thread(&workers[0]);
    }
    for (int t = first; t < o.threads; t++) {
        pthread_join(thread[t], NULL);
    }
}

static void run(void)
{
    if (!o.new_threads) {
        run_threads(1, work);
        return;
    }
    fl_meter_begin();
    for (int s = 0; s < o.steps; s++) {
        run_threads(0, work_once);
        fl_meter_step(o.nap_ms);
    }
}

static const struct option option[] = {
    {"steps", required_argument, NULL, 's'},
    {"warmup", required_argument, NULL, 'w'},
    {"threads", required_argument, NULL, 't'},
    {"max-mib", required_argument, NULL, 'm'},
    {"order", required_argument, NULL, 'o'},
    {"touch", required_argument, NULL, 'p'},
    {"sleep", required_argument, NULL, 'n'},
    {"live-mib", required_argument, NULL, 'l'},
    {"new-threads", no_argument, NULL, 'N'},
    {"reuse", no_argument, NULL, 'r'},
    {"calloc", no_argument, NULL, 'c'},
    {"quiet", no_argument, NULL, 'q'},
    {0},
};

static bool parse(int argc, char **argv)
{
    int key;
    while ((key = getopt_long(argc, argv, "", option, NULL)) != -1) {
        switch (key) {
        case 's':
            o.steps = atoi(optarg);
            break;
        case 'w':
            o.warmup = atoi(optarg);
            break;
        case 't':
            o.threads = atoi(optarg);
            break;
        case 'm':
            o.max_mib = atoi(optarg);
            break;
        case 'o':
            o.order_name = optarg;
            o.order = optarg[0];
            break;
        case 'p':
            o.page_touch = optarg[0] == 'p';
            break;
        case 'n':
            o.nap_ms = atoi(optarg);
            break;
        case 'l':
            o.live_mib = atoi(optarg);
            break;
        case 'N':
            o.new_threads = true;
            break;
        case 'r':
            o.reuse = true;
            break;
        case 'c':
            o.use_calloc = true;
            break;
        case 'q': /* the summary is all there is; accepted as the other workloads do */
            break;
        default:
            return false;
        }
    }
    if (o.order == 'p' && o.threads % 2 != 0) {
        return false; /* they come in pairs */
    }
    return optind == argc && o.steps > 0 && o.steps <= FL_METER_STEPS && o.threads > 0 &&
           o.threads <= FL_THREADS && o.max_mib > 0 && o.live_mib > 0 &&
           strchr("flrcvp", o.order) != NULL;
}

int main(int argc, char **argv)
{
    char name[64];
    if (!parse(argc, argv)) {
        fprintf(stderr, "Usage: churn [--steps N] [--warmup N] [--threads N] [--max-mib N] "
                        "[--order fifo|lifo|random|cross|vary|pipe]\n"
                        "             [--live-mib N] [--touch all|page] [--sleep MS] [--reuse] "
                        "[--calloc] [--new-threads]\n");
        return 2;
    }
    if (o.warmup < 0) {
        o.warmup = o.steps / 3 > 3 ? o.steps / 3 : 3;
    }
    o.warmup = o.warmup < o.steps ? o.warmup : o.steps - 1;
    for (size_t m = 1; m <= (size_t)o.max_mib && sizes + 2 < FL_SIZES; m *= 2) {
        size[sizes++] = m * mib;
        if (m * 3 <= (size_t)o.max_mib * 2) {
            size[sizes++] = m * mib * 3 / 2;
        }
    }
    sizes -= sizes % 7 == 0; /* so that i * 7 + 3 walks all of them */
    pthread_barrier_init(&barrier, NULL, (unsigned)o.threads);
    for (int t = 0; t < o.threads; t++) {
        workers[t].index = t;
        workers[t].random = UINT64_C(88172645463325252) + (uint64_t)t * 7919;
        pthread_mutex_init(&pipes[t / 2].lock, NULL);
        pthread_cond_init(&pipes[t / 2].changed, NULL);
    }
    run();
    snprintf(name, sizeof(name), "churn-%s-t%d%s", o.order_name, o.threads,
             o.new_threads ? "-new" : "");
    fl_meter_report(name, o.warmup);
    return 0;
}
