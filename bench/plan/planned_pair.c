/* planned_pair N [BYTES...]: N pairs of a large malloc and free, of these sizes in turn, in steps
 * of 64 that a plan serves. For callgrind: the difference of two runs with different N is what a
 * pair costs, with this loop's 8 instructions and the 64th part of a step's begin and end. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCKS = 64, WARM = 20 };

static int (*begin)(void *), (*end)(void *);
static size_t size[BLOCKS]; /* bytes */

static void step(void)
{
    if (begin(NULL) != 0) {
        exit(2);
    }
    for (int i = 0; i < BLOCKS; i++) {
        void *p = malloc(size[i]);
        __asm__ volatile("" : : "r"(p) : "memory");
        free(p);
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
    for (size_t i = 0; i < BLOCKS; i++) {
        size[i] = argc > 2 ? strtoul(argv[2 + i % (size_t)(argc - 2)], NULL, 0)
                           : ((size_t)128 << 10) + i % 7 * 65536;
    }
    for (long i = 0; i < WARM + pairs / BLOCKS; i++) {
        step();
        if (i < WARM) {
            usleep(20000); /* the worker makes the plan: else some pairs come without one */
        }
    }
    return 0;
}
