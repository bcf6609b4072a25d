/* Frees a large block, limits itself, and takes as much in other ways: as under glibc, which has
 * given the block back. Then the other way round.
 *
 *   victim_limited MODE */
#include "victim.h"

#include <sys/mman.h>
#include <sys/syscall.h>

enum { BLOCK = 300, LIMIT = 400, MAPPED = 200 };

static void map_and_unmap(size_t mib)
{
    char *p = mmap(NULL, mib * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED && munmap(p, mib * MIB) == 0);
}

static const struct rlimit limit = {LIMIT * MIB, RLIM_INFINITY};

static void live_within(long rc)
{
    CHECK(rc == 0);
    map_and_unmap(MAPPED);
    use(BLOCK * MIB);
    map_and_unmap(MAPPED);
}

MODE(by_setrlimit)
{
    use(BLOCK * MIB);
    live_within(setrlimit(RLIMIT_AS, &limit));
}

MODE(by_prlimit)
{
    use(BLOCK * MIB);
    live_within(prlimit(getpid(), RLIMIT_DATA, &limit, NULL));
}

MODE(by_number)
{
    use(BLOCK * MIB);
    live_within(syscall(SYS_prlimit64, 0, RLIMIT_AS, &limit, NULL));
}

MAIN()
