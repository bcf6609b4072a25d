/* How much resident memory a core dump would have, in MiB: maps without the flag `dd`.
 *
 *   victim_host_core freed|freed_amid [MOST]   with MOST when it is no more than so much
 *   victim_host_core live */
#include "worker.h"

#include <limits.h>

/* Of the map that `p` is in, or of all. */
static long dumpable_mib(const void *p)
{
    char line[512];
    unsigned long from = 0, to = 0, kib = 0, sum = 0;
    FILE *f = fopen("/proc/self/smaps", "r");

    CHECK(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) {
        unsigned long a, b;
        if (strstr(line, "kB") == NULL && sscanf(line, "%lx-%lx ", &a, &b) == 2) {
            from = a;
            to = b;
        } else if (strncmp(line, "Rss:", 4) == 0) {
            kib = strtoul(line + 4, NULL, 10);
        } else if (strncmp(line, "VmFlags:", 8) == 0 && strstr(line, " dd ") == NULL &&
                   (p == NULL || ((uintptr_t)p >= from && (uintptr_t)p < to))) {
            sum += kib;
        }
    }
    fclose(f);
    return (long)(sum / 1024);
}

/* Every byte of a block would be in the core. */
static void check_live(const char *p, size_t n)
{
    for (size_t at = 0; at < n; at += 2 * MIB) {
        CHECK(dumpable_mib(p + at) > 0);
    }
    CHECK(dumpable_mib(p + n - 1) > 0);
}

static void use_much(void)
{
    use(400 * MIB);
    for (int i = 0; i < 3; i++) {
        char *p = calloc(1, 100 * MIB);
        CHECK(p != NULL);
        memset(p, 1, 100 * MIB);
        free(p);
    }
}

static long most = LONG_MAX;

static void say(void)
{
    long mib = LONG_MAX;

    FL_AWAIT((mib = dumpable_mib(NULL)) <= most);
    printf("dumpable %ld\n", mib);
}

MODE(freed)
{
    use_much();
    say();
}

/* Many small ones, each second freed: what lies between live blocks. */
MODE(freed_amid)
{
    enum { N = 200 };
    static char *p[N];
    for (size_t i = 0; i < N; i++) {
        p[i] = filled(2 * MIB);
    }
    for (size_t i = 0; i < N; i++) {
        if (i % 10 != 0) {
            free(p[i]);
        }
    }
    say();
    for (size_t i = 0; i < N; i += 10) {
        check_live(p[i], 2 * MIB);
    }
}

MODE(live)
{
    char *first = written(64 * MIB, 1);
    use_much();
    char *again = malloc(100 * MIB), *zeroed = calloc(1, 30 * MIB), *grown = malloc(8 * MIB);
    stamp(again, 100 * MIB, 2);
    stamp(zeroed, 30 * MIB, 3);
    stamp(grown, 8 * MIB, 4);
    grown = realloc(grown, 50 * MIB);
    memset(grown, 1, 50 * MIB);
    check_live(first, 64 * MIB);
    check_live(again, 100 * MIB);
    check_live(zeroed, 30 * MIB);
    check_live(grown, 50 * MIB);
    wait_until_worker_sleeps();
    check_live(again, 100 * MIB);
    free(again);
    char *small = written(300 * KIB, 5);
    check_live(small, 300 * KIB);
    CHECK(is_stamped(first, 64 * MIB, 1) && is_stamped(zeroed, 30 * MIB, 3));
    printf("live\n");
}

int main(int argc, char **argv)
{
    CHECK(argc >= 2);
    most = argc > 2 ? atol(argv[2]) : LONG_MAX;
    return run_mode(argv[1]);
}
