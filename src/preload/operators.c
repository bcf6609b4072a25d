/* C++ operators new and delete, under their Itanium ABI names: forwards to the definitions behind
 * us, which are those of the C++ library or of what replaces some of them.
 *
 * By the standard a form that is not replaced calls the basic one, and so do the forms behind us,
 * down to malloc. Only where the basic one is of the allocator behind us, malloc's owner, a form
 * would come to that one's blocks past us, and its delete would be given ours, from its own calls
 * of aligned_alloc too (jemalloc): there large blocks are ours, and delete looks whose a block is.
 *
 * Where nothing is behind us, in a C program, there is nothing to forward to: a library that it
 * loads is to find its own operators. So ours are taken out of the symbol table before it loads the
 * first one: the loader looks there for each.
 *
 * std::bad_alloc passes through these frames. Source: Itanium C++ ABI, mangling; [new.delete] of
 * C++17. */
#include "preload/operators.h"
#include "runtime/runtime.h"

#include <stdlib.h>

#define EXPORT __attribute__((visibility("default")))
#define OPERATOR __attribute__((section("fl_operators")))

/* Each new: its name, how it is called, and a large block of its kind that is ours. */
#define NEW_FORMS(X)                                                                               \
    X(_Znwm, (size_t n), (n), unless_replaced(n))                                                  \
    X(_Znam, (size_t n), (n), unless_replaced(n))                                                  \
    X(_ZnwmRKSt9nothrow_t, (size_t n, const void *t), (n, t), unless_replaced(n))                  \
    X(_ZnamRKSt9nothrow_t, (size_t n, const void *t), (n, t), unless_replaced(n))                  \
    X(_ZnwmSt11align_val_t, (size_t n, size_t a), (n, a), aligned(a, n))                           \
    X(_ZnamSt11align_val_t, (size_t n, size_t a), (n, a), aligned(a, n))                           \
    X(_ZnwmSt11align_val_tRKSt9nothrow_t, (size_t n, size_t a, const void *t), (n, a, t),          \
      aligned(a, n))                                                                               \
    X(_ZnamSt11align_val_tRKSt9nothrow_t, (size_t n, size_t a, const void *t), (n, a, t),          \
      aligned(a, n))
/* Each delete: its name, how it is called, what frees a block of ours, and what it says of the
 * block's alignment and size. */
#define DELETE_FORMS(X)                                                                            \
    X(_ZdlPv, (void *p), (p), free, 1, SIZE_MAX)                                                   \
    X(_ZdaPv, (void *p), (p), _ZdlPv, 1, SIZE_MAX)                                                 \
    X(_ZdlPvm, (void *p, size_t n), (p, n), _ZdlPv, 1, n)                                          \
    X(_ZdaPvm, (void *p, size_t n), (p, n), _ZdlPv, 1, n)                                          \
    X(_ZdlPvRKSt9nothrow_t, (void *p, const void *t), (p, t), _ZdlPv, 1, SIZE_MAX)                 \
    X(_ZdaPvRKSt9nothrow_t, (void *p, const void *t), (p, t), _ZdlPv, 1, SIZE_MAX)                 \
    X(_ZdlPvSt11align_val_t, (void *p, size_t a), (p, a), free, a, SIZE_MAX)                       \
    X(_ZdaPvSt11align_val_t, (void *p, size_t a), (p, a), free, a, SIZE_MAX)                       \
    X(_ZdlPvmSt11align_val_t, (void *p, size_t n, size_t a), (p, n, a), free, a, n)                \
    X(_ZdaPvmSt11align_val_t, (void *p, size_t n, size_t a), (p, n, a), free, a, n)                \
    X(_ZdlPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t a, const void *t), (p, a, t), free, a, \
      SIZE_MAX)                                                                                    \
    X(_ZdaPvSt11align_val_tRKSt9nothrow_t, (void *p, size_t a, const void *t), (p, a, t), free, a, \
      SIZE_MAX)

