/* seccomp filters that are lists of the calls allowed: numbers with commas between. */
#ifndef FAULTLESS_TESTS_HOST_FILTER_H
#define FAULTLESS_TESTS_HOST_FILTER_H

#include "seccomp.h"

#include <stdlib.h>
#include <string.h>

static inline void filter_make(struct filter *f, const char *list, unsigned otherwise)
{
    char *end;

    filter_begin(f);
    for (unsigned n = 0; n < FILTER_CALLS; n++, list = *end == ',' ? end + 1 : end) {
        unsigned call = (unsigned)strtoul(list, &end, 10);
        if (end == list) {
            break;
        }
        filter_answer(f, call, SECCOMP_RET_ALLOW);
    }
    filter_end(f, otherwise);
}

/* What a filter does about a call that is not in its list. */
static inline unsigned filter_action(const char *name)
{
    return strcmp(name, "kill_process") == 0  ? SECCOMP_RET_KILL_PROCESS
           : strcmp(name, "kill_thread") == 0 ? SECCOMP_RET_KILL_THREAD
           : strcmp(name, "trap") == 0        ? SECCOMP_RET_TRAP
           : strcmp(name, "trace") == 0       ? SECCOMP_RET_TRACE
                                              : SECCOMP_RET_ERRNO | 1 /* EPERM */;
}

#endif
