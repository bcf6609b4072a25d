/* MANY_MIB of blocks of BLOCK_KIB, of which all but one of KEEP are freed when all are touched, or,
 * where KEEP is 0, all are kept with only their first bytes touched; then SMALL_MIB of small
 * ones. */
#include "victim.h"

int main(int argc, char **argv)
{
    CHECK(argc == 5);
    size_t len = strtoul(argv[1], NULL, 10) * KIB, n = strtoul(argv[2], NULL, 10) * MIB / len;
    size_t keep = strtoul(argv[3], NULL, 10), small = strtoul(argv[4], NULL, 10) * MIB;
    size_t touched = keep != 0 ? len : sizeof(uint64_t);
    char **p = calloc(n, sizeof *p);

    CHECK(p != NULL);
    for (size_t i = 0; i < n; i++) {
        p[i] = taken(len);
        stamp(p[i], touched, i);
    }
    for (size_t i = 0; i < n && keep != 0; i++) {
        if (i % keep != 0) {
            free(p[i]);
            p[i] = NULL;
        }
    }
    for (size_t got = 0; got < small; got += 1000) {
        (void)filled(1000);
    }
    for (size_t i = 0; i < n; i++) {
        CHECK(p[i] == NULL || is_stamped(p[i], touched, i));
    }
    printf("done\n");
    return 0;
}
