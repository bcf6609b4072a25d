/* A block grows by realloc from 64 to 256 MiB, four times, and has its contents. */
#include "victim.h"

enum { TIMES = 4, FROM = 64, TO = 256, BESIDE = 2 };

/* Something lies behind each, so that it cannot grow where it is. */
static void grow(void)
{
    char *beside[BESIDE], *p = malloc(FROM * MIB);

    memset(p, 1, FROM * MIB);
    for (size_t i = 0, n = FROM * MIB; n < TO * MIB; i++) {
        beside[i] = filled(MIB);
        n *= 2;
        p = realloc(p, n);
        CHECK(p != NULL && p[FROM * MIB - 1] == 1);
        memset(p, 1, n);
    }
    free(p);
    FREE_ALL(beside, BESIDE);
}

int main(void)
{
    for (int i = 0; i < TIMES; i++) {
        grow();
    }
    return 0;
}
