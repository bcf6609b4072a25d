/* Many blocks just above 64 KiB, and some of MiBs, all written: how much memory is that? Prints
 * "resident: N", in KiB. */
#include "victim.h"

enum { SMALL = 3000, LARGE = 24 };

static long resident_kib(void)
{
    char text[4096];
    FILE *in = fopen("/proc/self/status", "re");
    CHECK(in != NULL);
    size_t n = fread(text, 1, sizeof text - 1, in);
    fclose(in);
    text[n] = '\0';
    const char *at = strstr(text, "VmRSS:");
    CHECK(at != NULL);
    return atol(at + strlen("VmRSS:"));
}

int main(void)
{
    static void *block[SMALL + LARGE];

    for (size_t i = 0; i < SMALL + LARGE; i++) {
        size_t n = i < SMALL ? 65 * KIB + i % 40 * KIB : (3 + i % 5) * MIB + 5;
        block[i] = malloc(n);
        CHECK(block[i] != NULL);
        memset(block[i], (int)i | 1, n);
    }
    printf("resident: %ld\n", resident_kib());
    for (size_t i = 0; i < SMALL + LARGE; i++) {
        free(block[i]);
    }
    return 0;
}
