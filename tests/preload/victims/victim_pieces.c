/* MANY_MIB of blocks of BLOCK_KIB, all of it touched; all but one of KEEP are freed, then SMALL_MIB
 * of small ones. */
#include "victim.h"

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    size_t len = strtoul(argv[1], NULL, 10) * KIB, n = strtoul(argv[2], NULL, 10) * MIB / len;
    size_t keep = strtoul(argv[3], NULL, 10), small = strtoul(argv[4], NULL, 10) * MIB;
    char **p = calloc(n, sizeof *p);

    CHECK(p != NULL);
    for (size_t i = 0; i < n; i++) {
        p[i] = malloc(len);
        CHECK(p[i] != NULL);
        stamp(p[i], len, i);
    }
    for (size_t i = 0; i < n; i++) {
        if (i % keep != 0) {
            free(p[i]);
            p[i] = NULL;
        }
    }
    for (size_t got = 0; got < small; got += 1000) {
        char *q = malloc(1000);
        CHECK(q != NULL);
        memset(q, 1, 1000);
    }
    for (size_t i = 0; i < n; i++) {
        CHECK(p[i] == NULL || is_stamped(p[i], len, i));
    }
    printf("done\n");
    return 0;
}
