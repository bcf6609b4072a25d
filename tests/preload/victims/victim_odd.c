/* Odd requests. Prints what each gave; the parent compares with a run under plain glibc. */
#include "victim.h"

static void *volatile sink;

static void tell(const char *what, void *p)
{
    int e = errno;
    sink = p;
    printf("%s: %s", what, p != NULL ? "block" : "NULL");
    if (p == NULL) {
        printf(" errno %d", e);
    }
    printf("\n");
    free(p);
    errno = 0;
}

int main(void)
{
    static const size_t aligns[] = {0, 1, 2, 3, 8, 24, 4096, 5000};
    static const size_t lens[] = {
        0, 100, 3 * MIB, (size_t)PTRDIFF_MAX, (size_t)PTRDIFF_MAX + 1, SIZE_MAX};
    volatile size_t big = SIZE_MAX / 2; /* volatile: gcc must not warn of what is meant */
    void *p;
    errno = 0;
    for (size_t i = 0; i < sizeof lens / sizeof lens[0]; i++) {
        volatile size_t n = lens[i];
        printf("n %zu\n", n);
        tell("malloc", malloc(n));
        tell("calloc", calloc(1, n));
        tell("realloc", realloc(NULL, n));
        tell("valloc", valloc(n));
        tell("pvalloc", pvalloc(n));
        for (size_t k = 0; k < sizeof aligns / sizeof aligns[0]; k++) {
            volatile size_t a = aligns[k];
            printf("align %zu\n", a);
            tell("memalign", memalign(a, n));
            tell("aligned_alloc", aligned_alloc(a, n));
            p = NULL;
            printf("posix_memalign says %d\n", posix_memalign(&p, a, n));
            free(p);
        }
    }
    tell("calloc overflow", calloc(big, 4));
    tell("calloc overflow 2", calloc(4, big));
    tell("calloc large product", calloc(1u << 31, 1u << 31));
    tell("reallocarray overflow", reallocarray(NULL, big, 4));
    p = malloc(3 * MIB);
    stamp(p, 3 * MIB, 1);
    CHECK(reallocarray(p, big, 4) == NULL && errno == ENOMEM);
    CHECK(realloc(p, big) == NULL && errno == ENOMEM);
    CHECK(realloc(p, big + 1) == NULL && errno == ENOMEM);
    CHECK(is_stamped(p, 3 * MIB, 1)); /* a failed realloc leaves the block alone */
    tell("realloc large to 0", realloc(p, 0));
    tell("realloc small to 0", realloc(malloc(10), 0));
    tell("realloc NULL to 0", realloc(NULL, 0));
    void *zero = malloc(0), *zero2 = malloc(0);
    CHECK(zero != zero2);
    free(zero);
    free(zero2);
    free(NULL);
    /* 2^40: glibc refuses, having no such span; a block is as good when it is aligned */
    p = NULL;
    int rc = posix_memalign(&p, (size_t)1 << 40, 3 * MIB);
    CHECK(rc == ENOMEM || (rc == 0 && (uintptr_t)p % ((size_t)1 << 40) == 0));
    if (rc == 0) {
        stamp(p, 3 * MIB, 2);
    }
    free(rc == 0 ? p : NULL);
    rc = posix_memalign(&p, (size_t)1 << 63, 3 * MIB);
    CHECK(rc == ENOMEM || rc == EINVAL);
    return 0;
}
