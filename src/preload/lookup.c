/* libc's functions by which a program loads objects and finds names: runtime/past.c is told first.
 *
 * Each ends in a jump to the next definition, with the arguments and the return address as they
 * came, since libc knows the caller by that address: its RUNPATH, $ORIGIN, its namespace, what
 * comes next behind it. A compiler makes a call of it where it does not optimise, hence
 * assembly. */
#include "preload/operators.h"
#include "runtime/runtime.h"

#include <dlfcn.h>

/* Code for `name`: calls fl_before_NAME with the three arguments (those that there are) and with
 * the return address, then jumps to what that returns. */
#if defined(__x86_64__)
#define JUMP_BEHIND(name)                                                                          \
    __asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", @function\n" #name ":\n"        \
            ".cfi_startproc\n"                                                                     \
            "endbr64\n"                                                                            \
            "pushq %rdi\n.cfi_adjust_cfa_offset 8\n"                                               \
            "pushq %rsi\n.cfi_adjust_cfa_offset 8\n"                                               \
            "pushq %rdx\n.cfi_adjust_cfa_offset 8\n"                                               \
            "movq 24(%rsp), %rcx\n"                                                                \
            "call fl_before_" #name "\n"                                                           \
            "popq %rdx\n.cfi_adjust_cfa_offset -8\n"                                               \
            "popq %rsi\n.cfi_adjust_cfa_offset -8\n"                                               \
            "popq %rdi\n.cfi_adjust_cfa_offset -8\n"                                               \
            "jmpq *%rax\n"                                                                         \
            ".cfi_endproc\n.size " #name ", . - " #name "\n")
#elif defined(__aarch64__)
#define JUMP_BEHIND(name)                                                                          \
    __asm__(".text\n.p2align 4\n.globl " #name "\n.type " #name ", %function\n" #name ":\n"        \
            ".cfi_startproc\n"                                                                     \
            "hint 34\n" /* bti c */                                                                \
            "stp x29, x30, [sp, -48]!\n.cfi_def_cfa_offset 48\n"                                   \
            ".cfi_offset 29, -48\n.cfi_offset 30, -40\n"                                           \
            "mov x29, sp\n"                                                                        \
            "stp x0, x1, [sp, 16]\n"                                                               \
            "str x2, [sp, 32]\n"                                                                   \
            "mov x3, x30\n"                                                                        \
            "bl fl_before_" #name "\n"                                                             \
            "mov x16, x0\n"                                                                        \
            "ldp x0, x1, [sp, 16]\n"                                                               \
            "ldr x2, [sp, 32]\n"                                                                   \
            "ldp x29, x30, [sp], 48\n"                                                             \
            ".cfi_restore 29\n.cfi_restore 30\n.cfi_def_cfa_offset 0\n"                            \
            "br x16\n"                                                                             \
            ".cfi_endproc\n.size " #name ", . - " #name "\n")
#else
#error "a jump to another function, with the arguments and the return address as they are"
#endif

/* Looked up at its first call: most programs load nothing. */
static void *next(const char *name, void *_Atomic *known)
{
    void *f = atomic_load_explicit(known, memory_order_relaxed);

    if (FL_UNLIKELY(f == NULL)) {
        f = fl_find_next_of(name);
        atomic_store_explicit(known, f, memory_order_relaxed);
    }
    return f;
}

/* `tell`, with the arguments a, b and c of `name`, and `caller`. */
#define HOOK(name, tell)                                                                           \
    __attribute__((used))                                                                          \
    FL_HIDDEN void *fl_before_##name(void *a, const void *b, uintptr_t c, const void *caller);     \
    void *fl_before_##name(void *a, const void *b, uintptr_t c, const void *caller)                \
    {                                                                                              \
        static void *_Atomic known;                                                                \
        (void)a, (void)b, (void)c, (void)caller;                                                   \
        tell;                                                                                      \
        return next(#name, &known);                                                                \
    }                                                                                              \
    JUMP_BEHIND(name)

static void before_load(Lmid_t to, int mode)
{
    fl_operators_before_load();
    if (to != LM_ID_BASE) {
        fl_past_namespace();
    } else if ((mode & RTLD_DEEPBIND) != 0) {
        fl_past_deep();
    }
}

HOOK(dlopen, before_load(LM_ID_BASE, (int)(uintptr_t)b));
HOOK(dlmopen, before_load((Lmid_t)a, (int)c));
HOOK(dlsym, fl_past_lookup(a, b, false, caller));
HOOK(dlvsym, fl_past_lookup(a, b, true, caller));
