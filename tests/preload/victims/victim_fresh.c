/* FIRST LATER: page faults that the process's first malloc of a GiB takes itself, and the best of
 * the next ones, at most. Nothing is touched. */
#include "victim.h"

enum { BLOCKS = 6 };

/* Faults of one request. */
static long ask(char **out)
{
    long before = faults_of(RUSAGE_THREAD);

    *out = malloc(GIB);
    return faults_of(RUSAGE_THREAD) - before;
}

int main(int argc, char **argv)
{
    static char *block[BLOCKS];
    long first, best;

    CHECK(argc == 3);
    (void)faults_of(RUSAGE_THREAD); /* bound by now */
    free(malloc(MIB));              /* the region is there */
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
