/* The driver past the library, a clock, memory to copy from. */
#include "gpu/bench.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct cuda cu;
void *cu_library;
const struct fake_cuda *fake;
struct fl_gpu *gpu;

_Noreturn void failed(const char *what, int code)
{
    fprintf(stderr, "gpu_table: %s says %d: %s\n", what, code, fl_gpu_error());
    exit(1);
}

void cu_start(void)
{
    const char *path = getenv("FAULTLESS_GPU_DRIVER");
    fl_CUcontext context;

    if (fl_gpu_open(0, &gpu) != 0) {
        printf("SKIP gpu_table: needs a CUDA device, got: %s\n", fl_gpu_error());
        exit(77);
    }
    cu_library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW);
#define X(need, name, suffix, version, parameters)                                                 \
    do {                                                                                           \
        void *found = dlsym(cu_library, #name suffix);                                             \
        memcpy(&cu.name, &found, sizeof found);                                                    \
    } while (0);
    FL_CUDA_CALLS(X)
    BENCH_CALLS(X)
#undef X
    fake = dlsym(cu_library, "fake_cuda");
    cu_ok(cu.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    cu_ok(cu.cuCtxPushCurrent(context), "cuCtxPushCurrent");
}

fl_CUstream cu_stream(void)
{
    fl_CUstream s;

    cu_ok(cu.cuStreamCreate(&s, FL_CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    return s;
}

double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double median_of(double (*fn)(void *arg), void *arg)
{
    enum { LEAST = 3, MOST = 20 };
    double took[MOST], end;
    int n = 0;

    if (smoke) {
        return fn(arg);
    }
    (void)fn(arg); /* does not count */
    end = now_ns() + 3e8;
    do {
        took[n++] = fn(arg);
    } while (n < LEAST || (n < MOST && now_ns() < end));
    qsort(took, (size_t)n, sizeof took[0], by_size);
    return n % 2 == 1 ? took[n / 2] : (took[n / 2 - 1] + took[n / 2]) / 2;
}

static size_t available(void)
{
    char line[128];
    unsigned long kib = 0;
    FILE *f = fopen("/proc/meminfo", "r");

    while (f != NULL && kib == 0 && fgets(line, sizeof line, f) != NULL) {
        (void)sscanf(line, "MemAvailable: %lu kB", &kib);
    }
    if (f != NULL) {
        fclose(f);
    }
    return kib > 0 ? KIB(kib) : MIB(256);
}

size_t memory_room(void)
{
    size_t host = available(), device, total;

    cu_ok(cu.cuMemGetInfo(&device, &total), "cuMemGetInfo");
    size_t room = (host < device ? host : device) / 4 / MIB(2) * MIB(2);
    return smoke ? MIB(16) : room < GIB(8) ? room : GIB(8);
}

static void *populate(void *arg)
{
    const struct share *s = arg;

    if (madvise(s->from, s->len, MADV_POPULATE_WRITE) != 0) { /* Linux before 5.14 */
        memset(s->from, 1, s->len);
    }
    return NULL;
}

void in_shares(void *p, size_t len, void *(*fn)(void *share_of_it))
{
    pthread_t thread[SHARES];
    struct share share[SHARES];
    size_t each = (len / SHARES + MIB(2) - 1) / MIB(2) * MIB(2), n = 0;

    for (size_t at = 0; at < len; at += each, n++) {
        share[n] = (struct share){(char *)p + at, each < len - at ? each : len - at};
        fl_ok(-pthread_create(&thread[n], NULL, fn, &share[n]), "pthread_create");
    }
    while (n > 0) {
        pthread_join(thread[--n], NULL);
    }
}

void *host_pages(size_t len, bool huge)
{
    size_t room = len + MIB(2);
    char *all = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *p;

    if (all == MAP_FAILED) {
        fprintf(stderr, "gpu_table: no memory\n");
        exit(1);
    }
    /* What is over at both ends goes back, so that host_end need not know of it. */
    size_t head = (MIB(2) - (uintptr_t)all % MIB(2)) % MIB(2);
    p = all + head;
    if (head > 0) {
        munmap(all, head);
    }
    munmap(p + len, room - head - len);
    (void)madvise(p, len, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    in_shares(p, len, populate);
    return p;
}

void host_end(void *p, size_t len)
{
    munmap(p, len);
}
