/* Asks for much and touches little: what is held is what was touched, in whole huge pages, and 5 %
 * and 32 MiB beside. Steps that come again find what they have touched. */
#include "worker.h"

#include <sys/prctl.h>

enum { HUGE_SHIFT = 21, PLACES = 1 << 14, MOST = 256, ROUNDS = 9 };

/* Huge pages touched, each once. */
static uintptr_t place[PLACES];
static size_t places;

static void touch(char *p)
{
    uintptr_t huge = (uintptr_t)p >> HUGE_SHIFT;
    size_t i = huge % PLACES;

    while (place[i] != 0 && place[i] != huge) {
        i = (i + 1) % PLACES;
    }
    places += place[i] == 0;
    place[i] = huge;
    *p = 1;
}

struct asked {
    char *p[MOST];
    size_t n, len;
};

/* 5 % of each block. */
static void touch_front(struct asked *a)
{
    for (size_t i = 0; i < a->n; i++) {
        for (size_t at = 0; at < a->len / 20; at += 4 * KIB) {
            touch(a->p[i] + at);
        }
    }
}

/* A page in 24 MiB. */
static void touch_strided(struct asked *a)
{
    for (size_t sum = 0; sum < a->n * a->len; sum += 24 * MIB) {
        touch(a->p[sum / a->len] + sum % a->len);
    }
}

static void touch_random(struct asked *a)
{
    uint64_t random = 88172645463325252u;

    for (int i = 0; i < 30; i++) {
        uint64_t at = next_random(&random) % (a->n * a->len);
        touch(a->p[at / a->len] + at % a->len);
    }
}

static void check_bound(const struct asked *a, size_t before)
{
    size_t most = (places << HUGE_SHIFT) + a->n * a->len / 20 + 32 * MIB, now = rss_kib() * KIB;

    if (now > before + most) {
        dprintf(2, "%zu blocks of %zu MiB: %zu MiB held, %zu touched\n", a->n, a->len / MIB,
                (now - before) / MIB, places << HUGE_SHIFT >> 20);
    }
    CHECK(now <= before + most);
}

/* Freed and asked for again as zero: where it was touched it has been cleared, and the rest has not
 * come in. */
static void zero_again(struct asked *a, void (*touch_some)(struct asked *), size_t before)
{
    FREE_ALL(a->p, a->n);
    for (size_t i = 0; i < a->n; i++) {
        a->p[i] = calloc(1, a->len);
        CHECK(a->p[i] != NULL);
    }
    check_bound(a, before);
    for (size_t i = 0; i < a->n; i++) {
        CHECK(is_all(a->p[i], a->len, 0));
    }
    touch_some(a);
}

static void ask(size_t n, size_t len, void (*touch_some)(struct asked *))
{
    static struct asked a;
    size_t before = rss_kib() * KIB;

    a.n = n;
    a.len = len;
    places = 0;
    memset(place, 0, sizeof place);
    for (size_t i = 0; i < n; i++) {
        a.p[i] = taken(len);
    }
    check_bound(&a, before);
    touch_some(&a);
    check_bound(&a, before);
    zero_again(&a, touch_some, before);
    FREE_ALL(a.p, n);
    malloc_trim(0);
}

static void ask_all(size_t n, size_t len)
{
    ask(n, len, touch_front);
    ask(n, len, touch_strided);
    ask(n, len, touch_random);
}

MODE_IS(by_1_mib, ask_all(256, MIB))
MODE_IS(by_8_mib, ask_all(64, 8 * MIB))
MODE_IS(by_64_mib, ask_all(12, 64 * MIB))
MODE_IS(by_512_mib, ask_all(3, 512 * MIB))

/* What is read alone is zeros, and they are not cleared. In base pages: before Linux 6.16 the
 * kernel does not say which huge page is its own of zeros. */
MODE(read_alone)
{
    CHECK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
    size_t before = rss_kib() * KIB, len = 64 * MIB;

    for (int round = 0; round < 3; round++) {
        char *p = calloc(1, len);
        CHECK(p != NULL && is_all(p, len, 0));
        CHECK(rss_kib() * KIB < before + 8 * MIB);
        p[round * MIB] = 1;
        free(p);
    }
}

static int compare(const void *a, const void *b)
{
    return (*(const long *)a > *(const long *)b) - (*(const long *)a < *(const long *)b);
}

/* Blocks that come again, of which `percent` are touched. Prints the faults of the median step. */
static void repeat(size_t percent)
{
    static const size_t mib[] = {1, 24, 3, 40, 9, 17, 2, 30};
    enum { BLOCKS = sizeof mib / sizeof mib[0] };
    long each[ROUNDS];
    char *p[BLOCKS];

    for (int round = -3; round < ROUNDS; round++) { /* the first ones come to rest */
        long before = faults_of(RUSAGE_THREAD);
        for (size_t i = 0; i < BLOCKS; i++) {
            p[i] = taken(mib[i] * MIB);
            memset(p[i], round, mib[i] * MIB / 100 * percent);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            CHECK(p[i][mib[i] * MIB / 200 * percent] == (char)round);
            free(p[i]);
        }
        if (round >= 0) {
            each[round] = faults_of(RUSAGE_THREAD) - before;
        }
    }
    qsort(each, ROUNDS, sizeof each[0], compare);
    printf("faults %ld\n", each[ROUNDS / 2]);
}

MODE_IS(steps, repeat(100))
MODE_IS(half_steps, repeat(50))

MODE(held)
{
    char *p = taken(64 * MIB);

    printf("held %zu\n", rss_kib() * KIB / MIB);
    free(p);
}

MAIN()
