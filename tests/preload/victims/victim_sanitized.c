/* A program whose malloc is that of a sanitizer's runtime: small blocks are
 * known from large ones alone, and a large one is written by a thread. */
#include "victim.h"

enum { BLOCKS = 1000 };
static char **kept;

static void *write_all(void *arg)
{
    memset(arg, 1, 40 * MIB);
    return arg;
}

int main(void)
{
    char *p = malloc(40 * MIB);

    kept = malloc(MIB);
    CHECK(kept != NULL && p != NULL);
    for (size_t i = 0; i < BLOCKS; i++) {
        kept[i] = malloc(100);
    }
    in_thread(write_all, p);
    CHECK((p = realloc(p, 50 * MIB)) != NULL && p[40 * MIB - 1] == 1);
    free(p);
    free(calloc(1, MIB));
    free(aligned_alloc(4096, MIB));
    puts("through");
    return 0;
}
