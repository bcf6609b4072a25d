/* A library that wraps functions of the C library, each of which allocates before it passes the
 * call on: every function that libfaultless.so imports, and those that wrappers of others have. */
#include "victim.h"

#include <dlfcn.h>

static const char *const names[] = {
#define W(name) #name,
#include "wrapper_names.h"
#undef W
};
enum { NAMES = sizeof names / sizeof names[0] };

static void *next[NAMES];
static unsigned calls[NAMES]; /* of each: a guess where threads make them */
static __thread unsigned depth __attribute__((tls_model("initial-exec")));

/* `all`: the long ones too. */
static void allocate(int all)
{
    static const size_t lengths[] = {1, 100, 60000, 65536, MIB, 40 * MIB};
    size_t n = all ? sizeof lengths / sizeof lengths[0] : 4;

    for (size_t i = 0; i < n; i++) {
        char *p = malloc(lengths[i]), *q = calloc(1, lengths[i]), *r = memalign(64, lengths[i]);
        CHECK(p != NULL && q != NULL && r != NULL && q[0] == 0 && q[lengths[i] - 1] == 0);
        p[0] = q[0] = r[0] = 1;
        p = realloc(p, 2 * lengths[i]);
        CHECK(p != NULL && p[0] == 1);
        free(p);
        free(q);
        free(r);
    }
}

/* Where the call of that number goes on. */
__attribute__((visibility("hidden"), used)) void *wrapped(unsigned i);
void *wrapped(unsigned i)
{
    static void *(*real_dlsym)(void *, const char *);
    int saved = errno;

    unsigned n = __atomic_fetch_add(&calls[i], 1, __ATOMIC_RELAXED);

    if (depth++ == 0 && (n < 4 || n % 1024 == 0)) {
        allocate(n == 0);
    }
    if (next[i] == NULL) {
        if (real_dlsym == NULL) { /* dlsym is wrapped, too */
            void *f = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
            f = f != NULL ? f : dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
            *(void **)(void *)&real_dlsym = f;
        }
        next[i] = real_dlsym(RTLD_NEXT, names[i]);
    }
    depth--;
    errno = saved;
    return next[i];
}

/* Each keeps the registers that arguments are passed in, whatever its function takes. */
#if defined(__x86_64__)
__asm__(".macro WRAPPER name\n"
        ".globl \\name\n.type \\name, @function\n\\name:\n"
        "endbr64\npush %rbp\nmov %rsp, %rbp\nsub $192, %rsp\n"
        "mov %rdi, (%rsp)\nmov %rsi, 8(%rsp)\nmov %rdx, 16(%rsp)\nmov %rcx, 24(%rsp)\n"
        "mov %r8, 32(%rsp)\nmov %r9, 40(%rsp)\nmov %rax, 48(%rsp)\n"
        "movups %xmm0, 64(%rsp)\nmovups %xmm1, 80(%rsp)\nmovups %xmm2, 96(%rsp)\n"
        "movups %xmm3, 112(%rsp)\nmovups %xmm4, 128(%rsp)\nmovups %xmm5, 144(%rsp)\n"
        "movups %xmm6, 160(%rsp)\nmovups %xmm7, 176(%rsp)\n"
        "mov $number, %edi\ncall wrapped\nmov %rax, %r11\n"
        "movups 64(%rsp), %xmm0\nmovups 80(%rsp), %xmm1\nmovups 96(%rsp), %xmm2\n"
        "movups 112(%rsp), %xmm3\nmovups 128(%rsp), %xmm4\nmovups 144(%rsp), %xmm5\n"
        "movups 160(%rsp), %xmm6\nmovups 176(%rsp), %xmm7\n"
        "mov (%rsp), %rdi\nmov 8(%rsp), %rsi\nmov 16(%rsp), %rdx\nmov 24(%rsp), %rcx\n"
        "mov 32(%rsp), %r8\nmov 40(%rsp), %r9\nmov 48(%rsp), %rax\n"
        "leave\njmp *%r11\n"
        ".set number, number + 1\n.endm\n");
#elif defined(__aarch64__)
__asm__(".macro WRAPPER name\n"
        ".globl \\name\n.type \\name, %function\n\\name:\n"
        "stp x29, x30, [sp, #-224]!\nmov x29, sp\n"
        "stp x0, x1, [sp, #16]\nstp x2, x3, [sp, #32]\nstp x4, x5, [sp, #48]\n"
        "stp x6, x7, [sp, #64]\nstr x8, [sp, #80]\n"
        "stp q0, q1, [sp, #96]\nstp q2, q3, [sp, #128]\nstp q4, q5, [sp, #160]\n"
        "stp q6, q7, [sp, #192]\n"
        "mov w0, #number\nbl wrapped\nmov x16, x0\n"
        "ldp x0, x1, [sp, #16]\nldp x2, x3, [sp, #32]\nldp x4, x5, [sp, #48]\n"
        "ldp x6, x7, [sp, #64]\nldr x8, [sp, #80]\n"
        "ldp q0, q1, [sp, #96]\nldp q2, q3, [sp, #128]\nldp q4, q5, [sp, #160]\n"
        "ldp q6, q7, [sp, #192]\n"
        "ldp x29, x30, [sp], #224\nbr x16\n"
        ".set number, number + 1\n.endm\n");
#endif
__asm__(".text\n.set number, 0\n");
#define W(name) __asm__("WRAPPER " #name);
#include "wrapper_names.h"
