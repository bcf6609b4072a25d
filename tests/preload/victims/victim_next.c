/* Which allocator has what? Asks those that can tell: jemalloc, tcmalloc and mimalloc by their own
 * interfaces. Prints "small next|unknown" and "large other|next". */
#include "victim.h"

#include <dlfcn.h>

static int (*mallctl)(const char *, void *, size_t *, void *, size_t);
static int (*tc_property)(const char *, size_t *);
static unsigned char (*mi_is_in_heap)(const void *);

static void *symbol(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

/* Bytes that the next allocator has handed out so far, as exactly as it says. */
static size_t allocated(void)
{
    uint64_t v = 0;
    size_t len = sizeof v, t = 0;
    if (mallctl != NULL) {
        CHECK(mallctl("thread.allocated", &v, &len, NULL, 0) == 0);
        return v;
    }
    if (tc_property != NULL) {
        CHECK(tc_property("generic.current_allocated_bytes", &t) != 0);
        return t;
    }
    return mallinfo2().uordblks;
}

static int is_next(size_t n)
{
    size_t before = allocated();
    char *p = filled(n);
    int is = mi_is_in_heap != NULL ? mi_is_in_heap(p) : allocated() >= before + n;
    free(p);
    return is;
}

int main(int argc, char **argv)
{
    int family =
        argc > 1 && argv[1][0] == 'f'; /* one allocator has all names: jemalloc alone has not */
    mallctl = (int (*)(const char *, void *, size_t *, void *, size_t))symbol("mallctl");
    tc_property = (int (*)(const char *, size_t *))symbol("MallocExtension_GetNumericProperty");
    mi_is_in_heap = (unsigned char (*)(const void *))symbol("mi_is_in_heap_region");
    printf("asked %s\n", mallctl != NULL       ? "jemalloc"
                         : tc_property != NULL ? "tcmalloc"
                         : mi_is_in_heap       ? "mimalloc"
                                               : "glibc");
    printf("small %s\n", is_next(60000) ? "next" : "other");
    printf("large %s\n", is_next(8 * MIB) ? "next" : "other");
    printf("usable %zu %zu\n", malloc_usable_size(malloc(33)), malloc_usable_size(malloc(1000)));
    /* across the border, both ways, and every other name */
    char *p = written(100, 1);
    p = realloc(p, 3 * MIB);
    CHECK(is_stamped_part(p, 100, 100 + 512, 1));
    stamp(p, 3 * MIB, 2);
    p = realloc(p, 100);
    CHECK(is_stamped_part(p, 100, 3 * MIB, 2));
    free(p);
    for (size_t n = 100; n < 4 * MIB; n *= 9) {
        void *q = NULL;
        CHECK(posix_memalign(&q, 4096, n) == 0 && (uintptr_t)q % 4096 == 0);
        free(q);
        CHECK((q = aligned_alloc(64, n / 64 * 64 + 64)) != NULL && (uintptr_t)q % 64 == 0);
        free(q);
        CHECK((q = memalign(128, n)) != NULL && (uintptr_t)q % 128 == 0);
        free(q);
        CHECK((q = valloc(n)) != NULL && (uintptr_t)q % 4096 == 0);
        free(q);
        if (family) {
            CHECK((q = pvalloc(n)) != NULL && (uintptr_t)q % 4096 == 0);
            free(q);
        }
        CHECK((q = reallocarray(NULL, n, 3)) != NULL && malloc_usable_size(q) >= n * 3);
        free(q);
    }
    malloc_trim(0);
    (void)mallopt(M_MXFAST, 64);
    (void)mallinfo2();
    CHECK(malloc_info(0, stdout) == 0);
    return 0;
}
