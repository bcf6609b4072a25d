/* How a program starts. From 2.34 on glibc runs its constructors; before, the program handed over a
 * function for that, and crt1.o of a newer glibc hands over none. */
#include "floor.h"

typedef void (*init)(int, char **, char **);

__asm__(".symver floor_start, __libc_start_main@" FL_FLOOR_VERSION("2.2.5"));

int floor_start(int (*main)(int, char **, char **), int argc, char **argv, init construct,
                void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, init none,
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
extern const init __init_array_start[] __attribute__((visibility("hidden")));
extern const init __init_array_end[] __attribute__((visibility("hidden")));

static void construct(int argc, char **argv, char **environment)
{
    for (const init *f = __init_array_start; f != __init_array_end; f++) {
        (*f)(argc, argv, environment);
    }
}

__attribute__((visibility("hidden"))) int
__libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, init none,
                  void (*fini)(void), void (*rtld_fini)(void), void *stack_end)
{
    (void)none;
    return floor_start(main, argc, argv, construct, fini, rtld_fini, stack_end);
}
