/* MANY_MIB of blocks of BLOCK_KIB, each touched in its first byte alone and kept; then SMALL_MIB of
 * small ones. */
#include "victim.h"

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    size_t len = strtoul(argv[1], NULL, 10) * KIB, many = strtoul(argv[2], NULL, 10) * MIB;
    size_t small = strtoul(argv[3], NULL, 10) * MIB;
    for (size_t got = 0; got < many; got += len) {
        char *p = malloc(len);
        CHECK(p != NULL);
        p[0] = 1;
    }
    for (size_t got = 0; got < small; got += 1000) {
        char *p = malloc(1000);
        CHECK(p != NULL);
        memset(p, 1, 1000);
    }
    printf("done\n");
    return 0;
}
