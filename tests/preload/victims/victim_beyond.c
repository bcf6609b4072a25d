/* Requests for about all memory of the machine, and for more: tells which are served, and errno of
 * those that are not. Nothing is touched. A realloc of 40 MiB by mremap(2) is refused where what it
 * adds exceeds all. Then alignments like that: no addresses are held for them, so that there is
 * room under a limit that the program sets. */
#include "victim.h"

static void tell(const char *what, void *p)
{
    int error = errno;

    printf(" %s %d", what, p != NULL ? 0 : error);
    free(p);
    errno = 0;
}

static void ask(size_t n, size_t small)
{
    void *p = NULL;

    errno = 0;
    tell("malloc", malloc(n));
    tell("calloc", calloc(n / KIB, KIB));
    tell("memalign", memalign(MIB, n));
    errno = posix_memalign(&p, 64, n);
    tell("posix_memalign", p);
    char *old = written(small, 3);
    p = realloc(old, n);
    CHECK(is_stamped(p != NULL ? p : old, small, 3));
    tell("realloc", p);
    free(p == NULL ? old : NULL);
    puts("");
}

static void align(size_t all)
{
    const struct rlimit limit = {300 * MIB, RLIM_INFINITY};

    for (size_t by = (size_t)1 << 46; by > all; by /= 2) {
        errno = 0;
        tell("aligned", memalign(by, MIB));
    }
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    tell("within", malloc(100 * MIB));
    puts("");
}

int main(void)
{
    size_t all = KIB * (size_t)(proc_number("/proc/meminfo", "MemTotal:") +
                                proc_number("/proc/meminfo", "SwapTotal:"));
    const size_t ns[] = {all / 2, all / 8 * 7, all + 64 * MIB,  all + all / 4,
                         4 * all, 16 * all,    100 * GIB + all, (size_t)1 << 46};

    for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++) {
        ask(ns[i], 100);
        ask(ns[i], 80000);
        ask(ns[i], 40 * MIB);
    }
    align(all);
    return 0;
}
