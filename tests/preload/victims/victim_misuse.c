/* Frees what must not be freed. Prints the pointer first, so that the parent knows the exact line
 * to expect. */
#include "victim.h"

#include <sys/mman.h>

static void tell(void *p)
{
    printf("%p\n", p);
    fflush(stdout);
}
static void twice(void)
{
    char *p = malloc(MIB);
    tell(p);
    free(p);
    free(p);
}
static void twice_uncached(void)
{
    char *p = malloc(MIB), *q[16];
    for (size_t i = 0; i < 16; i++) {
        q[i] = malloc((i + 2) * MIB);
    }
    tell(p);
    free(p);
    for (size_t i = 0; i < 16; i++) {
        free(q[i]);
    }
    malloc_trim(0);
    free(p);
}
static void middle(void)
{
    char *p = malloc(MIB);
    tell(p + 4096);
    free(p + 4096);
}
static void odd(void)
{
    char *p = malloc(MIB);
    tell(p + 16);
    free(p + 16);
}
static void never(void)
{
    char *p = malloc(MIB);
    tell(p + 100 * GIB);
    free(p + 100 * GIB);
}
static void realloc_middle(void)
{
    char *p = malloc(MIB);
    tell(p + 4096);
    CHECK(realloc(p + 4096, 2 * MIB) == NULL);
}
static void realloc_freed(void)
{
    char *p = malloc(MIB);
    tell(p);
    free(p);
    CHECK(realloc(p, 2 * MIB) == NULL);
}
static void usable_middle(void)
{
    char *p = malloc(MIB);
    tell(p + 4096);
    CHECK(malloc_usable_size(p + 4096) == 0);
}
static void usable_freed(void)
{
    char *p = malloc(MIB);
    tell(p);
    free(p);
    CHECK(malloc_usable_size(p) == 0);
}
/* Foreign ones: what happens is the next allocator's business. */
static char foreign_block[4096] __attribute__((aligned(16)));

static void foreign_free(void)
{
    free(malloc(MIB));
    free(foreign_block + 16);
}
static void foreign_realloc(void)
{
    free(malloc(MIB));
    CHECK(realloc(foreign_block + 16, 100) == NULL);
}
static void foreign_usable(void)
{
    size_t header[2] = {0, 0x21 | 2}; /* a mapped chunk to glibc's eyes */
    free(malloc(MIB));
    memcpy(foreign_block, header, sizeof header);
    printf("%zu\n", malloc_usable_size(foreign_block + 16));
}
static void small_twice(void)
{
    free(malloc(MIB));
    char *p = malloc(100);
    free(p);
    free(p);
}

MAIN(MODE(twice), MODE(twice_uncached), MODE(middle), MODE(odd), MODE(never), MODE(realloc_middle),
     MODE(realloc_freed), MODE(usable_middle), MODE(usable_freed), MODE(foreign_free),
     MODE(foreign_realloc), MODE(foreign_usable), MODE(small_twice))
