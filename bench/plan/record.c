/* plan_record: records the large requests and frees of a program, thread by thread, with the steps
 * that it marks.
 *
 *     LD_PRELOAD=plan_record.so PLAN_RECORD=FILE program      (FILE.pid is written;
 *                                                             PLAN_RECORD_FROM=BYTES: 65536)
 *
 * The file is a row of records in host byte order, in the order of the calls:
 * | offset | width | what |
 * |      0 |     1 | malloc 0, calloc 1, aligned 2, realloc 3, free 4, mark 6; |
 * |        |       | 5: free of what another thread asked for |
 * |      1 |     1 | thread, numbered as they come |
 * |      2 |     1 | 5: the thread that had asked |
 * |      4 |     4 | of a free: requests of the thread that had asked since that one |
 * |      8 |     8 | bytes asked for |
 * A realloc is a free and a request. Marks are those of include/faultless/step.h: the recorder
 * answers them itself. Forked children record nothing; a program that they start does. State: one
 * buffer and a table, under one lock.
 * Needs glibc: serves by its __libc_ names, so that no request comes before we know whom to ask. */
#include "recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum kind { MALLOC, CALLOC, ALIGNED, REALLOC, FREE, FOREIGN, MARK };

struct record {
    uint8_t kind, thread, owner, pad;
    uint32_t distance;
    uint64_t size;
};

struct block {
    void *at; /* NULL: never used; GONE: freed */
    size_t size;
    uint32_t index; /* of its thread's requests */
    uint8_t thread;
};

enum { RECORDS = 8192, BLOCKS = 1 << 18, THREADS = 255 };
#define GONE ((void *)1)

static struct record buffer[RECORDS];
static struct block block[BLOCKS];
static uint32_t requests[THREADS + 1];
static size_t used, live;
static unsigned threads;
static int fd = -1, answers = -1;
static size_t from = 65536; /* bytes */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Thread_local uint8_t me; /* number + 1; 0: none yet */

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

static void put(struct record r)
{
    buffer[used++] = r;
    if (used == RECORDS) {
        flush();
    }
}

static uint8_t number(void)
{
    if (me == 0) {
        me = (uint8_t)(threads < THREADS ? ++threads : THREADS);
    }
    return (uint8_t)(me - 1);
}

static size_t home(const void *p)
{
    return (size_t)(((uintptr_t)p * 0x9e3779b97f4a7c15) >> 46);
}

static void *born(void *p, size_t n, enum kind kind)
{
    if (p == NULL || n < from || fd < 0) {
        return p;
    }
    int saved = errno;
    pthread_mutex_lock(&lock);
    if (live < BLOCKS / 2) {
        size_t h = home(p);
        while (block[h].at != NULL && block[h].at != GONE) {
            h = (h + 1) % BLOCKS;
        }
        uint8_t t = number();
        block[h] = (struct block){p, n, requests[t]++, t};
        live++;
        put((struct record){(uint8_t)kind, t, 0, 0, 0, n});
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
    return p;
}

/* Called before the memory can be another block's. Returns the size it was asked for with; 0: not
 * recorded. */
static size_t died(void *p)
{
    size_t size = 0;

    if (p == NULL || fd < 0 || ((uintptr_t)p & 15) != 0 ||
        __atomic_load_n(&live, __ATOMIC_RELAXED) == 0) {
        return 0;
    }
    int saved = errno;
    pthread_mutex_lock(&lock);
    size_t h = home(p);
    for (size_t i = 0; block[h].at != NULL && block[h].at != p && i < BLOCKS; i++) {
        h = (h + 1) % BLOCKS;
    }
    if (block[h].at == p) {
        struct block *b = &block[h];
        uint8_t t = number();
        size = b->size;
        put((struct record){b->thread == t ? FREE : FOREIGN, t, b->thread, 0,
                            requests[b->thread] - 1 - b->index, size});
        b->at = GONE;
        live--;
        if (block[(h + 1) % BLOCKS].at == NULL) {
            for (; block[h].at == GONE; h = (h + BLOCKS - 1) % BLOCKS) {
                block[h].at = NULL;
            }
        }
    }
    pthread_mutex_unlock(&lock);
    errno = saved;
    return size;
}

/* Answers marks: the one who marks waits meanwhile, so the record is where it belongs. */
static void *listen_for_marks(void *arg)
{
    char message[32];

    (void)arg;
    while (recv(answers, message, sizeof message, 0) > 0) {
        pthread_mutex_lock(&lock);
        if (fd >= 0) {
            put((struct record){.kind = MARK});
        }
        pthread_mutex_unlock(&lock);
        (void)send(answers, "", 1, MSG_NOSIGNAL);
    }
    return NULL;
}

static void in_child(void)
{
    fd = -1;
}

__attribute__((constructor)) static void start(void)
{
    const char *path = getenv("PLAN_RECORD"), *bytes = getenv("PLAN_RECORD_FROM");
    char text[4096];
    int pair[2];
    pthread_t thread;

    if (path == NULL) {
        return;
    }
    if (bytes != NULL) {
        from = strtoul(bytes, NULL, 10);
    }
    (void)snprintf(text, sizeof text, "%s.%d", path, (int)getpid());
    int file = open(text, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    pthread_atfork(NULL, NULL, in_child);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
        answers = pair[0];
        (void)snprintf(text, sizeof text, "%d", pair[1]);
        setenv("FAULTSTAT_STEP_FD", text, 1);
        (void)pthread_create(&thread, NULL, listen_for_marks, NULL);
    }
    fd = file;
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
    return born(__libc_malloc(n), n, MALLOC);
}

void *calloc(size_t count, size_t size)
{
    return born(__libc_calloc(count, size), count * size, CALLOC);
}

void free(void *p)
{
    (void)died(p);
    __libc_free(p);
}

void *realloc(void *p, size_t n)
{
    size_t old = died(p);
    void *q = __libc_realloc(p, n);

    if (q == NULL && n != 0 && old != 0) {
        born(p, old, REALLOC); /* it failed: the old block lives on */
    }
    return born(q, n, REALLOC);
}

void *memalign(size_t align, size_t n)
{
    return born(__libc_memalign(align, n), n, ALIGNED);
}

/* The next library's would look for its own blocks, as where a program was linked with jemalloc.
 * glibc keeps a block's size and flags in the word before it, and one word more where the block is
 * a mapping of its own. */
size_t malloc_usable_size(void *p)
{
    size_t word = p != NULL ? ((const size_t *)p)[-1] : 0;

    return p != NULL ? (word & ~(size_t)7) - ((word & 2) != 0 ? 2 : 1) * sizeof word : 0;
}
