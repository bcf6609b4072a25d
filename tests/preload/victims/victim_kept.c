/* Free memory that the program wants to keep: a block is touched and freed, the program rests, and
 * a block of half that length takes no fault.
 *   victim_kept lock    mlockall(2) of all that comes, as real-time programs do; after
 *                       munlockall(2) the memory goes back
 *   victim_kept number  the same by syscall(2)
 *   victim_kept trim    mallopt(3)
 *   victim_kept none    the environment says it, or nothing does */
#include "may_lock.h"
#include "victim.h"

#include <sys/mman.h>
#include <sys/syscall.h>

enum { LEN = 48 * MIB, REST_US = 600000, POLL_US = 10000, POLLS = 1000 };

static long faults_of_use(size_t n)
{
    long before = faults_of(RUSAGE_SELF);
    char *p = taken(n);

    for (size_t at = 0; at < n; at += 4096) {
        p[at] = 1;
    }
    free(p);
    return faults_of(RUSAGE_SELF) - before;
}

static void await_return(void)
{
    for (int i = 0; rss_kib() > LEN / 2 / KIB; i++) {
        CHECK(i < POLLS);
        usleep(POLL_US);
        (void)faults_of_use(64 * KIB);
    }
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "none";

    if (strcmp(how, "lock") == 0 || strcmp(how, "number") == 0) {
        if (!fl_may_lock((size_t)4 * LEN)) {
            printf("faults 0, not locked\n");
            return 0;
        }
        long rc = how[0] == 'l' ? mlockall(MCL_CURRENT | MCL_FUTURE)
                                : syscall(SYS_mlockall, MCL_CURRENT | MCL_FUTURE);
        CHECK(rc == 0);
    } else if (strcmp(how, "trim") == 0) {
        CHECK(mallopt(M_TRIM_THRESHOLD, -1) == 1);
        CHECK(mallopt(M_MMAP_MAX, 0) == 1);
    }
    (void)faults_of_use(LEN);
    usleep(REST_US); /* nothing tells that nothing happens */
    (void)faults_of_use(64 * KIB);
    usleep(REST_US);
    printf("faults %ld\n", faults_of_use(LEN / 2));
    if (how[0] == 'l') {
        CHECK(munlockall() == 0);
        await_return();
    }
    return 0;
}
