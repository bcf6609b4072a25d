/* Large and small blocks in turns, of `MIB` in all each time; told by letters what comes when:
 *   victim_group LETTERS MIB
 * L few large blocks; l many; s small ones; T the same in eight threads, which keep step, as else
 * what is needed would be a matter of chance; f a child that takes half in small blocks; F one that
 * does in large ones; h a block is live over a fork, and both write it; m a memfd; c a file, twice
 * as long; k blocks that live on beside each other; r realloc. */
#include "victim.h"

#include <sys/mman.h>

enum { MOST = 4096, THREADS = 8, LIVE = 512, TURNS = 6000, SMALL = 900 };

static uint64_t seed = 88172645463325252u;
static pthread_barrier_t *keeps_step;

static void wait_for_others(void)
{
    if (keeps_step != NULL) {
        pthread_barrier_wait(keeps_step);
    }
}

static void smalls(size_t sum)
{
    size_t n = sum / (SMALL + 16);
    void **p = filled(n * sizeof *p);

    for (size_t i = 0; i < n; i++) {
        p[i] = filled(SMALL);
    }
    wait_for_others();
    FREE_ALL(p, n);
    free(p);
    wait_for_others();
}

/* Freed in another order. */
static void larges(size_t sum, size_t from, size_t to, uint64_t *random)
{
    void *p[MOST];
    size_t n = 0;

    for (size_t len; n < MOST && sum >= from; sum -= len) {
        len = from + next_random(random) % (to - from + 1);
        len = len < sum ? len : sum;
        p[n++] = filled(len);
    }
    wait_for_others();
    for (size_t i = 0; i < n; i++) {
        size_t k = i + next_random(random) % (n - i);
        void *q = p[k];
        p[k] = p[i];
        free(q);
    }
    wait_for_others();
}

static void in_child(size_t sum, int large)
{
    IN_CHILD
    {
        if (large) {
            larges(sum, 70000, sum / 4, &seed);
        } else {
            smalls(sum);
        }
    }
}

static void live_over_a_fork(size_t sum)
{
    void *p = filled(sum / 2);

    in_child(sum / 4, 1);
    free(memset(p, 2, sum / 4));
}

static void in_memfd(size_t sum)
{
    int fd = memfd_create("victim", 0);

    CHECK(fd >= 0 && ftruncate(fd, (off_t)sum) == 0);
    void *p = mmap(NULL, sum, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(p != MAP_FAILED);
    memset(p, 1, sum);
    CHECK(munmap(p, sum) == 0 && close(fd) == 0);
}

static void in_file(size_t sum)
{
    static char bytes[64 * 1024];
    FILE *f = tmpfile();

    CHECK(f != NULL);
    for (size_t done = 0; done < sum; done += sizeof bytes) {
        CHECK(write(fileno(f), bytes, sizeof bytes) == (ssize_t)sizeof bytes);
    }
    fclose(f);
}

static void beside_each_other(size_t sum)
{
    static struct {
        void *p;
        size_t len;
    } live[LIVE];
    size_t used = 0;

    for (int i = 0; i < TURNS; i++) {
        size_t k = next_random(&seed) % LIVE;
        size_t len = next_random(&seed) % 3 != 0 ? 64 * KIB + next_random(&seed) % (sum / 16)
                                                 : 100 + next_random(&seed) % 30000;
        if (live[k].p != NULL) {
            free(live[k].p);
            used -= live[k].len;
            live[k].p = NULL;
        } else if (used + len <= sum) {
            live[k].p = filled(len);
            live[k].len = len;
            used += len;
        }
    }
    for (size_t k = 0; k < LIVE; k++) {
        free(live[k].p);
        live[k].p = NULL;
    }
}

static void by_realloc(size_t sum)
{
    void *p = NULL;

    for (size_t n = 64 * KIB; n <= sum / 2; n += n / 3) {
        p = realloc(p, n);
        CHECK(p != NULL);
        memset(p, 1, n);
    }
    p = realloc(p, 70000);
    smalls(sum / 2);
    free(p);
}

static struct job {
    size_t sum;
    uint64_t random;
} job[THREADS];

static void *work(void *arg)
{
    struct job *j = arg;
    size_t sum = j->sum;

    for (int i = 0; i < 4; i++) {
        larges(sum, 64 * KIB, sum / 4, &j->random);
        smalls(sum);
    }
    return NULL;
}

static void in_threads(size_t sum)
{
    pthread_barrier_t all;
    pthread_t t[THREADS];

    CHECK(pthread_barrier_init(&all, NULL, THREADS) == 0);
    keeps_step = &all;
    for (int i = 0; i < THREADS; i++) {
        job[i] = (struct job){sum / THREADS, (uint64_t)i + 1};
        CHECK(pthread_create(&t[i], NULL, work, &job[i]) == 0);
    }
    join_threads(t, THREADS);
    keeps_step = NULL;
    pthread_barrier_destroy(&all);
}

static void step(char what, size_t sum)
{
    switch (what) {
    case 'L':
        larges(sum, sum / 5, sum / 4, &seed);
        return;
    case 'l':
        larges(sum, 64 * KIB, MIB, &seed);
        return;
    case 's':
        smalls(sum);
        return;
    case 'T':
        in_threads(sum);
        return;
    case 'f':
    case 'F':
        in_child(sum / 2, what == 'F');
        return;
    case 'h':
        live_over_a_fork(sum);
        return;
    case 'm':
        in_memfd(sum);
        return;
    case 'c':
        in_file(2 * sum);
        return;
    case 'k':
        beside_each_other(sum);
        return;
    case 'r':
        by_realloc(sum);
        return;
    default:
        CHECK(!"a letter that it knows");
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 3);
    size_t sum = strtoul(argv[2], NULL, 10) * MIB;

    for (int round = 0; round < 2; round++) {
        for (const char *what = argv[1]; *what != '\0'; what++) {
            step(*what, sum);
        }
    }
    return 0;
}
