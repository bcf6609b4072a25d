#include "gpu/pool_script.h"

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fl_gpu_pool *p;
static void *stream[128];
static struct block {
    uint64_t at;
    size_t len;
    char by; /* stream; 0: it is free */
    unsigned char value;
} block[128];
static bool refuses, hasty;
static uint64_t counted; /* calls of the driver up to there */
void (*script_more)(char what, unsigned long long pool, void *stream);

static void *stream_of(char name)
{
    void **s = &stream[(unsigned char)name];

    if (name == 'L' || name == 'l') {
        return (void *)(uintptr_t)(name == 'l'); /* NOLINT(performance-no-int-to-ptr) */
    }
    if (name == 'H' || name == 'O') {
        return name == 'H' ? FL_GPU_HOST : (void *)2; /* NOLINT(performance-no-int-to-ptr) */
    }
    if (*s == NULL && name == 'B') {
        assert_int_equal(fl_cuda.cuStreamCreate((fl_CUstream *)s, 0), 0);
    }
    *s = *s != NULL ? *s : gpu_stream();
    return *s;
}

/* 10M-512 */
static size_t number(const char *text)
{
    char *end;
    size_t n = strtoull(text, &end, 10);

    n <<= *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    end += *end >= 'A';
    return *end == '+' ? n + number(end + 1) : *end == '-' ? n - number(end + 1) : n;
}

#define FIGURE(name) #name, offsetof(struct fl_gpu_pool_stats, name)
static const struct {
    const char *name;
    size_t at;
} figures[] = {{FIGURE(cross_stream_hits)},
               {FIGURE(events)},
               {FIGURE(waits)},
               {FIGURE(implicit_syncs)},
               {FIGURE(driver_allocs)},
               {FIGURE(driver_frees)},
               {FIGURE(trims)},
               {FIGURE(retries)},
               {FIGURE(quarantined)},
               {FIGURE(capture_refusals)},
               {FIGURE(gc_batches)},
               {FIGURE(gc_bytes)},
               {FIGURE(served_pool_bytes)},
               {FIGURE(served_api_bytes)},
               {FIGURE(occupied_bytes)},
               {FIGURE(occupied_peak_bytes)},
               {FIGURE(held_peak_bytes)},
               {FIGURE(free_bytes)},
               {FIGURE(requested_bytes)},
               {FIGURE(inplace)},
               {FIGURE(allocs)},
               {FIGURE(frees)}};

/* Events are made once, and recorded again. */
static uint64_t calls(void)
{
    return fake->calls(NULL) - fake->calls("cuEventCreate");
}

/* Those of the pool, and: held, used (of the device), booked (in its account), pending, known
 * (streams), records (of streams), calls. */
static uint64_t figure(const char *word, size_t len)
{
    uint64_t value = 0;

    if (strncmp(word, "used", len) == 0) {
        return fake != NULL ? fake->used(0) : number(word + len + 1);
    }
    struct fl_gpu_pool_stats s = pool_stats(p);
    if (strncmp(word, "held", len) == 0) {
        return s.occupied_bytes + s.free_bytes;
    }
    if (strncmp(word, "pending", len) == 0) {
        return p->freed.pending.first != NULL;
    }
    if (strncmp(word, "known", len) == 0) {
        return p->streams.known;
    }
    if (strncmp(word, "records", len) == 0) {
        return pool_records(p);
    }
    if (strncmp(word, "booked", len) == 0) {
        struct fl_gpu_device_stats d = {.size = sizeof d};
        assert_int_equal(fl_gpu_device_stats(0, &d), 0);
        return d.held_bytes;
    }
    if (strncmp(word, "calls", len) == 0) {
        return calls() - counted;
    }
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        if (strncmp(figures[i].name, word, len) == 0 && figures[i].name[len] == '\0') {
            memcpy(&value, (char *)&s + figures[i].at, sizeof value);
            return value;
        }
    }
    fail_msg("no figure of that name");
    return 0;
}

static bool is_figure(const char *word)
{
    size_t len = strcspn(word, "=<>");
    uint64_t value = figure(word, len), wanted = number(word + len + 1);
    bool right = word[len] == '='   ? value == wanted
                 : word[len] == '<' ? value <= wanted
                                    : value >= wanted;

    if (!right) {
        print_error("it is %llu\n", (unsigned long long)value);
    }
    return right;
}

