/* A program that knows nothing of faultless: each step allocates buffers, writes them and frees
 * them, as a training loop does. It prints what the kernel had to do for that. */
#define _GNU_SOURCE /* RUSAGE_THREAD */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { STEPS = 5, BUFFERS = 3 };

static const size_t buffer_len = (size_t)48 << 20; /* bytes */

/* This thread's: work in the background delays no thread. */
static long page_faults(void)
{
    struct rusage usage;

    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_minflt;
}

static int step(void)
{
    char *buffer[BUFFERS];

    for (int i = 0; i < BUFFERS; i++) {
        buffer[i] = malloc(buffer_len);
        if (buffer[i] == NULL) {
            perror("malloc");
            return -1;
        }
        memset(buffer[i], i, buffer_len);
    }
    for (int i = 0; i < BUFFERS; i++) {
        free(buffer[i]);
    }
    return 0;
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < STEPS; i++) {
        long before = page_faults();
        if (step() != 0) {
            return EXIT_FAILURE;
        }
        printf("step %d: %ld page faults\n", i, page_faults() - before);
    }
    return EXIT_SUCCESS;
}
