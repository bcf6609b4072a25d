/* Blocks of which next to nothing is touched, and others that fill: how much memory they hold, and
 * in what pages.
 *
 *   victim_thin SHAPE MIB BLOCKS [late | each | grown]
 *
 * SHAPE says what is touched of MIB in so many blocks: a byte in each so many MiB, from the front,
 * from the back or in no order (16,back); or so much of the pages, at random (%5); or all, in one
 * of the ways below. late: some time after they were asked for; each: one block after the other;
 * grown: the block grows by realloc to MIB before that. Of what is thin it ends when memory is at
 * most 1.5 times what glibc would hold and 128 MiB; or never. Of what fills it says how much lies
 * in huge pages, and how many faults that took. */
#include "victim.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>

enum {
    PAGE = 4096,
    BLOCKS_MOST = 1024,
    POLL_NS = 5000000,
    LATE_NS = 300000000,
    SLACK_MIB = 128,
    THREADS = 4
};
static const size_t huge = 2 * MIB;

static char *block[BLOCKS_MOST];
static size_t nblocks, len; /* of each */
static size_t touched;      /* base pages, at most */

static char *at(size_t offset)
{
    return block[offset / len] + offset % len;
}

static void touch(size_t offset)
{
    *at(offset) = 1;
    touched++;
}

static void every(size_t distance, const char *order)
{
    size_t n = nblocks * len / distance;

    for (size_t i = 0; i < n; i++) {
        size_t which = order[0] == 'b' ? n - 1 - i : order[0] == 'r' ? i * 7919 % n : i;
        touch(which * distance + distance / 3);
    }
}

static void at_random(size_t percent)
{
    size_t pages = nblocks * len / PAGE;
    uint64_t x = 88172645463325252u;

    for (size_t i = 0; i < pages * percent / 100; i++) {
        touch(next_random(&x) % pages * PAGE);
    }
}

/* What fills. */
static void fill_piece(size_t offset, size_t n, int with)
{
    for (size_t done = 0; done < n;) {
        size_t part = len - (offset + done) % len;
        part = part < n - done ? part : n - done;
        memset(at(offset + done), with, part);
        done += part;
    }
}

static void *fill_share(void *arg)
{
    size_t share = nblocks * len / THREADS;

    fill_piece((size_t)(uintptr_t)arg * share, share, 1);
    return NULL;
}

static void fill_by_threads(void)
{
    pthread_t t[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        (void)pthread_create(&t[i], NULL, fill_share, (void *)(uintptr_t)i);
    }
    join_threads(t, THREADS);
}

static void fill_by_pieces(void)
{
    size_t n = nblocks * len / huge;

    for (size_t i = 0; i < n; i++) {
        fill_piece(i * 7919 % n * huge, huge, 1);
    }
}

static void fill_by_read(void)
{
    int fd = open("/dev/urandom", O_RDONLY);

    for (size_t done = 0; done < nblocks * len;) {
        ssize_t n = read(fd, at(done), len - done % len < huge ? len - done % len : huge);
        if (n <= 0) {
            exit(3);
        }
        done += (size_t)n;
    }
    close(fd);
}

static bool fills(const char *shape)
{
    if (strcmp(shape, "front") == 0) {
        fill_piece(0, nblocks * len, 1);
    } else if (strcmp(shape, "zeros") == 0) {
        fill_piece(0, nblocks * len, 0);
    } else if (strcmp(shape, "threads") == 0) {
        fill_by_threads();
    } else if (strcmp(shape, "pieces") == 0) {
        fill_by_pieces();
    } else if (strcmp(shape, "read") == 0) {
        fill_by_read();
    } else {
        return false;
    }
    return true;
}

static void is_thin(const char *shape)
{
    const char *order = strchr(shape, ',') != NULL ? strchr(shape, ',') + 1 : "front";

    if (shape[0] == '%') {
        at_random((size_t)atol(shape + 1));
    } else {
        every((size_t)atol(shape) * MIB, order);
    }
}

static void ask(const char *how)
{
    for (size_t i = 0; i < nblocks; i++) {
        block[i] = taken(strcmp(how, "grown") == 0 ? len / 4 : len);
        if (strcmp(how, "each") == 0) {
            touch(i * len);
        } else if (strcmp(how, "grown") == 0) {
            touch(i * len);
            block[i] = realloc(block[i], len);
            CHECK(block[i] != NULL && block[i][0] == 1);
        }
    }
}

/* Nothing is lost, and what was not touched is zero still. */
static void look(void)
{
    size_t ones = 0;

    for (size_t at_page = 0; at_page < nblocks * len; at_page += PAGE) {
        const char *page = at(at_page);
        for (size_t i = 0; i < PAGE; i++) {
            CHECK(page[i] == 0 || page[i] == 1);
            ones += (size_t)page[i];
        }
    }
    CHECK(ones <= touched && ones >= touched / 2);
}

enum { CALL_EVERY = 300, CALL_MIB = 64 };

int main(int argc, char **argv)
{
    const struct timespec poll = {0, POLL_NS}, late = {0, LATE_NS};
    const char *how = argc > 4 ? argv[4] : "";

    CHECK(argc >= 4);
    nblocks = (size_t)atol(argv[3]);
    CHECK(nblocks <= BLOCKS_MOST);
    len = (size_t)atol(argv[2]) * MIB / nblocks / PAGE * PAGE;
    size_t before = rollup_kib("\nRss:");
    ask(how);
    if (strcmp(how, "late") == 0) {
        nanosleep(&late, NULL);
    }
    long faults_before = faults_of(RUSAGE_SELF);
    if (fills(argv[1])) {
        printf("faults %ld huge %zu\n", faults_of(RUSAGE_SELF) - faults_before, huge_kib() / KIB);
    } else {
        is_thin(argv[1]);
        size_t most = (before + touched * (PAGE / KIB)) * 3 / 2 + SLACK_MIB * KIB, now;
        size_t first = rollup_kib("\nRss:");
        for (unsigned polls = 1; (now = rollup_kib("\nRss:")) > most; polls++) {
            nanosleep(&poll, NULL);
            if (polls % CALL_EVERY == 0) { /* a worker that had no processor for long is called */
                free(malloc(CALL_MIB * MIB));
            }
        }
        printf("rss %zu first %zu most %zu\n", now / KIB, first / KIB, most / KIB);
        look();
    }
    FREE_ALL(block, nblocks);
    return 0;
}
