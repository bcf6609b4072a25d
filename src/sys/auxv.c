/* What the kernel left on the stack of the first thread: the program's arguments, its environment,
 * and behind them the auxiliary vector. By the dynamic linker's note of where that is: getauxval(3)
 * is a name that others may define. Source: the processor's supplement of the System V ABI,
 * "Process Initialization"; getauxval(3). */
#include "sys/sys.h"

#include <link.h>

/* NOLINTNEXTLINE(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
extern void *__libc_stack_end; /* ld.so's: the word with the number of arguments */

unsigned long fl_sys_auxval(unsigned long type)
{
    const uintptr_t *at = __libc_stack_end;

    if (at == NULL) {
        return 0;
    }
    at += 1 + *at + 1; /* the arguments, and their end */
    while (*at++ != 0) {
    }
    for (const ElfW(auxv_t) *v = (const void *)at; v->a_type != AT_NULL; v++) {
        if (v->a_type == type) {
            return v->a_un.a_val;
        }
    }
    return 0;
}
