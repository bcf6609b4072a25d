/* What each name of malloc's family leaves in errno, where it fails and where it does not: one line
 * a call. Nothing of it depends on the allocator. */
#include "victim.h"

#include <sys/resource.h>

enum { UNTOUCHED = 77 };
static const size_t huge = (size_t)1 << 62, top = (size_t)1 << 63;
static void *p;

static void say(const char *call, const char *result)
{
    int e = errno;

    printf("%s: %s, errno %d\n", call, result, e);
    errno = UNTOUCHED;
}

static const char *pointer(const void *block)
{
    return block != NULL ? "a block" : "NULL";
}

static const char *number(int rc)
{
    return rc == 0 ? "0" : rc == ENOMEM ? "ENOMEM" : rc == EINVAL ? "EINVAL" : "another number";
}

#define BLOCK(call) say(#call, pointer(call))
#define CODE(call) say(#call, number(call))
/* Blocks stay: the process is short. */
#define KEPT(call) ((call), say(#call, "done"))

static void posix(size_t n)
{
    printf("posix_memalign of %zu\n", n);
    CODE(posix_memalign(&p, 64, n));
    CODE(posix_memalign(&p, 4096, n));
    CODE(posix_memalign(&p, 0, n));
    CODE(posix_memalign(&p, 3, n));
    CODE(posix_memalign(&p, 4, n));
    CODE(posix_memalign(&p, 24, n));
    CODE(posix_memalign(&p, huge, n));
    CODE(posix_memalign(&p, top, n));
}

static void aligned(size_t n)
{
    printf("aligned of %zu\n", n);
    BLOCK(aligned_alloc(64, n));
    BLOCK(memalign(64, n));
    BLOCK(aligned_alloc(top + 8, n));
    BLOCK(memalign(top + 8, n));
    BLOCK(aligned_alloc(top, n));
    BLOCK(valloc(n));
    BLOCK(pvalloc(n));
}

static void plain(size_t n)
{
    printf("plain of %zu\n", n);
    BLOCK(malloc(n));
    BLOCK(calloc(n, 1));
    BLOCK(calloc(n, 8));
    BLOCK(realloc(NULL, n));
    BLOCK(reallocarray(NULL, n, 8));
    void *small = malloc(100), *large = malloc(MIB);
    if (n > MIB * 100) { /* refused: they stay */
        BLOCK(realloc(small, n));
        BLOCK(realloc(large, n));
        BLOCK(reallocarray(small, n, 8));
        BLOCK(reallocarray(large, n, 8));
    }
    KEPT(free(small));
    KEPT(free(large));
}

int main(void)
{
    const size_t sizes[] = {1,    60000,       64 * KIB,     MIB,           40 * MIB,
                            huge, PTRDIFF_MAX, SIZE_MAX / 2, (size_t)-4095, SIZE_MAX};
    volatile size_t none = 0;

    errno = UNTOUCHED;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        posix(sizes[i]);
        aligned(sizes[i]);
        plain(sizes[i]);
    }
    BLOCK(realloc(malloc(MIB), none));
    BLOCK(realloc(malloc(100), none));
    KEPT(malloc_usable_size(NULL));
    KEPT(malloc_trim(0));
    KEPT(mallinfo2());
    CODE(malloc_info(1, stdout));
    const struct rlimit limit = {GIB / 4, GIB / 4};
    CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
    errno = UNTOUCHED;
    posix(GIB);
    aligned(GIB);
    plain(GIB);
    return 0;
}