/* NOLINTBEGIN(bugprone-macro-parentheses): parameter lists */
#define DECLARE_NEW(name, args, call, ours)                                                        \
    EXPORT void *name args;                                                                        \
    void *own##name args;
#define DECLARE_DELETE(name, args, call, ours, align, size)                                        \
    EXPORT void name args;                                                                         \
    void own##name args;
NEW_FORMS(DECLARE_NEW)
DELETE_FORMS(DECLARE_DELETE)

#define SLOT_NEW(name, args, call, ours) void *(*name)args;
#define SLOT_DELETE(name, args, call, ours, align, size) void(*name) args;
static struct {
    NEW_FORMS(SLOT_NEW)
    DELETE_FORMS(SLOT_DELETE)
} next;               /* NULL: there is none. Constant after boot, like what follows */
static bool found;    /* all of this is filled in */
static bool has_ours; /* the basic ones are the next allocator's, or there are none */
static bool replaced; /* before us, by the program */

#define FIND_NEW(name, args, call, ours) *(void **)(void *)&next.name = fl_find_next_of(#name);
#define FIND_DELETE(name, args, call, ours, align, size) FIND_NEW(name, args, call, ours)
static FL_COLD void find_next(void)
{
    fl_load();
    NEW_FORMS(FIND_NEW)
    DELETE_FORMS(FIND_DELETE)
    has_ours = next._Znwm == NULL || fl_is_next_owners("_Znwm");
    replaced = (const void *)_Znwm != (const void *)own_Znwm;
    found = true;
}

static void *aligned(size_t align, size_t n)
{
    void *p = NULL;

    return posix_memalign(&p, align, n) == 0 ? p : NULL;
}

/* Else the next one's form decides: it calls the replacement, or does not. */
static void *unless_replaced(size_t n)
{
    return replaced ? NULL : malloc(n);
}

static inline bool is_found(void)
{
    if (FL_UNLIKELY(!found)) {
        find_next();
    }
    return true;
}

/* The names are aliases: by its own name each may be another's. */
#define DEFINE_NEW(name, args, call, ours)                                                         \
    OPERATOR void *own##name args                                                                  \
    {                                                                                              \
        bool large = is_found() && has_ours && (n >= fl_route.threshold || next.name == NULL);     \
        void *p = FL_UNLIKELY(large) ? ours : NULL;                                                \
        return p != NULL || next.name == NULL ? p : next.name call;                                \
    }                                                                                              \
    EXPORT void *name args __attribute__((alias("own" #name)));
#define DEFINE_DELETE(name, args, call, ours, align, size)                                         \
    OPERATOR void own##name args                                                                   \
    {                                                                                              \
        if (FL_UNLIKELY(fl_harden.check) && (align != 1 || size != SIZE_MAX)) {                    \
            fl_harden_check("operator delete", p, align, size);                                    \
        }                                                                                          \
        if (is_found() && has_ours && (fl_is_ours(p) || next.name == NULL)) {                      \
            ours(p);                                                                               \
        } else {                                                                                   \
            next.name call;                                                                        \
        }                                                                                          \
    }                                                                                              \
    EXPORT void name args __attribute__((alias("own" #name)));
NEW_FORMS(DEFINE_NEW)
DELETE_FORMS(DEFINE_DELETE)
/* NOLINTEND(bugprone-macro-parentheses) */

/* The linker's: where the operators lie. */
/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
extern FL_HIDDEN const char __start_fl_operators[], __stop_fl_operators[];

/* FAULTLESS_CHECK_FREE wants to see each sized delete. */
void fl_operators_before_load(void)
{
    static _Atomic bool done;

    if (FL_LIKELY(atomic_load_explicit(&done, memory_order_relaxed)) ||
        atomic_exchange(&done, true)) {
        return;
    }
    (void)is_found();
    if (next._Znwm == NULL && !fl_harden.check) {
        fl_past_hide(__start_fl_operators, __stop_fl_operators);
    }
}
