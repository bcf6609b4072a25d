/* churn: large-buffer churn without a framework. Each step allocates one buffer of each size (1,
 * 1.5, 2, 3, 4, 6, ... MiB up to --max-mib), writes and reads it, and frees it.
 *
 * Orders of freeing: fifo, lifo, random lifetimes, cross (by another thread), vary (fresh sizes,
 * random lifetimes, at most 1 GiB live: fragmentation and RSS). --reuse is the ideal to compare
 * with: the same calls answered from buffers kept by exact size, in huge pages, populated in the
 * warm-up. Steps are marked for faultstat; the last line is `SUMMARY {json}`. */
#include "faultless/step.h"

#include <dirent.h>
#include <getopt.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { FL_SIZES = 64, FL_THREADS = 64, FL_STEPS = 1000, FL_KEPT = 16, FL_LIVE = 4096 };
enum { FL_PAGE = 4096, FL_LINE = 64 }; /* strides of touching, not facts of the machine */
enum figure { FL_WALL_MS, FL_FAULTS, FL_USER_MS, FL_SYS_MS, FL_FIGURES };

static const size_t mib = (size_t)1 << 20;

static struct {
    int steps;
    int threads;
    int warmup;
    int nap_ms;
    int max_mib;
    char order; /* first letter of its name */
    const char *order_name;
    bool reuse;
    bool use_calloc;
    bool page_touch;
} o = {.steps = 10, .threads = 1, .warmup = -1, .max_mib = 512, .order = 'f', .order_name = "fifo"};

static size_t size[FL_SIZES];
static int sizes;
static char *buffer[FL_THREADS][FL_SIZES];
static pthread_barrier_t barrier;
static size_t peak_live; /* of --order vary, thread 0 */
static volatile long sink;
static double row[FL_STEPS][FL_FIGURES];

/* One thread's state. */
struct worker {
    int index;
    uint64_t random;
    struct {
        char *kept[FL_KEPT];
        int count;
    } pool[FL_SIZES]; /* --reuse */
    struct {
        char *base;
        size_t len;
    } live[FL_LIVE]; /* --order vary */
    int live_count;
    size_t live_len;
};

static struct worker workers[FL_THREADS];

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

static char *get(struct worker *w, int k)
{
    const size_t huge = 2 * mib;
    if (!o.reuse) {
        return must_have(o.use_calloc ? calloc(1, size[k]) : malloc(size[k]));
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
        free(base);
    } else if (w->pool[k].count < FL_KEPT) {
        w->pool[k].kept[w->pool[k].count++] = base;
    }
}

static void touch(char *base, size_t len)
{
    long sum = 0;
    if (o.page_touch) {
        for (size_t i = 0; i < len; i += FL_PAGE) {
            base[i] = 1;
        }
        return;
    }
    memset(base, 1, len);
    for (size_t i = 0; i < len; i += FL_LINE) {
        sum += base[i];
    }
    sink = sum;
}

static void drop_live(struct worker *w, int j)
{
    free(w->live[j].base);
    w->live_len -= w->live[j].len;
    w->live[j] = w->live[--w->live_count];
}

