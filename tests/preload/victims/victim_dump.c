/* What a core dump would have of this process: what is resident and has no flag dd in smaps. */
#include "smaps.h"
#include "worker.h"

enum { PIECES = 100, MOST_FREE = 8 };

static char *piece[PIECES];

/* Sums, in KiB, over the maps that reach into [from, to), of what a dump has, or has not. */
static size_t resident(uintptr_t from, uintptr_t to, bool dumped)
{
    size_t sum = 0;

    for (struct map m = {.file = NULL}; next_map(&m);) {
        if (m.from < to && m.to > from && map_has(&m, " dd") != dumped) {
            sum += m.rss_kib;
        }
    }
    return sum;
}

static size_t dumped_mib(void)
{
    return resident(0, UINTPTR_MAX, true) / 1024;
}

static bool is_dumped(const char *p, size_t n)
{
    return resident((uintptr_t)p, (uintptr_t)p + n, false) == 0;
}

static void wait_until_dumped(size_t mib)
{
    FL_AWAIT(dumped_mib() <= mib);
}

/* 400 MiB freed at once, and once more in blocks from the first one's memory. */
static void use_much(void)
{
    use(400 * MIB);
    for (int i = 0; i < 3; i++) {
        char *p = calloc(1, 100 * MIB);
        memset(p, 1, 100 * MIB);
        free(p);
    }
}

MODE(freed)
{
    size_t before = dumped_mib();

    use_much();
    wait_until_dumped(before + MOST_FREE);
}

static void take_pieces(void)
{
    for (size_t i = 0; i < PIECES; i++) {
        piece[i] = written(4 * MIB, i);
    }
}

static void check_pieces(void)
{
    for (size_t i = 0; i < PIECES; i++) {
        CHECK(piece[i] == NULL ||
              (is_stamped(piece[i], 4 * MIB, i) && is_dumped(piece[i], 4 * MIB)));
    }
}

/* In blocks that wait in a thread's cache, too; every other one lives. */
MODE(live_stays)
{
    size_t before = dumped_mib();

    take_pieces();
    for (size_t i = 0; i < PIECES; i++) {
        if (i < 8 || i % 8 != 0) {
            free(piece[i]);
            piece[i] = NULL;
        }
    }
    wait_until_dumped(before + 12 * 4 + MOST_FREE);
    check_pieces();
    for (size_t i = 0; i < PIECES; i += 3) { /* into what is not dumped, in pieces */
        if (piece[i] == NULL) {
            piece[i] = written(4 * MIB, i);
        }
    }
    char *grown = realloc(malloc(64 * MIB), 200 * MIB);
    memset(grown, 1, 200 * MIB);
    CHECK(is_dumped(grown, 200 * MIB));
    check_pieces();
    free(grown);
}

MODE(in_child)
{
    size_t before = dumped_mib();

    use(300 * MIB);
    char *p = written(20 * MIB, 1);
    wait_until_dumped(before + 20 + MOST_FREE);
    IN_CHILD
    {
        char *q = written(100 * MIB, 2);
        CHECK(is_dumped(p, 20 * MIB) && is_dumped(q, 100 * MIB));
        free(q);
        wait_until_dumped(before + 20 + MOST_FREE);
        CHECK(is_stamped(p, 20 * MIB, 1) && is_dumped(p, 20 * MIB));
    }
    CHECK(is_stamped(p, 20 * MIB, 1) && is_dumped(p, 20 * MIB));
}

/* However it was come by. */
MODE(live)
{
    char *first = written(64 * MIB, 1);
    use_much();
    char *again = written(100 * MIB, 2), *zeroed = calloc(1, 30 * MIB),
         *grown = written(8 * MIB, 4);
    stamp(zeroed, 30 * MIB, 3);
    grown = realloc(grown, 50 * MIB);
    memset(grown, 1, 50 * MIB);
    CHECK(is_dumped(first, 64 * MIB) && is_dumped(again, 100 * MIB));
    CHECK(is_dumped(zeroed, 30 * MIB) && is_dumped(grown, 50 * MIB));
    wait_until_worker_sleeps();
    CHECK(is_dumped(again, 100 * MIB));
    free(again);
    char *small = written(300 * KIB, 5);
    CHECK(is_dumped(small, 300 * KIB));
    CHECK(is_stamped(first, 64 * MIB, 1) && is_stamped(zeroed, 30 * MIB, 3));
}

MAIN()
