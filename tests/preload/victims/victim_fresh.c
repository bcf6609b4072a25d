/* FIRST LATER: page faults that the process's first malloc of a GiB takes itself, and the best of
 * the next ones, at most. Nothing is touched. */
#include "victim.h"

#include <sys/resource.h>

enum { BLOCKS = 6 };

static long faults(void)
{
    struct rusage u;

    CHECK(getrusage(RUSAGE_THREAD, &u) == 0);
    return u.ru_minflt;
}

/* Faults of one request. */
static long ask(char **out)
{
    long before = faults();

    *out = malloc(GIB);
    return faults() - before;
}

int main(int argc, char **argv)
{
    static char *block[BLOCKS];
    long first, best;

    CHECK(argc == 3);
    (void)faults();    /* bound by now */
    free(malloc(MIB)); /* the region is there */
    first = ask(&block[0]);
    best = ask(&block[1]);
    for (int i = 2; i < BLOCKS; i++) {
        long n = ask(&block[i]);
        best = n < best ? n : best;
    }
    printf("first %ld, best of the next ones %ld\n", first, best);
    fflush(stdout);
    CHECK(first <= atol(argv[1]));
    CHECK(best <= atol(argv[2]));
    for (int i = 0; i < BLOCKS; i++) {
        CHECK(block[i] != NULL);
        free(block[i]);
    }
    return 0;
}
