/* A large block on hugetlb pages of 2 MiB, of a pool of eight: what the program sees, and what is
 * left for others. */
#include "victim.h"

#include <signal.h>
#include <stdbool.h>
#include <sys/mman.h>

enum { PAGE = 2 << 20, POOL = 8 };

static size_t pages_taken(void)
{
    return POOL - proc_number("/proc/meminfo", "HugePages_Free:");
}

static size_t reserved(void)
{
    return proc_number("/proc/meminfo", "HugePages_Rsvd:");
}

/* Eight pages are there from the start, and go back with the block. */
MODE(lives_and_goes)
{
    char *p = calloc(1, 4 * PAGE);
    CHECK(pages_taken() == 4 && reserved() == 0);
    CHECK(is_all(p, 4 * PAGE, 0));
    memset(p, 1, 4 * PAGE);
    char *q = malloc(4 * PAGE - 5000);
    CHECK(pages_taken() == 8 && (uintptr_t)q % PAGE == 0);
    free(p);
    CHECK(pages_taken() == 4);
    p = malloc(4 * PAGE);
    CHECK(is_all(p, 4 * PAGE, 0)); /* new pages */
    free(q);
    free(p);
    CHECK(pages_taken() == 0);
    p = malloc(PAGE); /* too short */
    memset(p, 1, PAGE);
    CHECK(pages_taken() == 0);
    p = memalign(4 * PAGE, 4 * PAGE);
    CHECK(pages_taken() == 4 && (uintptr_t)p % (4 * PAGE) == 0);
}

/* What does not fit into the pool lies on ordinary pages. */
MODE(too_long)
{
    char *p = malloc(9 * PAGE);
    CHECK(pages_taken() == 0 && reserved() == 0);
    memset(p, 1, 9 * PAGE);
    char *q = malloc(8 * PAGE);
    CHECK(pages_taken() == 8);
    memset(q, 1, 8 * PAGE);
    char *more = malloc(4 * PAGE);
    memset(more, 2, 4 * PAGE);
    CHECK(is_all(p, 9 * PAGE, 1) && is_all(q, 8 * PAGE, 1) && is_all(more, 4 * PAGE, 2));
    free(q);
    CHECK(pages_taken() == 0);
}

MODE(resized)
{
    char *p = malloc(4 * PAGE);
    memset(p, 3, 4 * PAGE);
    p = realloc(p, 5 * PAGE); /* another block of the pool's, for a moment both */
    CHECK(is_all(p, 4 * PAGE, 3));
    p = realloc(p, 4 * PAGE + 1);
    CHECK(is_all(p, 4 * PAGE, 3));
    p = realloc(p, PAGE);
    CHECK(pages_taken() == 0 && is_all(p, PAGE, 3));
    free(p);
}

/* With an empty pool: parent and child each see what is theirs. */
MODE(forked)
{
    char *p = malloc(8 * PAGE);
    int link[2], status;

    CHECK(pages_taken() == 8 && pipe(link) == 0);
    CHECK(madvise(p, 8 * PAGE, MADV_DONTDUMP) == 0 && mlock(p, 4096) == 0);
    memset(p, 4, 8 * PAGE);
    for (int round = 0; round < 2; round++) {
        pid_t child = fork();
        if (child == 0) {
            char word;
            close(link[1]);
            bool well = read(link[0], &word, 1) == 1 && is_all(p, 8 * PAGE, 4);
            memset(p, 5, 8 * PAGE);
            pid_t own = well ? fork() : -1; /* a child of its own, too */
            if (own == 0) {
                _exit(is_all(p, 8 * PAGE, 5) ? 0 : 3);
            }
            well = own > 0 && waitpid(own, &status, 0) == own && status == 0;
            free(p);
            p = malloc(4 * PAGE);
            memset(p, 6, 4 * PAGE);
            _exit(well && is_all(p, 4 * PAGE, 6) ? 0 : 2);
        }
        memset(p, 6, 8 * PAGE);
        CHECK(write(link[1], "x", 1) == 1);
        ends_well(child);
        CHECK(is_all(p, 8 * PAGE, 6) && pages_taken() == 8);
        memset(p, 4, 8 * PAGE);
    }
    free(p);
    CHECK(pages_taken() == 0);
}

static int touches(const char *p)
{
    int status;
    pid_t child = fork();

    if (child == 0) {
        _exit(p[PAGE]);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/* Prints what a child reads. */
MODE(read_by_child)
{
    char *p = malloc(8 * PAGE);

    memset(p, 7, 8 * PAGE);
    CHECK(pages_taken() == 8);
    printf("%d\n", touches(p));
    CHECK(is_all(p, 8 * PAGE, 7));
}

/* A part that is no whole page, too. */
MODE(given_back)
{
    char *p = malloc(4 * PAGE);

    memset(p, 8, 4 * PAGE);
    CHECK(madvise(p + 4096, PAGE, MADV_DONTNEED) == 0);
    CHECK(p[4095] == 8 && is_all(p + 4096, PAGE, 0) && p[PAGE + 4096] == 8);
    CHECK(madvise(p, 4096, MADV_FREE) == 0);
    CHECK(madvise(p, 4 * PAGE, MADV_HUGEPAGE) == 0);
    CHECK(madvise(p, 4 * PAGE, MADV_DONTNEED) == 0 && is_all(p, 4 * PAGE, 0));
    memset(p, 8, 4 * PAGE);
    CHECK(munmap(p + PAGE, PAGE) == 0);
    CHECK(p[0] == 8 && p[2 * PAGE] == 8);
    free(p);
    CHECK(pages_taken() == 0 && reserved() == 0);
}

MAIN()