/* Log-uniform octave, uniform inside it. */
static void step_vary(struct worker *w)
{
    size_t cap = ((size_t)1 << 30) / (size_t)o.threads;
    for (int i = 0; i < 40; i++) {
        size_t len = mib << (draw(w, 1000) * __builtin_ctz((unsigned)o.max_mib) / 1000);
        len += (size_t)draw(w, 1 << 20) * (len >> 20);
        if (len > cap) {
            continue;
        }
        while (w->live_count > 0 && (w->live_len + len > cap || w->live_count == FL_LIVE)) {
            drop_live(w, draw(w, w->live_count));
        }
        char *base = must_have(malloc(len));
        touch(base, len);
        w->live[w->live_count].base = base;
        w->live[w->live_count++].len = len;
        w->live_len += len;
        if (w->index == 0 && w->live_len > peak_live) {
            peak_live = w->live_len;
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

/* Minor faults of living threads named fl-*: what an allocator populates off the program's path. */
static unsigned long helper_faults(void)
{
    unsigned long sum = 0;
    DIR *folder = opendir("/proc/self/task");
    const struct dirent *item;
    while (folder != NULL && (item = readdir(folder)) != NULL) {
        char path[64];
        unsigned long faults;
        snprintf(path, sizeof(path), "/proc/self/task/%.20s/stat", item->d_name);
        FILE *file = fopen(path, "re");
        if (file != NULL) {
            if (fscanf(file, "%*d (fl-%*[^)]) %*c %*d %*d %*d %*d %*d %*u %lu", &faults) == 1) {
                sum += faults;
            }
            fclose(file);
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return sum;
}

static void sample(double now[static FL_FIGURES])
{
    struct timespec t;
    struct rusage u;
    clock_gettime(CLOCK_MONOTONIC, &t);
    getrusage(RUSAGE_SELF, &u);
    now[FL_WALL_MS] = (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
    now[FL_FAULTS] = (double)((unsigned long)u.ru_minflt - helper_faults());
    now[FL_USER_MS] = (double)u.ru_utime.tv_sec * 1e3 + (double)u.ru_utime.tv_usec / 1e3;
    now[FL_SYS_MS] = (double)u.ru_stime.tv_sec * 1e3 + (double)u.ru_stime.tv_usec / 1e3;
}

/* Every thread waits while thread 0 marks: no step leaks into the next. */
static void *work(void *arg)
{
    struct worker *w = arg;
    double before[FL_FIGURES] = {0};
    double after[FL_FIGURES];
    pthread_barrier_wait(&barrier);
    if (w->index == 0) {
        (void)fl_step_mark();
        sample(before);
    }
    pthread_barrier_wait(&barrier);
    for (int s = 0; s < o.steps; s++) {
        (o.order == 'v' ? step_vary : o.order == 'r' ? step_random : step_in_order)(w);
        pthread_barrier_wait(&barrier);
        if (w->index == 0) {
            usleep((useconds_t)o.nap_ms * 1000);
            sample(after);
            for (int i = 0; i < FL_FIGURES; i++) {
                row[s][i] = after[i] - before[i];
            }
            (void)fl_step_mark();
            sample(before);
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

static long read_mib(const char *path, const char *key)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            kib = atol(line + strlen(key));
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return kib / 1024;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void report(void)
{
    static double sorted[FL_FIGURES][FL_STEPS];
    double mean[FL_FIGURES] = {0};
    int n = o.steps - o.warmup;
    for (int i = 0; i < FL_FIGURES; i++) {
        for (int s = 0; s < n; s++) {
            sorted[i][s] = row[o.warmup + s][i];
            mean[i] += sorted[i][s] / n;
        }
        qsort(sorted[i], (size_t)n, sizeof(double), compare_doubles);
    }
    printf(
        "SUMMARY {\"name\": \"churn-%s-t%d\", \"steps\": %d, \"wall_ms\": %.2f, "
        "\"wall_mean_ms\": %.2f, \"wall_min_ms\": %.2f, \"minflt\": %.0f, \"minflt_mean\": %.1f, "
        "\"minflt_max\": %.0f, \"user_ms\": %.1f, \"sys_ms\": %.1f, \"sys_share\": %.4f, "
        "\"peak_live_mib\": %zu, \"hwm_mib\": %ld, \"rss_mib\": %ld, \"ahp_end_mib\": %ld, "
        "\"first_steps_ms\": [%.0f, %.0f, %.0f]}\n",
        o.order_name, o.threads, n, sorted[FL_WALL_MS][n / 2], mean[FL_WALL_MS],
        sorted[FL_WALL_MS][0], sorted[FL_FAULTS][n / 2], mean[FL_FAULTS], sorted[FL_FAULTS][n - 1],
        mean[FL_USER_MS], mean[FL_SYS_MS],
        mean[FL_SYS_MS] / (mean[FL_USER_MS] + mean[FL_SYS_MS] + 1e-9), peak_live / mib,
        read_mib("/proc/self/status", "VmHWM:"), read_mib("/proc/self/status", "VmRSS:"),
        read_mib("/proc/self/smaps_rollup", "AnonHugePages:"), row[0][FL_WALL_MS],
        row[1][FL_WALL_MS], row[2][FL_WALL_MS]);
}

static const struct option option[] = {
    {"steps", required_argument, NULL, 's'},
    {"warmup", required_argument, NULL, 'w'},
    {"threads", required_argument, NULL, 't'},
    {"max-mib", required_argument, NULL, 'm'},
    {"order", required_argument, NULL, 'o'},
    {"touch", required_argument, NULL, 'p'},
    {"sleep", required_argument, NULL, 'n'},
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
    return optind == argc && o.steps > 0 && o.steps <= FL_STEPS && o.threads > 0 &&
           o.threads <= FL_THREADS && o.max_mib > 0 && strchr("flrcv", o.order) != NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread[FL_THREADS];
    if (!parse(argc, argv)) {
        fprintf(stderr, "Usage: churn [--steps N] [--warmup N] [--threads N] [--max-mib N] "
                        "[--order fifo|lifo|random|cross|vary]\n"
                        "             [--touch all|page] [--sleep MS] [--reuse] [--calloc]\n");
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
        if (t > 0 && pthread_create(&thread[t], NULL, work, &workers[t]) != 0) {
            must_have(NULL);
        }
    }
    work(&workers[0]);
    for (int t = 1; t < o.threads; t++) {
        pthread_join(thread[t], NULL);
    }
    report();
    return 0;
}
