/* A block that is touched, and of which all but one page in sixteen is then given back. What the
 * memory control group has in use before and after, in MiB; argument: the file that says so. */
#include "victim.h"

#include <sys/mman.h>

enum { PIECE_KIB = 64, PAGE_KIB = 4 };
static const size_t len = 128 * MIB;

static size_t usage_mib(const char *file)
{
    return proc_number(file, "") / MIB;
}

int main(int argc, char **argv)
{
    CHECK(argc == 2);
    char *p = aligned_alloc(PAGE_KIB * KIB, len);
    CHECK(p != NULL);
    memset(p, 7, len);
    (void)madvise(p, len, MADV_NOHUGEPAGE); /* khugepaged would fill the holes */
    size_t before = usage_mib(argv[1]);
    for (size_t at = 0; at < len; at += PIECE_KIB * KIB) {
        errno = ENOTTY;
        CHECK(madvise(p + at + PAGE_KIB * KIB, (PIECE_KIB - PAGE_KIB) * KIB, MADV_DONTNEED) == 0);
        CHECK(errno == ENOTTY);
    }
    printf("before %zu\nafter %zu\n", before, usage_mib(argv[1]));
    for (size_t at = 0; at < len; at++) {
        CHECK(p[at] == (at % (PIECE_KIB * KIB) < PAGE_KIB * KIB ? 7 : 0));
    }
    free(p);
    p = calloc(1, len);
    CHECK(p != NULL);
    CHECK(is_all(p, len, 0));
    free(p);
    return 0;
}
