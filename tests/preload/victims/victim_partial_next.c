/* An allocator behind us, before us or in a program, that has some of the names only. SHAPE says
 * which, and whether they pass each call on (a tracer) or serve from an arena of their own; VIA
 * says to whom a tracer passes them on. Counts its calls. */
#include "victim.h"

#define VIA_NEXT 0   /* to the next definition */
#define VIA_LIBC 1   /* to __libc_malloc and so on */
#define VIA_HANDLE 2 /* to what libc itself has */
#ifndef VIA
#define VIA VIA_NEXT
#endif

#include <dlfcn.h>

/* The shapes. */
#define SHAPE_MALLOC 0     /* a tracer of malloc */
#define SHAPE_FREE 1       /* a tracer of free */
#define SHAPE_BOTH 2       /* a tracer of malloc and free */
#define SHAPE_FOUR 3       /* a tracer of malloc, free, calloc and realloc */
#define SHAPE_HEADER 4     /* the same, with a header before each block of its malloc */
#define SHAPE_REAL 5       /* an allocator of its own with the four */
#define SHAPE_REAL_POSIX 6 /* and with posix_memalign */

#define EXPORT __attribute__((visibility("default")))
#define HAS_MALLOC (SHAPE != SHAPE_FREE)
#define HAS_FREE (SHAPE != SHAPE_MALLOC)
#define HAS_REST (SHAPE >= SHAPE_FOUR)
#define IS_REAL (SHAPE >= SHAPE_REAL)

enum { CALL_MALLOC, CALL_FREE, CALL_CALLOC, CALL_REALLOC, CALLS };
EXPORT unsigned partial_calls[CALLS];

#if IS_REAL
static char arena[64 << 20] __attribute__((aligned(4096)));
static size_t used;

static void *get(size_t align, size_t n)
{
    size_t at = (used + 16 + align - 1) & ~(align - 1);
    if (align > sizeof arena || n > sizeof arena || at + n > sizeof arena) {
        return NULL; /* errno is left alone */
    }
    memcpy(arena + at - 8, &n, 8);
    used = at + n;
    return arena + at;
}

/* Bytes of a block of ours; another allocator's ends the process. */
static size_t bytes_of(const void *p)
{
    size_t n;
    if ((uintptr_t)p - (uintptr_t)arena >= sizeof arena) {
        dprintf(2, "a block of another allocator's\n");
        _exit(3);
    }
    memcpy(&n, (const char *)p - 8, 8);
    return n;
}
#else
/* What opening the handle asks for, which would ask for the handle. */
static int opening;
static char meanwhile[65536] __attribute__((aligned(16)));

__attribute__((unused)) static void *get_meanwhile(size_t n)
{
    static size_t at;
    void *p = meanwhile + at;
    at += (n + 15) & ~(size_t)15;
    return at <= sizeof meanwhile ? p : NULL;
}

static void *next(const char *name)
{
#if VIA == VIA_NEXT
    return dlsym(RTLD_NEXT, name);
#elif VIA == VIA_LIBC
    char other[32];
    snprintf(other, sizeof other, "__libc_%s", name);
    return dlsym(RTLD_DEFAULT, other);
#else
    static void *libc;
    if (libc == NULL) {
        opening = 1;
        libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
        opening = 0;
    }
    return dlsym(libc, name);
#endif
}

/* To libc's malloc_usable_size the mark is the size of an empty block; no block of libc's has
 * it. */
enum { HEADER = SHAPE == SHAPE_HEADER ? 16 : 0, MARK = 0x12 };

__attribute__((unused)) static void *marked(char *p)
{
    if (p == NULL || HEADER == 0) {
        return p;
    }
    ((uint64_t *)p)[1] = MARK;
    return p + HEADER;
}

__attribute__((unused)) static void *unmarked(void *p)
{
    return HEADER != 0 && p != NULL && ((uint64_t *)p)[-1] == MARK ? (char *)p - HEADER : p;
}
#endif

#if HAS_MALLOC
EXPORT void *malloc(size_t n)
{
    partial_calls[CALL_MALLOC]++;
#if IS_REAL
    return get(16, n);
#else
    if (opening) {
        return get_meanwhile(n);
    }
    static void *(*f)(size_t);
    f = f != NULL ? f : (void *(*)(size_t))next("malloc");
    return marked(f(n + HEADER));
#endif
}
#endif

#if HAS_FREE
EXPORT void free(void *p)
{
    partial_calls[CALL_FREE]++;
#if IS_REAL
    (void)(p != NULL ? bytes_of(p) : 0);
#else
    if ((uintptr_t)p - (uintptr_t)meanwhile < sizeof meanwhile) {
        return;
    }
    static void (*f)(void *);
    f = f != NULL ? f : (void (*)(void *))next("free");
    f(unmarked(p));
#endif
}
#endif

#if HAS_REST
EXPORT void *calloc(size_t k, size_t n)
{
    partial_calls[CALL_CALLOC]++;
#if IS_REAL
    return get(16, k * n); /* never reused, so zero */
#else
    if (opening) {
        return get_meanwhile(k * n);
    }
    static void *(*f)(size_t, size_t);
    f = f != NULL ? f : (void *(*)(size_t, size_t))next("calloc");
    return marked(f(1, k * n + HEADER));
#endif
}

EXPORT void *realloc(void *p, size_t n)
{
    partial_calls[CALL_REALLOC]++;
#if IS_REAL
    size_t old = p != NULL ? bytes_of(p) : 0;
    void *q = get(16, n);
    return p != NULL && q != NULL ? memcpy(q, p, old < n ? old : n) : q;
#else
    static void *(*f)(void *, size_t);
    f = f != NULL ? f : (void *(*)(void *, size_t))next("realloc");
    void *old = unmarked(p);
    return p == NULL || old != p ? marked(f(old, n + HEADER)) : f(p, n);
#endif
}
#endif

#if SHAPE == SHAPE_REAL_POSIX
EXPORT int posix_memalign(void **out, size_t align, size_t n)
{
    if (align < sizeof(void *) || (align & (align - 1)) != 0) {
        return EINVAL;
    }
    void *p = get(align, n);
    if (p == NULL) {
        return ENOMEM;
    }
    *out = p;
    return 0;
}
#endif
