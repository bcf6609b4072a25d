/* What every call goes through: counting, failing, calling back, the lock; the settings. */
#include "gpu/fake/internal.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { NAMES = 128, AMID_S = 5 };

static const uint64_t defaults[FAKE_CUDA_SETTINGS] = {
    [FAKE_CUDA_CAPACITY] = (uint64_t)1 << 30,
    [FAKE_CUDA_DEVICES] = 2,
    [FAKE_CUDA_VERSION] = 13000,
    [FAKE_CUDA_REGISTER_MAX] = UINT64_MAX,
};

uint64_t fake_setting[FAKE_CUDA_SETTINGS];
struct fake_figures fake_figures;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Thread_local const char *call_now;
static _Thread_local bool within; /* this thread is one that the fake itself has started */

static struct {
    const char *name;
    uint64_t calls;
} counted[NAMES];
static uint64_t all_calls;

static struct {
    char name[64]; /* "": any */
    unsigned left; /* 0: none */
    int code;
    bool for_ever, happened;
} failure;

static struct {
    char name[64];
    void (*fn)(void *arg);
    void *arg;
} amid;

static uint64_t dice;

uint64_t fake_random(void)
{
    dice += 0x9e3779b97f4a7c15u;
    uint64_t z = (dice ^ (dice >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void *fake_zalloc(size_t size)
{
    void *p = calloc(1, size);

    if (p == NULL) {
        abort();
    }
    return p;
}

__attribute__((format(printf, 2, 0))) static void keep_report(const char *kind, const char *format,
                                                              va_list more)
{
    char text[192];

    if (fake_figures.report[0] == '\0') {
        (void)vsnprintf(text, sizeof text, format, more);
        (void)snprintf(fake_figures.report, sizeof fake_figures.report, "%s: %s", kind, text);
    }
}

void fake_violation(const char *format, ...)
{
    va_list more;

    va_start(more, format);
    fake_figures.violations++;
    keep_report("violation", format, more);
    va_end(more);
}

void fake_race(const char *format, ...)
{
    va_list more;

    va_start(more, format);
    fake_figures.races++;
    keep_report("race", format, more);
    va_end(more);
}

const char *fake_call_now(void)
{
    return call_now == NULL ? "the test" : call_now;
}

static void count(const char *name)
{
    unsigned i = 0;

    all_calls++;
    while (i < NAMES - 1 && counted[i].name != NULL && strcmp(counted[i].name, name) != 0) {
        i++;
    }
    counted[i].name = name;
    counted[i].calls++;
}

static bool is_failure(const char *name)
{
    if (failure.left == 0 || (failure.name[0] != '\0' && strcmp(failure.name, name) != 0)) {
        return false;
    }
    if (failure.left > 1) {
        failure.left--;
        return false;
    }
    failure.left = failure.for_ever ? 1 : 0;
    failure.happened = true;
    return true;
}

struct called {
    void (*fn)(void *arg);
    void *arg;
};

static void *call_amid(void *arg)
{
    struct called c = *(struct called *)arg;

    free(arg);
    within = true;
    c.fn(c.arg);
    return NULL;
}

static void in_another_thread(const char *name, struct called *c)
{
    pthread_t thread;
    struct timespec until;

    if (pthread_create(&thread, NULL, call_amid, c) != 0) {
        return;
    }
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += AMID_S;
    if (pthread_timedjoin_np(thread, NULL, &until) != 0) {
        pthread_mutex_lock(&lock);
        fake_violation("a lock is held over %s: another thread cannot go on", name);
        pthread_mutex_unlock(&lock);
        pthread_detach(thread); /* it goes on when the lock is given up */
    }
}

static void re_enter(const char *name)
{
    struct called *c = NULL;

    if (within) {
        return;
    }
    pthread_mutex_lock(&lock);
    if (amid.fn != NULL && (amid.name[0] == '\0' || strcmp(amid.name, name) == 0)) {
        c = fake_zalloc(sizeof *c);
        *c = (struct called){amid.fn, amid.arg};
    }
    pthread_mutex_unlock(&lock);
    if (c != NULL) {
        in_another_thread(name, c);
    }
}

/* FAKE_CUDA is "late", "eager" or a seed. */
static void schedule_by_environment(void)
{
    const char *mode = getenv("FAKE_CUDA");

    if (mode == NULL || strcmp(mode, "eager") == 0) {
        fake_schedule(FAKE_CUDA_EAGER, 0);
    } else if (strcmp(mode, "late") == 0) {
        fake_schedule(FAKE_CUDA_LATE, 0);
    } else {
        dice = strtoull(mode, NULL, 10);
        fake_schedule(FAKE_CUDA_RANDOM, dice);
    }
}

/* For programs without a test in them, too: FAKE_CUDA_CAPACITY bytes; FAKE_CUDA_DEVICES. */
static void begin(void)
{
    const char *capacity = getenv("FAKE_CUDA_CAPACITY"), *devices = getenv("FAKE_CUDA_DEVICES");

    memcpy(fake_setting, defaults, sizeof defaults);
    if (getenv("FAKE_CUDA") != NULL) { /* else as masked_cuda.c has it */
        schedule_by_environment();
    }
    if (capacity != NULL) {
        fake_setting[FAKE_CUDA_CAPACITY] = strtoull(capacity, NULL, 10);
    }
    if (devices != NULL) {
        fake_setting[FAKE_CUDA_DEVICES] = strtoull(devices, NULL, 10);
    }
}

/* What a call says that the driver does not even look at. */
static fl_CUresult refusal(const char *name, unsigned needs)
{
    if (is_failure(name)) {
        return failure.code;
    }
    if (fake_setting[FAKE_CUDA_GONE] != 0) {
        return FL_CUDA_ERROR_DEINITIALIZED;
    }
    if (fake_setting[FAKE_CUDA_INIT_CODE] != 0) {
        return (fl_CUresult)fake_setting[FAKE_CUDA_INIT_CODE];
    }
    if ((needs & FAKE_ALWAYS) == 0) {
        fl_CUresult code = fake_init();
        if (code != FL_CUDA_SUCCESS) {
            return code;
        }
    }
    if ((needs & FAKE_CONTEXT) != 0) {
        const struct fake_context *c = fake_context_now();
        if (c == NULL) {
            fake_violation("%s without a current context", name);
            return FL_CUDA_ERROR_INVALID_CONTEXT;
        }
        if (!c->alive) {
            return FL_CUDA_ERROR_CONTEXT_IS_DESTROYED;
        }
    }
    if ((needs & FAKE_NO_CAPTURE) != 0 && fake_capture_forbids((needs & FAKE_WHOLE_CONTEXT) != 0)) {
        fake_violation("%s breaks a capture", name);
        return FL_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    return FL_CUDA_SUCCESS;
}

fl_CUresult fake_enter(const char *name, unsigned needs)
{
    fl_CUresult code;

    pthread_once(&once, begin);
    re_enter(name);
    pthread_mutex_lock(&lock);
    count(name);
    call_now = name;
    code = refusal(name, needs);
    FAKE_REFUSE(code != FL_CUDA_SUCCESS, code);
    fake_progress();
    return code;
}

fl_CUresult fake_leave(fl_CUresult code)
{
    call_now = NULL;
    pthread_mutex_unlock(&lock);
    return code;
}

void fake_lock(void)
{
    pthread_once(&once, begin);
    pthread_mutex_lock(&lock);
}

void fake_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void fake_reset(bool keep_contexts)
{
    fake_lock();
    memcpy(fake_setting, defaults, sizeof defaults);
    memset(counted, 0, sizeof counted);
    memset(&failure, 0, sizeof failure);
    memset(&amid, 0, sizeof amid);
    all_calls = 0;
    fake_stream_reset();
    schedule_by_environment();
    fake_order_reset();
    fake_host_reset();
    fake_memory_reset();
    fake_device_reset(keep_contexts);
    memset(&fake_figures, 0, sizeof fake_figures);
    fake_unlock();
}

static void put_name(char to[64], const char *name)
{
    (void)snprintf(to, 64, "%s", name == NULL ? "" : name);
}

void fake_refuse(const char *name, unsigned nth, int code, bool for_ever)
{
    fake_lock();
    memset(&failure, 0, sizeof failure);
    put_name(failure.name, name);
    failure.left = nth;
    failure.code = code;
    failure.for_ever = for_ever;
    fake_unlock();
}

void fake_amid(const char *name, void (*fn)(void *arg), void *arg)
{
    fake_lock();
    put_name(amid.name, name);
    amid.fn = fn;
    amid.arg = arg;
    fake_unlock();
}

uint64_t fake_calls(const char *name)
{
    uint64_t n = 0;

    fake_lock();
    for (unsigned i = 0; name != NULL && i < NAMES && counted[i].name != NULL; i++) {
        n = strcmp(counted[i].name, name) == 0 ? counted[i].calls : n;
    }
    n = name == NULL ? all_calls : n;
    fake_unlock();
    return n;
}

void fake_schedule_from(enum fake_cuda_mode mode, uint64_t seed)
{
    fake_lock();
    dice = seed;
    fake_schedule(mode, seed);
    fake_unlock();
}

bool fake_refused(void)
{
    return failure.happened;
}
