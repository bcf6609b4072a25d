/* planned_pair N: N pairs of a large malloc and free in steps of 64 that a plan serves. For callgrind: the difference of two runs with
 * different N is what a pair costs, the step's begin and end shared by 64. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCKS = 64, WARM = 20 };

static int (*begin)(void *), (*end)(void *);
static void *volatile sink;

static void step(void)
{
    if (begin(NULL) != 0) {
        exit(2);
    }
    for (int i = 0; i < BLOCKS; i++) {
        sink = malloc(((size_t)128 << 10) + (size_t)i % 7 * 65536);
        free(sink);
    }
    if (end(NULL) != 0) {
        exit(2);
    }
}

int main(int argc, char **argv)
{
    long pairs = argc > 1 ? atol(argv[1]) : 1000;

    *(void **)&begin = dlsym(RTLD_DEFAULT, "fl_step_begin");
    *(void **)&end = dlsym(RTLD_DEFAULT, "fl_step_end");
    if (begin == NULL || end == NULL) {
        fprintf(stderr, "planned_pair: not under libfaultless.so\n");
        return 1;
    }
    for (long i = 0; i < WARM + pairs / BLOCKS; i++) {
        step();
    }
    return 0;
}