static bool takes(const char *word)
{
    struct block b = {.by = word[2], .len = number(word + 3)};
    int rc = 0;

    if (p != NULL) {
        rc = fl_gpu_pool_alloc(p, b.len, stream_of(b.by), &b.at);
    } else {
        b.at = (uintptr_t)fl_gpu_torch_alloc((ssize_t)b.len, 0, stream_of(b.by));
        rc = b.at != 0 ? 0 : -EIO;
    }
    int wanted = word[1] == '='   ? 0
                 : word[1] == '!' ? -ENOMEM
                 : word[1] == '/' ? -EINPROGRESS
                                  : -EINVAL;

    if (rc == 0) {
        block[(unsigned char)word[0]] = b;
    }
    if (rc == 0 && fake != NULL && p != NULL && p->is_pinned) {
        fake->host_access((void *)(uintptr_t)b.at, b.len, true); /* NOLINT */
    }
    return rc == wanted;
}

static bool serves(const char *asked)
{
    size_t n = number(asked);
    uint64_t x = pool_take(p, n, NULL);
    struct fl_gpu_pool_stats s = pool_stats(p);

    pool_give(p, x, NULL);
    return s.occupied_bytes == number(strchr(asked, ':') + 1) &&
           s.requested_bytes == fl_max(n, 1) && fl_gpu_pool_trim(p, 0, NULL) == 0;
}

static bool lies(const char *word)
{
    const struct block *x = &block[(unsigned char)word[0]], *y = &block[(unsigned char)word[2]];

    switch (word[1]) {
    case '#':
        return x->at != y->at;
    case '|':
        return x->at == y->at || x->at == block[(unsigned char)word[3]].at;
    default:
        return x->at == y->at + (word[3] != '\0' ? number(word + 3 + (word[3] == '+')) : 0);
    }
}

/* Where copies from pinned blocks go, each behind the one before: of each device. */
enum { SINK = 32 << 20 };
static struct fl_gpu *second;
static fl_CUdeviceptr sink[2];
static size_t sunk;
static unsigned device_now;

static bool copies(const struct block *x, void *s)
{
    fl_CUdeviceptr *to = &sink[device_now];

    if (*to == 0) {
        assert_int_equal(fl_cuda.cuMemAlloc(to, SINK), 0);
    }
    sunk += x->len;
    return fl_cuda.cuMemcpyHtoDAsync(*to + sunk - x->len, (void *)(uintptr_t)x->at, x->len, s) ==
           0; /* NOLINT */
}

static bool of_block(const char *word, struct block *x, void *s)
{
    static unsigned char last;

    if (p == NULL && word[0] == '-') {
        x->by = 0;
        fl_gpu_torch_free((void *)(uintptr_t)x->at, 0, 0, s); /* NOLINT */
        return true;
    }
    if (p == NULL && word[0] == '@') {
        fl_gpu_torch_record_stream((void *)(uintptr_t)x->at, s); /* NOLINT */
        return true;
    }
    switch (word[0]) {
    case '-':
    case '%':
        x->by = 0;
        return fl_pool_free(p, x->at, s, word[0] == '-') == 0;
    case '=':
        return fl_gpu_pool_free(p, x->at, s) != 0;
    case '@':
        return fl_gpu_pool_record_stream(p, x->at, s) == 0;
    case '.':
        if (p != NULL && p->is_pinned) {
            return copies(x, s);
        }
        x->value = ++last;
        gpu_fill(s, x->at, x->len, x->value);
        return true;
    default:
        return gpu_holds(s, x->at, x->len, x->value);
    }
}

static bool of_stream(char what, char name)
{
    void *s = what == '_' && name == '\0' ? NULL : stream_of(name);

    switch (what) {
    case '^':
        gpu_hold(s);
        return true;
    case '_':
        name != '\0' ? gpu_wait(s) : gpu_wait_all();
        return true;
    case '+':
        return fl_gpu_pool_stream_lasts(p, s) == 0;
    case ':':
        return fl_gpu_pool_stream_lasts(p, s) == -EINPROGRESS;
    case '>':
        return fl_gpu_pool_stream_retire(p, s) == 0;
    case '<':
        gpu_stream_end(s);
        stream[(unsigned char)name] = NULL;
        return true;
    default:
        fake->capture(s, what == '[');
        return true;
    }
}

