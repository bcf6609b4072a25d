/* One set for each namespace: a function knows by itself alone which libc it stands for. */
#include "runtime/past_blocks.h"
#include "alloc/alloc.h"

#include <errno.h>
#include <string.h>

const char *const fl_past_names[FL_PAST_ALL] = {
    [FL_PAST_FREE] = "free",
    [FL_PAST_REALLOC] = "realloc",
    [FL_PAST_REALLOCARRAY] = "reallocarray",
    [FL_PAST_SIZE] = "malloc_usable_size",
};

static struct past {
    void (*free)(void *p);
    void *(*realloc)(void *p, size_t n);
    void *(*reallocarray)(void *p, size_t count, size_t size);
    size_t (*usable_size)(void *p);
} past[FL_PAST_NAMESPACES]; /* written before it is called */

/* A block of ours stays one, however short it gets: the program's allocator and the namespace's
 * both know it then. */
static FL_COLD void *realloc_ours(void *p, size_t n)
{
    if (n == 0) {
        fl_free_ours(p);
        return NULL;
    }
    return fl_realloc_any(p, fl_max(n, fl_min(fl_route.threshold, fl_usable_ours(p))));
}

static FL_COLD void *reallocarray_ours(void *p, size_t count, size_t size)
{
    size_t n;

    if (__builtin_mul_overflow(count, size, &n)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc_ours(p, n);
}

#define BLOCK_CALLS(ns)                                                                            \
    static void free_##ns(void *p)                                                                 \
    {                                                                                              \
        fl_is_ours(p) ? fl_free_ours(p) : past[ns].free(p);                                        \
    }                                                                                              \
    static void *realloc_##ns(void *p, size_t n)                                                   \
    {                                                                                              \
        return fl_is_ours(p) ? realloc_ours(p, n) : past[ns].realloc(p, n);                        \
    }                                                                                              \
    static void *reallocarray_##ns(void *p, size_t count, size_t size)                             \
    {                                                                                              \
        return fl_is_ours(p) ? reallocarray_ours(p, count, size)                                   \
                             : past[ns].reallocarray(p, count, size);                              \
    }                                                                                              \
    static size_t usable_size_##ns(void *p)                                                        \
    {                                                                                              \
        return fl_is_ours(p) ? fl_usable_ours(p) : past[ns].usable_size(p);                        \
    }
#define ALL_NAMESPACES(X)                                                                          \
    X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)

ALL_NAMESPACES(BLOCK_CALLS)

#define ENTRY(ns) {free_##ns, realloc_##ns, reallocarray_##ns, usable_size_##ns},
static const struct past call[FL_PAST_NAMESPACES] = {ALL_NAMESPACES(ENTRY)};

/* Each name has its place in both, as a pointer of the same size. */
static size_t place(enum fl_past_name which)
{
    static const size_t places[FL_PAST_ALL] = {
        [FL_PAST_FREE] = offsetof(struct past, free),
        [FL_PAST_REALLOC] = offsetof(struct past, realloc),
        [FL_PAST_REALLOCARRAY] = offsetof(struct past, reallocarray),
        [FL_PAST_SIZE] = offsetof(struct past, usable_size),
    };

    return places[which];
}

void *fl_past_block_call(unsigned ns, enum fl_past_name which, void *was)
{
    void *f;

    memcpy((char *)&past[ns] + place(which), &was, sizeof was);
    memcpy(&f, (const char *)&call[ns] + place(which), sizeof f);
    return f;
}
