/* Many blocks just above 64 KiB, and some of MiBs, all written: how much memory is that? Prints
 * "resident: N", in KiB. */
#include "victim.h"

enum { SMALL = 3000, LARGE = 24 };

int main(void)
{
    static void *block[SMALL + LARGE];

    for (size_t i = 0; i < SMALL + LARGE; i++) {
        size_t n = i < SMALL ? 65 * KIB + i % 40 * KIB : (3 + i % 5) * MIB + 5;
        block[i] = taken(n);
        memset(block[i], (int)i | 1, n);
    }
    printf("resident: %zu\n", rss_kib());
    FREE_ALL(block, SMALL + LARGE);
    return 0;
}