static bool refuse(const char *word)
{
    char name[64] = "";
    size_t len = strcspn(word, ":");

    memcpy(name, word, len);
    fake->refuse(name, 1, (int)number(word + len + 1), false);
    refuses = true;
    return true;
}

static bool step(const char *word)
{
    struct block *x = &block[(unsigned char)word[1]];

    if (word[0] == '!') {
        return refuse(word + 1);
    }
    if (strcspn(word, "=<>") > 1 && strpbrk(word, "=<>") != NULL) {
        return is_figure(word);
    }
    if (islower(word[0]) && strchr("=!/$", word[1]) != NULL) {
        return takes(word);
    }
    if (islower(word[0]) && strchr("~#|", word[1]) != NULL) {
        return lies(word);
    }
    switch (word[0]) {
    case '&':
        return x->at % 256 == 0;
    case 'i':
        return fl_gpu_pool_inplace(p, x->at, number(word + 2)) == 0;
    case 'I':
        return fl_gpu_pool_inplace(p, x->at, number(word + 2)) == -EBUSY;
    case '(':
    case ')':
    case '{':
        script_more(word[0], number(word + 1), word[2] != '\0' ? stream_of(word[2]) : NULL);
        return true;
    case 'T':
        if (p == NULL) {
            fl_gpu_torch_empty_cache();
        }
        return p == NULL || fl_gpu_pool_trim(p, 0, NULL) == 0;
    case 'K':
        return fl_gpu_pool_collect(p) == 0;
    case 'S':
        return serves(word + 1);
    case 'C':
        counted = calls();
        return true;
    case 'X':
        hasty = true;
        return true;
    case 'P':
        return fl_gpu_pool_reset_peaks(p) == 0;
    default:
        return strchr("-%=@.?", word[0]) != NULL ? of_block(word, x, stream_of(word[2]))
                                                 : of_stream(word[0], word[1]);
    }
}

/* ---- another thread, another device ---- */

static struct {
    pthread_t thread;
    bool begun, right;
    const char *word; /* NULL: it ends */
    sem_t go, done;
} other;

static void *steps_elsewhere(void *unused)
{
    (void)gpu_calls.cuCtxSetCurrent(gpu->context);
    for (; sem_wait(&other.go) == 0 && other.word != NULL; (void)sem_post(&other.done)) {
        other.right = step(other.word);
    }
    return unused;
}

static bool tell(const char *word)
{
    other.word = word;
    assert_int_equal(sem_post(&other.go), 0);
    if (word == NULL) {
        other.begun = false;
        return pthread_join(other.thread, NULL) == 0;
    }
    return sem_wait(&other.done) == 0 && other.right;
}

static bool elsewhere(const char *word)
{
    if (!other.begun) {
        other.begun = true;
        assert_int_equal(sem_init(&other.go, 0, 0) + sem_init(&other.done, 0, 0), 0);
        assert_int_equal(pthread_create(&other.thread, NULL, steps_elsewhere, NULL), 0);
    }
    return tell(word[0] == 'E' ? NULL : word);
}

static bool on_second(const char *word)
{
    device_now = 1;
    assert_int_equal(gpu_calls.cuCtxSetCurrent(second->context), 0);
    bool right = step(word);
    assert_int_equal(gpu_calls.cuCtxSetCurrent(gpu->context), 0);
    device_now = 0;
    return right;
}

static bool step_somewhere(const char *word)
{
    return word[0] == '1' ? elsewhere(word + 1) : word[0] == '2' ? on_second(word + 1) : step(word);
}

/* ---- rows ---- */

static size_t option_at(const char *options, const char *name, size_t otherwise)
{
    const char *found = options != NULL ? strstr(options, name) : NULL;

    return found != NULL ? number(found + strlen(name)) : otherwise;
}

static struct fl_gpu_pool_options options_of(const struct row *r, char strategy)
{
    static const char letters[] = "-NRUBA";
    struct fl_gpu_pool_options o =
        pool_options((enum fl_gpu_strategy)(strchr(letters, strategy) - letters));

