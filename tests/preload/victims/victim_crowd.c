/* Threads that free all that they have, and rest: how much memory the process holds then.
 *
 *   victim_crowd HOW THREADS KIB BLOCKS [MOST]
 *
 * Each thread has so many blocks, of KIB and up to 80 KiB more, three times: together with all
 * others (hold), as it comes (free), or one thread after the other (turns). MOST: bytes in KiB; it
 * ends when it holds no more, or never. */
#include "victim.h"

#include <time.h>

enum { THREADS_MOST = 400, BLOCKS_MOST = 32, ROUNDS = 3, MORE = 4096, POLL_NS = 5000000 };

static size_t len;
static int nblocks;
static char how;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t all_have, all_rest, all_go;

static void work(void)
{
    char *block[BLOCKS_MOST];

    for (int i = 0; i < nblocks; i++) {
        block[i] = filled(len + (size_t)i * MORE);
    }
    if (how == 'h') {
        (void)pthread_barrier_wait(&all_have);
    }
    FREE_ALL(block, nblocks);
}

static void *thread(void *unused)
{
    if (how == 't') {
        (void)pthread_mutex_lock(&turn);
    }
    for (int i = 0; i < ROUNDS; i++) {
        work();
    }
    if (how == 't') {
        (void)pthread_mutex_unlock(&turn);
    }
    (void)pthread_barrier_wait(&all_rest);
    (void)pthread_barrier_wait(&all_go);
    return unused;
}

static size_t rss(void)
{
    return rollup_kib("\nRss:");
}

int main(int argc, char **argv)
{
    const struct timespec poll = {0, POLL_NS}, tenth = {0, 100000000};
    static pthread_t id[THREADS_MOST];

    CHECK(argc >= 5);
    unsigned n = (unsigned)atoi(argv[2]);
    size_t most = argc > 5 ? (size_t)atol(argv[5]) : SIZE_MAX;
    how = argv[1][0];
    len = (size_t)atol(argv[3]) * KIB;
    nblocks = atoi(argv[4]);
    CHECK(n <= THREADS_MOST && nblocks <= BLOCKS_MOST);
    CHECK(pthread_barrier_init(&all_have, NULL, n) == 0);
    CHECK(pthread_barrier_init(&all_rest, NULL, n + 1) == 0);
    CHECK(pthread_barrier_init(&all_go, NULL, n + 1) == 0);
    start_threads(id, n, thread);
    (void)pthread_barrier_wait(&all_rest);
    size_t first = rss();
    nanosleep(&tenth, NULL);
    size_t soon = rss(), now = soon;
    for (; now > most; now = rss()) {
        nanosleep(&poll, NULL);
    }
    printf("first %zu, 100 ms later %zu, rss %zu KiB\n", first, soon, now);
    (void)pthread_barrier_wait(&all_go);
    join_threads(id, n);
    return 0;
}
