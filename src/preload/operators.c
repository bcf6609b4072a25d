/* C++ operators new and delete under their Itanium ABI names, in C: each is malloc or free, and on
 * failure what the standard asks for, by way of the libstdc++ that the program has loaded.
 *
 * Needed because another preloaded allocator may define them itself, past our malloc. Compiled with
 * -fexceptions: std::bad_alloc passes through these frames. Source: Itanium C++ ABI, mangling;
 * [new.delete] of C++17. */
#include "alloc/alloc.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define DECLARE_AND_DEFINE(type, name, args)                                                       \
    EXPORT type name args;                                                                         \
    EXPORT type name args

/* A function of the loaded libstdc++, which may have come by dlopen with RTLD_LOCAL. */
static void *cxx_symbol(const char *name)
{
    void *f = dlsym(RTLD_DEFAULT, name);

    if (f == NULL) {
        void *lib = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
        f = lib != NULL ? dlsym(lib, name) : NULL;
    }
    return f;
}

typedef void (*handler)(void);

static handler new_handler(void)
{
    handler (*get)(void);
    void *f = cxx_symbol("_ZSt15get_new_handlerv");

    memcpy(&get, &f, sizeof get);
    return f != NULL ? get() : NULL;
}

static void *allocate(size_t align, size_t n)
{
    void *p = NULL;

    if (align <= 16) {
        return malloc(n);
    }
    return posix_memalign(&p, align, n) == 0 ? p : NULL;
}

static FL_COLD void throw_bad_alloc(void)
{
    handler raise;
    void *f = cxx_symbol("_ZSt17__throw_bad_allocv");

    if (f == NULL) {
        fl_fatal("operator new: out of memory, and no libstdc++ to throw std::bad_alloc");
    }
    memcpy(&raise, &f, sizeof raise);
    raise();
}

/* [new.delete.single]: call the new-handler until it gives up or memory is to be had. */
static FL_COLD void *keep_trying(size_t align, size_t n)
{
    for (handler h; (h = new_handler()) != NULL;) {
        h();
        void *p = allocate(align, n);
        if (p != NULL) {
            return p;
        }
    }
    return NULL;
}

static void *new_or_throw(size_t align, size_t n)
{
    n += n == 0;
    void *p = allocate(align, n);
    if (FL_UNLIKELY(p == NULL) && (p = keep_trying(align, n)) == NULL) {
        throw_bad_alloc();
    }
    return p;
}

/* A new-handler may throw, which C cannot catch: libstdc++'s own form can. It calls our operator
 * new. */
static FL_COLD void *retry_nothrow(size_t align, size_t n, const void *tag)
{
    void *lib = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
    const char *name = align == 0 ? "_ZnwmRKSt9nothrow_t" : "_ZnwmSt11align_val_tRKSt9nothrow_t";
    void *f = lib != NULL ? dlsym(lib, name) : NULL;
    void *(*plain)(size_t, const void *), *(*aligned)(size_t, size_t, const void *);

    if (f == NULL) {
        return NULL;
    }
    memcpy(&plain, &f, sizeof plain);
    memcpy(&aligned, &f, sizeof aligned);
    return align == 0 ? plain(n, tag) : aligned(n, align, tag);
}

static void *new_or_null(size_t align, size_t n, const void *tag)
{
    n += n == 0;
    void *p = allocate(align, n);
    if (FL_UNLIKELY(p == NULL) && new_handler() != NULL) {
        p = retry_nothrow(align, n, tag);
    }
    return p;
}

/* new, new[]: plain, nothrow, aligned, aligned nothrow */
DECLARE_AND_DEFINE(void *, _Znwm, (size_t n))
{
    return new_or_throw(0, n);
}
DECLARE_AND_DEFINE(void *, _Znam, (size_t n))
{
    return new_or_throw(0, n);
}
DECLARE_AND_DEFINE(void *, _ZnwmRKSt9nothrow_t, (size_t n, const void *t))
{
    return new_or_null(0, n, t);
}
DECLARE_AND_DEFINE(void *, _ZnamRKSt9nothrow_t, (size_t n, const void *t))
{
    return new_or_null(0, n, t);
}
DECLARE_AND_DEFINE(void *, _ZnwmSt11align_val_t, (size_t n, size_t a))
{
    return new_or_throw(a, n);
}
DECLARE_AND_DEFINE(void *, _ZnamSt11align_val_t, (size_t n, size_t a))
{
    return new_or_throw(a, n);
}
DECLARE_AND_DEFINE(void *, _ZnwmSt11align_val_tRKSt9nothrow_t, (size_t n, size_t a, const void *t))
{
    return new_or_null(a, n, t);
}
DECLARE_AND_DEFINE(void *, _ZnamSt11align_val_tRKSt9nothrow_t, (size_t n, size_t a, const void *t))
{
    return new_or_null(a, n, t);
}

static FL_COLD void check_and_free(void *p, size_t align, size_t n)
{
    fl_harden_check("operator delete", p, align, n);
    free(p);
}

/* Two instructions more than free where the options do not ask for a check. */
static inline void free_as(void *p, size_t align, size_t n)
{
    if (FL_UNLIKELY(fl_harden.check)) {
        check_and_free(p, align, n);
    } else {
        free(p);
    }
}

/* delete, delete[]: plain, nothrow, sized, aligned, sized aligned, aligned nothrow */
DECLARE_AND_DEFINE(void, _ZdlPv, (void *p))
{
    free(p);
}
DECLARE_AND_DEFINE(void, _ZdaPv, (void *p))
{
    free(p);
}
DECLARE_AND_DEFINE(void, _ZdlPvRKSt9nothrow_t, (void *p, const void *t))
{
    (void)t;
    free(p);
}
DECLARE_AND_DEFINE(void, _ZdaPvRKSt9nothrow_t, (void *p, const void *t))
{
    (void)t;
    free(p);
}
DECLARE_AND_DEFINE(void, _ZdlPvm, (void *p, size_t n))
{
    free_as(p, 1, n);
}
DECLARE_AND_DEFINE(void, _ZdaPvm, (void *p, size_t n))
{
    free_as(p, 1, n);
}
DECLARE_AND_DEFINE(void, _ZdlPvSt11align_val_t, (void *p, size_t a))
{
    free_as(p, a, SIZE_MAX);
}
DECLARE_AND_DEFINE(void, _ZdaPvSt11align_val_t, (void *p, size_t a))
{
    free_as(p, a, SIZE_MAX);
}
DECLARE_AND_DEFINE(void, _ZdlPvmSt11align_val_t, (void *p, size_t n, size_t a))
{
    free_as(p, a, n);
}
DECLARE_AND_DEFINE(void, _ZdaPvmSt11align_val_t, (void *p, size_t n, size_t a))
{
    free_as(p, a, n);
}
DECLARE_AND_DEFINE(void, _ZdlPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t a, const void *t))
{
    (void)t;
    free_as(p, a, SIZE_MAX);
}
DECLARE_AND_DEFINE(void, _ZdaPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t a, const void *t))
{
    (void)t;
    free_as(p, a, SIZE_MAX);
}
