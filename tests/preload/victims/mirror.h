/* What the victims with a mirror share: what else a program does meanwhile. */
#ifndef FAULTLESS_TESTS_PRELOAD_MIRROR_H
#define FAULTLESS_TESTS_PRELOAD_MIRROR_H

#include "api.h"

#include <signal.h>
#include <sys/mman.h>

/* Memory comes, goes, moves and is trimmed all around. */
static inline void storm(void)
{
    char *block[16] = {NULL};
    uint64_t dice = 88172645463325252;

    for (int i = 0; i < 400; i++) {
        size_t k = next_random(&dice) % 16, n = (64 * KIB) << next_random(&dice) % 7;
        char *p = block[k] != NULL && i % 3 == 0 ? realloc(block[k], n) : malloc(n);
        CHECK(p != NULL);
        if (p != block[k] && i % 3 != 0) {
            free(block[k]);
        }
        block[k] = p;
        memset(p, i, n);
        if (i % 50 == 0) {
            malloc_trim(0);
        }
    }
    FREE_ALL(block, 16);
    malloc_trim(0);
}

/* Its exit status, or the signal that ended it. */
static inline int ends_by(void (*body)(char *), char *p)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        struct rlimit none = {0, 0};
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL);
        body(p);
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}

#endif
