/* Processes that fork again and again while their threads allocate. */
#include "await.h"
#include "blocks.h"

#include <signal.h>
#include <sys/ioctl.h>

enum { THREADS = 4, SLOTS = 5, COMMON = 6, FORKS = 1000, DEPTH = 2 };

static struct block common[COMMON]; /* made before the first fork, left alone until the end */

static pid_t start_child(struct block *own, uint64_t seed, int depth);

/* SIGKILL is what the parent may have sent. */
static void reap(pid_t pid)
{
    int status;
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
}

static void live_in_child(struct block *own, uint64_t seed, int depth)
{
    pid_t pid = -1;

    for (size_t i = 0; i < SLOTS; i++) {
        check(&own[i]);
    }
    for (size_t i = 0; i < COMMON; i++) {
        check(&common[i]);
    }
    refill(&own[next_random(&seed) % SLOTS], &seed);
    if (depth < DEPTH && seed % 8 == 0) {
        pid = start_child(own, seed, depth + 1);
    }
    for (int i = 0; i < 3; i++) {
        refill(&own[next_random(&seed) % SLOTS], &seed);
    }
    drop(&common[seed % COMMON]);
    drop_all(own, SLOTS);
    if (pid > 0) {
        reap(pid);
    }
}

static pid_t start_child(struct block *own, uint64_t seed, int depth)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        live_in_child(own, seed, depth);
        _exit(0);
    }
    return pid;
}

/* Two children live at a time; some are killed. Meanwhile the parent writes what they share. */
static void *storm_thread(void *arg)
{
    uint64_t seed = 0x9e3779b97f4a7c15u * ((uintptr_t)arg + 1);
    struct block own[SLOTS] = {{NULL, 0, 0}};
    pid_t before = -1;

    for (size_t i = 0; i < SLOTS; i++) {
        refill(&own[i], &seed);
    }
    for (long i = 0; i < at_most(FORKS / THREADS); i++) {
        pid_t pid = start_child(own, next_random(&seed), 0);
        refill(&own[next_random(&seed) % SLOTS], &seed);
        refill(&own[next_random(&seed) % SLOTS], &seed);
        if (i % 16 == 5) {
            kill(pid, SIGKILL);
        }
        if (before > 0) {
            reap(before);
        }
        before = pid;
        for (size_t k = 0; k < SLOTS; k++) {
            check(&own[k]);
        }
    }
    reap(before);
    drop_all(own, SLOTS);
    return NULL;
}

MODE(storm)
{
    pthread_t t[THREADS];
    for (size_t i = 0; i < COMMON; i++) {
        common[i] = (struct block){malloc((i + 1) * 300 * KIB), (i + 1) * 300 * KIB, i};
        stamp(common[i].p, common[i].n, i);
    }
    start_threads(t, THREADS, storm_thread);
    join_threads(t, THREADS);
    drop_all(common, COMMON);
}

/* Workers that are forked anew each epoch and send batches made from what they inherited. The
 * parent changes the first part of it meanwhile, and allocates and frees while the kernel writes
 * into its buffers. */
enum { WORKERS = 4, PARTS = 5, BATCHES = 40, EPOCHS = 3 };
static const size_t part_len = 6 * MIB, batch_len = 700 * KIB;

struct worker {
    pid_t pid;
    int ask, answer;
};

static void transfer(ssize_t (*f)(int, char *, size_t), int fd, char *p, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = f(fd, p + done, n - done);
        CHECK(k > 0);
        done += (size_t)k;
    }
}

static ssize_t write_some(int fd, char *p, size_t n)
{
    return write(fd, p, n);
}

static ssize_t read_some(int fd, char *p, size_t n)
{
    return read(fd, p, n);
}

static void serve_batches(char *const parts[], int ask, int answer)
{
    for (uint32_t i; read(ask, &i, sizeof i) == sizeof i;) {
        char *all = malloc(part_len), *batch = calloc(1, batch_len + i * 4096);
        memcpy(all, parts[i % PARTS], part_len);
        memcpy(batch, all, batch_len);
        free(all);
        transfer(write_some, answer, batch, batch_len);
        free(batch);
    }
    _exit(0);
}

static void start_worker(struct worker *w, char *const parts[], const struct worker *others,
                         size_t n)
{
    int ask[2], answer[2];
    CHECK(pipe(ask) == 0 && pipe(answer) == 0);
    w->pid = fork();
    CHECK(w->pid >= 0);
    if (w->pid == 0) {
        for (size_t i = 0; i < n; i++) { /* so that those see their end of file */
            close(others[i].ask);
            close(others[i].answer);
        }
        close(ask[1]);
        close(answer[0]);
        serve_batches(parts, ask[0], answer[1]);
    }
    close(ask[0]);
    close(answer[1]);
    w->ask = ask[1];
    w->answer = answer[0];
}

