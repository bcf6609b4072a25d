/* N pairs of malloc and free of 64 bytes, for an instruction counter to watch.   small N */
#include <stdlib.h>

int main(int argc, char **argv)
{
    long n = argc > 1 ? atol(argv[1]) : 1000;

    for (long i = 0; i < n; i++) {
        void *p = malloc(64);
        __asm__ volatile("" : : "r"(p) : "memory");
        free(p);
    }
    return 0;
}
