/* Declared steps of 512 MiB: what do those take in faults in which a plan begins to serve? The most
 * that a step after the third took is printed. */
#include "api.h"
#include "worker.h"

#include <stdbool.h>

enum { BLOCKS = 32, STEPS = 14, KNOWN = 3 };

static void step(void)
{
    static char *p[BLOCKS];
    bool declared = CALL(fl_step_begin)(NULL) == 0; /* not where plans are off */

    for (int i = 0; i < BLOCKS; i++) {
        size_t n = (size_t)(15 + i % 3) * MIB + (size_t)i * 64 * KIB;
        CHECK((p[i] = malloc(n)) != NULL);
        for (size_t at = 0; at < n; at += 4 * KIB) {
            p[i][at] = 1;
        }
        if (i == 0) {
            wait_until_worker_sleeps();
        }
    }
    for (int i = 0; i < BLOCKS; i++) {
        free(p[(i * 7) % BLOCKS]);
    }
    CHECK(!declared || CALL(fl_step_end)(NULL) == 0);
}

int main(void)
{
    long most = 0;

    for (int i = 0; i < STEPS; i++) {
        long before = faults_of(RUSAGE_THREAD);
        step();
        long now = faults_of(RUSAGE_THREAD) - before;
        most = i >= KNOWN && now > most ? now : most;
    }
    printf("most %ld\n", most);
    puts("done");
    return 0;
}
