/* What each name of malloc's family leaves in errno, where it fails and where it does not: one line
 * a call. Nothing of it depends on the allocator. */
#include "victim.h"

enum { UNTOUCHED = 77 };
static const size_t huge = (size_t)1 << 62, top = (size_t)1 << 63;
static const size_t aligns[] = {
    64, 4096, 0, 1, 2, 3, 4, 8, 24, 5000, (size_t)1 << 62, (size_t)1 << 63};
enum { ALIGNS = sizeof aligns / sizeof aligns[0] };
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
    for (size_t i = 0; i < ALIGNS; i++) {
        CODE(posix_memalign(&p, aligns[i], n));
    }
}

static void aligned(size_t n)
{
    printf("aligned of %zu\n", n);
    for (size_t i = 0; i < ALIGNS; i++) {
        BLOCK(aligned_alloc(aligns[i], n));
        BLOCK(memalign(aligns[i], n));
    }
    BLOCK(aligned_alloc(top + 8, n));
    BLOCK(memalign(top + 8, n));
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
    const size_t sizes[] = {0,        1,    100,         60000, 64 * KIB,      MIB,
                            40 * MIB, huge, PTRDIFF_MAX, top,   (size_t)-4095, SIZE_MAX};
    volatile size_t none = 0, much = top; /* volatile: gcc must not warn of what is meant */

    errno = UNTOUCHED;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        posix(sizes[i]);
        aligned(sizes[i]);
        plain(sizes[i]);
    }
    BLOCK(realloc(malloc(MIB), none));
    BLOCK(realloc(malloc(100), none));
    BLOCK(realloc(NULL, none));
    CHECK(malloc(none) != malloc(none));
    char *kept = written(3 * MIB, 1); /* by a realloc that fails */
    CHECK(realloc(kept, PTRDIFF_MAX) == NULL && reallocarray(kept, much, 4) == NULL);
    CHECK(is_stamped(kept, 3 * MIB, 1));
    errno = UNTOUCHED;
    BLOCK(calloc(16, much / 8));
    /* 2^40: glibc refuses, having no such span; a block is as good when it is aligned */
    int rc = posix_memalign(&p, (size_t)1 << 40, 3 * MIB);
    CHECK(rc == ENOMEM || (rc == 0 && (uintptr_t)p % ((size_t)1 << 40) == 0));
    errno = UNTOUCHED;
    KEPT(free(NULL));
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
