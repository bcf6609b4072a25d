/* Waiting in a test: for a condition, never for a time. There is no limit here. Each test has its
 * own (TIMEOUT, fl_how.seconds), which ends what waits in vain. */
#ifndef FAULTLESS_TESTS_AWAIT_H
#define FAULTLESS_TESTS_AWAIT_H

#include <errno.h>
#include <time.h>

/* Between two looks: leaves the processor to what is waited for, and errno as it is. */
static inline void fl_between_looks(void)
{
    const struct timespec millisecond = {0, 1000000};
    int error = errno;

    (void)nanosleep(&millisecond, NULL);
    errno = error;
}

#define FL_AWAIT(cond)                                                                             \
    do {                                                                                           \
        while (!(cond)) {                                                                          \
            fl_between_looks();                                                                    \
        }                                                                                          \
    } while (0)

#endif
