/* Every name of malloc's family, small and large. For each small one: what came, and which of
 * the calls a partial next allocator (victim_partial_next.c) saw. `refused`: arguments that
 * no machine can serve, and what errno says. `first NAME`: begins with a large block of that
 * one. */
#include "victim.h"

#include <dlfcn.h>

enum { CALLS = 4, UNTOUCHED = 77 };
static const unsigned *calls, none[CALLS];

static void *by_malloc(size_t align, size_t n)
{
    (void)align;
    return malloc(n);
}
static void *by_calloc(size_t align, size_t n)
{
    (void)align;
    return calloc(1, n);
}
static void *by_realloc(size_t align, size_t n)
{
    (void)align;
    return realloc(NULL, n);
}
static void *by_reallocarray(size_t align, size_t n)
{
    (void)align;
    return reallocarray(NULL, 1, n);
}
static void *by_posix_memalign(size_t align, size_t n)
{
    void *p = NULL;
    int before = errno, rc = posix_memalign(&p, align, n);

    CHECK(errno == (rc == ENOMEM ? ENOMEM : before) && (rc == 0) == (p != NULL));
    if (rc != 0) {
        errno = rc;
    }
    return p;
}
static void *by_valloc(size_t align, size_t n)
{
    (void)align;
    return valloc(n);
}
static void *by_pvalloc(size_t align, size_t n)
{
    (void)align;
    return pvalloc(n);
}

static const struct way {
    const char *name;
    void *(*get)(size_t align, size_t n);
    int aligned;
} ways[] = {
    {"malloc", by_malloc, 0},
    {"calloc", by_calloc, 0},
    {"realloc", by_realloc, 0},
    {"reallocarray", by_reallocarray, 0},
    {"memalign", memalign, 1},
    {"aligned_alloc", aligned_alloc, 1},
    {"posix_memalign", by_posix_memalign, 1},
    {"valloc", by_valloc, 0},
    {"pvalloc", by_pvalloc, 0},
};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void small(const struct way *w)
{
    unsigned before[CALLS], after[CALLS];

    memcpy(before, calls, sizeof before);
    errno = 0;
    void *p = w->get(64, 192);
    int e = errno;
    if (p != NULL) {
        memset(p, 1, 192);
        p = realloc(p, 1000);
        CHECK(p != NULL && *(char *)p == 1);
        free(p);
    }
    memcpy(after, calls, sizeof after);
    printf("%s %s %d:", w->name, p != NULL ? "served" : "refused", p != NULL ? 0 : e);
    for (unsigned i = 0; i < CALLS; i++) {
        printf(" %u", after[i] - before[i]);
    }
    printf("\n");
}

static void large(const struct way *w)
{
    char *p = w->get(8192, 3 * MIB);

    CHECK(p != NULL && (!w->aligned || (uintptr_t)p % 8192 == 0));
    stamp(p, 3 * MIB, 1);
    CHECK((p = realloc(p, 5 * MIB)) != NULL);
    CHECK(is_stamped_part(p, 3 * MIB - 1, 3 * MIB, 1));
    CHECK((p = realloc(p, 1000)) != NULL);
    CHECK(is_stamped_part(p, 1000, 3 * MIB, 1));
    stamp(p, 1000, 2);
    CHECK((p = realloc(p, 2 * MIB)) != NULL);
    CHECK(is_stamped_part(p, 999, 1000, 2));
    free(p);
}

/* Alignment and size, each too much for any machine. */
static const size_t too_much[][2] = {
    {(size_t)1 << 63, (size_t)1 << 63},
    {(size_t)1 << 63, 70000},
    {(size_t)1 << 62, (size_t)1 << 62},
    {(size_t)1 << 62, 64},
    {64, (size_t)1 << 62},
    {64, PTRDIFF_MAX},
    {16, (size_t)-15},
    {4096, (size_t)-4095},
    {((size_t)1 << 63) + 8, (size_t)1 << 20},
    {((size_t)1 << 63) + 8, 64},
};

static void refused(const struct way *w)
{
    for (size_t i = 0; i < sizeof too_much / sizeof too_much[0]; i++) {
        size_t align = too_much[i][0], n = too_much[i][1];
        if (!w->aligned && n <= MIB) {
            continue; /* refused for its alignment alone */
        }
        errno = UNTOUCHED;
        void *p = w->get(align, n);
        printf("%s %zx %zx: %d errno %d\n", w->name, align, n, p != NULL, errno);
        void *block = malloc(10);
        errno = UNTOUCHED;
        void *moved = w->get == by_realloc ? realloc(block, n) : NULL;
        CHECK(w->get != by_realloc || (moved == NULL && errno == ENOMEM));
        free(block);
    }
}

static void *all_ways(void *arg)
{
    for (unsigned i = 0; i < WAYS; i++) {
        large(&ways[i]);
    }
    return arg;
}

/* In threads, and in a child. */
static void elsewhere(void)
{
    pthread_t t[3];
    start_threads(t, 3, all_ways);
    join_threads(t, 3);
    IN_CHILD
    {
        all_ways(NULL);
    }
}

/* The first large request of all, which nothing has gone before. */
static void first_of_all(const char *name)
{
    for (unsigned i = 0; i < WAYS; i++) {
        if (strcmp(ways[i].name, name) == 0) {
            void *p = ways[i].get(8192, MIB);
            CHECK(p != NULL && malloc_usable_size(p) >= MIB);
            free(p);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        first_of_all(argv[2]);
    }
    calls = dlsym(RTLD_DEFAULT, "partial_calls");
    calls = calls != NULL ? calls : none;
    free(realloc(calloc(1, 1), 10));
    free(malloc(1)); /* what a tracer does once is done */
    for (unsigned i = 0; i < WAYS; i++) {
        if (argc == 2) {
            refused(&ways[i]);
        } else {
            small(&ways[i]);
        }
    }
    if (argc == 2) {
        return 0;
    }
    void *p = malloc(100);
    printf("usable %zu\n", malloc_usable_size(p));
    free(p);
    all_ways(NULL);
    if (argc == 3) {
        elsewhere();
    }
    malloc_trim(0);
    (void)mallinfo2();
    return 0;
}
