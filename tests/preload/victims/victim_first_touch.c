/* Large blocks, used in all the ways in which memory is touched for the first time.
 *
 *   victim_first_touch MODE    see main. Prints nothing. */
#include "smaps.h"

#include <sys/mman.h>

/* BARE: blocks that come without memory for the kernel to fill: there may be no thread that
 * serves. */
enum { THREADS = 4, PRIMED = 16, BARE = 8 };
static const size_t huge = 2 * MIB, each = 16 * MIB;
static char *primed[PRIMED];

static bool is_there(const void *p)
{
    unsigned char there = 0;
    uintptr_t page = (uintptr_t)p & ~(uintptr_t)(4 * KIB - 1);

    CHECK(mincore((void *)page, 1, &there) == 0);
    return (there & 1) != 0;
}

/* Are first touches served of the map that `p` lies in (userfaultfd(2))? */
static bool is_served(const void *p)
{
    bool served = false;

    for (struct map m = {.file = NULL}; next_map(&m);) {
        served |= (uintptr_t)p >= m.from && (uintptr_t)p < m.to && map_has(&m, " um");
    }
    return served;
}

/* Until large blocks come without memory and are served, or some have come: a helper may take a
 * moment to begin. */
static void prime(void)
{
    for (int i = 0, bare = 0; i < PRIMED && bare < BARE; i++) {
        primed[i] = taken(32 * MIB);
        bool there = is_there(primed[i] + 8 * MIB);
        bool served = !there && is_served(primed[i] + 8 * MIB);
        if (there || served) {
            memset(primed[i], 1, 32 * MIB);
        }
        if (served) {
            break;
        }
        bare += !there;
        usleep(50000);
    }
    usleep(100000);
}

static void *fill(void *arg)
{
    stamp(arg, each, (uintptr_t)arg);
    return NULL;
}

MODE(in_parallel)
{
    pthread_t t[THREADS];
    char *p = calloc(THREADS, each);

    CHECK(p != NULL);
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&t[i], NULL, fill, p + i * each) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(t[i], NULL) == 0);
        CHECK(is_stamped(p + i * each, each, (uintptr_t)(p + i * each)));
        CHECK(p[i * each + 511] == 0);
    }
    free(p);
}

/* read(2) is who touches. */
MODE(by_the_kernel)
{
    int fd = open("/proc/self/exe", O_RDONLY);
    char *p = taken(4 * each), *end = p + 4 * each;
    ssize_t whole = pread(fd, p, KIB, 0), n;

    CHECK(fd >= 0 && whole == (ssize_t)KIB);
    for (char *at = p + huge - 100; at + KIB <= end; at += huge) {
        n = pread(fd, at, KIB, 0);
        CHECK(n == whole && memcmp(at, p, KIB) == 0);
    }
    free(p);
    close(fd);
}

/* Holes in a huge page that is there. */
MODE(given_up_in_part)
{
    char *p = taken(4 * each);
    char *at = (char *)(((uintptr_t)p + 3 * huge) & ~(huge - 1));

    memset(at, 1, huge);
    usleep(100000);
    CHECK(madvise(at, 8 * KIB, MADV_DONTNEED) == 0);
    CHECK(madvise(at + 400 * KIB, 4 * KIB, MADV_DONTNEED) == 0);
    CHECK(at[400 * KIB] == 0 && at[0] == 0 && at[8 * KIB] == 1);
    at[400 * KIB] = 1;
    free(p);
}

MODE(without_maps_to_spare)
{
    char *p = taken(8 * each);
    int prot = PROT_READ;

    while (mmap(NULL, 4 * KIB, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED) {
        prot ^= PROT_WRITE;
    }
    for (size_t at = 3 * huge; at < 8 * each; at += 3 * huge) {
        CHECK(p[at] == 0);
        p[at] = 1;
    }
    _exit(0);
}

MODE(resized)
{
    char *p = taken(2 * each);

    for (size_t n = 2 * each; n < 4 * each; n += huge) {
        p = realloc(p, n + huge);
        CHECK(p != NULL);
        p[n] = 3;
        CHECK(p[2 * each] == 3);
    }
    p = realloc(p, each);
    CHECK(p != NULL);
    free(p);
}

MODE(in_a_child)
{
    char *p = taken(4 * each);
    stamp(p, each, 5);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        CHECK(is_stamped(p, each, 5));
        stamp(p, 4 * each, 6);
        CHECK(is_stamped(p, 4 * each, 6));
        free(p);
        in_parallel();
        _exit(0);
    }
    stamp(p, 4 * each, 7);
    ends_well(pid);
    CHECK(is_stamped(p, 4 * each, 7));
    free(p);
}

int main(int argc, char **argv)
{
    prime();
    return run_mode(argc > 1 ? argv[1] : NULL);
}