    o.chunk = option_at(r->options, "chunk=", o.chunk);
    o.limit = option_at(r->options, "limit=", o.limit);
    o.initial = option_at(r->options, "initial=", o.initial);
    o.regrow = option_at(r->options, "regrow=", o.regrow);
    o.page = option_at(r->options, "page=", o.page);
    o.large_round = option_at(r->options, "round=", o.large_round);
    o.linear_cutoff = (unsigned)option_at(r->options, "cutoff=", o.linear_cutoff);
    o.fraction = option_at(r->options, "nothing=", 0) != 0 ? 0 : o.fraction;
    o.gc_gb = (double)option_at(r->options, "garbage=", 0) / (double)GIB(1);
    o.gc_gb = option_at(r->options, "hoard=", 0) != 0 ? -1 : o.gc_gb;
    o.gc_fraction = option_at(r->options, "half=", 0) != 0 ? 0.5 : 1;
    o.gc_fast = option_at(r->options, "slow=", 0) == 0;
    o.target = option_at(r->options, "pinned=", 0) != 0 ? FL_GPU_PINNED : FL_GPU_DEVICE;
    return o;
}

static void end_row(void)
{
    if (!hasty) {
        gpu_wait_all();
        assert_true(second == NULL || on_second("_"));
    }
    for (size_t i = 0; i < 128; i++) {
        void *s = stream[(unsigned char)block[i].by];
        if (block[i].by != 0 && p != NULL) {
            pool_give(p, block[i].at, s != NULL ? s : FL_GPU_HOST);
        } else if (block[i].by != 0) {
            fl_gpu_torch_free((void *)(uintptr_t)block[i].at, 0, 0, s); /* NOLINT */
        }
    }
    if (p != NULL) {
        pool_end(p);
    }
    assert_true(!other.begun || tell(NULL));
    assert_true(stream['f'] == NULL || on_second("<f"));
    for (size_t i = 0; i < 128; i++) {
        if (stream[i] != NULL) {
            gpu_stream_end(stream[i]);
        }
    }
    assert_true(sink[0] == 0 || fl_cuda.cuMemFree(sink[0]) == 0);
    assert_true(sink[1] == 0 || fl_cuda.cuMemFree(sink[1]) == 0);
    sink[0] = sink[1] = sunk = 0;
    assert_true(second == NULL || fl_gpu_close(second) == 0);
    second = NULL;
}

static const struct row *now;
static char strategy_now;

static void run(void)
{
    struct fl_gpu_pool_options o = options_of(now, strategy_now == 'T' ? 'A' : strategy_now);
    char word[64];
    int len;

    memset(stream, 0, sizeof stream);
    memset(block, 0, sizeof block);
    refuses = hasty = false;
    if (strstr(now->script, " 2") != NULL && fl_gpu_open_primary(1, &second) != 0) {
        return; /* there is one device */
    }
    if (fake != NULL && strategy_now != 'T') {
        fake->set(FAKE_CUDA_CAPACITY, option_at(now->options, "device=", GIB(1)));
    }
    p = strategy_now != 'T' ? pool_with(&o) : NULL;
    for (const char *s = now->script; sscanf(s, "%63s%n", word, &len) == 1; s += len) {
        if (!step_somewhere(word) || (fake != NULL && fake->report()[0] != '\0')) {
            fail_msg("%s: %s, strategy %c: %s", now->rule, word, strategy_now,
                     fake != NULL && fake->report()[0] != '\0' ? fake->report() : fl_gpu_error());
        }
        assert_true(p == NULL || pool_check(p));
    }
    assert_true(!refuses || fake->refused());
    end_row();
}

void scripts_run(const struct row *row, size_t n)
{
    for (; n-- > 0; row++) {
        bool needs_fake =
            strpbrk(row->script, "[!C") != NULL || option_at(row->options, "device=", 0) != 0;
        now = row;
        for (const char *s = row->strategies; *s != '\0' && !(needs_fake && fake == NULL); s++) {
            strategy_now = *s;
            if (row->when == EACH) {
                gpu_schedules(run);
                continue;
            }
            if (fake != NULL && *s != 'T') {
                fake->reset(true);
                fake->schedule(row->when == LATE ? FAKE_CUDA_LATE : FAKE_CUDA_EAGER, 0);
            }
            run();
        }
    }
}
