/* fit_trace: records the large allocations of a program, for bench/fit/replay.
 *
 *     LD_PRELOAD=fit_trace.so FIT_TRACE=FILE program      (FIT_FROM=BYTES: the smallest that
 *                                                         counts; 65536)
 *
 * The file is a row of records in host byte order, as the calls were made:
 * | offset | width | what                                          |
 * |      0 |     8 | address                                       |
 * |      8 |     8 | bytes asked for; 0: the block at it was freed |
 * |     16 |     8 | thread id                                     |
 * A realloc is a free and an allocation. Frees of blocks that were never recorded may occur. A
 * record of 0 bytes at address 0 is a mark: bench/workloads calls fit_mark before its first step
 * and after its last. Forked children record nothing. State: one buffer and a descriptor, under one
 * lock.
 * Needs glibc: serves by its __libc_ names until it has started, then by the next allocator, as
 * one that is preloaded behind it. */
#include "recorder.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

struct record {
    uint64_t addr;
    uint64_t len;
    uint64_t thread;
};

enum { RECORDS = 8192 };

static struct record buffer[RECORDS];
static size_t used;
static int fd = -1;
static size_t from = 65536; /* bytes */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local uint64_t thread;

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*memalign)(size_t, size_t);
    void (*free)(void *);
} next = {__libc_malloc, __libc_calloc, __libc_realloc, __libc_memalign, __libc_free};

static void find(const char *name, void *slot)
{
    void *p = dlsym(RTLD_NEXT, name);

    if (p != NULL) {
        memcpy(slot, &p, sizeof p);
    }
}

static void find_next(void)
{
    find("malloc", &next.malloc);
    find("calloc", &next.calloc);
    find("realloc", &next.realloc);
    find("memalign", &next.memalign);
    find("free", &next.free);
}

static void flush(void)
{
    const char *at = (const char *)buffer;
    size_t left = used * sizeof(buffer[0]);

    while (left > 0) {
        ssize_t n = write(fd, at, left);
        if (n < 0 && errno != EINTR) {
            break;
        }
        at += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    used = 0;
}

static void note(const void *p, size_t len)
{
    int saved = errno;

    if (fd < 0) {
        return;
    }
    if (thread == 0) {
        thread = (uint64_t)syscall(SYS_gettid);
    }
    pthread_mutex_lock(&lock);
    buffer[used++] = (struct record){(uint64_t)(uintptr_t)p, len, thread};
    if (used == RECORDS) {
        flush();
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
}

void fit_mark(void);

void fit_mark(void)
{
    note(NULL, 0);
}

static void *born(void *p, size_t n)
{
    if (p != NULL && n >= from) {
        note(p, n);
    }
    return p;
}

static bool may_be_large(void *p)
{
    return p != NULL && malloc_usable_size(p) >= from;
}

static void in_child(void)
{
    fd = -1;
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("FIT_TRACE"), *bytes = getenv("FIT_FROM");

    find_next();
    if (bytes != NULL) {
        from = strtoul(bytes, NULL, 10);
    }
    if (path != NULL) {
        fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        pthread_atfork(NULL, NULL, in_child);
    }
}

__attribute__((destructor)) static void end(void)
{
    pthread_mutex_lock(&lock);
    if (fd >= 0) {
        flush();
        fd = -1;
    }
    pthread_mutex_unlock(&lock);
}

void *malloc(size_t n)
{
    return born(next.malloc(n), n);
}

void *calloc(size_t count, size_t size)
{
    return born(next.calloc(count, size), count * size);
}

/* The record comes before the memory can be another block's. */
void free(void *p)
{
    if (may_be_large(p)) {
        note(p, 0);
    }
    next.free(p);
}

void *realloc(void *p, size_t n)
{
    size_t old = may_be_large(p) ? malloc_usable_size(p) : 0;

    if (old != 0) {
        note(p, 0);
    }
    void *q = next.realloc(p, n);
    if (q == NULL && n != 0 && old != 0) {
        note(p, old); /* it failed: the old block lives on */
    }
    return born(q, n);
}

void *memalign(size_t align, size_t n)
{
    return born(next.memalign(align, n), n);
}