static void one_epoch(char *parts[], uint64_t seeds[], uint64_t *seed)
{
    struct worker w[WORKERS];
    struct block own[SLOTS] = {{NULL, 0, 0}};
    uint64_t old = seeds[0];

    for (size_t i = 0; i < WORKERS; i++) {
        start_worker(&w[i], parts, w, i);
    }
    seeds[0] = next_random(seed);
    free(parts[0]);
    parts[0] = written(part_len, seeds[0]);
    for (uint32_t i = 0; i < BATCHES; i++) {
        const struct worker *from = &w[i % WORKERS];
        CHECK(write(from->ask, &i, sizeof i) == sizeof i);
        refill(&own[i % SLOTS], seed);
        char *batch = malloc(batch_len);
        transfer(read_some, from->answer, batch, batch_len);
        CHECK(is_stamped_part(batch, batch_len, part_len, i % PARTS == 0 ? old : seeds[i % PARTS]));
        free(batch);
    }
    for (size_t i = 0; i < WORKERS; i++) {
        close(w[i].ask);
        reap(w[i].pid);
        close(w[i].answer);
    }
    drop_all(own, SLOTS);
}

MODE(loader)
{
    uint64_t seed = 4711, seeds[PARTS];
    char *parts[PARTS];
    for (size_t i = 0; i < PARTS; i++) {
        seeds[i] = next_random(&seed);
        parts[i] = written(part_len, seeds[i]);
    }
    for (int i = 0; i < EPOCHS; i++) {
        one_epoch(parts, seeds, &seed);
    }
    for (size_t i = 0; i < PARTS; i++) {
        CHECK(is_stamped(parts[i], part_len, seeds[i]));
        free(parts[i]);
    }
}

/* A process with threads forks; the child has threads of its own that allocate while it forks. */
static void with_threads(void (*f)(int), int depth)
{
    pthread_t t[THREADS];
    start_churn(t, THREADS);
    f(depth);
    end_churn(t, THREADS);
}

static void families(int depth)
{
    const struct block inherited = {malloc(20 * MIB), 20 * MIB, (uint64_t)depth};
    stamp(inherited.p, inherited.n, inherited.seed);
    for (long i = 0; i < (depth == 0 ? at_most(20) : 1); i++) {
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            check(&inherited);
            if (depth < DEPTH) {
                with_threads(families, depth + 1);
            }
            check(&inherited);
            free(inherited.p);
            if (i % 2 == 0) {
                exit(0);
            }
            _exit(0);
        }
        reap(pid);
        check(&inherited);
    }
    free(inherited.p);
}

MODE_IS(threads_in_child, with_threads(families, 0))

/* Without forks: threads whose blocks lie side by side, as close as can be. */
static void *change_sizes(void *arg)
{
    uint64_t seed = (uintptr_t)arg * 7 + (uint64_t)getpid();
    struct block own[2 * SLOTS] = {{NULL, 0, 0}};
    for (int i = 0; i < 400; i++) {
        refill(&own[next_random(&seed) % (2 * SLOTS)], &seed);
    }
    drop_all(own, 2 * SLOTS);
    return NULL;
}

MODE(sizes)
{
    pthread_t t[THREADS + 2];
    start_threads(t, THREADS + 2, change_sizes);
    join_threads(t, THREADS + 2);
}

static size_t rss_mib(void)
{
    return rollup_kib("\nRss:") / KIB;
}

/* What is free is the parent's alone, and stays with it. */
MODE(free_stays_behind)
{
    struct block live = {malloc(32 * MIB), 32 * MIB, 7};
    char *p[4];
    stamp(live.p, live.n, live.seed);
    for (size_t i = 0; i < 4; i++) {
        p[i] = filled((40 + 10 * i) * MIB);
    }
    FREE_ALL(p, 4);
    size_t before = rss_mib();
    pid_t pid = fork();
    if (pid == 0) {
        CHECK(rss_mib() < 32 + 32);
        check(&live);
        struct block b = {malloc(100 * MIB), 100 * MIB, 8};
        stamp(b.p, b.n, b.seed);
        check(&b);
        check(&live);
        _exit(0);
    }
    reap(pid);
    check(&live);
    printf("before %zu after %zu\n", before, rss_mib());
}

/* What the parent rewrites while a child lives becomes huge again, in the child's lifetime; the
 * child keeps what it had. */
MODE(repaired)
{
    enum { LEN_MIB = 128 };
    struct block b = {malloc(LEN_MIB * MIB), LEN_MIB * MIB, 1};
    int gate[2];
    char c;
    stamp(b.p, b.n, 1);
    size_t before = huge_kib();
    CHECK(before >= LEN_MIB * KIB * 9 / 10 && pipe(gate) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        close(gate[1]);
        CHECK(read(gate[0], &c, 1) == 0);
        check(&b);
        _exit(0);
    }
    close(gate[0]);
    b.seed = 2;
    stamp(b.p, b.n, b.seed);
    for (int looks = 0; huge_kib() * 100 < before * 95; looks++) {
        fl_between_looks();
        if (looks % 100 == 0) { /* a program does something now and then */
            free(malloc(MIB));
        }
    }
    check(&b);
    close(gate[1]);
    reap(pid);
    drop(&b);
}

MAIN()
