/* Frees a large block, limits itself, and takes as much in other ways: as under glibc, which has
 * given the block back. Then the other way round.
 *
 *   victim_limited MODE */
#include "victim.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>

enum { BLOCK = 300, LIMIT = 400, MAPPED = 200 };

static void come_and_go(size_t mib)
{
    char *p = malloc(mib * MIB);

    CHECK(p != NULL);
    memset(p, 1, mib * MIB);
    free(p);
}

static void map_and_unmap(size_t mib)
{
    char *p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED && munmap(p, mib * MIB) == 0);
}

static void live_within(void)
{
    map_and_unmap(MAPPED);
    come_and_go(BLOCK);
    map_and_unmap(MAPPED);
}

static void by_setrlimit(void)
{
    const struct rlimit limit = {LIMIT * MIB, RLIM_INFINITY};

    come_and_go(BLOCK);
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    live_within();
}

static void by_prlimit(void)
{
    const struct rlimit limit = {LIMIT * MIB, RLIM_INFINITY};

    come_and_go(BLOCK);
    CHECK(prlimit(getpid(), RLIMIT_DATA, &limit, NULL) == 0);
    live_within();
}

static void by_number(void)
{
    const struct rlimit limit = {LIMIT * MIB, RLIM_INFINITY};

    come_and_go(BLOCK);
    CHECK(syscall(SYS_prlimit64, 0, RLIMIT_AS, &limit, NULL) == 0);
    live_within();
}

MAIN(MODE(by_setrlimit), MODE(by_prlimit), MODE(by_number))
