/* A program that is linked to faultless, so it runs under it without LD_PRELOAD, and asks what it
 * did. */
#include <faultless/faultless.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 100 };

static const size_t buffer_len = (size_t)8 << 20; /* bytes */

int main(void)
{
    struct fl_stats stats = {.size = sizeof(stats)}; /* says which version of the struct this is */

    for (int i = 0; i < STEPS; i++) {
        void *buffer = malloc(buffer_len);
        if (buffer == NULL) {
            perror("malloc");
            return EXIT_FAILURE;
        }
        memset(buffer, i, buffer_len);
        free(buffer);
    }
    int rc = fl_stats_read(&stats);
    if (rc != 0) {
        fprintf(stderr, "fl_stats_read: %s\n", strerror(-rc));
        return EXIT_FAILURE;
    }
    printf("faultless %s, %s\n", fl_version(), stats.active ? "active" : "not active");
    printf("%" PRIu64 " large requests, %" PRIu64 " of them needed new memory\n", stats.requests,
           stats.stalls + stats.lazy);
    printf("%" PRIu64 " KiB held populated, %" PRIu64 " KiB in use\n", stats.populated_bytes / 1024,
           stats.in_use_bytes / 1024);
    return EXIT_SUCCESS;
}
