/* One interposed function a mode: a large block is got, written in full and freed. */
#include "victim.h"

#include <dlfcn.h>

#define LARGE (3 * MIB + 100)

static void write_and_free(void *p, size_t n, size_t align)
{
    CHECK(p != NULL && (uintptr_t)p % align == 0);
    CHECK(malloc_usable_size(p) >= n);
    memset(p, 0x5a, n);
    free(p);
}

MODE_IS(f_malloc, write_and_free(malloc(LARGE), LARGE, 16))
MODE_IS(f_free, f_malloc())
MODE(f_calloc)
{
    unsigned char *p = calloc(LARGE / 100, 100);
    for (size_t i = 0; i < LARGE / 100 * 100; i++) {
        CHECK(p[i] == 0);
    }
    write_and_free(p, LARGE / 100 * 100, 16);
}
MODE_IS(f_realloc, write_and_free(realloc(NULL, LARGE), LARGE, 16))
MODE_IS(f_reallocarray, write_and_free(reallocarray(NULL, LARGE / 100, 100), LARGE / 100 * 100, 16))
MODE(f_posix_memalign)
{
    void *p = NULL;
    CHECK(posix_memalign(&p, 64 * KIB, LARGE) == 0);
    write_and_free(p, LARGE, 64 * KIB);
}
MODE_IS(f_aligned_alloc, write_and_free(aligned_alloc(64, 3 * MIB), 3 * MIB, 64))
MODE_IS(f_memalign, write_and_free(memalign(8 * MIB, LARGE), LARGE, 8 * MIB))
MODE_IS(f_valloc, write_and_free(valloc(LARGE), LARGE, 4096))
MODE(f_pvalloc)
{
    void *p = pvalloc(LARGE);
    CHECK(malloc_usable_size(p) >= (LARGE + 4095) / 4096 * 4096);
    write_and_free(p, LARGE, 4096);
}
MODE(f_free_sized)
{
    void (*f)(void *, size_t) = (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    CHECK(f != NULL);
    f(malloc(LARGE), LARGE);
    f(malloc(10), 10);
    f(NULL, 0);
}
MODE(f_free_aligned_sized)
{
    void (*f)(void *, size_t, size_t) =
        (void (*)(void *, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized");
    CHECK(f != NULL);
    f(aligned_alloc(4096, 3 * MIB), 4096, 3 * MIB);
    f(aligned_alloc(64, 64), 64, 64);
    f(NULL, 64, 0);
}
MODE(f_cfree)
{
    void (*f)(void *) = (void (*)(void *))dlsym(RTLD_DEFAULT, "cfree");
    CHECK(f != NULL);
    f(malloc(LARGE));
    f(malloc(10));
    f(NULL);
}
extern void __libc_free(void *p);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_malloc(size_t n);
MODE(f___libc_free)
{
    __libc_free(malloc(LARGE));
    __libc_free(malloc(10));
    __libc_free(NULL);
    __libc_free(__libc_malloc(LARGE));
    free(__libc_malloc(LARGE));
}
/* Large and small, of either side. */
MODE(f___libc_realloc)
{
    const size_t sizes[] = {100, 2 * LARGE, 60000, LARGE, 10, 0};
    char *p = malloc(LARGE), *q = __libc_malloc(LARGE);
    size_t had = LARGE;
    stamp(p, had, 1);
    stamp(q, had, 1);
    for (size_t i = 0; sizes[i] != 0; i++) {
        CHECK((p = __libc_realloc(p, sizes[i])) != NULL);
        CHECK((q = __libc_realloc(q, sizes[i])) != NULL);
        size_t both = had < sizes[i] ? had : sizes[i];
        CHECK(is_stamped_part(p, both - 1, both, 1) && is_stamped_part(q, both - 1, both, 1));
        had = sizes[i];
        stamp(p, had, 1);
        stamp(q, had, 1);
    }
    CHECK(__libc_realloc(p, 0) == NULL);
    q = realloc(q, LARGE / 100);
    __libc_free(q);
    CHECK((p = __libc_realloc(NULL, 100)) != NULL);
    free(p);
}
MODE(f_malloc_usable_size)
{
    void *p = malloc(LARGE), *q = malloc(33);
    CHECK(malloc_usable_size(NULL) == 0);
    CHECK(malloc_usable_size(p) >= LARGE && malloc_usable_size(p) < LARGE + 2 * MIB);
    CHECK(malloc_usable_size(q) >= 33 && malloc_usable_size(q) < 4096);
    free(p);
    free(q);
}
MODE(f_mallinfo2)
{
    free(malloc(100)); /* so that the next allocator has a heap */
    struct mallinfo2 before = mallinfo2();
    void *p = malloc(LARGE);
    struct mallinfo2 during = mallinfo2();
    CHECK(during.hblks == before.hblks + 1);
    CHECK(during.hblkhd >= before.hblkhd + LARGE);
    CHECK(during.arena > 0);
    free(p);
    CHECK(mallinfo2().hblks == before.hblks && mallinfo2().hblkhd == before.hblkhd);
    CHECK(mallinfo2().fordblks >= before.fordblks + LARGE);
}
MODE(f_mallinfo)
{
    void *p = malloc(LARGE);
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    CHECK(mallinfo().hblks >= 1 && (size_t)mallinfo().hblkhd >= LARGE);
    free(p);
}
MODE(f_malloc_stats)
{
    free(malloc(LARGE));
    malloc_stats();
}
MODE(f_malloc_info)
{
    void *p = malloc(LARGE);
    CHECK(malloc_info(0, stdout) == 0);
    CHECK(malloc_info(1, stdout) == EINVAL);
    free(p);
}
MODE(f_mallopt)
{
    free(malloc(LARGE));
    CHECK(mallopt(M_MXFAST, 64) == 1);
    CHECK(mallopt(M_MXFAST, 1 << 20) == 0);
}
MODE(f_malloc_trim)
{
    char *p = filled(64 * MIB);
    size_t before = rss_kib();
    free(p);
    CHECK(malloc_trim(0) == 1);
    CHECK(rss_kib() + 60 * 1024 < before);
    CHECK(malloc_trim(0) == 0 || malloc_trim(0) == 0);
}

MAIN()
